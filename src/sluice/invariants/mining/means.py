"""Means: where a channel is on average, over windows long enough for its cycles to cancel out."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import t as student

from sluice.arrays import Floats
from sluice.invariants.relations import Invariant, Mean
from sluice.telemetry import Channel, Record, Role

__all__ = ["mean_of", "mine_means"]

WINDOWS = (64, 128, 192)  # rows
LEAST_WINDOWS = 12
OFFSET = 0.1  # of the channel's range: a mean must notice a channel that is wrong by this
LEVEL_OFFSET = 0.25  # the same of a level, of which often only a wide switch band says more
ROOM = 1.25  # beyond the clean windows: a short batch may have no window outside
LEAST_SHARE = 0.03  # of the range: a closer mean fails when a set point moves a little
READING_SHARE = 0.0025  # of the usual reading: the offset of a meter drifts by more


def mine_means(
    channels: Sequence[Channel], blocks: Sequence[Record], *, share: float
) -> tuple[Mean, ...]:
    """Return a mean for each channel of which it notices an offset.

    An offset of a tenth of the range, of a level a quarter.

    A tank that fills and empties several times within a window has nearly the same mean in each.
    The windows are those of the lengths tried that notice the smallest offset.
    """
    found = []
    for channel in channels:
        readings = np.concatenate([block.column(channel.name) for block in blocks])
        share_noticed = LEVEL_OFFSET if channel.role is Role.LEVEL else OFFSET
        most = share_noticed * float(np.fmax.reduce(readings) - np.fmin.reduce(readings))
        if not most > 0:
            continue
        tried = []
        for rows in WINDOWS:
            empty = Mean(name=f"{channel.name} mean", channel=channel.name, mean=0.0, rows=rows)
            rule = mean_of(empty, blocks, share=share)
            if rule is not None and rule.tolerance <= most:
                tried.append(rule)
        if tried:
            closest = min(tried, key=lambda rule: rule.tolerance).relation
            assert isinstance(closest, Mean)
            found.append(closest)
    return tuple(found)


def mean_of(mean: Mean, blocks: Sequence[Record], *, share: float) -> Invariant | None:
    """Return the mean with a tolerance that a share of later rows is expected to break.

    `None` if the blocks hold too few windows to tell, or if the channel is 0 in all of them.
    """
    means = _means(mean, blocks)
    if means.size < 2 * LEAST_WINDOWS:  # they overlap by half
        return None
    usual = float(means.mean())
    reach = float(student.isf(share * mean.rows / 4, means.size - 1)) * float(means.std(ddof=1))
    shown = float(np.abs(means - usual).max())
    readings = np.concatenate([block.column(mean.channel) for block in blocks])
    span = float(np.fmax.reduce(readings) - np.fmin.reduce(readings))
    least = max(LEAST_SHARE * span, READING_SHARE * abs(usual))
    tolerance = max(reach, ROOM * shown, least)
    return Invariant(relation=replace(mean, mean=usual), tolerance=tolerance) if tolerance else None


def _means(mean: Mean, blocks: Sequence[Record]) -> Floats:
    """Return the means of windows that miss no reading and cross no time jump."""
    parts = [
        readings[start : start + mean.rows]
        for block in blocks
        for run in block.segments
        for readings in (block.column(mean.channel)[run.slice],)
        for start in range(0, readings.size - mean.rows + 1, mean.rows // 2)
    ]
    stacked = np.array(parts).reshape(len(parts), mean.rows)
    return np.asarray(stacked[~np.isnan(stacked).any(axis=1)].mean(axis=1))
