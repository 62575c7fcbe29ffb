"""Thresholds from clean windows only, and alarms."""

from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from sluice.detector.alarms import Scored
from sluice.detector.alone import train
from sluice.detector.autoencoder import Autoencoder, initial
from sluice.detector.calibration import Detector, Framing, TrainingSummary, calibrated
from sluice.detector.model import DetectorKind
from sluice.detector.threshold import Threshold
from sluice.errors import MissingChannelError, RecordError, SettingError
from sluice.telemetry.record import Label, Record
from sluice.telemetry.windows import Windows

START = np.datetime64("2024-03-01T10:00:00", "us")
TRAINING = TrainingSummary(records=("plant",), windows=10, seed=0)


def scored(alarms: str, labels: str = "", *, jump_at: int | None = None) -> Scored:
    """One window a letter: `a` alarms; `x` attack, `u` unlabelled, any other normal."""
    rows = np.arange(9, 9 + len(alarms))
    if jump_at is not None:
        rows[jump_at:] += 100
    words = {"x": Label.ATTACK, "u": Label.UNLABELLED}
    named = [words.get(letter, Label.NORMAL) for letter in labels or "." * len(alarms)]
    mask = np.array([letter == "a" for letter in alarms])
    return Scored(
        last_rows=rows,
        times=START + rows.astype("timedelta64[h]"),
        scores=np.where(mask, 3.0 + np.arange(len(alarms)), 1.0),
        alarms=mask,
        labels=np.array(named, np.int8),
        threshold=Threshold(score=2, quantile=0.5, clean_windows=10),
        stride_s=3600,
    )


def test_the_threshold_is_the_linear_quantile_and_alarms_lie_above_it() -> None:
    clean = np.arange(1001, dtype=np.float64)
    threshold = Threshold.from_clean(clean)
    assert threshold == Threshold(score=995, quantile=0.995, clean_windows=1001)
    assert threshold.alarms(np.array([994, 995, np.nextafter(995, 996)])).tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("scores", "quantile", "message"),
    [
        (
            np.ones(199),
            0.995,
            "199 clean windows are too few for a 0.995 quantile; give at least 200",
        ),
        (np.ones(0), 0.995, "finite scores"),
        (np.array([1.0, np.nan] * 200), 0.995, "finite scores"),
        (np.ones(500), 1.0, "must lie between 0 and 1"),
    ],
)
def test_a_threshold_needs_enough_clean_scores(
    scores: np.ndarray[tuple[int], np.dtype[np.float64]], quantile: float, message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        Threshold.from_clean(scores, quantile=quantile)


def test_no_detector_without_a_clean_set(framing: Framing) -> None:
    with pytest.raises(TypeError, match="must come from clean windows"):
        Detector(
            model=Autoencoder(initial(framing.width, seed=0)),
            framing=framing,
            threshold=Threshold(score=1, quantile=0.5, clean_windows=2),
            training=TRAINING,
            seal=None,
        )


def test_a_clean_set_with_an_attack_is_refused(framing: Framing, clean: Windows) -> None:
    labels = clean.labels.copy()
    labels[40:52] = Label.ATTACK
    model = Autoencoder(initial(framing.width, seed=0))
    with pytest.raises(SettingError, match="12 of the .* given as clean are labelled attack"):
        calibrated(model, framing, replace(clean, labels=labels), training=TRAINING)


def test_a_model_of_another_width_is_refused(framing: Framing, clean: Windows) -> None:
    with pytest.raises(SettingError, match="reads 20 values a window"):
        calibrated(Autoencoder(initial(20, seed=0)), framing, clean, training=TRAINING)


def test_training_on_attacks_is_refused(plant: Record) -> None:
    labels = plant.labels.copy()
    labels[-1] = Label.ATTACK
    with pytest.raises(SettingError, match="holds rows labelled attack"):
        train(replace(plant, labels=labels), kind=DetectorKind.SUBSPACE)


def test_few_clean_windows_alarm_and_a_shaking_tank_does(detector: Detector, plant: Record) -> None:
    seen = detector.score(plant)
    assert len(seen) == len(plant) - 9
    assert seen.times[0] == plant.times[9]
    assert seen.alarms.mean() < 0.05
    values = plant.values.copy()
    values[5000:5400:2, plant.index("L_T2")] += 8 * values[:, plant.index("L_T2")].std()
    moved = detector.score(plant.with_values(values))
    assert moved.alarms[4991:5391].mean() > 0.9


def test_a_missing_channel_is_named(detector: Detector, plant: Record) -> None:
    with pytest.raises(MissingChannelError, match="'L_T2', which the model reads"):
        detector.score(plant.without("L_T2"))


def test_another_stride_is_refused(detector: Detector, plant: Record) -> None:
    with pytest.raises(RecordError, match=r"every 120 s; the model reads one every 60 s"):
        detector.score(plant.every(2))


def test_a_record_without_a_whole_window_is_refused(detector: Detector, plant: Record) -> None:
    with pytest.raises(RecordError, match="no 10 consecutive rows"):
        detector.score(plant.rows(0, 9))


def test_alarms_in_a_row_are_one_stretch_and_a_time_jump_ends_it() -> None:
    stretches = scored(".aa..aaa.", jump_at=6).stretches()
    assert [(s.first_row, s.last_row) for s in stretches] == [(10, 11), (14, 14), (115, 116)]
    assert [s.rows for s in stretches] == [2, 1, 2]
    assert [s.peak for s in stretches] == [5, 8, 10]
    assert stretches[0].start == START + np.timedelta64(10, "h")


def test_an_alarm_that_outlasts_its_attack_is_not_false() -> None:
    seen = scored("aa.aaaa..a" + "." * 14, "...xx....u" + "." * 14)
    assert [s.false for s in seen.stretches()] == [True, False, False]
    assert seen.false_alarms_per_day() == pytest.approx(24 / 21)


def test_false_alarms_are_unknown_without_normal_labels() -> None:
    assert scored("a.a", "uux").false_alarms_per_day() is None
    assert cast("float", scored("...").false_alarms_per_day()) == 0
