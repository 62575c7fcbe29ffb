"""Attacks on statistics: what malicious members send in place of the sums of their rows.

They know the statistics of all honest members and the labelled record with the attacks to hide.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from sluice.arrays import Floats
from sluice.detector.moments import MomentStatistic
from sluice.invariants import REGISTER_TOP
from sluice.lab.attacks import MinMax

__all__ = ["STATISTIC_ATTACKS", "StatisticAttack"]

StatisticAttack = Callable[
    [MomentStatistic, Sequence[MomentStatistic], MomentStatistic, np.random.Generator],
    MomentStatistic,
]
"""From the own statistic, those of honest members, that of the attacks, and a generator."""


def min_max(
    own: MomentStatistic,
    honest: Sequence[MomentStatistic],
    hidden: MomentStatistic,
    rng: np.random.Generator,
) -> MomentStatistic:
    """Go against the honest mean as far as the honest statistics lie apart (min-max)."""
    seed = int(rng.integers(2**31))
    return _statistic(own, MinMax()(_flat(own), [_flat(other) for other in honest], seed=seed))


def of_the_attacks(
    own: MomentStatistic,
    honest: Sequence[MomentStatistic],
    hidden: MomentStatistic,
    rng: np.random.Generator,
) -> MomentStatistic:
    """Send the sums of the attacks themselves: they become what is normal."""
    return hidden


def wide(
    own: MomentStatistic,
    honest: Sequence[MomentStatistic],
    hidden: MomentStatistic,
    rng: np.random.Generator,
) -> MomentStatistic:
    """Claim the largest variances that registers allow, so that nothing is unusual."""
    weight = own.weight
    sums = np.full_like(own.sums, weight * (REGISTER_TOP // 2))
    lagged = np.zeros_like(own.lagged)
    lagged[:] = weight * (REGISTER_TOP // 2) ** 2
    channels = np.arange(len(own.sums))
    lagged[0, channels, channels] = weight * (REGISTER_TOP // 2) * REGISTER_TOP
    return MomentStatistic(
        settings=own.settings, count=own.count, weight=weight, sums=sums, lagged=lagged
    )


def random(
    own: MomentStatistic,
    honest: Sequence[MomentStatistic],
    hidden: MomentStatistic,
    rng: np.random.Generator,
) -> MomentStatistic:
    """Send sums of random registers; most are no sums of any rows."""
    return _statistic(own, rng.uniform(0, 1, len(_flat(own))))


def nothing(
    own: MomentStatistic,
    honest: Sequence[MomentStatistic],
    hidden: MomentStatistic,
    rng: np.random.Generator,
) -> MomentStatistic:
    """Send zeros: no detector follows from them, and the vote is withheld."""
    return _statistic(own, np.zeros(len(_flat(own))))


STATISTIC_ATTACKS: Mapping[str, StatisticAttack] = MappingProxyType(
    {
        "statistic: min-max": min_max,
        "statistic: of the attacks": of_the_attacks,
        "statistic: wide": wide,
        "statistic: random": random,
        "statistic: zeros": nothing,
    }
)


def _flat(statistic: MomentStatistic) -> Floats:
    """Return the mean registers and their mean products, each within 0 to 1."""
    return np.concatenate(
        (
            statistic.sums / (statistic.weight * REGISTER_TOP),
            statistic.lagged.ravel() / (statistic.weight * REGISTER_TOP**2),
        )
    )


def _statistic(own: MomentStatistic, flat: Floats) -> MomentStatistic:
    """Return the nearest statistic that a receiver does not refuse as impossible."""
    shares = np.clip(flat, 0.0, 1.0)
    channels = len(own.sums)
    products = shares[channels:].reshape(own.lagged.shape).copy()
    products[0] = (products[0] + products[0].T) / 2
    return MomentStatistic(
        settings=own.settings,
        count=own.count,
        weight=own.weight,
        sums=np.floor(shares[:channels] * own.weight * REGISTER_TOP).astype(np.int64),
        lagged=np.floor(products * own.weight * float(REGISTER_TOP**2)).astype(np.int64),
    )
