"""Rule poisoning: how far prepared rows widen tolerances, who notices, and whether it helps.

1. Rules are mined from a plant's true rows and from the same rows prepared by the plant.
2. Acceptance looks at each file alone, and at the second beside the first as the last accepted.
3. A poisoned batch is judged by both.
"""

from dataclasses import dataclass

from sluice.admission import Gate, HardenedPolicy, Policy, accept
from sluice.invariants import Profile, RuleSet
from sluice.invariants.mining import mine
from sluice.lab.attacks import Loosening
from sluice.telemetry import Record

__all__ = ["Loosened", "LooseningTable", "loosening"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loosened:
    """One rule's tolerance before and after, in its own unit; none where it is no longer mined."""

    rule: str
    before: float
    after: float | None

    @property
    def ratio(self) -> float | None:
        """How many times wider it got."""
        return None if self.after is None else self.after / self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class LooseningTable:
    """What preparing the calibration rows did."""

    rules: tuple[Loosened, ...]
    refused_true: tuple[str, ...]  # why acceptance refuses the true rules, if it does
    refused_alone: tuple[str, ...]  # why it refuses the spoilt ones by themselves
    refused_beside_last: tuple[str, ...]  # and with the true ones as the last accepted file
    violating_before: float  # share of the poisoned batch's rows
    violating_after: float
    admitted_before: bool
    admitted_after: bool

    @property
    def widened(self) -> tuple[Loosened, ...]:
        """The rules that got wider, widest first."""
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
    """Mine twice, accept once alone and once beside the true rules, judge the batch by both.

    Under the paper's policy the paper's wide rules are mined. Acceptance always asks what the
    hardened policy asks, and refuses a file that says nothing of clean batches.
    """
    hardened = isinstance(policy, HardenedPolicy)
    profile = Profile.HARDENED if hardened else Profile.PAPER_WIDE
    true = mine(fit, calibration, profile=profile)
    spoilt = mine(fit, prepare(calibration, true, seed=seed), profile=profile)
    asked = policy if isinstance(policy, HardenedPolicy) else HardenedPolicy()
    before, after = _judged(poisoned, true, policy), _judged(poisoned, spoilt, policy)
    return LooseningTable(
        rules=_compared(true, spoilt),
        refused_true=accept(true, asked),
        refused_alone=accept(spoilt, asked),
        refused_beside_last=accept(spoilt, asked, last=true),
        violating_before=before[0],
        violating_after=after[0],
        admitted_before=before[1],
        admitted_after=after[1],
    )


def _compared(true: RuleSet, spoilt: RuleSet) -> tuple[Loosened, ...]:
    after = {rule.name: rule.tolerance for rule in spoilt.invariants}
    return tuple(
        Loosened(rule=rule.name, before=rule.tolerance, after=after.get(rule.name))
        for rule in true.invariants
        if rule.kind.physical
    )


def _judged(batch: Record, rules: RuleSet, policy: Policy) -> tuple[float, bool]:
    verdict = Gate.of(rules, policy, allow_empty=True).judge(batch)
    return verdict.violating_share, verdict.admitted
