"""Attacks on statistics: a malicious client shares other sums than those of its proven batch.

    attest-clean            the sums of its poison, in place of those of the clean rows it proves
    statistic-other-plant   the sums of another plant's batch
    statistic-other-batch   the sums of another batch of the same length
    statistic-outside       the sums of rows of which half lie outside its batch
    statistic-dropped       the sums of half of its rows, as if they were those of all
    statistic-scaled        its own sums, each a tenth smaller

Every forged statistic has the right channels, the right number of windows and their right weight,
so that only the proof can tell it from the true one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from sluice.arrays import Ints
from sluice.detector import MomentSettings, MomentStatistic, sum_windows, trapezoid
from sluice.telemetry import Record

__all__ = ["STATISTIC_FORGERIES", "ForgerKnowledge", "StatisticForgery"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForgerKnowledge:
    """What a malicious client has: its batch, its poison, another plant's batch, other rows."""

    settings: MomentSettings
    batch: Record  # the rows that it proves
    poison: Record
    neighbour: Record  # the batch of another plant
    other: Record  # earlier rows, of no batch


StatisticForgery = Callable[[ForgerKnowledge], MomentStatistic]


def _registers(record: Record, known: ForgerKnowledge) -> Ints:
    """Return as many rows of registers as the batch has; a short record repeats."""
    rows = known.settings.integers(record)
    return np.resize(rows, (len(known.batch), rows.shape[1]))


def _summed(registers: Ints, known: ForgerKnowledge) -> MomentStatistic:
    """Sum registers with the public weights, as if they were one segment."""
    lags = known.settings.lags
    weights = np.zeros(len(registers), np.int64)
    weights[lags - 1 :] = trapezoid(len(registers) - lags + 1)
    return sum_windows(registers, weights, known.settings)


def _of_poison(known: ForgerKnowledge) -> MomentStatistic:
    return _summed(_registers(known.poison, known), known)


def _of_neighbour(known: ForgerKnowledge) -> MomentStatistic:
    return _summed(_registers(known.neighbour, known), known)


def _of_other_batch(known: ForgerKnowledge) -> MomentStatistic:
    return _summed(_registers(known.other, known), known)


def _outside(known: ForgerKnowledge) -> MomentStatistic:
    own, other = _registers(known.batch, known), _registers(known.other, known)
    half = len(own) // 2
    return _summed(np.concatenate((own[half:], other[:half])), known)


def _dropped(known: ForgerKnowledge) -> MomentStatistic:
    own = _registers(known.batch, known)
    whole, lags = _summed(own, known), known.settings.lags
    weights = np.zeros(len(own), np.int64)
    weights[lags - 1 :] = trapezoid(len(own) - lags + 1)
    weights[len(own) // 2 :] = 0
    kept = sum_windows(own, weights, known.settings)
    return replace(kept, count=whole.count, weight=whole.weight)


def _scaled(known: ForgerKnowledge) -> MomentStatistic:
    own = _summed(_registers(known.batch, known), known)
    return replace(own, sums=own.sums * 9 // 10, lagged=own.lagged // 10 * 9)


STATISTIC_FORGERIES: Mapping[str, StatisticForgery] = MappingProxyType(
    {
        "attest-clean": _of_poison,
        "statistic-other-plant": _of_neighbour,
        "statistic-other-batch": _of_other_batch,
        "statistic-outside": _outside,
        "statistic-dropped": _dropped,
        "statistic-scaled": _scaled,
    }
)
