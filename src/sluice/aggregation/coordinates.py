"""Rules that aggregate one weight at a time: median and trimmed mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sluice.aggregation.allowance import AllowedShare
from sluice.aggregation.rule import Aggregate, Fresh, State, aggregated, expect_fresh
from sluice.aggregation.update import Update, stacked
from sluice.arrays import Bools, Floats
from sluice.errors import SettingError

__all__ = ["CoordinateMedian", "TrimmedMean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinateMedian:
    """The median of each weight; a client's influence is the share of weights it supplies."""

    lower: bool = False  # of an even number take the lower middle value, as the paper's code does
    needs_root: ClassVar[bool] = False

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, Fresh]:
        """Aggregate one round."""
        fresh = expect_fresh(state, "the coordinate median")
        stack = stacked(updates)
        ordered = np.sort(stack.matrix, axis=0)
        below = ordered[(len(stack) - 1) // 2]
        above = below if self.lower else ordered[len(stack) // 2]
        supplied = (_suppliers(stack.matrix, below) + _suppliers(stack.matrix, above)) / 2
        return aggregated(stack, (below + above) / 2, supplied.mean(axis=1)), fresh


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimmedMean:
    """The unweighted mean of each weight without its k largest and k smallest values.

    k is the share `beta` of the updates present, rounded down; with fewer than 1/beta updates it
    is zero and nothing is trimmed.
    """

    beta: float = 0.2
    needs_root: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.beta < 0.5:
            raise SettingError(
                f"the trimmed mean cuts a share beta in [0, 0.5) from either side, got {self.beta}"
            )

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, Fresh]:
        """Aggregate one round."""
        fresh = expect_fresh(state, "the trimmed mean")
        stack = stacked(updates)
        cut = AllowedShare(self.beta).among(len(stack))
        kept = np.sort(stack.matrix, axis=0)[cut : len(stack) - cut]
        shares = _kept_shares(stack.matrix, kept).mean(axis=1)
        of_middle_length = _of_middle_length(np.linalg.norm(stack.matrix, axis=1), cut)
        return aggregated(stack, kept.mean(axis=0), shares, of_middle_length), fresh


def _suppliers(matrix: Floats, values: Floats) -> Floats:
    """Return for each weight which clients supply the value; clients that tie share it."""
    equal = matrix == values
    return np.asarray(equal / equal.sum(axis=0), dtype=np.float64)


def _kept_shares(matrix: Floats, kept: Floats) -> Floats:
    """Return for each weight how much of each client's value was kept.

    Values strictly between the ends are kept in full. Of the values that tie with an end, some
    are cut; the clients that tie share the others equally.
    """
    low, high = kept[0], kept[-1]
    shares: Floats = ((matrix > low) & (matrix < high)).astype(np.float64)
    for end in (low, high):
        tied = matrix == end
        left = (kept == end).sum(axis=0) / tied.sum(axis=0)
        shares = np.where(tied, left, shares)
    return shares


def _of_middle_length(lengths: Floats, cut: int) -> Bools:
    """Return which updates are not among the longest or shortest: admitted, in the paper."""
    order = np.argsort(lengths, kind="stable")
    inside = np.zeros(len(lengths), dtype=np.bool_)
    inside[order[cut : len(lengths) - cut]] = True
    return inside
