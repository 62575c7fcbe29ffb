"""Which rows speak against a record, rule by rule: a verdict's `suspect` rows taken apart."""

from dataclasses import dataclass

import numpy as np

from sluice.admission import HardenedPolicy
from sluice.admission.gate import Gate
from sluice.arrays import Bools
from sluice.errors import SettingError
from sluice.invariants import Budgets, Measurement, budgets_for, measure, residuals
from sluice.invariants.measure import block_starts
from sluice.telemetry import Record

__all__ = ["RuleMask", "masks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleMask:
    """The rows one rule finds suspect; what is no rule of the file has a name of its own."""

    name: str
    suspect: Bools


def masks(gate: Gate, record: Record) -> tuple[RuleMask, ...]:
    """Return every rule's suspect rows; together they are those of the gate's verdict."""
    if isinstance(gate.policy, HardenedPolicy):
        return _hardened(gate, gate.policy, record)
    found = []
    for rule in gate.rules.invariants:
        seen = residuals(rule.relation, record)
        with np.errstate(invalid="ignore"):
            broken = seen.applies & (np.abs(seen.values) > rule.tolerance)
        found.append(RuleMask(name=rule.name, suspect=broken))
    return tuple(found)


def _hardened(gate: Gate, policy: HardenedPolicy, record: Record) -> tuple[RuleMask, ...]:
    rules = gate.rules
    if rules.clean is None:
        raise SettingError(
            f"the rules of {rules.plant!r} say nothing of clean batches; audit them with "
            "--policy paper"
        )
    measured = measure(rules, record, encoding=gate.encoding)
    budgets = budgets_for(rules, rules.clean, policy.margins, rows=measured.rows)
    jumps = np.zeros(len(record), bool)
    jumps[record.segment_starts] = True
    return (
        *(RuleMask(name=found.rule.name, suspect=found.violating) for found in measured.judged),
        *_still(measured, budgets),
        *_repeated(measured, budgets),
        RuleMask(name="missing reading", suspect=measured.missing),
        RuleMask(name="unknown code", suspect=measured.illegal),
        RuleMask(name="first row of a segment", suspect=jumps),
    )


def _still(measured: Measurement, budgets: Budgets) -> tuple[RuleMask, ...]:
    """Return the blocks over which a level moved less than it ever did."""
    found = []
    for fact, ranges in measured.quietest:
        still = np.zeros(measured.rows, bool)
        dead = ranges < budgets.quietest[fact.level, fact.rows]
        for start in block_starts(measured.rows, fact.rows)[dead]:
            still[start : start + fact.rows] = True
        found.append(RuleMask(name=f"{fact.level} still over {fact.rows} rows", suspect=still))
    return tuple(found)


def _repeated(measured: Measurement, budgets: Budgets) -> tuple[RuleMask, ...]:
    """Return the rows of levels that repeat themselves more than they ever did."""
    return tuple(
        RuleMask(name=f"{level} repeats itself", suspect=rows)
        for level, rows in measured.repeated
        if rows.sum() > budgets.repeated_rows.get(level, 0)
    )
