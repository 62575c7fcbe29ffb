"""Which readings a balance sums, with which weights, over one row or many."""

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.lab.attacks.projection.demands import DemandPart

__all__ = ["flow_parts", "level_part", "now_part", "on_time"]


def now_part(channel: str, weight: float, *, back: int = 0) -> DemandPart:
    """Return one reading: of the row itself, or of one before it."""
    return DemandPart(channel=channel, back=np.array([back]), weights=np.array([weight]))


def level_part(channel: str, weight: float, rows: int) -> DemandPart:
    """Return a level's rise over this many rows."""
    return DemandPart(
        channel=channel, back=np.array([0, rows]), weights=np.array([weight, -weight])
    )


def flow_parts(channel: str, weight: float, *, rows: int, averaged: bool) -> tuple[DemandPart, ...]:
    """Return a flow summed over rows; if averaged, each row counts with the one before it."""
    back, weights = _summed(weight, rows=rows, averaged=averaged)
    return (DemandPart(channel=channel, back=back, weights=weights),)


def on_time(on: Bools, at: Ints, weight: float, *, rows: int, averaged: bool) -> Floats:
    """Return the same sum of an actuator's on-indicator, which the adversary does not move."""
    back, weights = _summed(weight, rows=rows, averaged=averaged)
    total: Floats = np.zeros(len(at))
    for rows_back, each in zip(back, weights, strict=True):
        total += each * on[at - rows_back]
    return total


def _summed(weight: float, *, rows: int, averaged: bool) -> tuple[Ints, Floats]:
    if not averaged:
        return np.arange(rows), np.full(rows, weight)
    weights = np.full(rows + 1, 2 * weight)
    weights[[0, -1]] = weight
    return np.arange(rows + 1), weights
