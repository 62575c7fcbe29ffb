"""Work as a store holds it: to be done, claimed, and finished with a result."""

from dataclasses import dataclass

from sluice.lab.results.cell import Asked, CellResult

__all__ = ["Counts", "GridFacts", "Made", "WorkClaim", "WorkRow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GridFacts:
    """The name of a grid and the substitutes for its absent records."""

    name: str
    stand_ins: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRow:
    """One piece of work to be done, and the cells that need it."""

    id: str
    layout: str
    rule: str
    settings: str
    cells: tuple[tuple[int, Asked], ...]  # position in the grid, cell


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkClaim:
    """Work that an owner has claimed until its lease expires."""

    id: str
    layout: str
    rule: str
    settings: str
    attempt: int  # counted from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The result of a piece of work."""

    result: CellResult
    federation: str  # digest; equal federations have equal digests
    recalled: bool  # the score comes from an equal federation that ran before
    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The progress of a grid."""

    cells: int
    cells_done: int
    works: int
    waiting: int
    running: int
    done: int
    failed: int
    recalled: int

    @property
    def over(self) -> bool:
        """Whether all work is done or failed."""
        return not self.waiting and not self.running
