"""Stretches of a level that repeat earlier ones: digit by digit, or in shape with jitter added.

A replayed sensor shows the same rises and falls again. A live tank never does, over a stretch that
is long enough: demand differs from day to day. Two stretches are compared after their straight
lines are taken out, so neither an offset nor a drift hides a copy.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sluice.arrays import Bools, Floats, Ints
from sluice.invariants.encoding import held

__all__ = ["known_repeats", "repeated_rows"]

REPEAT_ROWS = 12
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """A length of stretches, and how much of their movement two may differ by."""

    rows: int
    difference: float  # squared, as a share of the two stretches' squared movement


SCALES = (
    _Scale(rows=48, difference=1e-5),
    _Scale(rows=96, difference=2e-5),
    _Scale(rows=192, difference=4e-5),
)
"""Chosen on clean rows of the line plant and of BATADAL: shorter stretches of live tanks look alike
more often, so they must agree more closely."""
LOOK_BACK = 10_000
"""Rows before a stretch in which a copy of it is looked for."""
STRETCHES_AT_ONCE = 256
LIVELY = 0.5
"""A stretch moves by this many of its usual steps at least; a flatter one repeats by chance."""


def repeated_rows(readings: Floats) -> Bools:
    """Mark rows of a stretch that repeats an earlier one, digit by digit or with jitter."""
    marked = np.zeros(len(readings), bool)
    for start, rows in _stretches(readings):
        marked[start : start + rows] = True
    return marked


def known_repeats(readings: Floats) -> Bools:
    """Mark rows at which a repetition is visible to who has seen no later row.

    A stretch is visible at its last row. The mark stays until the next stretch could end.
    """
    marked = np.zeros(len(readings), bool)
    for start, rows in _stretches(readings):
        last = start + rows - 1
        marked[last : last + (1 if rows == REPEAT_ROWS else rows // 4)] = True
    return marked


def _stretches(readings: Floats) -> Iterator[tuple[int, int]]:
    """Yield the first row and the length of every stretch that repeats an earlier one."""
    for start in _equal(readings):
        yield int(start), REPEAT_ROWS
    known = held(readings, empty=0.0)
    for scale in SCALES:
        for start in _similar(known, scale):
            yield int(start), scale.rows


def _equal(readings: Floats) -> Ints:
    """Return where a dozen readings begin that repeat an earlier dozen, digit by digit.

    Stretches in which the reading hardly changes are skipped, because they repeat by chance.
    """
    rows = len(readings)
    if rows < 2 * REPEAT_ROWS:
        return np.empty(0, np.int64)
    hashed = np.zeros(rows - REPEAT_ROWS + 1, np.uint64)
    bits = np.ascontiguousarray(readings).view(np.uint64)
    for offset in range(REPEAT_ROWS):
        hashed = hashed * HASH_FACTOR + bits[offset : offset + len(hashed)]
        hashed ^= hashed >> np.uint64(31)
    changes = np.concatenate(([0], np.cumsum(np.diff(readings, prepend=np.nan) != 0)))
    lively = changes[REPEAT_ROWS:] - changes[:-REPEAT_ROWS] >= REPEAT_ROWS * 3 // 4
    at = np.flatnonzero(lively)
    order = at[np.argsort(hashed[at], kind="stable")]
    same = hashed[order[1:]] == hashed[order[:-1]]
    later: Ints = order[1:][same]  # only the later copy: the first may be the original
    return later


def _similar(readings: Floats, scale: _Scale) -> Iterator[int]:
    """Yield where stretches begin that an earlier one resembles; they begin a quarter apart."""
    length = scale.rows
    starts = np.arange(length, len(readings) - length + 1, length // 4)
    if not starts.size:
        return
    usual = float(np.median(np.abs(np.diff(readings))))
    for first in range(0, starts.size, STRETCHES_AT_ONCE):
        later = starts[first : first + STRETCHES_AT_ONCE]
        begin = max(0, int(later[0]) - LOOK_BACK)
        bent, size = _bent(readings[begin : int(later[-1]) + length], length)
        here = later - begin
        together = size[here][:, None] + size[None, :]
        alike = 2 * (bent[here] @ bent.T) >= np.float32(1 - scale.difference) * together
        # Only stretches that end before this one begins: neighbours overlap and look alike.
        alike &= np.arange(len(bent))[None, :] <= here[:, None] - length
        lively = size[here] > length * (LIVELY * usual) ** 2
        yield from (int(start) for start in later[lively & alike.any(axis=1)])


def _bent(readings: Floats, length: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return every stretch without its straight line, and the sum of its squares."""
    line = np.arange(length) - (length - 1) / 2
    line /= np.sqrt((line**2).sum())
    stretches = sliding_window_view(readings - readings.mean(), length)
    slope, mean = stretches @ line, stretches.mean(axis=1)
    bent = (stretches - mean[:, None] - slope[:, None] * line).astype(np.float32)
    return bent, np.einsum("ij,ij->i", bent, bent)
