"""Results as a report reads them: one entry per cell, in the order of the grid."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from sluice.errors import ResultsError
from sluice.lab.results.cell import Asked, CellResult
from sluice.lab.results.provenance import Provenance
from sluice.lab.results.store import ResultStore

__all__ = ["GridState", "StoredCell", "stored_cells", "under_way"]


class GridState(StrEnum):
    """The state of a cell."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCell:
    """A cell with its state, result and provenance."""

    asked: Asked
    work: str
    settings: str
    state: GridState
    reason: str | None
    result: CellResult | None
    federation: str | None
    made_by: Provenance | None
    attempts: int
    recalled: bool | None
    wall_s: float | None
    ended: float | None


Stored = TypeVar("Stored")
_ASKED = TypeAdapter(Asked)
_RESULT = TypeAdapter(CellResult)
_MADE_BY = TypeAdapter(Provenance)


def stored_cells(store: ResultStore) -> tuple[StoredCell, ...]:
    """Read every cell; cells of the same work share its result."""
    results: dict[str, CellResult | None] = {}
    makers: dict[str, Provenance] = {}
    cells = []
    for row in store.rows(
        "SELECT asked, work, settings, state, reason, result, federation, made_by, attempts,"
        " recalled, wall_s, ended FROM cells JOIN works ON works.id = cells.work ORDER BY cells.at"
    ):
        if row["work"] not in results:
            results[row["work"]] = row["result"] and _read(_RESULT, row["result"], store)
        cells.append(
            StoredCell(
                asked=_read(_ASKED, row["asked"], store),
                work=row["work"],
                settings=row["settings"],
                state=GridState(row["state"]),
                reason=row["reason"],
                result=results[row["work"]],
                federation=row["federation"],
                made_by=_maker(row["made_by"], makers, store),
                attempts=row["attempts"],
                recalled=None if row["recalled"] is None else bool(row["recalled"]),
                wall_s=row["wall_s"],
                ended=row["ended"],
            )
        )
    return tuple(cells)


def under_way(store: ResultStore) -> tuple[Asked, ...]:
    """Return the first cell of each piece of work that is running."""
    rows = store.rows(
        "SELECT asked, min(cells.at) FROM cells JOIN works ON works.id = cells.work"
        " WHERE state = 'running' GROUP BY work ORDER BY min(cells.at)"
    )
    return tuple(_read(_ASKED, row["asked"], store) for row in rows)


def _maker(
    text: str | None, parsed: dict[str, Provenance], store: ResultStore
) -> Provenance | None:
    if text is None:
        return None
    if text not in parsed:
        parsed[text] = _read(_MADE_BY, text, store)
    return parsed[text]


def _read(kind: TypeAdapter[Stored], text: str, store: ResultStore) -> Stored:
    try:
        return kind.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ResultsError(
            f"{store.path} is damaged: a result is not well formed ({first['msg']}); fetch it "
            "again, or run the grid into a new folder"
        ) from None
