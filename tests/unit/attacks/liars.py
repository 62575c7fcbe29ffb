"""What liars of these tests know."""

from sluice.admission import Gate, Policy
from sluice.attacks import Targets
from sluice.attacks.knowledge import Knowledge
from sluice.invariants import RuleSet


def facing(targets: Targets, rules: RuleSet, policy: Policy) -> Knowledge:
    """The attacks, and a gate."""
    return Knowledge(targets=targets, gate=Gate.of(rules, policy, allow_empty=True))
