"""Thresholds by false alarms a week."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.detector.tails import (
    WEEK_S,
    Pareto,
    alarm_events,
    fit_pareto,
    fit_tail,
    rarest_rate,
    threshold_for,
)
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
    """Nine of ten plants keep it; the mean stays well below it, and well above nothing."""
    rows, repeats, found = 168 * 15, 40, []
    weeks = rows * HOUR / WEEK_S
    for seed in range(repeats):
        threshold = threshold_for(
            clean(rows, seed=seed), np.arange(rows), stride_s=HOUR, false_alarms_per_week=rate
        )
        long = clean(20 * rows, seed=1000 + seed)
        found.append(len(alarm_events(np.flatnonzero(threshold.alarms(long)))) / (20 * weeks))
    assert np.mean(np.array(found) > rate) <= 0.2
    assert 0.3 * rate < np.mean(found) < rate


def test_minutes_of_clean_rows_set_no_threshold_of_a_week() -> None:
    """A tail that is carried on 600 times gave a threshold that no attack passed."""
    scores, rows = clean(1_000, seed=3), np.arange(1_000)

    def threshold(rate: float) -> float:
        return threshold_for(scores, rows, stride_s=1.0, false_alarms_per_week=rate).score

    rarest = rarest_rate(1_000, stride_s=1.0)
    assert rarest == pytest.approx(WEEK_S / 20_000)
    assert threshold(1.0) == threshold(rarest) == pytest.approx(threshold(rarest / 1.01))
    assert threshold(1.01 * rarest) < threshold(rarest)


def test_with_many_events_the_clean_scores_set_it_exactly() -> None:
    scores = clean(168 * 15, seed=7)
    found = threshold_for(scores, np.arange(len(scores)), stride_s=HOUR, false_alarms_per_week=2.0)
    assert found.clean_events == int(30 * np.exp(-1.2816 / np.sqrt(30))) == 23
    assert len(alarm_events(np.flatnonzero(scores >= found.score))) == 24


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


def test_surprise_is_the_share_of_clean_windows_that_reach_a_score() -> None:
    scores = clean(168 * 50, seed=3)
    tail = fit_tail(scores, np.arange(len(scores)))
    for share in (0.5, 0.1, 0.02):
        at = np.quantile(scores, 1 - share)
        assert tail.surprise(np.array([at]))[0] == pytest.approx(-np.log10(share), abs=0.05)
    rising = tail.surprise(np.linspace(0, 3 * scores.max(), 400))
    assert (np.diff(rising) >= 0).all()
    assert np.isfinite(rising).all()
    far = clean(168 * 3_000, seed=4)
    beyond = np.quantile(far, 1 - 1e-5)  # fifty times rarer than the clean rows show
    assert tail.surprise(np.array([beyond]))[0] == pytest.approx(5, abs=0.8)


def test_no_score_is_impossible_on_the_word_of_a_few_peaks() -> None:
    bounded = np.minimum(clean(168 * 15, seed=5), 4.0)
    tail = fit_tail(bounded, np.arange(len(bounded)))
    assert tail.pareto.shape >= 0
    assert tail.surprise(np.array([4.1]))[0] < 50


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"points": (1.0, 2.0)}, "65 finite scores in ascending order"),
        ({"points": (2.0,) * 64 + (1.0,)}, "65 finite scores in ascending order"),
        ({"share": 0.0}, "a share lies above 0"),
        ({"share": 1.5}, "a share lies above 0"),
        ({"pareto": Pareto(scale=0.0, shape=0.1)}, "a scale above 0"),
    ],
)
def test_a_tail_that_cannot_be_is_refused(changed: dict[str, object], message: str) -> None:
    scores = clean(2_000, seed=0)
    tail = fit_tail(scores, np.arange(2_000))
    with pytest.raises(SettingError, match=message):
        replace(tail, **changed)  # type: ignore[arg-type]
