"""The cheapest assignment of tags to points: what each pair costs, and what pairs of pairs cost.

What a tag and a point cost by themselves is given. What pairs cost depends on the whole assignment:
it is improved in steps, each of which solves a linear assignment (Frank-Wolfe, as in Vogelstein et
al., "Fast approximate quadratic programming for graph matching", PLOS ONE 2015).
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from sluice.arrays import Floats, Ints

__all__ = ["UNALIKE", "UNMATCHED", "Assignment", "Pairs", "assign"]

UNALIKE = 1e3  # a pair that cannot be
UNMATCHED = 1.2  # the cost of a tag without a point, or of a point without a tag
GRAPH_WEIGHTS = (0.5, 1.0, 0.5, 0.5, 0.5)  # together, changes, later, next, ties of rules
GRAPH_WEIGHT = 3.0
STEPS = 40
MOST_SWAPS = 100
LEAST_GAIN = 1e-9


class Pairs:
    """How unlike pairs of tags and pairs of points are."""

    def __init__(self, own: Floats, other: Floats) -> None:
        tied = bool(own[-1].any() and other[-1].any())  # ties count if both sides know them
        weights = [*GRAPH_WEIGHTS[:-1], GRAPH_WEIGHTS[-1] if tied else 0.0]
        self._graphs = [
            (weight, one, two)
            for weight, one, two in zip(weights, own, other, strict=True)
            if weight
        ]

    def costs(self, assigned: Floats) -> Floats:
        """Return tags x points: the mean squared difference of their pairs, if all others stay."""
        total = np.zeros(assigned.shape)
        for weight, one, two in self._graphs:
            rows, columns = assigned.sum(axis=1), assigned.sum(axis=0)
            for mine, theirs in ((one, two), (one.T, two.T)):
                total += weight * (
                    (mine**2 @ rows)[:, np.newaxis]
                    + (theirs**2 @ columns)[np.newaxis]
                    - 2 * mine @ assigned @ theirs.T
                )
        scaled: Floats = GRAPH_WEIGHT * total / max(float(assigned.sum()), 1.0)
        return scaled

    def of(self, points: Ints, tag: int, point: int, *, without: int = -1) -> float:
        """Return what the pairs of one tag cost if it is this point, and the others stay."""
        others = np.flatnonzero(points >= 0)
        others = others[(others != tag) & (others != without)]
        held = points[others]
        total = 0.0
        for weight, one, two in self._graphs:
            total += weight * float(
                ((one[tag, others] - two[point, held]) ** 2).sum()
                + ((one[others, tag] - two[held, point]) ** 2).sum()
            )
        return GRAPH_WEIGHT * total / max(len(others) + 1, 1)


def assign(single: Floats, pairs: Pairs) -> "Assignment":
    """Return the best assignment found."""
    place = matching(single)
    for step in range(STEPS):
        target = matching(single + pairs.costs(place))
        place = place + (target - place) / (1 + step / 2)
    chosen = matching(single + pairs.costs(place))
    points = np.where(chosen.any(axis=1), chosen.argmax(axis=1), -1)
    assignment = Assignment(single, pairs, points)
    for _ in range(MOST_SWAPS):
        improved = assignment.improved()
        if improved is None:
            break
        assignment = improved
    return assignment


class Assignment:
    """Each tag's point (-1: none), and what changes of it cost."""

    def __init__(self, single: Floats, pairs: Pairs, points: Ints) -> None:
        self.single, self.pairs, self.points = single, pairs, points
        self.holder = {int(point): tag for tag, point in enumerate(points) if point >= 0}

    def cost(self, at: int) -> float:
        """Return what a tag's match costs by itself and by its pairs."""
        own = int(self.points[at])
        return float(self.single[at, own]) + self.pairs.of(self.points, at, own)

    def gaps(self, at: int) -> Floats:
        """Return, per point, how much dearer the whole assignment gets if a tag takes it."""
        own = int(self.points[at])
        gaps = np.full(self.single.shape[1], np.inf)
        for point in np.flatnonzero(self.single[at] < UNALIKE):
            if point == own:
                continue
            rival = self.holder.get(int(point))
            if rival is None:
                gaps[point] = self._moved(at, int(point))
            elif self.single[rival, own] < UNALIKE:
                gaps[point] = self._swapped(at, rival)
        return gaps

    def replaced(self, at: int) -> float:
        """Return how much dearer it gets if a tag without a point takes this one's point."""
        own = int(self.points[at])
        free = [tag for tag in np.flatnonzero(self.points < 0) if self.single[tag, own] < UNALIKE]
        before = self.cost(at)
        return (
            min(
                (
                    float(self.single[tag, own])
                    + self.pairs.of(self.points, int(tag), own, without=at)
                    for tag in free
                ),
                default=np.inf,
            )
            - before
        )

    def improved(self) -> "Assignment | None":
        """Return the assignment after the exchange that lowers its cost most; None: none does."""
        best, found = -LEAST_GAIN, None
        for at in np.flatnonzero(self.points >= 0):
            gaps = self.gaps(int(at))
            point = int(gaps.argmin())
            if gaps[point] < best:
                best, found = float(gaps[point]), (int(at), point)
        if found is None:
            return None
        tag, point = found
        points = self.points.copy()
        rival = self.holder.get(point)
        if rival is not None:
            points[rival] = points[tag]
        points[tag] = point
        return Assignment(self.single, self.pairs, points)

    def _moved(self, at: int, point: int) -> float:
        moved = float(self.single[at, point]) + self.pairs.of(self.points, at, point, without=at)
        return moved - self.cost(at)

    def _swapped(self, at: int, rival: int) -> float:
        after = self.points.copy()
        after[at], after[rival] = self.points[rival], self.points[at]
        single = sum(
            float(self.single[tag, after[tag]] - self.single[tag, self.points[tag]])
            for tag in (at, rival)
        )
        now, then = (
            sum(self.pairs.of(points, tag, int(points[tag])) for tag in (at, rival))
            for points in (self.points, after)
        )
        return single + then - now


def matching(costs: Floats) -> Floats:
    """Return the cheapest matching as a matrix; every tag and point may stay without a partner."""
    tags, points = costs.shape
    square = np.full((tags + points, tags + points), UNALIKE)
    square[:tags, :points] = costs
    square[:tags, points:][np.diag_indices(tags)] = UNMATCHED
    square[tags:, :points][np.diag_indices(points)] = UNMATCHED
    square[tags:, points:] = 0.0
    rows, columns = linear_sum_assignment(square)
    matrix = np.zeros(costs.shape)
    both = (rows < tags) & (columns < points)
    matrix[rows[both], columns[both]] = 1.0
    return matrix
