"""The primary figure: how far two ways of training differ in targeted recall, run by run.

Both are run on the same seed, record and target set, and the differences are averaged over every
such run, whether or not the poison did damage there. A ratio of damage removed (`removal`) looks
only at the runs where it did, and with few seeds a ratio is mostly chance.
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
    """What two runs share: the seed, the record they are tested on, the attacks aimed at."""

    seed: int
    record: str
    targets: str

    def __str__(self) -> str:
        return f"seed {self.seed} on {self.record!r}, targets {self.targets!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Targeted recall of one mode and of the mode it is held against, on the same unit.

    Against honest-only the difference is damage (negative) that is not due to fewer clients; gated
    against naive it is what the gate saves.
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
        """How much more of the targeted windows the mode finds."""
        return self.recall - self.against


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """The mean difference with its interval, and how many runs it stands on."""

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

    Seeds are drawn with replacement, and within each drawn seed its pairs: runs of one seed share
    their initial weights and their liars, so they are not as good as runs of several. Percentiles
    are taken further out than the level says, by as much as Student's t is wider than the normal
    for so many seeds (Hesterberg, The American Statistician 2015). With normal differences of five
    seeds that holds the truth 93 times in 100, plain percentiles 84 times; of three seeds neither
    holds it more than 77 times, so run five or more.
    """
    if not 0 < level < 1:
        raise SettingError(f"an interval's level lies between 0 and 1, got {level}")
    if draws < 1:
        raise SettingError(f"a bootstrap draws at least once, got {draws}")
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
    seen: set[Unit] = set()
    found: defaultdict[int, list[float]] = defaultdict(list)
    for pair in sorted(pairs, key=lambda pair: pair.unit):  # the order given changes nothing
        if pair.unit in seen:
            raise SettingError(f"{pair.unit} is given twice; expected one pair of runs for it")
        seen.add(pair.unit)
        found[pair.unit.seed].append(pair.difference)
    if len(found) < 2:
        raise SettingError(
            f"a paired difference needs runs of at least two seeds, got {len(found)}; one seed "
            "says nothing about the next"
        )
    return [np.array(values) for values in found.values()]


def _drawn_means(by_seed: list[Floats], random: np.random.Generator, draws: int) -> Floats:
    """Return the means of resampled runs, all draws at once; shorter seeds are padded."""
    sizes = np.array([len(values) for values in by_seed])
    values = np.zeros((len(by_seed), sizes.max()))
    for row, own in zip(values, by_seed, strict=True):
        row[: len(own)] = own
    chosen = random.integers(0, len(by_seed), (draws, len(by_seed)))
    within = random.random((*chosen.shape, values.shape[1]))
    held = sizes[chosen][..., np.newaxis]
    picked = values[chosen[..., np.newaxis], (within * held).astype(np.int64)]
    counted = np.arange(values.shape[1]) < held
    means: Floats = (picked * counted).sum(axis=(1, 2)) / sizes[chosen].sum(axis=1)
    return means


def _tail(level: float, seeds: int) -> float:
    from scipy.special import stdtrit  # noqa: PLC0415 - not every command takes a bootstrap

    wide = np.sqrt(seeds / (seeds - 1)) * stdtrit(seeds - 1, (1 - level) / 2)
    return NormalDist().cdf(float(wide))
