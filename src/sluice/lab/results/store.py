"""The result store: the cells of a grid, who works on them and their results, in one SQLite file.

A piece of work is waiting, running under a lease, done or failed. Claiming it is one transaction,
and so is saving its result: if a process is killed, at most the work it was running is lost.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from sluice.errors import ResultsError
from sluice.lab.results.cell import Asked, CellResult, Score
from sluice.lab.results.database import SCHEMA, TABLES, connected, readable_errors, transaction
from sluice.lab.results.federations import TrainedFederation
from sluice.lab.results.owner import gone
from sluice.lab.results.provenance import Provenance
from sluice.lab.results.work import Counts, GridFacts, Made, WorkClaim, WorkRow

__all__ = ["FILE", "ResultStore", "lay_out"]

_ASKED = TypeAdapter(Asked)


def lay_out(path: Path, facts: GridFacts, works: Sequence[WorkRow]) -> None:
    """Write a new store to a draft file and rename it when it is complete."""
    draft = path.with_name(f".{path.name}.draft")
    for leftover in path.parent.glob(f"{draft.name}*"):  # of a run that was killed
        leftover.unlink()
    file = connected(draft, patience_s=0.0)
    try:
        file.executescript(TABLES)
        with transaction(file):
            rows = {
                "schema": str(SCHEMA),
                "grid": facts.name,
                "stand_ins": "\n".join(facts.stand_ins),
            }
            file.executemany("INSERT INTO facts VALUES (?, ?)", rows.items())
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


FILE = "cells.sqlite"
KEEP_FEDERATION = "INSERT OR IGNORE INTO federations VALUES (?, ?, ?, ?, ?, ?, ?)"
PATIENCE_S = 30.0

_RESULT = TypeAdapter(CellResult)
_SCORE = TypeAdapter(Score)
_MADE_BY = TypeAdapter(Provenance)


class ResultStore:
    """One results folder."""

    def __init__(
        self, folder: Path, *, read_only: bool = False, patience_s: float = PATIENCE_S
    ) -> None:
        self.folder = folder
        self.path = folder / FILE
        if not self.path.exists():
            raise ResultsError(f"{folder} holds no results; create some with 'sluice lab run'")
        self._file = connected(self.path, patience_s=patience_s, read_only=read_only)
        schema = self._fact("schema")
        if schema != str(SCHEMA):
            raise ResultsError(
                f"{self.path} has schema {schema}, but this version of Sluice reads {SCHEMA}; run "
                "the grid into a new folder"
            )

    @classmethod
    def create(cls, folder: Path, facts: GridFacts, works: Sequence[WorkRow]) -> "ResultStore":
        """Create a new store, completely or not at all."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ResultsError(f"cannot create the folder {folder}: {error.strerror}") from None
        path = folder / FILE
        if path.exists():
            raise ResultsError(
                f"{folder} already holds results; continue with 'sluice lab resume {folder}' or "
                "choose another folder"
            )
        with readable_errors(path):
            lay_out(path, facts, works)
        return cls(folder)

    def close(self) -> None:
        """Merge the journal into the file and close it."""
        with readable_errors(self.path):
            self._file.close()

    def facts(self) -> GridFacts:
        """Return the name of the grid and the substitutes for absent records."""
        lines = self._fact("stand_ins").split("\n")
        return GridFacts(name=self._fact("grid"), stand_ins=tuple(filter(None, lines)))

    def claim(
        self, owner: str, *, now: float, lease_s: float, prefer: str | None = None
    ) -> WorkClaim | None:
        """Claim the next piece of work.

        Work whose federation was trained elsewhere comes first; then the preferred layout, and
        layouts in use last.
        """
        with readable_errors(self.path), transaction(self._file):
            row = self._file.execute(
                "SELECT id, layout, rule, settings, attempts FROM works AS w"
                " WHERE state = 'waiting' OR (state = 'running' AND lease_until < :now)"
                " ORDER BY known DESC, layout IS NOT :prefer, EXISTS (SELECT 1 FROM works AS other"
                "   WHERE other.state = 'running' AND other.layout = w.layout), at LIMIT 1",
                {"now": now, "prefer": prefer},
            ).fetchone()
            if row is None:
                return None
            self._file.execute(
                "UPDATE works SET state = 'running', owner = ?, lease_until = ?,"
                " attempts = attempts + 1 WHERE id = ?",
                (owner, now + lease_s, row[0]),
            )
        return WorkClaim(id=row[0], layout=row[1], rule=row[2], settings=row[3], attempt=row[4] + 1)

    def renew(self, owner: str, *, now: float, lease_s: float) -> None:
        """Extend all leases of an owner."""
        with readable_errors(self.path):
            self._file.execute(
                "UPDATE works SET lease_until = ? WHERE state = 'running' AND owner = ?",
                (now + lease_s, owner),
            )

    def finish(
        self, claim: WorkClaim, owner: str, made: Made, *, made_by: Provenance, now: float
    ) -> bool:
        """Save the result of work; return False if the lease was lost to another owner."""
        with readable_errors(self.path), transaction(self._file):
            update = self._file.execute(
                "UPDATE works SET state = 'done', owner = NULL, lease_until = NULL, result = ?,"
                " federation = ?, made_by = ?, recalled = ?, wall_s = ?, ended = ?"
                " WHERE id = ? AND state = 'running' AND owner = ?",
                (
                    _RESULT.dump_json(made.result).decode(),
                    made.federation,
                    _MADE_BY.dump_json(made_by).decode(),
                    int(made.recalled),
                    made.wall_s,
                    now,
                    claim.id,
                    owner,
                ),
            )
            if update.rowcount:
                trained = TrainedFederation(
                    federation=made.federation,
                    layout=claim.layout,
                    rule=claim.rule,
                    score=made.result.score,
                    made_by=made_by,
                    wall_s=made.wall_s,
                    ended=now,
                    works=(claim.id,),
                )
                self._file.execute(KEEP_FEDERATION, _federation_row(trained))
        return bool(update.rowcount)

    def fail(
        self, claim: WorkClaim, owner: str, reason: str, *, made_by: Provenance, now: float
    ) -> bool:
        """Save why work failed; return False if the lease was lost."""
        with readable_errors(self.path):
            update = self._file.execute(
                "UPDATE works SET state = 'failed', owner = NULL, lease_until = NULL, reason = ?,"
                " made_by = ?, ended = ? WHERE id = ? AND state = 'running' AND owner = ?",
                (reason, _MADE_BY.dump_json(made_by).decode(), now, claim.id, owner),
            )
        return bool(update.rowcount)

    def give_back(self, owner: str, claim: WorkClaim | None = None) -> None:
        """Release one piece of work, or all work that an owner still holds."""
        with readable_errors(self.path):
            self._file.execute(
                "UPDATE works SET state = 'waiting', owner = NULL, lease_until = NULL"
                " WHERE state = 'running' AND owner = ? AND (? IS NULL OR id = ?)",
                (owner, *2 * (claim.id if claim else None,)),
            )

    def release_the_dead(self) -> int:
        """Release the work of owners whose processes have all ended; return how many pieces."""
        with readable_errors(self.path):
            owners = self._file.execute(
                "SELECT owner, count(*) FROM works WHERE state = 'running' GROUP BY owner"
            ).fetchall()
        dead = [(name, works) for name, works in owners if gone(self.folder, name)]
        for name, _ in dead:
            self.give_back(name)
        return sum(works for _, works in dead)

    def retry_failed(self) -> int:
        """Set failed work back to waiting; return how many pieces."""
        with readable_errors(self.path):
            changed = self._file.execute(
                "UPDATE works SET state = 'waiting', reason = NULL, attempts = 0"
                " WHERE state = 'failed'"
            )
        return changed.rowcount

    def scores(self, layout: str, rule: str) -> Mapping[str, Score]:
        """Return the scores of a layout's finished federations under a rule."""
        with readable_errors(self.path):
            rows = self._file.execute(
                "SELECT key, score FROM federations WHERE layout = ? AND rule = ?", (layout, rule)
            ).fetchall()
        return {key: _SCORE.validate_json(score) for key, score in rows}

    def take_over(self, federations: Iterable[TrainedFederation]) -> int:
        """Add federations that were trained elsewhere; return how many are new here."""
        taken = tuple(federations)
        works = [(work,) for one in taken for work in one.works]
        with readable_errors(self.path), transaction(self._file):
            self._file.executemany("UPDATE works SET known = 1 WHERE id = ?", works)
            rows = map(_federation_row, taken)
            return self._file.executemany(KEEP_FEDERATION, rows).rowcount

    def makers(self) -> tuple[Provenance, ...]:
        """Return the provenance of all results, each once."""
        with readable_errors(self.path):
            rows = self._file.execute(
                "SELECT DISTINCT made_by FROM works WHERE made_by IS NOT NULL ORDER BY made_by"
            ).fetchall()
        return tuple(_MADE_BY.validate_json(row[0]) for row in rows)

    def counts(self) -> Counts:
        """Count cells and works by state."""
        with readable_errors(self.path):
            works, waiting, running, done, failed, recalled = self._file.execute(
                "SELECT count(*), total(state = 'waiting'), total(state = 'running'),"
                " total(state = 'done'), total(state = 'failed'), total(recalled) FROM works"
            ).fetchone()
            cells, cells_done = self._file.execute(
                "SELECT count(*), total(state = 'done') FROM cells"
                " JOIN works ON works.id = cells.work"
            ).fetchone()
        return Counts(
            cells=cells,
            cells_done=int(cells_done),
            works=works,
            waiting=int(waiting),
            running=int(running),
            done=int(done),
            failed=int(failed),
            recalled=int(recalled),
        )

    def rows(self, query: str) -> list[sqlite3.Row]:
        """Run a read query; for the modules of this package."""
        with readable_errors(self.path):
            cursor = self._file.cursor()
            cursor.row_factory = sqlite3.Row
            return cursor.execute(query).fetchall()

    def _fact(self, key: str) -> str:
        with readable_errors(self.path):
            row = self._file.execute("SELECT value FROM facts WHERE key = ?", (key,)).fetchone()
        return "" if row is None else str(row[0])


def _federation_row(one: TrainedFederation) -> tuple[object, ...]:
    score, made_by = _SCORE.dump_json(one.score), _MADE_BY.dump_json(one.made_by)
    return (
        one.federation,
        one.layout,
        one.rule,
        score.decode(),
        made_by.decode(),
        one.wall_s,
        one.ended,
    )
