"""The kinds of detector that clients learn together from sums, by name.

The autoencoder is trained in rounds and is not one of them. Every other kind is learned from sums
over windows: each client summarises its own windows, the summaries are added, and the model is a
function of the total.
"""

from collections.abc import Mapping
from typing import Any, Protocol, Self, final

import numpy as np

from sluice.detector.model import DetectorKind, Model
from sluice.detector.moments import (
    MomentModel,
    MomentSettings,
    MomentStatistic,
    fit_moments,
    sum_windows,
)
from sluice.detector.subspace import Moments, Subspace, fit_subspace
from sluice.errors import SettingError
from sluice.invariants import REGISTER_TOP, Register
from sluice.plugins import Registry
from sluice.telemetry import Scaler, Windows

__all__ = ["SUMMED", "SummedDetector", "WindowSums", "demand_detector", "detector_names"]

SPREADS = 16.0
SCALED_STEP = 2 * SPREADS / (1 << 16)


class WindowSums(Protocol):
    """Sums over windows; two of them add up to the summary of both sets of windows."""

    @property
    def count(self) -> int:
        """How many windows were summed."""
        ...

    def __add__(self, other: Self) -> Self:
        """Return the summary of both."""
        ...


class SummedDetector(Protocol):
    """A kind of detector that is learned from sums over windows."""

    @property
    def model(self) -> type[Model]:
        """The model's class, by which a saved one is loaded."""
        ...

    def summarise(self, windows: Windows) -> Any:
        """Return the `WindowSums` of one client's windows."""
        ...

    def fit(self, total: Any, clean: Windows) -> Model:
        """Return the model of a summary; `clean` are windows that were not summed."""
        ...


@final
class SubspaceDetector:
    """Principal components of windows: the summary is their count, sum and second moments."""

    model: type[Model] = Subspace

    def summarise(self, windows: Windows) -> Moments:
        """Return the moments of the windows."""
        return Moments.of(windows)

    def fit(self, total: Moments, clean: Windows) -> Model:
        """Return the subspace that the moments span."""
        return fit_subspace(total, clean)


@final
class MomentDetector:
    """Mahalanobis distance of windows: the summary is their lagged sums, as exact integers.

    Readings arrive scaled. They become 16-bit registers of 1/2048 of a spread, up to 16 spreads
    from the centre on either side.
    """

    model: type[Model] = MomentModel

    def summarise(self, windows: Windows) -> MomentStatistic:
        """Return the lagged sums of the windows; every window has weight 1."""
        rows = np.nan_to_num(windows.rows.astype(np.float64))
        settings = _scaled_settings(rows.shape[1], windows.length)
        registers = np.clip(np.rint((rows + SPREADS) / SCALED_STEP), 0, REGISTER_TOP)
        weights = np.bincount(windows.last_rows, minlength=len(rows))
        return sum_windows(registers.astype(np.int64), weights, settings)

    def fit(self, total: MomentStatistic, clean: Windows) -> Model:
        """Return the Mahalanobis distance under the summed moments."""
        names = total.settings.channels
        units = Scaler(names=names, mean=np.zeros(len(names)), spread=np.ones(len(names)))
        return fit_moments(total, units, clean)


def _scaled_settings(channels: int, lags: int) -> MomentSettings:
    digits = len(str(channels))
    registers = tuple(
        Register(channel=f"channel {at:0{digits}d}", low=-SPREADS, step=SCALED_STEP)
        for at in range(channels)
    )
    return MomentSettings(registers=registers, lags=lags)


_BUILT_IN: Mapping[str, SummedDetector] = {
    DetectorKind.SUBSPACE.value: SubspaceDetector(),
    DetectorKind.MOMENTS.value: MomentDetector(),
}
SUMMED: Registry[SummedDetector] = Registry(
    _BUILT_IN, group="sluice.detectors", reserved=(DetectorKind.AUTOENCODER.value,)
)


def detector_names() -> tuple[str, ...]:
    """Return the names that settings and model files may give."""
    return (DetectorKind.AUTOENCODER.value, *SUMMED)


def demand_detector(name: str) -> None:
    """Refuse a kind of detector that does not exist."""
    if name not in detector_names():
        raise SettingError(f"unknown detector {name!r}; known are {', '.join(detector_names())}")
