"""Krum and Multi-Krum: keep the updates that lie closest to their neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sluice.aggregation.allowance import Allowance, AllowedShare, allowed, check_allowance
from sluice.aggregation.geometry import squared_distances
from sluice.aggregation.rule import Aggregate, Fresh, State, aggregated, expect_fresh
from sluice.aggregation.update import Stack, Update, stacked
from sluice.arrays import Floats
from sluice.errors import SettingError

__all__ = ["Krum", "MultiKrum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Krum:
    """The one update whose n - f - 2 nearest neighbours lie closest, in squared distance.

    The paper sets f = 3 of 10 clients. As a share, f follows the number of updates that a gate
    admits; `Krum(f=3)` keeps it fixed. With few updates there is at least one neighbour, as in the
    paper's code; the theory requires n >= 2 f + 3.
    """

    f: Allowance = AllowedShare(0.3)  # noqa: RUF009 - frozen, so sharing it is safe
    needs_root: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_allowance(self.f, "Krum")

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, Fresh]:
        """Aggregate one round."""
        fresh = expect_fresh(state, "Krum")
        stack = stacked(updates)
        scores = _scores(stack.matrix, allowed(self.f, len(stack), "Krum"))
        return _mean_of_best(stack, scores, 1), fresh


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiKrum:
    """The unweighted mean of the m updates that Krum scores best; by default all but f."""

    f: Allowance = AllowedShare(0.3)  # noqa: RUF009 - frozen, so sharing it is safe
    m: int | None = None
    needs_root: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_allowance(self.f, "Multi-Krum")
        if self.m is not None and self.m < 1:
            raise SettingError(f"Multi-Krum must keep m >= 1 updates, got m = {self.m}")

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, Fresh]:
        """Aggregate one round."""
        fresh = expect_fresh(state, "Multi-Krum")
        stack = stacked(updates)
        f = allowed(self.f, len(stack), "Multi-Krum")
        keep = len(stack) - f if self.m is None else self.m
        if keep > len(stack):
            raise SettingError(
                f"Multi-Krum keeps m = {keep} updates but got {len(stack)}; leave m out to keep "
                "all but f of those present"
            )
        return _mean_of_best(stack, _scores(stack.matrix, f), keep), fresh


def _scores(matrix: Floats, f: int) -> Floats:
    """Return each update's sum of squared distances to its nearest neighbours, not itself."""
    clients = len(matrix)
    neighbours = max(clients - f - 2, 1)
    nearest = np.sort(squared_distances(matrix), axis=1)  # column 0 is the distance to itself
    return np.asarray(nearest[:, 1 : 1 + neighbours].sum(axis=1), dtype=np.float64)


def _mean_of_best(stack: Stack, scores: Floats, keep: int) -> Aggregate:
    best = np.argsort(scores, kind="stable")[:keep]  # a tie goes to the first name
    chosen = np.zeros(len(stack))
    chosen[best] = 1 / keep
    return aggregated(stack, stack.matrix[best].mean(axis=0), chosen, chosen > 0)
