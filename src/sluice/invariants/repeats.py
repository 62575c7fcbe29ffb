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

EQUAL_ROWS = (12, 24, 48)
"""Lengths of stretches that are compared digit by digit."""
CERTAIN_BITS = 10
"""Bits of a stretch beyond those at which one pair of equal stretches is expected by chance."""
STEP = 1e-9
"""Steps that differ by less than this share of the largest reading are the same step."""
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """A length of stretches, and how much of their movement two may differ by."""

    rows: int
    difference: float  # squared, as a share of the two stretches' squared movement
    by_chance: bool  # whether plain stretches of this length look alike by chance in long batches

    def least(self, bends: Floats, rows: int) -> NDArray[np.float32]:
        """Return, by stretch, the likeness of a copy in a batch of so many rows."""
        closer = np.ones(len(bends))
        if self.by_chance:
            closer[_bent_rows(bends) < PLAIN * self.rows] = min(1.0, max(CLOSEST, FEW_ROWS / rows))
        return (1 - self.difference * closer).astype(np.float32)


PLAIN = 1 / 8
"""A stretch is plain if it bends on a smaller share of its rows: a tank whose pump switched once or
twice. BATADAL's tanks bend on a fifth of the rows, those of the line on a fourteenth."""
FEW_ROWS = 1_000
"""A longer batch has more pairs of stretches, so plain ones must agree more closely."""
CLOSEST = 0.1
"""But no closer than this share of the difference: single precision tells no more apart."""
SCALES = (
    _Scale(rows=48, difference=1e-5, by_chance=True),
    _Scale(rows=96, difference=2e-5, by_chance=True),
    _Scale(rows=192, difference=4e-5, by_chance=False),
)
"""Chosen on clean rows of the line plant and of BATADAL: shorter stretches of live tanks look alike
more often, so they must agree more closely."""
APART = 4
"""Stretches that are compared in shape begin this part of their length apart."""
LOOK_BACK = 10_000
"""Rows before a stretch in which a copy of it is looked for."""
ROUGHER = 1.1
"""Squared bends of the difference of two stretches, over those of the rougher one. Two live
stretches of one shape each have their own noise: about 2. A copy differs by what was added to it or
taken from it, and this is part of the one or the other: at most 1."""
STRETCHES_AT_ONCE = 256
COMPARED_AT_ONCE = 64
LIVELY = 0.5
"""A stretch moves by this many of its usual steps at least; a flatter one repeats by chance."""


def repeated_rows(readings: Floats) -> Bools:
    """Mark rows of a stretch that repeats an earlier one, digit by digit or with jitter."""
    marked = np.zeros(len(readings), bool)
    for start, rows, _ in _stretches(readings):
        marked[start : start + rows] = True
    return marked


def known_repeats(readings: Floats) -> Bools:
    """Mark rows at which a repetition is visible to who has seen no later row.

    A stretch is visible at its last row. The mark stays until the next stretch could end.
    """
    marked = np.zeros(len(readings), bool)
    for start, rows, apart in _stretches(readings):
        last = start + rows - 1
        marked[last : last + apart] = True
    return marked


def _stretches(readings: Floats) -> Iterator[tuple[int, int, int]]:
    """Yield the first row and the length of every stretch that repeats an earlier one.

    The third number says how far apart stretches of this kind begin.
    """
    for rows in EQUAL_ROWS:
        for start in _equal(readings, rows):
            yield int(start), rows, 1
    known = held(readings, empty=0.0)
    for scale in SCALES:
        for start in _similar(known, scale):
            yield int(start), scale.rows, scale.rows // APART


def _equal(readings: Floats, length: int) -> Ints:
    """Return where stretches begin that repeat an earlier one, digit by digit.

    A slow tank repeats stretches of few different steps by chance, so these are skipped.
    """
    rows = len(readings)
    if rows < 2 * length:
        return np.empty(0, np.int64)
    hashed = np.zeros(rows - length + 1, np.uint64)
    bits = np.ascontiguousarray(readings).view(np.uint64)
    for offset in range(length):
        hashed = hashed * HASH_FACTOR + bits[offset : offset + len(hashed)]
        hashed ^= hashed >> np.uint64(31)
    order = np.argsort(hashed, kind="stable")
    same = hashed[order[1:]] == hashed[order[:-1]]
    later: Ints = order[1:][same]  # only the later copy: the first may be the original
    if not later.size:
        return later
    copies = held(readings, empty=0.0)[later[:, None] + np.arange(length)]
    steps = np.rint(np.diff(copies, axis=1) / (STEP * (np.abs(copies).max(initial=0.0) or 1.0)))
    pairs_bits = 2 * np.log2(rows)  # so many pairs of rows may show equal stretches
    found: Ints = later[_bits(steps) >= pairs_bits + CERTAIN_BITS]
    return found


def _bits(steps: Floats) -> Floats:
    """Return how many bits each stretch of steps holds, by how often it shows each step.

    A stretch with a steady slope holds few: the changes of its steps are counted too, and the
    smaller number is taken.
    """
    held_bits = []
    for symbols in (steps, np.diff(steps, axis=1)):
        count = symbols.shape[1]
        shown = ((symbols == symbols[:, [at]]).sum(axis=1) for at in range(count))
        held_bits.append(sum(np.log2(count / times) for times in shown))
    smaller: Floats = np.minimum(*held_bits)
    return smaller


def _similar(readings: Floats, scale: _Scale) -> Iterator[int]:
    """Yield where stretches begin that an earlier one resembles."""
    length = scale.rows
    starts = np.arange(length, len(readings) - length + 1, length // APART)
    if not starts.size:
        return
    usual = float(np.median(np.abs(np.diff(readings))))
    for first in range(0, starts.size, STRETCHES_AT_ONCE):
        later = starts[first : first + STRETCHES_AT_ONCE]
        begin = max(0, int(later[0]) - LOOK_BACK)
        part = readings[begin : int(later[-1]) + length]
        bent, size = _bent(part, length)
        lively = later[size[later - begin] > length * (LIVELY * usual) ** 2] - begin
        bends = sliding_window_view(np.diff(part, n=2), length - 2)
        for at in range(0, lively.size, COMPARED_AT_ONCE):
            here = lively[at : at + COMPARED_AT_ONCE]
            # Only stretches that end before this one begins: neighbours overlap and look alike.
            ended = int(here[-1]) - length + 1
            together = size[here][:, None] + size[None, :ended]
            least = scale.least(bends[here], len(readings))[:, None]
            alike = 2 * (bent[here] @ bent[:ended].T) >= least * together
            alike &= np.arange(ended)[None, :] <= here[:, None] - length
            near = np.flatnonzero(alike.any(axis=1))
            if near.size:
                copied = _copied(bends, here[near])[:, :ended]
                near = near[(alike[near] & copied).any(axis=1)]
            yield from (int(start) + begin for start in here[near])


def _copied(bends: Floats, later: Ints) -> Bools:
    """Mark, by later and earlier stretch, differences not rougher than the stretches are."""
    own = np.einsum("ij,ij->i", bends, bends)
    difference = own[later][:, None] + own[None, :] - 2 * (bends[later] @ bends.T)
    return np.asarray(difference <= ROUGHER * np.maximum(own[later][:, None], own[None, :]))


def _bent_rows(bends: Floats) -> Floats:
    """Return on how many rows each stretch bends: all rows count if they bend equally."""
    squares = bends**2
    total, fourth = squares.sum(axis=1), (squares**2).sum(axis=1)
    return np.asarray(np.divide(total**2, fourth, out=np.zeros_like(total), where=fourth > 0))


def _bent(readings: Floats, length: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return every stretch without its straight line, and the sum of its squares."""
    line = np.arange(length) - (length - 1) / 2
    line /= np.sqrt((line**2).sum())
    stretches = sliding_window_view(readings - readings.mean(), length)
    slope, mean = stretches @ line, stretches.mean(axis=1)
    exact = stretches - mean[:, None]
    exact -= slope[:, None] * line
    bent = exact.astype(np.float32)
    return bent, np.einsum("ij,ij->i", bent, bent)
