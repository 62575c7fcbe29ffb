"""Thresholds by false alarms a week."""

import numpy as np
import pytest

from sluice.detector.tails import WEEK_S, alarm_events, fit_pareto, threshold_for
from sluice.detector.threshold import RateThreshold
from sluice.errors import SettingError

HOUR = 3_600.0


def clean(rows: int, *, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Squares of smoothed noise: heavy tails, and neighbours alike."""
    noise = np.random.default_rng(seed).standard_normal(rows + 4)
    smooth = np.convolve(noise, np.ones(5) / np.sqrt(5), "valid")
    squares: np.ndarray[tuple[int], np.dtype[np.float64]] = smooth**2
    return squares


def test_alarms_less_than_ten_rows_apart_are_one_event() -> None:
    rows = np.array([3, 4, 13, 23, 60, 61])
    assert [tuple(event) for event in alarm_events(rows)] == [(0, 3), (3, 4), (4, 6)]
    assert alarm_events(rows[:0]) == ()


@pytest.mark.parametrize("rate", [0.25, 1.0, 5.0])
def test_the_asked_rate_is_kept_on_other_clean_rows(rate: float) -> None:
    rows, repeats, events = 168 * 15, 40, []
    for seed in range(repeats):
        scores = clean(rows, seed=seed)
        threshold = threshold_for(
            scores, np.arange(rows), stride_s=HOUR, false_alarms_per_week=rate
        )
        other = clean(rows, seed=1000 + seed)
        events.append(len(alarm_events(np.flatnonzero(threshold.alarms(other)))))
    weeks = rows * HOUR / WEEK_S
    assert 0.7 * rate < np.mean(events) / weeks < 1.3 * rate


def test_with_many_events_the_clean_scores_set_it_exactly() -> None:
    scores = clean(168 * 15, seed=7)
    found = threshold_for(scores, np.arange(len(scores)), stride_s=HOUR, false_alarms_per_week=2.0)
    assert found.clean_events == 30
    lower = np.sort(scores[scores < found.score])[-1]
    assert len(alarm_events(np.flatnonzero(scores > lower))) >= 30
    assert len(alarm_events(np.flatnonzero(scores >= found.score))) == 31


def test_a_pareto_fit_finds_scale_and_shape() -> None:
    share = (np.arange(4000) + 0.5) / 4000
    for scale, shape in ((2.0, 0.2), (1.0, -0.3), (0.5, 0.0)):
        excess = np.array([_inverse(scale, shape, one) for one in share])
        fitted = fit_pareto(excess)
        assert fitted.scale == pytest.approx(scale, rel=0.03)
        assert fitted.shape == pytest.approx(shape, abs=0.02)
        assert fitted.survival(np.array([fitted.excess(0.01)]))[0] == pytest.approx(0.01)


def _inverse(scale: float, shape: float, share: float) -> float:
    return float(scale * (-np.log(share) if shape == 0 else (share**-shape - 1) / shape))


def test_equal_peaks_have_a_threshold_too() -> None:
    scores = np.zeros(2_000)
    scores[::50] = 1.0
    found = threshold_for(scores, np.arange(2_000), stride_s=HOUR, false_alarms_per_week=0.1)
    assert found.score >= 1.0
    assert found.clean_events == 0


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_cannot_be_is_refused(rate: float) -> None:
    with pytest.raises(SettingError, match="false alarms a week must be above 0"):
        threshold_for(clean(500, seed=0), np.arange(500), stride_s=HOUR, false_alarms_per_week=rate)
    with pytest.raises(SettingError, match="false alarms a week must be above 0"):
        RateThreshold(score=1.0, false_alarms_per_week=rate, clean_windows=9, clean_events=0)


def test_too_few_peaks_are_refused() -> None:
    with pytest.raises(SettingError, match="calibrate on more clean rows"):
        threshold_for(clean(40, seed=0), np.arange(40), stride_s=HOUR, false_alarms_per_week=1.0)


def test_scores_that_are_no_numbers_are_refused() -> None:
    for scores in (np.empty(0), np.array([1.0, np.nan])):
        with pytest.raises(SettingError, match="finite scores of at least one clean window"):
            threshold_for(scores, np.arange(len(scores)), stride_s=HOUR, false_alarms_per_week=1.0)
