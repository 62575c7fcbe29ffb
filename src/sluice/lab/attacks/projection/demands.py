"""What rules demand of readings. With the actuators fixed, all demands are affine.

    slab    one channel between two numbers, row by row           couplings, bounds, constants
    chain   a weighted sum of readings of several rows, likewise  balances, windows, rates, ties,
                                                                  switch bands, spectra

A spectrum limits sums of squares, which are not affine. Its chains are tangents to these sums at a
given point (`spectra`).

Every demand has two pairs of limits: the normal ones, and those for a row that is *sacrificed*,
that is, counted against the budget of violating rows.
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
        """Return limits from -reach to reach."""
        return cls(low=np.full(rows, -reach), high=np.full(rows, reach))

    @property
    def finite(self) -> Bools:
        """Where something is demanded."""
        return np.asarray(np.isfinite(self.low) | np.isfinite(self.high))

    def around_also(self, values: Floats, where: Bools) -> "Limits":
        """Return limits widened to include these values on the given rows."""
        return Limits(
            low=np.where(where, np.minimum(self.low, values), self.low),
            high=np.where(where, np.maximum(self.high, values), self.high),
        )

    def beyond(self, values: Floats) -> Floats:
        """Return how far values lie beyond the limits; 0 within them."""
        return np.maximum(np.maximum(values - self.high, self.low - values), 0.0)

    def broken(self, values: Floats, *, beyond: float) -> Bools:
        """Return where values lie more than `beyond` outside the limits."""
        return np.asarray((values < self.low - beyond) | (values > self.high + beyond))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slab:
    """One rule keeps one channel between two numbers, on every row of the record."""

    rule: str
    channel: str
    limits: Limits
    sacrificed: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandPart:
    """A channel in a chain: how many rows back, and with which weights."""

    channel: str
    back: Ints
    weights: Floats  # one per row back; with two axes, one row of weights per row of `at`


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """One rule keeps the sum of its parts and a constant between two numbers, at some rows."""

    rule: str
    at: Ints
    parts: tuple[DemandPart, ...]
    constant: Floats  # one per row of `at`: what the actuators and the rule itself contribute
    limits: Limits  # one per row of `at`
    sacrificed: Limits
    anchored: bool = False  # broken anchors have a budget of their own and cost no row


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReadings:
    """The range an instrument can show: a reading beyond it is read as the end of the range."""

    channel: str
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """All demands of a rule set on one record under one policy, and how many may be broken."""

    slabs: tuple[Slab, ...]
    chains: tuple[Chain, ...]
    source_rows: Ints  # rows x channels: the row whose reading is read (if missing, the last known)
    shown: tuple[ShownReadings, ...]  # if the arithmetic ends at what an instrument can show
    counted: Bools  # rows that count as violating whatever their readings
    rows: int  # that may violate, including those already counted
    severe: int  # of these, rows that may exceed the limits for sacrificed rows too
    anchors: tuple[tuple[str, int], ...] = ()  # per rule with its own budget: what may be broken
