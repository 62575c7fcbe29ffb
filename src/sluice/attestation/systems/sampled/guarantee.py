"""What sampling promises, exactly: rows are drawn without putting back (hypergeometric).

A proof about sampled rows says nothing certain about the others. These are the chances.
"""

from dataclasses import dataclass
from math import comb

from sluice.errors import SettingError

__all__ = [
    "Chance",
    "Guarantee",
    "exclusion_probability",
    "guarantee",
    "least_budget",
    "pass_probability",
]

SHARES = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
ROUNDS = 25
"""Of a run, as the paper's federations have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """How likely a batch with this share of violating rows passes."""

    share: float
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """What drawing so many of so many rows promises where so many of them may violate."""

    rows: int
    samples: int
    violations: int
    passes: tuple[Chance, ...]
    clean_share: float  # of violating rows in a clean batch
    excluded_per_round: float  # how likely a clean batch is refused, drawn once
    excluded_per_run: float  # and at least once where rows are drawn anew each round
    rounds: int


def guarantee(
    rows: int, samples: int, violations: int, *, clean_share: float, rounds: int = ROUNDS
) -> Guarantee:
    """Return the chances of bad batches to pass and of clean ones to be refused."""
    if not 1 <= samples < rows:
        raise SettingError(f"{samples} samples cannot be drawn from rows 1 to {rows - 1}")
    if not 0 <= violations <= samples:
        raise SettingError(f"{violations} of {samples} samples cannot violate")
    if not 0 <= clean_share < 1 or rounds < 1:
        raise SettingError(f"clean share {clean_share:g} and {rounds} rounds make no sense")
    clean = round(clean_share * rows)
    per_round = 1 - pass_probability(rows, samples, violations, violating=clean)
    return Guarantee(
        rows=rows,
        samples=samples,
        violations=violations,
        passes=tuple(
            Chance(
                share=share,
                probability=pass_probability(
                    rows, samples, violations, violating=round(share * rows)
                ),
            )
            for share in SHARES
        ),
        clean_share=clean_share,
        excluded_per_round=per_round,
        excluded_per_run=1 - (1 - per_round) ** rounds,
        rounds=rounds,
    )


def pass_probability(rows: int, samples: int, violations: int, *, violating: int) -> float:
    """Return how likely at most `violations` of the samples are among the violating rows.

    Row 0 has no row before it and is never drawn, so the draw is from `rows - 1`.
    """
    drawable = rows - 1
    bad = min(violating, drawable)
    ways = sum(
        comb(bad, found) * comb(drawable - bad, samples - found)
        for found in range(min(violations, samples, bad) + 1)
    )
    return ways / comb(drawable, samples)


def exclusion_probability(samples: int, budget: int, *, rate: float) -> float:
    """Return how likely more than `budget` of the samples show what clean rows show at a rate."""
    return 1 - sum(
        comb(samples, found) * rate**found * (1 - rate) ** (samples - found)
        for found in range(budget + 1)
    )


def least_budget(samples: int, *, rate: float, excluded: float) -> int:
    """Return the smallest budget by which clean batches are excluded no more often than stated."""
    return next(
        budget
        for budget in range(samples + 1)
        if budget == samples or exclusion_probability(samples, budget, rate=rate) <= excluded
    )
