"""The gate: a rule set and a policy, ready to judge batches."""

import warnings
from dataclasses import dataclass

from sluice.admission.measured import MeasuredBatch
from sluice.admission.policy import Policy, default_policy
from sluice.admission.verdict import Verdict
from sluice.errors import EmptyRulesError, RecordError, SettingError
from sluice.invariants import Encoding, RuleSet
from sluice.telemetry import Record

__all__ = ["EmptyRulesWarning", "Gate", "demand_measurable", "judge"]


class EmptyRulesWarning(UserWarning):
    """No rule relates channels to each other: every batch in range is admitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A rule set and a policy, prepared once for many batches."""

    rules: RuleSet
    policy: Policy
    encoding: Encoding | None = None

    @classmethod
    def of(cls, rules: RuleSet, policy: Policy, *, allow_empty: bool = False) -> "Gate":
        """Prepare a gate; empty rules are an error, or a warning with `allow_empty`."""
        if rules.empty:
            message = (
                f"the rules of {rules.plant!r} hold no coupling, balance or window: every batch in "
                "range would be admitted"
            )
            if not allow_empty:
                raise EmptyRulesError(f"{message}; mine other rows or pass --allow-empty")
            warnings.warn(message, EmptyRulesWarning, stacklevel=2)
        return cls(rules=rules, policy=policy, encoding=policy.encoding(rules))

    def judge(self, batch: Record) -> Verdict:
        """Judge one batch."""
        return self.policy.judge(self.measure(batch))

    def measure(self, batch: Record) -> MeasuredBatch:
        """Return the batch, ready to be measured; one that does not fit the rules is an error."""
        if len(batch) == 0:
            raise RecordError(f"batch {batch.name!r} has no rows")
        demand_measurable(batch, self.rules)
        return MeasuredBatch(rules=self.rules, record=batch, encoding=self.encoding)


def demand_measurable(batch: Record, rules: RuleSet) -> None:
    """Raise unless a record has the rules' stride and the channels that they read."""
    if batch.stride_s != rules.stride_s:
        times = rules.stride_s / batch.stride_s
        remedy = f"keep every {times:g}-th row (--every {times:g})"
        if times < 1 or times != round(times):
            remedy = "mine rules at the batch's stride, or check that the plant is the same"
        raise SettingError(
            f"batch {batch.name!r} has a stride of {batch.stride_s:g} s, the rules of "
            f"{rules.plant!r} one of {rules.stride_s:g} s; {remedy}"
        )
    rules.demand(batch)


def judge(
    batch: Record, rules: RuleSet, policy: Policy | None = None, *, allow_empty: bool = False
) -> Verdict:
    """Judge one batch by the rules of its plant.

    Without a policy, the hardened one applies where the rules support it, else the paper's.
    """
    return Gate.of(rules, policy or default_policy(rules), allow_empty=allow_empty).judge(batch)
