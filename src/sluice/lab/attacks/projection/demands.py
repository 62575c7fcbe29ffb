"""What rules demand of readings, as an adversary reads them. Given the actuators, all is affine.

    slab    one channel, row by row, between two numbers        couplings, bounds
    chain   a weighted sum of readings of several rows, ditto   balances, windows, rates

Every demand has two pairs of limits: as they are, and as they are for a row that is *sacrificed*,
that is, left to count against the budget of violating rows.
"""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats, Ints

__all__ = ["Chain", "DemandPart", "Demands", "Limits", "ShownReadings", "Slab"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Low and high, row by row; infinite where nothing is demanded."""

    low: Floats
    high: Floats

    @classmethod
    def open(cls, shape: int | tuple[int, int]) -> "Limits":
        """Return limits that demand nothing."""
        return cls(low=np.full(shape, -np.inf), high=np.full(shape, np.inf))

    @classmethod
    def around(cls, rows: int, reach: float) -> "Limits":
        """Return limits so far on either side of zero."""
        return cls(low=np.full(rows, -reach), high=np.full(rows, reach))

    @property
    def finite(self) -> Bools:
        """Where something is demanded."""
        return np.asarray(np.isfinite(self.low) | np.isfinite(self.high))

    def around_also(self, values: Floats, where: Bools) -> "Limits":
        """Return limits widened to hold these values on the given rows."""
        return Limits(
            low=np.where(where, np.minimum(self.low, values), self.low),
            high=np.where(where, np.maximum(self.high, values), self.high),
        )

    def beyond(self, values: Floats) -> Floats:
        """Return how far beyond values lie; 0 within."""
        return np.maximum(np.maximum(values - self.high, self.low - values), 0.0)

    def broken(self, values: Floats, *, beyond: float) -> Bools:
        """Tell where values lie further than so much beyond."""
        return np.asarray((values < self.low - beyond) | (values > self.high + beyond))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slab:
    """One rule holds one channel between two numbers, on every row of the record."""

    rule: str
    channel: str
    limits: Limits
    sacrificed: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandPart:
    """A channel in a chain: how many rows back, and with what weights."""

    channel: str
    back: Ints
    weights: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """One rule holds the sum of its parts and a constant between two numbers, at some rows."""

    rule: str
    at: Ints
    parts: tuple[DemandPart, ...]
    constant: Floats  # one per row of `at`: what the actuators and the rule itself contribute
    limits: Limits  # one per row of `at`
    sacrificed: Limits
    anchored: bool = False  # broken anchors have a budget of their own and cost no row


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReadings:
    """What an instrument can show: a reading beyond is read as the last one that it can."""

    channel: str
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """All that a rule set demands of one record under one policy, and what may be broken."""

    slabs: tuple[Slab, ...]
    chains: tuple[Chain, ...]
    held: Ints  # rows x channels of the record: the row whose reading is read (a missing one: last)
    shown: tuple[ShownReadings, ...]  # where the arithmetic ends with what an instrument can show
    counted: Bools  # rows that count as violating whatever they show
    rows: int  # that may violate, those already counted included
    severe: int  # of these, rows that may go beyond the limits for sacrificed ones too
    anchors: tuple[tuple[str, int], ...] = ()  # per window rule: anchors that may be broken
