"""Instrument spans and operating ranges: what a channel can show, and what it usually shows."""

from dataclasses import replace

import numpy as np

from sluice.arrays import Floats
from sluice.telemetry import Channel, Record, Role, Span

__all__ = ["operating_range", "resolution", "with_spans"]

ROOM = 0.5  # of the clean range, on either side
ANALYSER_ROOM = 10.0  # analysers drift by many times their daily range (18 sigma on SWaT)
LEAST_STEPS = 4
FINEST_SHARE = 0.01
"""Largest step, as a share of the range: a meter that shows only two values is not that coarse."""


def with_spans(*records: Record) -> tuple[Channel, ...]:
    """Return the channels; measured ones get a span, unless they are constant."""
    return tuple(
        channel if channel.role.discrete or channel.span else _with_span(channel, records)
        for channel in records[0].channels
    )


def resolution(readings: Floats) -> float:
    """Return one quantisation step of a channel, by the smallest step between its readings."""
    distinct = np.unique(readings[~np.isnan(readings)])
    if distinct.size < 2:
        return 0.0
    return float(min(np.diff(distinct).min(), FINEST_SHARE * (distinct[-1] - distinct[0])))


def operating_range(channel: Channel, *records: Record) -> Span | None:
    """Return the clean range with room, within the instrument's span; `None` if constant."""
    readings = np.concatenate([record.column(channel.name) for record in records])
    low, high = float(np.fmin.reduce(readings)), float(np.fmax.reduce(readings))
    if not low < high:
        return None
    room = ANALYSER_ROOM if channel.role is Role.QUALITY else ROOM
    room = max(room * (high - low), LEAST_STEPS * resolution(readings))
    widened = Span(low=low - room, high=high + room)
    if channel.span is None:
        return widened
    return Span(low=max(widened.low, channel.span.low), high=min(widened.high, channel.span.high))


def _with_span(channel: Channel, records: tuple[Record, ...]) -> Channel:
    return replace(channel, span=operating_range(channel, *records))
