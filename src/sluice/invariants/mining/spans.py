"""Instrument spans and operating ranges: what a channel can show, and what it usually shows."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sluice.arrays import Floats
from sluice.invariants.mining.tails import tail_of
from sluice.telemetry import Channel, Record, Role, Span

__all__ = ["operating_range", "resolution", "span_of", "with_spans"]

ROOM = 0.5  # of the clean range, on either side
ANALYSER_ROOM = 10.0  # analysers drift by many times their daily range (18 sigma on SWaT)
BOUND_ROOM = 0.2  # of the clean range, beyond which a reading is out of range
DRIFT = 5.0  # standard deviations of the means of blocks
DRIFT_BLOCKS = 20
APART = 12  # rows between peaks that count as two
NEVER_NEGATIVE = (Role.LEVEL, Role.FLOW, Role.SPEED, Role.POSITION)
LEAST_STEPS = 4
FINEST_SHARE = 0.01
"""Largest step, as a share of the range: a meter that shows only two values is not that coarse."""


def with_spans(record: Record) -> tuple[Channel, ...]:
    """Return the channels; measured ones get a span, unless they are constant."""
    return tuple(
        channel if channel.role.discrete or channel.span else _with_span(channel, record)
        for channel in record.channels
    )


def resolution(readings: Floats) -> float:
    """Return one quantisation step of a channel, by the smallest step between its readings."""
    distinct = np.unique(readings[~np.isnan(readings)])
    if distinct.size < 2:
        return 0.0
    return float(min(np.diff(distinct).min(), FINEST_SHARE * (distinct[-1] - distinct[0])))


def operating_range(channel: Channel, blocks: Sequence[Record], *, share: float) -> Span | None:
    """Return the range of clean rows with some room; `None` if the channel is constant.

    A share of later rows is expected to lie beyond it, by the tail of clean readings and by how
    the mean drifts from block to block. A quantity that cannot be negative, and never was, ends at
    zero.
    """
    readings = [block.column(channel.name) for block in blocks]
    readings = [part[~np.isnan(part)] for part in readings]
    shown = np.concatenate(readings)
    low, high = _range(shown) if shown.size else (0.0, 0.0)
    if not low < high:
        return None
    most = (ANALYSER_ROOM if channel.role is Role.QUALITY else ROOM) * (high - low)
    least = most if channel.role is Role.QUALITY else BOUND_ROOM * (high - low)
    least = max(least, LEAST_STEPS * resolution(shown))
    drift = _drift(readings)
    above = max(tail_of(readings, apart=APART).level(share) - high, drift, least)
    below = max(tail_of([-part for part in readings], apart=APART).level(share) + low, drift, least)
    floor = 0.0 if channel.role in NEVER_NEGATIVE and low >= 0 else -np.inf
    span = channel.span or Span(low=-np.inf, high=np.inf)
    return Span(
        low=max(low - min(below, most), floor, span.low),
        high=min(high + min(above, most), span.high),
    )


def _drift(readings: Sequence[Floats]) -> float:
    """Return how far the mean of later blocks may lie beyond the means of these blocks.

    Means that wander (each is close to the one before) will wander further than they have.
    """
    per_part = max(1, DRIFT_BLOCKS // len(readings))
    means = np.array(
        [
            block.mean()
            for part in readings
            for block in np.array_split(part, per_part)
            if block.size
        ]
    )
    spread = float(means.std(ddof=1)) if means.size > 2 else 0.0
    if not spread > 0:
        return 0.0
    wandering = float(np.mean(np.diff(means) ** 2)) / (2 * spread**2)  # 1 if it does not wander
    further = DRIFT * spread / float(np.sqrt(np.clip(wandering, 0.1, 1.0)))
    return further - float(np.ptp(means)) / 2


def _range(readings: Floats) -> tuple[float, float]:
    return float(np.fmin.reduce(readings)), float(np.fmax.reduce(readings))


def span_of(channel: Channel, record: Record) -> Span | None:
    """Return the clean range with room for an instrument's span; `None` if constant."""
    readings = record.column(channel.name)
    low, high = _range(readings)
    if not low < high:
        return None
    room = ANALYSER_ROOM if channel.role is Role.QUALITY else ROOM
    room = max(room * (high - low), LEAST_STEPS * resolution(readings))
    return Span(low=low - room, high=high + room)


def _with_span(channel: Channel, record: Record) -> Channel:
    return replace(channel, span=span_of(channel, record))
