"""Constants: channels that never moved in clean rows, and the span they need for a register."""

from dataclasses import replace

import numpy as np

from sluice.invariants.relations import Constant, Invariant
from sluice.telemetry import Channel, Record, Span

__all__ = ["constant_rules", "with_constant_spans"]

CLOSE = 0.001  # of the span: an idle meter may differ by this
HALF_A_CODE = 0.5


def constant_rules(record: Record) -> tuple[Invariant, ...]:
    """Return a rule for each channel that shows one reading or one code on every row."""
    rules = []
    for channel in record.channels:
        value = _value(record, channel)
        if value is None or (channel.codes and value not in channel.codes.legal):
            continue
        tolerance = HALF_A_CODE
        if channel.codes is None:
            if channel.span is None:
                continue
            tolerance = CLOSE * (channel.span.high - channel.span.low)
        constant = Constant(name=f"{channel.name} idle", channel=channel.name, value=value)
        rules.append(Invariant(relation=constant, tolerance=tolerance))
    return tuple(rules)


def with_constant_spans(record: Record, channels: tuple[Channel, ...]) -> tuple[Channel, ...]:
    """Give each constant measured channel a span around its reading, as wide as its peers'."""
    return tuple(
        replace(channel, span=_span(record, channel, channels))
        if channel.codes is None and channel.span is None
        else channel
        for channel in channels
    )


def _span(record: Record, channel: Channel, channels: tuple[Channel, ...]) -> Span | None:
    value = _value(record, channel)
    if value is None:
        return None
    peers = [
        (other.span.high - other.span.low) / 2
        for other in channels
        if other.role is channel.role and other.span is not None
    ]
    half = float(np.median(peers)) if peers else max(1.0, abs(value))
    return Span(low=value - half, high=value + half)


def _value(record: Record, channel: Channel) -> float | None:
    readings = record.column(channel.name)
    shown = readings[~np.isnan(readings)]
    if not shown.size or np.ptp(shown) > 0:
        return None
    return float(shown[0])
