"""Which rows speak against a record, rule by rule: a verdict's `suspect` rows taken apart."""

from dataclasses import dataclass

import numpy as np

from sluice.admission import Gate, HardenedPolicy
from sluice.arrays import Bools
from sluice.invariants import measure, residuals
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
        return _hardened(gate, record)
    found = []
    for rule in gate.rules.invariants:
        seen = residuals(rule.relation, record)
        with np.errstate(invalid="ignore"):
            broken = seen.applies & (np.abs(seen.values) > rule.tolerance)
        found.append(RuleMask(name=rule.name, suspect=broken))
    return tuple(found)


def _hardened(gate: Gate, record: Record) -> tuple[RuleMask, ...]:
    verdict = gate.judge(record)
    measured = measure(gate.rules, record, encoding=gate.encoding)
    jumps = np.zeros(len(record), bool)
    jumps[record.segment_starts] = True
    return (
        *(RuleMask(name=found.rule.name, suspect=found.violating) for found in measured.judged),
        *(RuleMask(name=f"{told.level} alive", suspect=told.rows) for told in verdict.lying),
        RuleMask(name="missing reading", suspect=measured.missing),
        RuleMask(name="unknown code", suspect=measured.illegal),
        RuleMask(name="first row of a segment", suspect=jumps),
    )
