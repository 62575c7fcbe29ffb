"""`moments` for a federation: the settings of the statistic come from the receiver's clean rows.

The plant that uses the detector fixes channels, registers and scale from its own clean rows and
publishes them. So no member has a say in how another member's rows are summed or read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sluice.arrays import Bools, Ints, runs
from sluice.detector.calibration import Framing
from sluice.detector.model import DetectorKind, Model
from sluice.detector.moments import (
    LentTail,
    MomentModel,
    MomentSettings,
    MomentStatistic,
    fit_moments,
    lend_tail,
    moment_settings,
    sum_windows,
    trapezoid,
)
from sluice.detector.registry import SUMMED, SummedDetector
from sluice.telemetry import Record, Scaler, Windows

__all__ = ["ReceiverMoments", "cross_fitted_tail", "summed_for"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReceiverMoments:
    """Lagged sums of windows in the receiver's registers, and detectors from them."""

    model: ClassVar[type[Model]] = MomentModel

    settings: MomentSettings
    scaler: Scaler

    def summarise(self, windows: Windows) -> MomentStatistic:
        """Return the lagged sums of a client's windows.

        Consecutive windows have the public weights of the statistic. Windows that are drawn more
        than once have their number of draws as weight.
        """
        registers = np.empty((len(windows.rows), len(self.settings.registers)), np.int64)
        for at, register in enumerate(self.settings.registers):
            column = self.scaler.names.index(register.channel)
            scaled = np.nan_to_num(windows.rows[:, column].astype(np.float64))
            readings = scaled * self.scaler.spread[column] + self.scaler.mean[column]
            registers[:, at] = register.quantise(readings)
        drawn = np.bincount(windows.last_rows, minlength=len(registers))
        weights = drawn if drawn.max(initial=0) > 1 else _ramped(drawn > 0)
        return sum_windows(registers, weights, self.settings)

    def fit(self, total: MomentStatistic, clean: Windows) -> Model:
        """Return the detector of a statistic; `clean` are windows of the receiver.

        It reads the points that both have: those that the receiver lacks are taken out of the sums,
        and those that the members of the statistic lack are not read.
        """
        own = total.only(self.scaler.names)
        absent = set(self.settings.channels) - set(own.settings.channels)
        return fit_moments(own, self.scaler, clean, absent=absent)


def summed_for(detector: str, framing: Framing, clean: Record) -> SummedDetector:
    """Return how clients sum their windows for a receiver with these clean rows.

    Channels that the framing does not read are left out.
    """
    if detector != DetectorKind.MOMENTS:
        return SUMMED[detector]
    untied = set(clean.names) - set(framing.scaler.names)
    settings = moment_settings(clean, untied=untied, lags=framing.window_rows)
    return ReceiverMoments(settings=settings, scaler=framing.scaler)


def cross_fitted_tail(
    batch: Record, framing: Framing, summed: Callable[[Record], MomentStatistic]
) -> LentTail:
    """Return the tail of a plant's own detector on its own rows.

    The detector of each half of the batch scores the other half, so no window is scored by a
    detector that has summed it. Raises if the batch is too short for a tail.
    """
    middle = len(batch) // 2
    halves = batch.rows(0, middle), batch.rows(middle, len(batch))
    scores, rows = [], []
    for at, first in enumerate((0, middle)):
        statistic, windows = summed(halves[1 - at]), framing.windows(halves[at])
        kind = ReceiverMoments(settings=statistic.settings, scaler=framing.scaler)
        scores.append(kind.fit(statistic, windows).scores(windows))
        rows.append(windows.last_rows + first)
    return lend_tail(np.concatenate(scores), np.concatenate(rows), stride_s=framing.stride_s)


def _ramped(counted: Bools) -> Ints:
    """Return the public weights of each run of consecutive windows."""
    weights = np.zeros(len(counted), np.int64)
    for run in runs(counted):
        weights[run.slice] = trapezoid(run.rows)
    return weights
