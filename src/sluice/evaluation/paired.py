"""The primary metric: the difference in targeted recall between two ways of training, per run.

Both ways use the same seed, record and target set. The differences are averaged over all runs,
whether or not the poison caused damage. The ratio of damage removed (`removal`) uses only the runs
with damage, and with few seeds such a ratio is mostly chance.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from sluice.arrays import Floats
from sluice.errors import SettingError
from sluice.seeding import stream

__all__ = ["Pair", "PairedDifference", "Unit", "paired_difference"]

LEVEL = 0.95
DRAWS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Unit:
    """What two compared runs share: the seed, the test record and the targeted attacks."""

    seed: int
    record: str
    targets: str

    def __str__(self) -> str:
        return f"seed {self.seed} on {self.record!r}, targets {self.targets!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Targeted recall of one mode and of the mode it is compared with, on the same unit.

    Compared with honest-only, a negative difference is damage that is not due to fewer clients.
    For gated compared with naive, the difference is the recall that the gate saves.
    """

    unit: Unit
    recall: float
    against: float

    def __post_init__(self) -> None:
        for value in (self.recall, self.against):
            if not 0 <= value <= 1:
                raise SettingError(f"{self.unit} has a recall of {value}; expected 0 to 1")

    @property
    def difference(self) -> float:
        """Targeted recall of the mode minus that of the other mode."""
        return self.recall - self.against


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """The mean difference with its interval, and the number of runs behind it."""

    mean: float
    low: float
    high: float
    level: float
    pairs: int
    seeds: int
    draws: int


def paired_difference(
    pairs: Sequence[Pair], *, seed: int, level: float = LEVEL, draws: int = DRAWS
) -> PairedDifference:
    """Return the mean paired difference with a bootstrap interval.

    Seeds are drawn with replacement, and pairs within each drawn seed: runs of one seed share their
    initial weights and malicious clients, so they are not independent. The percentiles are wider
    than the level, by as much as Student's t is wider than the normal distribution for this number
    of seeds (Hesterberg, The American Statistician 2015). With normal differences and five seeds,
    the interval contains the true value 93 times in 100; plain percentiles do so 84 times. With
    three seeds neither contains it more than 77 times, so run five or more.
    """
    if not 0 < level < 1:
        raise SettingError(f"an interval's level must lie between 0 and 1, got {level}")
    if draws < 1:
        raise SettingError(f"a bootstrap must draw at least once, got {draws}")
    by_seed = _by_seed(pairs)
    drawn = _drawn_means(by_seed, stream(seed, "paired difference"), draws)
    tail = _tail(level, len(by_seed))
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return PairedDifference(
        mean=float(np.concatenate(by_seed).mean()),
        low=float(low),
        high=float(high),
        level=level,
        pairs=len(pairs),
        seeds=len(by_seed),
        draws=draws,
    )


def _by_seed(pairs: Sequence[Pair]) -> list[Floats]:
    units: set[Unit] = set()
    differences: defaultdict[int, list[float]] = defaultdict(list)
    for pair in sorted(
        pairs, key=lambda pair: pair.unit
    ):  # so that the input order does not matter
        if pair.unit in units:
            raise SettingError(f"{pair.unit} is given twice; expected one pair of runs for it")
        units.add(pair.unit)
        differences[pair.unit.seed].append(pair.difference)
    if len(differences) < 2:
        raise SettingError(
            f"a paired difference needs runs of at least two seeds, got {len(differences)}; one "
            "seed does not show the spread between seeds"
        )
    return [np.array(values) for values in differences.values()]


def _drawn_means(by_seed: list[Floats], random: np.random.Generator, draws: int) -> Floats:
    """Return the means of resampled runs, all draws at once; seeds with fewer runs are padded."""
    sizes = np.array([len(values) for values in by_seed])
    values = np.zeros((len(by_seed), sizes.max()))
    for row, own in zip(values, by_seed, strict=True):
        row[: len(own)] = own
    chosen = random.integers(0, len(by_seed), (draws, len(by_seed)))
    within = random.random((*chosen.shape, values.shape[1]))
    counts = sizes[chosen][..., np.newaxis]
    picked = values[chosen[..., np.newaxis], (within * counts).astype(np.int64)]
    present = np.arange(values.shape[1]) < counts
    means: Floats = (picked * present).sum(axis=(1, 2)) / sizes[chosen].sum(axis=1)
    return means


def _tail(level: float, seeds: int) -> float:
    from scipy.special import stdtrit  # noqa: PLC0415 - slow import, and few commands need a bootstrap

    wide = np.sqrt(seeds / (seeds - 1)) * stdtrit(seeds - 1, (1 - level) / 2)
    return NormalDist().cdf(float(wide))
