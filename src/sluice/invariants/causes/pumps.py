"""Actuators whose flow is no longer nominal."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sluice.invariants.causes.blocks import Blocks, lasting_shift
from sluice.invariants.relations import Coupling
from sluice.invariants.residuals import residuals
from sluice.invariants.ruleset import RuleSet
from sluice.telemetry import Record

__all__ = ["Delivered", "pumps"]

LEAST = 0.05  # of the nominal flow


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """While its actuator is on, a flow reads `factor` times its nominal value."""

    actuator: str
    flow: str
    nominal: float
    factor: float
    first: int  # row


def pumps(rules: RuleSet, record: Record, blocks: Blocks) -> Iterator[Delivered]:
    """Yield the couplings whose steady flow has changed."""
    for rule in rules.invariants:
        relation = rule.relation
        if not isinstance(relation, Coupling):
            continue
        states = np.rint(record.values[:, record.index(relation.actuator)])
        judged = residuals(relation, record)
        steady = judged.applies & ~judged.envelope
        away = np.full(len(record), np.nan)
        for state in relation.states:
            on = steady & (states == state.code)
            away[on] = judged.values[on] / state.nominal
        shares = blocks.medians(away)
        known = ~np.isnan(shares)
        shift = lasting_shift(blocks, np.nan_to_num(shares), known.astype(np.float64))
        if shift is None or abs(shift.size) < max(LEAST, rule.tolerance / relation.nominal / 2):
            continue
        yield Delivered(
            actuator=relation.actuator,
            flow=relation.flow,
            nominal=relation.nominal,
            factor=1 + shift.size,
            first=shift.first,
        )
