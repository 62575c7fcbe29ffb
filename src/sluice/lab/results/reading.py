"""Results as a report reads them: one entry per cell, in the order of the grid."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from sluice.errors import ResultsError
from sluice.lab.results.cell import Asked, CellResult, Score
from sluice.lab.results.federations import TrainedFederation
from sluice.lab.results.provenance import Provenance
from sluice.lab.results.store import ResultStore

__all__ = [
    "GridState",
    "StoredCell",
    "settings_of",
    "stored_cells",
    "trained_federations",
    "under_way",
]


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
    trained_by: Provenance | None  # of its federation, which may be taken over from a file
    trained_s: float | None
    trained_at: float | None


Stored = TypeVar("Stored")
_ASKED = TypeAdapter(Asked)
_RESULT = TypeAdapter(CellResult)
_SCORE = TypeAdapter(Score)
_MADE_BY = TypeAdapter(Provenance)


def stored_cells(store: ResultStore) -> tuple[StoredCell, ...]:
    """Read every cell; cells of the same work share its result."""
    results: dict[str, CellResult | None] = {}
    makers: dict[str, Provenance] = {}
    cells = []
    for row in store.rows(
        "SELECT asked, work, settings, state, reason, result, federation, works.made_by, attempts,"
        " recalled, works.wall_s, works.ended, federations.made_by AS trained_by,"
        " federations.wall_s AS trained_s, federations.ended AS trained_at"
        " FROM cells JOIN works ON works.id = cells.work"
        " LEFT JOIN federations ON federations.key = works.federation ORDER BY cells.at"
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
                made_by=row["made_by"] and _maker(row["made_by"], makers, store),
                attempts=row["attempts"],
                recalled=None if row["recalled"] is None else bool(row["recalled"]),
                wall_s=row["wall_s"],
                ended=row["ended"],
                trained_by=row["trained_by"] and _maker(row["trained_by"], makers, store),
                trained_s=row["trained_s"],
                trained_at=row["trained_at"],
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


def settings_of(store: ResultStore) -> tuple[str, ...]:
    """Return the settings of all works, in the order of the grid."""
    return tuple(row["settings"] for row in store.rows("SELECT settings FROM works ORDER BY at"))


def trained_federations(store: ResultStore) -> tuple[TrainedFederation, ...]:
    """Return all trained federations, those taken over included."""
    makers: dict[str, Provenance] = {}
    works: dict[str, list[str]] = {}
    for row in store.rows("SELECT id, federation FROM works WHERE state = 'done'"):
        works.setdefault(row["federation"], []).append(row["id"])
    return tuple(
        TrainedFederation(
            federation=row["key"],
            layout=row["layout"],
            rule=row["rule"],
            score=_read(_SCORE, row["score"], store),
            made_by=_maker(row["made_by"], makers, store),
            wall_s=row["wall_s"],
            ended=row["ended"],
            works=tuple(works.get(row["key"], ())),
        )
        for row in store.rows("SELECT * FROM federations ORDER BY key")
    )


def _maker(text: str, parsed: dict[str, Provenance], store: ResultStore) -> Provenance:
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
