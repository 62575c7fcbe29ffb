"""The range in which a channel may be tampered with."""

import numpy as np

from sluice.admission import Gate
from sluice.invariants import Bound, Constant
from sluice.telemetry import Record

__all__ = ["bounds_of"]


def bounds_of(record: Record, column: int, gate: Gate | None) -> tuple[float, float]:
    """Return the bounds of a channel: the gate's, else the instrument's, else a guess.

    The gate's are those of a constant, if it has one, or of a range.

    The guess is three times the range that the record shows, or one unit above a constant reading.
    """
    name, span = record.names[column], record.channels[column].span
    rules = gate.rules.invariants if gate else ()
    for rule in rules:
        if isinstance(rule.relation, Constant) and rule.relation.channel == name:
            return rule.relation.value - rule.tolerance, rule.relation.value + rule.tolerance
    for rule in rules:
        if isinstance(rule.relation, Bound) and rule.relation.channel == name:
            return rule.relation.low, rule.relation.high
    if span is not None:
        return span.low, span.high
    readings = record.values[:, column]
    low, high = float(np.nanmin(readings)), float(np.nanmax(readings))
    if low == high:
        return low, high + max(abs(high), 1.0)
    return low - (high - low), high + (high - low)
