"""A batch under a rule set, measured at most once even if it is judged and drawn."""

from dataclasses import dataclass
from functools import cached_property

from sluice.invariants import (
    Encoding,
    Measurement,
    RowCheck,
    RuleSet,
    encode,
    measure,
    violations,
)
from sluice.telemetry import Record

__all__ = ["MeasuredBatch"]


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredBatch:
    """A batch and the results of its rules, in the arithmetic that a policy uses."""

    rules: RuleSet
    record: Record
    encoding: Encoding | None = None

    @cached_property
    def integers(self) -> Measurement:
        """The integer evaluator's result: normative for the hardened policy."""
        return measure(self.rules, self.record, encoding=self.encoding or encode(self.rules))

    @cached_property
    def floats(self) -> RowCheck:
        """The paper's arithmetic."""
        return violations(self.rules, self.record)
