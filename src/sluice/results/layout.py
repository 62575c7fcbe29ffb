"""Laying a store out: a grid's cells and the work they wait for, in one transaction."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter

from sluice.results.cell import Asked
from sluice.results.database import SCHEMA, TABLES, connected, transaction
from sluice.results.work import GridFacts, WorkRow

__all__ = ["lay_out"]

_ASKED = TypeAdapter(Asked)


def lay_out(path: Path, facts: GridFacts, works: Sequence[WorkRow]) -> None:
    """Write a new store beside its place and move it there when it is whole."""
    draft = path.with_name(f".{path.name}.draft")
    for left in path.parent.glob(f"{draft.name}*"):  # by a run that was killed here
        left.unlink()
    file = connected(draft, patience_s=0.0)
    try:
        file.executescript(TABLES)
        with transaction(file):
            told = {
                "schema": str(SCHEMA),
                "grid": facts.name,
                "stand_ins": "\n".join(facts.stand_ins),
            }
            file.executemany("INSERT INTO facts VALUES (?, ?)", told.items())
            file.executemany(
                "INSERT INTO works (at, id, layout, rule, settings) VALUES (?, ?, ?, ?, ?)",
                [(at, row.id, row.layout, row.rule, row.settings) for at, row in enumerate(works)],
            )
            file.executemany(
                "INSERT INTO cells VALUES (?, ?, ?)",
                [
                    (at, _ASKED.dump_json(asked).decode(), row.id)
                    for row in works
                    for at, asked in row.cells
                ],
            )
    finally:
        file.close()
    draft.rename(path)
