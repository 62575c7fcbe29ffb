"""Budgets from calibrated rates: how many drawn rows may violate, or leave a coupling silent.

A tolerance lies beyond the 99.9th percentile of clean residuals (equation 3), so a rule is broken
on at most one clean row in a thousand. The share of violating rows is at most the sum of these
rates over the rules. The budget follows from that rate and a stated share of clean batches that may
be excluded.
"""

from dataclasses import dataclass

from sluice.attestation.systems.sampled.guarantee import exclusion_probability, least_budget
from sluice.attestation.systems.sampled.statement import SampledStatement
from sluice.errors import SettingError
from sluice.invariants import Invariant, RuleSet

__all__ = [
    "LEAST_VIOLATIONS",
    "Exclusion",
    "clean_share",
    "exclusion",
    "silent_budgets",
    "violation_budget",
]

BROKEN = 1e-3
"""Largest share of clean rows that break one rule, from the 99.9th percentile."""
LEAST_VIOLATIONS = 2
"""Clean violations come in pairs: a spike breaks a balance when it starts and when it ends."""
EXCLUDED_VIOLATING = 5e-3
"""Largest share of clean batches excluded for violating rows, at the largest clean rate."""
EXCLUDED_SILENT = 1e-5
"""Largest share of clean batches excluded for a coupling that does not apply."""
UNEVEN = 2.0
"""Clean batches differ: one may have this many times the mean rate of rows without steady state."""
MOST_SILENT = 0.3
"""Largest share of calibration rows on which a rules file may state that a coupling is silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Upper bounds on how often a clean batch is excluded: per draw, and per run of new draws."""

    violating: float  # for its violating rows
    silent: float  # for a coupling that does not apply
    rounds: int

    @property
    def per_round(self) -> float:
        """For either reason, in one round."""
        return min(self.violating + self.silent, 1.0)

    @property
    def per_run(self) -> float:
        """At least once in `rounds` rounds."""
        return 1 - (1 - self.per_round) ** self.rounds


def clean_share(rules: RuleSet) -> float:
    """Return the largest share of clean rows that violate, from calibration."""
    return min(BROKEN * len(rules.invariants), 1.0)


def violation_budget(rules: RuleSet, *, samples: int) -> int:
    """Return how many of the drawn rows may violate."""
    least = least_budget(samples, rate=clean_share(rules), excluded=EXCLUDED_VIOLATING)
    return min(max(least, LEAST_VIOLATIONS), samples - 1)


def silent_budgets(statement: SampledStatement) -> tuple[int, ...]:
    """Return for each coupling the drawn rows on which it may not apply, from calibration."""
    return tuple(
        least_budget(statement.samples, rate=rate, excluded=EXCLUDED_SILENT)
        for rate in _silent_rates(statement)
    )


def exclusion(statement: SampledStatement, violations: int, *, rounds: int) -> Exclusion:
    """Return how often clean batches are excluded under the budgets of a statement."""
    samples, rate = statement.samples, clean_share(statement.rules)
    silent = (
        exclusion_probability(samples, budget, rate=each)
        for budget, each in zip(silent_budgets(statement), _silent_rates(statement), strict=True)
    )
    return Exclusion(
        violating=exclusion_probability(samples, violations, rate=rate),
        silent=min(sum(silent), 1.0),
        rounds=rounds,
    )


def _silent_rates(statement: SampledStatement) -> tuple[float, ...]:
    calibrated = statement.rules.calibration_rows
    return tuple(_silent_rate(each, calibrated) for each in statement.couplings)


def _silent_rate(coupling: Invariant, calibrated: int) -> float:
    judged = coupling.evidence.judged_rows
    if judged is None or not 0 < judged <= calibrated:
        raise SettingError(
            f"rule {coupling.name!r} does not say on how many calibration rows it was judged, so "
            "it has no budget for silent rows; mine it again"
        )
    silent = (calibrated - judged) / calibrated
    if silent > MOST_SILENT:
        raise SettingError(
            f"rule {coupling.name!r} was silent on {silent:.0%} of the calibration rows, more than "
            f"{MOST_SILENT:.0%}, so a proof of drawn rows would say little about it; drop the rule "
            "or mine other rows"
        )
    # At least one row in `calibrated`: zero observed rows do not mean a rate of zero.
    return min(UNEVEN * max(calibrated - judged, 1) / calibrated, 1.0)
