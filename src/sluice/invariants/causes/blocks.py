"""Stretches of rows of equal length, and the block from which on something is different.

A change must last: it is claimed only if nearly all blocks after it agree, if they agree far better
than they scatter, and if the blocks before it do not show it.
"""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats
from sluice.telemetry import Record

__all__ = ["Blocks", "Shift", "lasting_shift", "sigmas"]

DAY_S = 86_400
FEWEST_BLOCKS, MOST_BLOCKS = 8, 120
LONGER = (1, 3)  # times the shortest block
FEWEST_ROWS = 12  # of a block
FEWEST_AFTER = 4  # blocks that show the change
TOLD = 0.5  # share of the blocks after a change that must say something about it
AGREEING = 0.9  # share of the blocks after a change that must have its sign
CHANCE = 1e-6  # that blocks which only scatter show such a mean, by Student's distribution
BEFORE = 0.4  # of the change: the most that the blocks before it may show


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Blocks of a record, all of one size."""

    size: int  # rows
    count: int

    @classmethod
    def of(cls, record: Record) -> "tuple[Blocks, ...]":
        """Return blocks of several sizes, shortest first; none if the record is too short.

        The shortest is a day where the record is long enough, else an eighth of the record. Longer
        blocks scatter less and find smaller changes, but later.
        """
        day = max(1, round(DAY_S / record.stride_s))
        size = max(FEWEST_ROWS, min(day, len(record) // FEWEST_BLOCKS))
        size = max(size, -(-len(record) // MOST_BLOCKS))
        sizes = [size * times for times in LONGER]
        return tuple(
            cls(size=rows, count=len(record) // rows)
            for rows in sizes
            if len(record) // rows >= FEWEST_BLOCKS
        )

    def sums(self, values: Floats) -> Floats:
        """Return the sum over each block; rows that are NaN count as zero."""
        whole = np.nan_to_num(values[: self.size * self.count])
        return np.asarray(whole.reshape(self.count, self.size).sum(axis=1))

    def medians(self, values: Floats) -> Floats:
        """Return the median of each block; NaN for a block without values."""
        shown = values[: self.size * self.count].reshape(self.count, self.size)
        return np.array(
            [np.median(b[~np.isnan(b)]) if (~np.isnan(b)).any() else np.nan for b in shown]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """From row `first` on, a quantity is away from its usual value by `size`."""

    first: int
    size: float
    gain: float  # how much of the quantity's squares it explains


def lasting_shift(blocks: Blocks, sums: Floats, weights: Floats) -> Shift | None:
    """Return the row from which on the quantity sums / weights is away from 0, if it is.

    A quantity is the least-squares factor of one explanation of a residual: for each block, `sums`
    holds residual times explanation and `weights` the explanation's square. Blocks without weight
    say nothing.
    """
    known = weights > 0
    first = _most_explaining(np.where(known, sums, 0.0), np.where(known, weights, 0.0))
    after, before = np.flatnonzero(known[first:]) + first, np.flatnonzero(known[:first])
    if len(after) < max(FEWEST_AFTER, TOLD * (len(known) - first)):
        return None
    shown = sums[after] / weights[after]
    size = float(sums[after].sum() / weights[after].sum())
    error = float(shown.std(ddof=1)) / np.sqrt(len(shown))
    agree = np.mean(np.sign(shown) == np.sign(size))
    if agree < AGREEING or abs(size) <= sigmas(len(shown)) * error:
        return None
    if len(before) and abs(sums[before].sum() / weights[before].sum()) > BEFORE * abs(size):
        return None
    gain = float(sums[after].sum() ** 2 / weights[after].sum())
    return Shift(first=first * blocks.size, size=size, gain=gain)


def sigmas(count: int) -> float:
    """Return by how many standard errors a mean of so many values must be away from 0."""
    # Imported here because it takes a while, and most commands do not need it.
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(count - 1, 1 - CHANCE / 2))


def _most_explaining(sums: Floats, weights: Floats) -> int:
    """Return the first block of the tail that a constant factor explains best."""
    after = np.cumsum(sums[::-1])[::-1]
    weight = np.cumsum(weights[::-1])[::-1]
    gain = np.where(weight > 0, after**2 / np.where(weight > 0, weight, 1.0), 0.0)
    return int(gain.argmax())
