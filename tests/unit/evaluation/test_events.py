"""Attacks found, how late, and false alarms per day."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.detector.alarms import Scored
from sluice.detector.threshold import Threshold
from sluice.errors import SettingError
from sluice.evaluation.events import attacks_found, false_alarms_per_day
from sluice.evaluation.outcome import Outcome, Unlabelled
from sluice.telemetry.record import Label

from .conftest import Make


def test_an_attack_is_noticed_at_its_first_alarm(make_outcome: Make) -> None:
    found = attacks_found(
        make_outcome(
            [0, 1, 1, 1, 0, 1, 1, 0, 1],
            [1, 0, 0, 1, 1, 0, 0, 1, 1],
        )
    )
    assert [attack.delay_s for attack in found] == [10.0, None, 0.0]
    assert [attack.detected for attack in found] == [True, False, True]
    assert [(attack.first_row, attack.last_row) for attack in found] == [
        (10, 12),
        (14, 15),
        (17, 17),
    ]


def test_a_time_jump_ends_an_attack(make_outcome: Make) -> None:
    rows = np.array([9, 10, 11, 40, 41])
    found = attacks_found(make_outcome([0, 1, 1, 1, 1], [0, 0, 0, 0, 1], last_rows=rows))
    assert [(attack.first_row, attack.delay_s) for attack in found] == [(10, None), (40, 5.0)]


def test_false_alarms_are_stretches_wholly_on_normal_windows(make_outcome: Make) -> None:
    # One stretch of two windows, one that outlasts an attack, one alone; 6 of 8 windows normal.
    outcome = make_outcome([0, 0, 0, 1, 1, 0, 0, 0], [1, 1, 0, 0, 1, 1, 0, 1], stride_s=3600)
    assert false_alarms_per_day(outcome) == pytest.approx(2 / (6 / 24))
    assert false_alarms_per_day(make_outcome([1, 1], [1, 0])) is None


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_false_alarms_are_what_the_detector_itself_counts(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = np.cumsum(random.choice([1, 1, 1, 1, 11], 80))
    outcome = Outcome(
        scores=random.random(80),
        alarms=random.random(80) < 0.4,
        labels=np.repeat(random.choice([0, 0, 1, 2], 20), 4).astype(np.int8),
        last_rows=rows,
        stride_s=60.0,
    )
    scored = Scored(
        last_rows=rows,
        times=np.datetime64("2024-01-01", "s") + rows * np.timedelta64(60, "s"),
        scores=outcome.scores,
        alarms=outcome.alarms,
        labels=outcome.labels,
        threshold=Threshold(score=0.5, quantile=0.9, clean_windows=100),
        stride_s=60.0,
    )
    assert false_alarms_per_day(outcome) == pytest.approx(scored.false_alarms_per_day())


def test_unlabelled_windows_are_left_out_or_count_as_normal(make_outcome: Make) -> None:
    outcome = make_outcome([0, 2, 1, 2, 0], [0, 1, 1, 0, 1])
    assert outcome.settled(Unlabelled.NORMAL).labels.tolist() == [0, 0, 1, 0, 0]
    left = outcome.settled(Unlabelled.EXCLUDE)
    assert left.labels.tolist() == [0, 1, 0]
    assert left.last_rows.tolist() == [9, 11, 13]
    with pytest.raises(SettingError, match="all 2 windows are unlabelled"):
        make_outcome([2, 2], [0, 1]).settled(Unlabelled.EXCLUDE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"alarms": np.zeros(4, dtype=np.bool_)}, "3 scores but alarms of shape"),
        ({"labels": np.zeros((3, 1), dtype=np.int8)}, "labels of shape"),
        ({"last_rows": np.arange(2)}, "last rows of shape"),
        ({"alarms": np.zeros(3)}, "true or false, got an array of float64"),
        ({"scores": np.array([0.0, np.nan, 1.0])}, "finite"),
        ({"labels": np.array([0, 1, 7], dtype=np.int8)}, "2 UNLABELLED"),
        ({"last_rows": np.array([3, 2, 4])}, "time order"),
        ({"stride_s": 0.0}, "more than 0 s"),
    ],
)
def test_an_outcome_that_cannot_be_is_refused(change: dict[str, object], words: str) -> None:
    whole: dict[str, object] = {
        "scores": np.zeros(3),
        "alarms": np.zeros(3, dtype=np.bool_),
        "labels": np.full(3, Label.NORMAL, dtype=np.int8),
        "last_rows": np.arange(3),
        "stride_s": 5.0,
    }
    with pytest.raises(SettingError, match=words):
        Outcome(**(whole | change))  # type: ignore[arg-type]


def test_an_empty_outcome_is_refused(make_outcome: Make) -> None:
    with pytest.raises(SettingError, match="without windows"):
        make_outcome([])
