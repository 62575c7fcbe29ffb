"""How many drawn rows may violate, and on how many a coupling may be silent: from calibrated rates.

A tolerance lies beyond the 99.9th percentile of clean residuals (equation 3), so no rule is broken
on more than one clean row in a thousand, and no more rows violate than rules together break. From
that rate and a stated share of clean batches that may be excluded, the budget follows.
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
"""Of clean rows, by one rule: what the 99.9th percentile leaves."""
LEAST_VIOLATIONS = 2
"""Clean violations come in pairs: a spike breaks a balance when it comes and when it goes."""
EXCLUDED_VIOLATING = 5e-3
"""How often a clean batch may be excluded for its violating rows, at the most its rules leave."""
EXCLUDED_SILENT = 1e-5
"""How often for a coupling that does not apply."""
UNEVEN = 2.0
"""Clean batches differ: one may show so many times the mean rate of rows without steady state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """How often a clean batch is excluded, at the most: once drawn, and in a run of fresh draws."""

    violating: float  # for its violating rows
    silent: float  # for a coupling that does not apply
    rounds: int

    @property
    def per_round(self) -> float:
        """For either."""
        return min(self.violating + self.silent, 1.0)

    @property
    def per_run(self) -> float:
        """At least once."""
        return 1 - (1 - self.per_round) ** self.rounds


def clean_share(rules: RuleSet) -> float:
    """Return the share of clean rows that violate, at the most that calibration leaves."""
    return min(BROKEN * len(rules.invariants), 1.0)


def violation_budget(rules: RuleSet, *, samples: int) -> int:
    """Return how many of so many drawn rows may violate."""
    least = least_budget(samples, rate=clean_share(rules), excluded=EXCLUDED_VIOLATING)
    return min(max(least, LEAST_VIOLATIONS), samples - 1)


def silent_budgets(statement: SampledStatement) -> tuple[int, ...]:
    """Return on how many drawn rows each coupling may not apply, from what calibration saw."""
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
            "no budget for its silence follows; mine it again"
        )
    # At least one row in `calibrated`: that none was seen does not say that there is none.
    return min(UNEVEN * max(calibrated - judged, 1) / calibrated, 1.0)
