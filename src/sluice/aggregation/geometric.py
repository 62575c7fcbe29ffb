"""The geometric median: the point with the least sum of distances to all updates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sluice.aggregation.geometry import squared_distances
from sluice.aggregation.rule import Aggregate, Fresh, State, aggregated, expect_fresh
from sluice.aggregation.update import Update, stacked
from sluice.arrays import Floats
from sluice.errors import SettingError

__all__ = ["GeometricMedian"]

COINCIDENT = 1e-300  # a smaller distance is zero: its inverse would not be finite
SLACK = 1e-9  # tolerance for rounding in the test whether an update is the median


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricMedian:
    """Weiszfeld's iteration to a tolerance, unweighted.

    The steps follow Vardi and Zhang (PNAS 2000). If updates are themselves medians, their mean is
    returned. Otherwise the iteration starts near the best update, at a point whose sum of distances
    is below that of every update. Each step lowers that sum, so the iteration reaches an update
    only by rounding; that update is then the median to within rounding.
    """

    tolerance: float = 1e-10  # last step, relative to the median distance
    iterations: int = 10_000  # at most
    needs_root: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (self.tolerance > 0 and self.iterations >= 1):
            raise SettingError(
                "the geometric median needs a tolerance above 0 and at least 1 iteration, got "
                f"{self.tolerance} and {self.iterations}"
            )

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, Fresh]:
        """Aggregate one round."""
        fresh = expect_fresh(state, "the geometric median")
        stack = stacked(updates)
        shares = self._shares(stack.matrix)
        return aggregated(stack, shares @ stack.matrix, shares), fresh

    def _shares(self, matrix: Floats) -> Floats:
        apart = np.sqrt(squared_distances(matrix))
        points = _in_few_dimensions(matrix)
        pulls = [_pull(points, apart[at], at) for at in range(len(points))]
        lengths = np.linalg.norm(pulls, axis=1)
        coincident = (apart == 0).sum(axis=1)
        medians = lengths <= coincident * (1 + SLACK) + SLACK
        if medians.any():
            return np.asarray(medians / medians.sum(), dtype=np.float64)
        best = int(apart.sum(axis=1).argmin())
        others = apart[best] > 0
        reach = (1 - coincident[best] / lengths[best]) / (1 / apart[best][others]).sum()
        return self._iterate(points, points[best] + reach * pulls[best])

    def _iterate(self, points: Floats, start: Floats) -> Floats:
        centre = start
        shares: Floats = np.zeros(len(points))
        for _ in range(self.iterations):
            apart = np.linalg.norm(points - centre, axis=1)
            reached = apart < COINCIDENT
            if reached.any():
                return np.asarray(reached / reached.sum(), dtype=np.float64)
            shares = (1 / apart) / (1 / apart).sum()
            moved = shares @ points
            if np.linalg.norm(moved - centre) <= self.tolerance * np.median(apart):
                break
            centre = moved
        return shares


def _in_few_dimensions(matrix: Floats) -> Floats:
    """Return n points of at most n coordinates at the same distances from each other.

    The median lies in the span of the updates, so the iteration does not need all weights. The
    origin moves to the coordinate-wise median first, so that a distant update does not reduce the
    precision of the others.
    """
    centred = (matrix - np.median(matrix, axis=0)).T
    return np.asarray(np.linalg.qr(centred, mode="r"), dtype=np.float64).T


def _pull(points: Floats, apart: Floats, at: int) -> Floats:
    """Return the sum of unit vectors from one point to all points at other places."""
    elsewhere = apart > 0
    towards = (points[elsewhere] - points[at]) / apart[elsewhere, np.newaxis]
    return np.asarray(towards.sum(axis=0), dtype=np.float64)
