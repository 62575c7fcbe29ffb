"""Rule poisoning: how far prepared rows widen tolerances, and whether this helps an attack.

1. Rules are mined from a plant's true rows and from the same rows prepared by the plant.
2. Acceptance checks each file alone, and the second with the first as the last accepted file.
3. Both rule sets judge a poisoned batch.
"""

from dataclasses import dataclass

import numpy as np

from sluice.admission import Gate, HardenedPolicy, Objection, Policy, accept
from sluice.invariants import Profile, RuleSet
from sluice.invariants.mining import mine
from sluice.lab.attacks import Loosening
from sluice.telemetry import Record, Role

__all__ = ["Loosened", "LooseningTable", "loosening"]

SEEN = 12  # rows in which a state must be seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Loosened:
    """One rule's tolerance before and after, in its unit; None if it is no longer mined."""

    rule: str
    before: float
    after: float | None

    @property
    def ratio(self) -> float | None:
        """The tolerance after, divided by the tolerance before."""
        return None if self.after is None else self.after / self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class LooseningTable:
    """The effect of preparing the calibration rows."""

    rules: tuple[Loosened, ...]
    refused_true: tuple[str, ...]  # reasons to refuse the true rules, if any
    refused_alone: tuple[str, ...]  # reasons to refuse the poisoned rules alone
    refused_beside_last: tuple[str, ...]  # the same, with the true rules as the last accepted file
    violating_before: float  # share of the poisoned batch's rows
    violating_after: float
    admitted_before: bool
    admitted_after: bool

    @property
    def widened(self) -> tuple[Loosened, ...]:
        """The rules whose tolerance grew, in order of falling ratio."""
        wider = [rule for rule in self.rules if (rule.ratio or 0.0) > 1.0]
        return tuple(sorted(wider, key=lambda rule: -(rule.ratio or 0.0)))

    @property
    def gone(self) -> tuple[str, ...]:
        """The rules that are no longer mined."""
        return tuple(rule.rule for rule in self.rules if rule.after is None)


def loosening(  # noqa: PLR0913 - the plant's rows, its preparation, its batch and the gate
    fit: Record,
    calibration: Record,
    poisoned: Record,
    *,
    prepare: Loosening,
    policy: Policy,
    seed: int,
) -> LooseningTable:
    """Mine twice, check acceptance with and without the true rules, judge the batch by both.

    Under the paper's policy the paper's wide rules are mined. Acceptance always applies the
    hardened policy, and refuses a file without facts on clean batches. Actuators that hardly ever
    switched are declared, so that acceptance is about the preparation.
    """
    profile = Profile.HARDENED if policy.integers else Profile.PAPER_WIDE
    true = mine(fit, calibration, profile=profile)
    poisoned_rules = mine(fit, prepare(calibration, true, seed=seed), profile=profile)
    acceptance_policy = policy if policy.integers else HardenedPolicy()
    declared = _idle(fit)
    before, after = _judged(poisoned, true, policy), _judged(poisoned, poisoned_rules, policy)
    return LooseningTable(
        rules=_compared(true, poisoned_rules),
        refused_true=_sentences(accept(true, acceptance_policy, declared=declared)),
        refused_alone=_sentences(accept(poisoned_rules, acceptance_policy, declared=declared)),
        refused_beside_last=_sentences(
            accept(poisoned_rules, acceptance_policy, last=true, declared=declared)
        ),
        violating_before=before[0],
        violating_after=after[0],
        admitted_before=before[1],
        admitted_after=after[1],
    )


def _idle(fit: Record) -> dict[str, str]:
    """Declare the actuators that hardly ever switched, as an approver who saw the rows would do."""
    declared = {}
    for channel in fit.of_role(Role.ACTUATOR):
        assert channel.codes is not None
        states = np.rint(fit.column(channel.name))
        if min((states == channel.codes.off).sum(), np.isin(states, channel.codes.on).sum()) < SEEN:
            declared[channel.name] = "it hardly ever switched"
    return declared


def _sentences(objections: tuple[Objection, ...]) -> tuple[str, ...]:
    return tuple(objection.sentence for objection in objections)


def _compared(true: RuleSet, poisoned: RuleSet) -> tuple[Loosened, ...]:
    after = {rule.name: rule.tolerance for rule in poisoned.invariants}
    return tuple(
        Loosened(rule=rule.name, before=rule.tolerance, after=after.get(rule.name))
        for rule in true.invariants
        if rule.kind.physical
    )


def _judged(batch: Record, rules: RuleSet, policy: Policy) -> tuple[float, bool]:
    verdict = Gate.of(rules, policy, allow_empty=True).judge(batch)
    return verdict.violating_share, verdict.admitted
