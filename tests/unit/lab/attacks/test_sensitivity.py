"""The slope of the score in the readings, against differences taken in double precision."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.arrays import Floats
from sluice.detector.autoencoder import Parameters, initial, scores, unflatten
from sluice.errors import SettingError
from sluice.lab.attacks.score_gradient import score_gradient
from sluice.telemetry.windows import Windows


@pytest.fixture(scope="module")
def parameters(clean: Windows) -> Parameters:
    return initial(clean.rows.shape[1] * clean.length, seed=0)


def some(windows: Windows, count: int) -> Windows:
    return windows.take(np.arange(count))


def mean_score(parameters: Parameters, windows: Windows, rows: Floats) -> float:
    """Score in double precision: differences of single-precision scores are mostly rounding."""
    *hidden, last = unflatten(parameters.astype(np.float64))
    batch = np.array([rows[start : start + windows.length].ravel() for start in windows.starts])
    active = batch
    for weights, bias in hidden:
        active = np.maximum(active @ weights + bias, 0)
    error = active @ last.weights + last.bias - batch
    return float((error**2).mean(axis=1).mean())


def test_the_slope_is_that_of_small_differences(clean: Windows, parameters: Parameters) -> None:
    windows = some(clean, 300)
    score, slope = score_gradient(parameters, windows)
    rows = windows.rows.astype(np.float64)
    assert score == pytest.approx(mean_score(parameters, windows, rows), rel=1e-5)
    # Overlaps differ: the first rows are in one window and a few, the middle ones in ten.
    for row, channel in ((0, 0), (3, 5), (150, 2), (151, 7), (308, 1)):
        step = np.zeros_like(rows)
        step[row, channel] = 1e-5
        ahead, behind = (mean_score(parameters, windows, rows + sign * step) for sign in (1, -1))
        assert slope[row, channel] == pytest.approx((ahead - behind) / 2e-5, rel=1e-3, abs=1e-8)


def test_a_step_along_the_slope_gains_what_it_promises(
    clean: Windows, parameters: Parameters
) -> None:
    windows = some(clean, 2_500)  # three chunks, the last one short
    _, slope = score_gradient(parameters, windows)
    rows, direction = windows.rows.astype(np.float64), slope / np.linalg.norm(slope)
    ahead, behind = (
        mean_score(parameters, windows, rows + sign * 1e-4 * direction) for sign in (1, -1)
    )
    assert np.linalg.norm(slope) == pytest.approx((ahead - behind) / 2e-4, rel=1e-3)


def test_the_score_is_the_mean_of_the_scores(clean: Windows, parameters: Parameters) -> None:
    score, slope = score_gradient(parameters, clean)
    assert score == pytest.approx(scores(parameters, clean).mean(), rel=1e-5)
    assert slope.shape == clean.rows.shape
    assert slope.dtype == np.float32


def test_a_window_met_twice_counts_twice(clean: Windows, parameters: Parameters) -> None:
    once, far = (score_gradient(parameters, clean.take(np.array([at])))[1] for at in (0, 500))
    mixed = score_gradient(parameters, clean.take(np.array([0, 0, 500])))[1]
    assert mixed == pytest.approx((2 * once + far) / 3, rel=1e-4, abs=1e-9)


def test_rows_no_window_holds_have_no_slope(clean: Windows, parameters: Parameters) -> None:
    rows = clean.rows.copy()
    rows[100] = np.nan
    holed = replace(some(clean, 90), rows=rows)
    _, slope = score_gradient(parameters, holed)
    assert np.isfinite(slope).all()
    assert slope[:99].any(axis=1).all()
    assert not slope[99:].any()


def test_windows_it_cannot_score_are_refused(clean: Windows, parameters: Parameters) -> None:
    with pytest.raises(SettingError, match="the model reads 20 values a window"):
        score_gradient(initial(20, seed=0), clean)
    with pytest.raises(SettingError, match="no whole window"):
        score_gradient(parameters, some(clean, 0))
