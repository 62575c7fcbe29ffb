"""Instrument spans and operating ranges: what a channel can show, and what it usually shows."""

from dataclasses import replace

import numpy as np

from sluice.arrays import Floats
from sluice.invariants.mining.folds import Clean
from sluice.telemetry import Channel, Record, Role, Span

__all__ = ["operating_range", "resolution", "with_spans"]

ROOM = 0.5  # of the clean range, on either side
ANALYSER_ROOM = 10.0  # analysers drift by many times their daily range (18 sigma on SWaT)
BOUND_ROOM = 0.05  # of the clean range, beyond which a reading is out of range
MORE = 2.0  # times what a block of rows needed beyond the range of the others
LEAST_RANGE = 0.1  # of the whole range: a shorter range of the other blocks says little
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


def operating_range(channel: Channel, clean: Clean) -> Span | None:
    """Return the range of clean rows with some room; `None` if the channel is constant.

    The room is what a block of rows needs beyond the range of all other blocks, and more. A
    quantity that cannot be negative, and never was, ends at zero.
    """
    blocks = [_range(fold.held_out.column(channel.name)) for fold in clean.folds]
    low, high = min(low for low, _ in blocks), max(high for _, high in blocks)
    if not low < high:
        return None
    beyond = 0.0
    for at, (block_low, block_high) in enumerate(blocks):
        others = [block for other, block in enumerate(blocks) if other != at]
        rest_low, rest_high = min(one for one, _ in others), max(one for _, one in others)
        past = max(rest_low - block_low, block_high - rest_high)
        beyond = max(beyond, past / max(rest_high - rest_low, LEAST_RANGE * (high - low)))
    most = ANALYSER_ROOM if channel.role is Role.QUALITY else ROOM
    share = min(max(BOUND_ROOM, MORE * beyond), most)
    step = resolution(clean.record.column(channel.name))
    room = max(share * (high - low), LEAST_STEPS * step)
    floor = 0.0 if channel.role in NEVER_NEGATIVE and low >= 0 else -np.inf
    assert channel.span is not None
    return Span(
        low=max(low - room, floor, channel.span.low), high=min(high + room, channel.span.high)
    )


def _range(readings: Floats) -> tuple[float, float]:
    return float(np.fmin.reduce(readings)), float(np.fmax.reduce(readings))


def _span(channel: Channel, record: Record) -> Span | None:
    """Return the clean range with room for an instrument's span; `None` if constant."""
    readings = record.column(channel.name)
    low, high = _range(readings)
    if not low < high:
        return None
    room = ANALYSER_ROOM if channel.role is Role.QUALITY else ROOM
    room = max(room * (high - low), LEAST_STEPS * resolution(readings))
    return Span(low=low - room, high=high + room)


def _with_span(channel: Channel, record: Record) -> Channel:
    return replace(channel, span=_span(channel, record))
