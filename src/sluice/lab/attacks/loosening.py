"""Rule poisoning: a plant prepares the clean rows on which its own tolerances are calibrated.

A tolerance is 1.5 times the 99.9th percentile of what clean rows show (equation 3), so a little
more than one row in a thousand decides it.

    spikes   rare rows, each a few tolerances off
    noise    every reading a little noisier than its instrument

What the attacker knows: how rules are mined, and what the miner finds in its true rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np

from sluice.arrays import Floats, Ints
from sluice.errors import SettingError
from sluice.invariants import Balance, Coupling, Invariant, RuleSet, residuals
from sluice.seeding import stream
from sluice.telemetry import Record

__all__ = ["LOOSENINGS", "Loosening", "Noise", "Spikes"]


class Loosening(Protocol):
    """True rows and the rules mined from them in, the rows to calibrate on out."""

    def __call__(self, record: Record, rules: RuleSet, *, seed: int) -> Record:
        """Return the prepared rows; the same seed gives the same ones."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Spikes:
    """On a share of rows, put each coupling's flow and each tank's level some tolerances off."""

    share: float = 0.002
    tolerances: float = 3.0

    def __post_init__(self) -> None:
        if not (0 < self.share < 1 and 0 < self.tolerances < np.inf):
            raise SettingError(
                "spikes stand on a share of rows between 0 and 1 and some tolerances high, got "
                f"{self.share} and {self.tolerances}"
            )

    def __call__(self, record: Record, rules: RuleSet, *, seed: int) -> Record:
        """Return the record with its spikes, up and down in turn."""
        values = record.values.copy()
        for rule in _watching(rules):
            rng = stream(seed, "loosening", "spikes", rule.name)
            judged = _judged(rule, record)
            rows = rng.choice(judged, min(len(judged), _count(self.share, len(judged))), False)
            signs = np.where(np.arange(len(rows)) % 2, -1.0, 1.0)
            values[rows, _column(rule, record)] += signs * self.tolerances * rule.tolerance
        return record.with_values(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Add noise to each coupling's flow and each tank's level, in multiples of what is there."""

    times: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.times < np.inf:
            raise SettingError(f"noise is added some times over, got {self.times}")

    def __call__(self, record: Record, rules: RuleSet, *, seed: int) -> Record:
        """Return the noisier record; rows on which nothing is judged stay as they are."""
        values = record.values.copy()
        for rule in _watching(rules):
            rng = stream(seed, "loosening", "noise", rule.name)
            rows = _judged(rule, record)
            shown: Floats = residuals(rule.relation, record).values[rows]
            drawn = rng.normal(0.0, self.times * float(np.std(shown)), len(rows))
            values[rows, _column(rule, record)] += drawn
        return record.with_values(values)


LOOSENINGS: Mapping[str, Loosening] = MappingProxyType({"spikes": Spikes(), "noise": Noise()})
"""The preparations by name."""


def _watching(rules: RuleSet) -> list[Invariant]:
    """Return one rule per reading to be spoilt: couplings, and balances from row to row."""
    return [rule for rule in rules.invariants if isinstance(rule.relation, Coupling | Balance)]


def _column(rule: Invariant, record: Record) -> int:
    relation = rule.relation
    assert isinstance(relation, Coupling | Balance)
    return record.index(relation.flow if isinstance(relation, Coupling) else relation.level)


def _judged(rule: Invariant, record: Record) -> Ints:
    found = residuals(rule.relation, record)
    return np.flatnonzero(found.applies & ~found.envelope)


def _count(share: float, rows: int) -> int:
    return int(np.ceil(share * rows))
