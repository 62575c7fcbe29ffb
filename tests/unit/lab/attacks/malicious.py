"""What liars of these tests know."""

from sluice.admission.gate import Gate
from sluice.admission.policy import Policy
from sluice.invariants.ruleset import RuleSet
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.replay import Targets


def facing(targets: Targets, rules: RuleSet, policy: Policy) -> Knowledge:
    """The attacks, and a gate."""
    return Knowledge(targets=targets, gate=Gate.of(rules, policy, allow_empty=True))
