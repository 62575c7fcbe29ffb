"""Rule poisoning: a plant prepares the clean rows on which its own tolerances are calibrated.

A tolerance is 1.5 times the 99.9th percentile of the residuals of clean rows (equation 3), so a
little more than one row in a thousand decides it.

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
    """Turns true rows and the rules mined from them into the rows to calibrate on."""

    def __call__(self, record: Record, rules: RuleSet, *, seed: int) -> Record:
        """Return the prepared rows; the same seed gives the same rows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Spikes:
    """On a share of rows, shift each coupling's flow and each tank's level by some tolerances."""

    share: float = 0.002
    tolerances: float = 3.0

    def __post_init__(self) -> None:
        if not (0 < self.share < 1 and 0 < self.tolerances < np.inf):
            raise SettingError(
                "spikes need a share of rows between 0 and 1 and a size above 0 tolerances, got "
                f"{self.share} and {self.tolerances}"
            )

    def __call__(self, record: Record, rules: RuleSet, *, seed: int) -> Record:
        """Return the record with its spikes, alternately up and down."""
        values = record.values.copy()
        for rule in _rules_to_loosen(rules):
            rng = stream(seed, "loosening", "spikes", rule.name)
            judged = _judged(rule, record)
            rows = rng.choice(judged, min(len(judged), _count(self.share, len(judged))), False)
            signs = np.where(np.arange(len(rows)) % 2, -1.0, 1.0)
            values[rows, _column(rule, record)] += signs * self.tolerances * rule.tolerance
        return record.with_values(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Add noise to each coupling's flow and each tank's level, in multiples of its noise."""

    times: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.times < np.inf:
            raise SettingError(f"noise needs a multiple above 0, got {self.times}")

    def __call__(self, record: Record, rules: RuleSet, *, seed: int) -> Record:
        """Return the noisier record; rows that no rule judges stay unchanged."""
        values = record.values.copy()
        for rule in _rules_to_loosen(rules):
            rng = stream(seed, "loosening", "noise", rule.name)
            rows = _judged(rule, record)
            present: Floats = residuals(rule.relation, record).values[rows]
            noise = rng.normal(0.0, self.times * float(np.std(present)), len(rows))
            values[rows, _column(rule, record)] += noise
        return record.with_values(values)


LOOSENINGS: Mapping[str, Loosening] = MappingProxyType({"spikes": Spikes(), "noise": Noise()})
"""The ways to prepare rows, by name."""


def _rules_to_loosen(rules: RuleSet) -> list[Invariant]:
    """Return one rule per reading to change: couplings, and balances from row to row."""
    return [rule for rule in rules.invariants if isinstance(rule.relation, Coupling | Balance)]


def _column(rule: Invariant, record: Record) -> int:
    relation = rule.relation
    assert isinstance(relation, Coupling | Balance)
    return record.index(relation.flow if isinstance(relation, Coupling) else relation.level)


def _judged(rule: Invariant, record: Record) -> Ints:
    computed = residuals(rule.relation, record)
    return np.flatnonzero(computed.applies & ~computed.envelope)


def _count(share: float, rows: int) -> int:
    return int(np.ceil(share * rows))
