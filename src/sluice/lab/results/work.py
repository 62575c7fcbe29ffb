"""Work as a store knows it: waiting, taken, and what it came to."""

from dataclasses import dataclass

from sluice.lab.results.cell import Asked, CellResult

__all__ = ["Counts", "GridFacts", "Made", "WorkClaim", "WorkRow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GridFacts:
    """What a store says of the grid as a whole."""

    name: str
    stand_ins: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRow:
    """One piece of work to be done, and the cells that wait for it."""

    id: str
    layout: str
    rule: str
    settings: str
    cells: tuple[tuple[int, Asked], ...]  # with their places in the grid


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkClaim:
    """Work that is ours until the lease runs out."""

    id: str
    layout: str
    rule: str
    settings: str
    attempt: int  # 1 at first


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a piece of work came to."""

    result: CellResult
    federation: str  # a name that only equal federations share
    recalled: bool  # an equal federation had run before
    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How far a grid is."""

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
        """Whether nothing is left to run."""
        return not self.waiting and not self.running
