"""From a statistic to a model: the covariance of windows, its shrinkage, and its whitening.

If clean operation is stationary, two rows of a window are related by their distance in time alone.
Then the lagged sums hold the covariance of whole windows: its block for rows i and j is that of lag
i - j (block-Toeplitz).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from sluice.arrays import Floats, Ints
from sluice.detector.moments.model import MomentModel
from sluice.detector.moments.statistic import MomentStatistic
from sluice.errors import SettingError
from sluice.telemetry import Scaler, Windows

__all__ = ["RIDGES", "WindowMoments", "fit_moments", "window_moments"]

RIDGES = tuple(10.0**power for power in np.arange(-5.0, 0.25, 0.5))
FLAT = 1e-9  # a variance in scaled units below which a channel did not move
MOST_WINDOWS = 1_024  # of the clean windows, evenly spaced, on which the shrinkage is chosen


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowMoments:
    """The mean window and the covariance of windows, in a scaler's units."""

    mean: Floats  # rows x moving
    covariance: Floats  # (rows x moving)^2
    moving: Ints  # positions, among the scaler's channels, of those that moved


def window_moments(statistic: MomentStatistic, scaler: Scaler) -> WindowMoments:
    """Return mean and covariance of windows; a channel that did not move is left out."""
    settings = statistic.settings
    if not statistic.weight:
        raise SettingError("there is no whole window to learn from; give more consecutive rows")
    unknown = sorted(set(settings.channels) - set(scaler.names))
    if unknown:
        raise SettingError(
            f"the statistic sums channel {unknown[0]!r}, which the detector does not read; give a "
            "scaler of all summed channels"
        )
    at = np.array([scaler.names.index(name) for name in settings.channels])
    step = np.array([register.step for register in settings.registers]) / scaler.spread[at]
    low = np.array([register.low for register in settings.registers])
    mean = statistic.sums / statistic.weight
    lagged = statistic.lagged / statistic.weight - np.outer(mean, mean)
    lagged = lagged * np.outer(step, step)
    scaled = (low - scaler.mean[at]) / scaler.spread[at] + step * mean
    moved = np.flatnonzero(np.diagonal(lagged[0]) > FLAT)
    if not moved.size:
        raise SettingError("no channel moves in the summed rows; give a record that changes")
    moved = moved[np.argsort(at[moved])]
    return WindowMoments(
        mean=np.tile(scaled[moved], settings.lags),
        covariance=_block_toeplitz(lagged[:, moved][:, :, moved]),
        moving=at[moved],
    )


def fit_moments(
    statistic: MomentStatistic,
    scaler: Scaler,
    clean: Windows,
    *,
    ridges: Sequence[float] = RIDGES,
    absent: Collection[str] = (),
) -> MomentModel:
    """Return the Mahalanobis detector of a statistic.

    Channels that are `absent`, because the member whose sums these are does not have them, are not
    read at all: the detector is that of the other channels.

    `clean` are clean windows, cut with the same scaler, that were not summed. They choose the
    shrinkage: among `ridges`, added to every variance, the one under which they are most likely.
    The model depends on nothing else: not on labels, and not on other plants' rows.
    """
    if statistic.settings.lags != clean.length:
        raise SettingError(
            f"the statistic has {statistic.settings.lags} lags and the clean windows "
            f"{clean.length} rows; cut windows of as many rows"
        )
    if not len(clean):
        raise SettingError(
            "there is no whole clean window to choose the shrinkage on; give more clean rows"
        )
    moments = window_moments(statistic, scaler)
    variances, directions = np.linalg.eigh(moments.covariance)
    squares = _mean_squares(clean, moments, directions)
    ridge = max(ridges, key=lambda one: _likelihood(np.maximum(variances, 0.0) + one, squares))
    covariance = (directions * (np.maximum(variances, 0.0) + ridge)) @ directions.T
    factor = np.linalg.cholesky(covariance)
    whitener = solve_triangular(factor, np.eye(len(factor)), lower=True)
    mean = np.zeros(len(scaler.names))
    mean[moments.moving] = moments.mean[: len(moments.moving)]
    lacking = np.array([at for at, name in enumerate(scaler.names) if name in absent], np.int64)
    return MomentModel(mean=mean, moving=moments.moving, whitener=np.tril(whitener), absent=lacking)


def _block_toeplitz(lagged: Floats) -> Floats:
    """Return the covariance of windows, oldest row first, from covariances by lag."""
    lags, channels = lagged.shape[:2]
    blocks = np.empty((lags, channels, lags, channels))
    for later in range(lags):
        for earlier in range(later + 1):
            blocks[later, :, earlier] = lagged[later - earlier]
            blocks[earlier, :, later] = lagged[later - earlier].T
    covariance = blocks.reshape(lags * channels, lags * channels)
    symmetric: Floats = (covariance + covariance.T) / 2
    return symmetric


def _mean_squares(clean: Windows, moments: WindowMoments, directions: Floats) -> Floats:
    """Return the mean square of the clean windows along each direction."""
    chosen = np.unique(np.linspace(0, len(clean) - 1, min(len(clean), MOST_WINDOWS)).astype(int))
    rows = clean.matrix(chosen).reshape(len(chosen), clean.length, -1)[:, :, moments.moving]
    off = rows.reshape(len(chosen), -1) - moments.mean
    along: Floats = ((off @ directions) ** 2).mean(axis=0)
    return along


def _likelihood(variances: Floats, squares: Floats) -> float:
    """Return the log-likelihood of the clean windows under normal directions, up to constants."""
    return -float(np.log(variances).sum() + (squares / variances).sum())
