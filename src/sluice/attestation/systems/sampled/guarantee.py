"""The exact guarantee of sampling: rows are drawn without replacement (hypergeometric).

A proof about sampled rows gives no certainty about the others, only these probabilities.
"""

from dataclasses import dataclass
from math import comb, expm1, log1p

from sluice.errors import SettingError

__all__ = [
    "TRIES",
    "Chance",
    "Guarantee",
    "exclusion_probability",
    "guarantee",
    "least_budget",
    "pass_probability",
]

SHARES = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
ROUNDS = 25
"""Rounds of a run, as in the paper's federations."""
TRIES = 3
"""Draws that a client gets without an answer under one registration: the log's `unanswered_max`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """The probability that a batch with this share of violating rows passes."""

    share: float
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """The guarantee of drawing `samples` of `rows` rows if `violations` samples may violate."""

    rows: int
    samples: int
    violations: int
    passes: tuple[Chance, ...]  # in one draw
    tries: int
    passes_after_tries: tuple[Chance, ...]  # at least once in `tries` draws
    clean_share: float  # of violating rows in a clean batch
    excluded_per_round: float  # probability that a clean batch is refused in one draw
    excluded_per_run: float  # at least once in `rounds` rounds, with a new draw in each
    rounds: int


def guarantee(  # noqa: PLR0913 - the numbers that decide it
    rows: int,
    samples: int,
    violations: int,
    *,
    clean_share: float,
    rounds: int = ROUNDS,
    tries: int = TRIES,
) -> Guarantee:
    """Return the probabilities that bad batches pass and that clean batches are refused.

    A plant with a bad batch can leave a challenge unanswered and commit to the batch again as rows
    of another time. The log limits these tries; each one is a new draw.
    """
    if not 1 <= samples < rows:
        raise SettingError(f"{samples} samples cannot be drawn from rows 1 to {rows - 1}")
    if not 0 <= violations <= samples:
        raise SettingError(f"0 to {samples} samples can violate, got {violations}")
    if not 0 <= clean_share < 1 or rounds < 1 or tries < 1:
        raise SettingError(
            "the clean share must be 0 or more and less than 1, and rounds and tries 1 or more; "
            f"got {clean_share:g}, {rounds} and {tries}"
        )
    clean = round(clean_share * rows)
    per_round = 1 - pass_probability(rows, samples, violations, violating=clean)
    passes = tuple(
        Chance(
            share=share,
            probability=pass_probability(rows, samples, violations, violating=round(share * rows)),
        )
        for share in SHARES
    )
    return Guarantee(
        rows=rows,
        samples=samples,
        violations=violations,
        passes=passes,
        tries=tries,
        passes_after_tries=tuple(
            Chance(share=each.share, probability=_at_least_once(each.probability, tries))
            for each in passes
        ),
        clean_share=clean_share,
        excluded_per_round=per_round,
        excluded_per_run=1 - (1 - per_round) ** rounds,
        rounds=rounds,
    )


def pass_probability(rows: int, samples: int, violations: int, *, violating: int) -> float:
    """Return the probability that at most `violations` samples are violating rows.

    Row 0 has no row before it and is never drawn, so the draw is from `rows - 1`.
    """
    drawable = rows - 1
    bad = min(violating, drawable)
    ways = sum(
        comb(bad, hits) * comb(drawable - bad, samples - hits)
        for hits in range(min(violations, samples, bad) + 1)
    )
    return ways / comb(drawable, samples)


def _at_least_once(probability: float, tries: int) -> float:
    """Return the probability of at least one success; exact for small probabilities too."""
    return 1.0 if probability >= 1 else -expm1(tries * log1p(-probability))


def exclusion_probability(samples: int, budget: int, *, rate: float) -> float:
    """Return the probability that more than `budget` samples show an event of this clean rate."""
    return 1 - sum(
        comb(samples, hits) * rate**hits * (1 - rate) ** (samples - hits)
        for hits in range(budget + 1)
    )


def least_budget(samples: int, *, rate: float, excluded: float) -> int:
    """Return the smallest budget that excludes at most a share `excluded` of clean batches."""
    fitting = (
        budget
        for budget in range(samples)
        if exclusion_probability(samples, budget, rate=rate) <= excluded
    )
    return next(fitting, samples)
