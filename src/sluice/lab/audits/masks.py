"""The suspect rows of a record by rule: splits the `suspect` rows of a verdict."""

from dataclasses import dataclass

import numpy as np

from sluice.admission import Gate
from sluice.arrays import Bools
from sluice.telemetry import Record

__all__ = ["RuleMask", "masks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleMask:
    """The suspect rows of one rule, or of a check that is not a rule of the file."""

    name: str
    suspect: Bools


def masks(gate: Gate, record: Record) -> tuple[RuleMask, ...]:
    """Return the suspect rows of each rule; their union is the suspect rows of the verdict."""
    verdict = gate.judge(record)
    rules = tuple(RuleMask(name=f.name, suspect=f.violating) for f in verdict.findings)
    if not gate.policy.integers:
        return rules
    integers = verdict.measured.integers
    jumps = np.zeros(len(record), bool)
    jumps[record.segment_starts] = True
    return (
        *rules,
        *(
            RuleMask(name=f"{reason.rule} alive", suspect=reason.rows)
            for reason in verdict.reasons
            if reason.kind.about_a_level
        ),
        RuleMask(name="missing reading", suspect=integers.missing),
        RuleMask(name="unknown code", suspect=integers.illegal),
        RuleMask(name="first row of a segment", suspect=jumps),
    )
