"""Tanks that do not balance: leaks, water from elsewhere, and meters that read wrong."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sluice.arrays import Floats
from sluice.invariants.causes.blocks import Blocks, Shift, lasting_shift
from sluice.invariants.relations import Balance, Invariant, Window
from sluice.invariants.residuals import residuals
from sluice.invariants.ruleset import RuleSet
from sluice.telemetry import Record

__all__ = ["Metered", "Unmetered", "tanks"]

LEAST_LOSS = 0.03  # of the water that a tank's meters count
LEAST_SCALE = 0.05  # of a meter's reading: fitted balances of healthy networks are up to 4 % off
CLIPPED = 5.0  # tolerances: a jump of the level is no leak
AS_GOOD = 0.9  # of the best explanation: the simpler one is then believed


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmetered:
    """A tank gains (or loses, below 0) a constant flow that no meter measures."""

    level: str
    per_row: float  # of the level
    flow: float | None  # in the unit of the tank's flows; None if it has none
    flow_unit: str
    first: int  # row
    or_meter: "Metered | None" = None  # which would explain the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """A tank's level says that a flow meter reads `factor` times the truth."""

    level: str
    flow: str
    factor: float
    first: int


def tanks(
    rules: RuleSet, record: Record, scales: tuple[Blocks, ...]
) -> Iterator[Unmetered | Metered]:
    """Yield what explains each tank that does not balance: at most one cause per tank."""
    for rule, balance in _balances(rules):
        residual, drives = _measured(rule, balance, record)
        for blocks in scales:
            loss, meter = _explained(balance, residual, drives, blocks)
            if loss is not None or meter is not None:
                yield _believed(balance, rules, loss, meter)
                break


def _believed(
    balance: Balance, rules: RuleSet, loss: Shift | None, meter: tuple[int, Shift] | None
) -> Unmetered | Metered:
    """Return the better explanation; of two that are nearly as good, a constant loss."""
    said = None
    if meter is not None:
        term, shift = meter
        said = Metered(
            level=balance.level,
            flow=balance.terms[term].channel,
            factor=1 / (1 + shift.size),
            first=shift.first,
        )
        if loss is None or loss.gain < AS_GOOD * shift.gain:
            return said
        if shift.gain < AS_GOOD * loss.gain:
            said = None
    assert loss is not None
    return _unmetered(balance, rules, loss, said)


def _balances(rules: RuleSet) -> Iterator[tuple[Invariant, Balance]]:
    """Yield each tank's balance from row to row; a window stands in where there is none."""
    seen: set[str] = set()
    for kind in (Balance, Window):
        for rule in rules.invariants:
            relation = rule.relation
            if not isinstance(relation, kind) or relation.level in seen:
                continue
            seen.add(relation.level)
            yield (
                rule,
                Balance(
                    name=relation.name,
                    level=relation.level,
                    terms=relation.terms,
                    constant=relation.constant,
                    averaged=relation.averaged,
                ),
            )


def _measured(rule: Invariant, balance: Balance, record: Record) -> tuple[Floats, list[Floats]]:
    """Return the balance's residual, without jumps, and what each term drives, per row."""
    judged = residuals(balance, record)
    limit = CLIPPED * rule.tolerance
    residual = np.where(judged.applies, np.clip(judged.values, -limit, limit), np.nan)
    still = replace(balance, terms=())
    step = residuals(still, record).values
    drives = [
        step - residuals(replace(balance, terms=(term,)), record).values for term in balance.terms
    ]
    return residual, [np.where(np.isnan(residual), np.nan, drive) for drive in drives]


def _explained(
    balance: Balance, residual: Floats, drives: list[Floats], blocks: Blocks
) -> tuple[Shift | None, tuple[int, Shift] | None]:
    """Return a constant loss that explains the residual, and the meter whose scale does best."""
    known = np.where(np.isnan(residual), 0.0, 1.0)
    loss = lasting_shift(blocks, blocks.sums(residual), blocks.sums(known))
    throughput = sum(float(np.mean(np.abs(np.nan_to_num(drive)))) for drive in drives) / 2
    if loss is not None and abs(loss.size) < LEAST_LOSS * throughput:
        loss = None
    scales = []
    for term, drive in enumerate(drives):
        if balance.terms[term].on:
            continue  # an actuator is no meter
        scale = lasting_shift(blocks, blocks.sums(residual * drive), blocks.sums(drive**2))
        if scale is not None and LEAST_SCALE <= abs(scale.size) < 1:
            scales.append((term, scale))
    return loss, max(scales, key=lambda one: one[1].gain, default=None)


def _unmetered(
    balance: Balance, rules: RuleSet, shift: Shift, or_meter: Metered | None
) -> Unmetered:
    """Convert a loss per row into a flow, by what one unit of a metered flow does to the level."""
    flows = [term for term in balance.terms if not term.on]
    if not flows:
        return Unmetered(
            level=balance.level,
            per_row=shift.size,
            flow=None,
            flow_unit="",
            first=shift.first,
            or_meter=or_meter,
        )
    largest = max(flows, key=lambda term: abs(term.coefficient))
    return Unmetered(
        level=balance.level,
        per_row=shift.size,
        flow=shift.size / float(np.median([abs(term.coefficient) for term in flows])),
        flow_unit=rules.channel(largest.channel).unit,
        first=shift.first,
        or_meter=or_meter,
    )
