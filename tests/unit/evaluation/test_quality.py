"""Everything at once, as the command line and the lab ask for it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.arrays import Bools
from sluice.detector.alarms import Scored
from sluice.detector.threshold import Threshold
from sluice.errors import SettingError
from sluice.evaluation.outcome import Outcome, Unlabelled
from sluice.evaluation.point_adjust import point_adjusted_f1
from sluice.evaluation.quality import DetectionQuality, evaluate
from sluice.telemetry.record import Label

from .conftest import Make


def drawn(seed: int, *, windows: int = 300) -> tuple[Outcome, Bools]:
    """Return an outcome with attacks, and targets that touch one of them."""
    random = np.random.default_rng(seed)
    labels = np.full(windows, Label.NORMAL, dtype=np.int8)
    labels[40:80] = labels[200:230] = Label.ATTACK
    scores = random.normal(size=windows) + 2 * (labels == Label.ATTACK)
    outcome = Outcome(
        scores=scores,
        alarms=scores > 2,
        labels=labels,
        last_rows=np.arange(windows) + 9,
        stride_s=5.0,
    )
    return outcome, np.arange(windows) < 100


def test_one_record_by_hand(make_outcome: Make) -> None:
    outcome = make_outcome(
        [0, 1, 1, 0, 0, 1, 1, 1, 1, 0],
        [0, 1, 0, 1, 0, 0, 0, 1, 1, 0],
        scores=[0, 9, 1, 8, 0, 2, 3, 7, 6, 1],
        stride_s=8640,  # ten rows a day
    )
    found = evaluate(outcome, targets=np.arange(10) < 3)
    assert (found.windows, found.attack_windows) == (10, 6)
    assert found.targeted_recall == 0.5
    assert found.untargeted_recall == 0.5
    assert found.precision == 0.75
    assert found.recall == 0.5
    assert found.f1 == pytest.approx(0.6)
    # By falling score: attack, normal, then four attacks, the sixth shares score 1 with a normal.
    assert found.auc_pr == pytest.approx((1 + 2 / 3 + 3 / 4 + 4 / 5 + 5 / 6 + 6 / 8) / 6)
    # Of the targets the first leads; the other comes level with a normal, behind one more.
    assert found.targeted_auc_pr == pytest.approx((1 + 2 / 4) / 2)
    assert found.oracle_best_f1 == pytest.approx(2 * 6 / (8 + 6))  # all at score 1 or more
    assert found.detected_attacks == 2
    assert found.median_delay_s == pytest.approx(8640)
    assert found.false_alarms_per_day == pytest.approx(1 / 0.4)
    assert found.etapr.attacks == 2


def test_a_perfect_detector_gets_everything_right() -> None:
    outcome, targets = drawn(1)
    attack = outcome.attack
    found = evaluate(
        replace(outcome, scores=attack.astype(np.float64), alarms=attack), targets=targets
    )
    ones = (
        found.targeted_recall,
        found.untargeted_recall,
        found.precision,
        found.recall,
        found.f1,
        found.auc_pr,
        found.targeted_auc_pr,
        found.oracle_best_f1,
        found.etapr.f1,
    )
    assert set(ones) == {1.0}
    assert found.detected_attacks == 2
    assert found.median_delay_s == found.false_alarms_per_day == 0


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_targeted_and_untargeted_recall_make_up_recall(seed: int) -> None:
    outcome, targets = drawn(seed)
    found = evaluate(outcome, targets=targets)
    assert found.targeted_recall is not None
    assert found.untargeted_recall is not None
    made = found.targeted_recall * 40 + found.untargeted_recall * 30
    assert found.recall * 70 == pytest.approx(made)
    assert found.oracle_best_f1 >= found.f1


def test_without_targets_no_recall_is_targeted() -> None:
    outcome, targets = drawn(2)
    found = evaluate(outcome)
    assert found.targeted_recall is found.untargeted_recall is None
    assert found.targeted_auc_pr is None
    whole = evaluate(outcome, targets=outcome.attack | targets)
    assert whole.targeted_recall == whole.recall
    assert whole.untargeted_recall is None  # every attack was aimed at


def test_a_silent_detector_is_evaluated_too() -> None:
    outcome, targets = drawn(3)
    silent = replace(outcome, alarms=np.zeros(len(outcome), dtype=np.bool_))
    found = evaluate(silent, targets=targets)
    assert found.precision is None
    assert found.median_delay_s is None
    assert found.targeted_recall == found.f1 == found.detected_attacks == 0


def unknown_from(outcome: Outcome, start: int) -> Outcome:
    labels = outcome.labels.copy()
    labels[start:] = Label.UNLABELLED
    return replace(outcome, labels=labels)


def counted(found: DetectionQuality) -> tuple[int, float, float]:
    return found.windows, found.f1, found.auc_pr


def test_unlabelled_windows_are_left_out_unless_they_count_as_normal() -> None:
    outcome, targets = drawn(4)
    half = unknown_from(outcome, 240)
    left_out = evaluate(half, targets=targets)
    shorter = evaluate(outcome.at(np.arange(300) < 240), targets=targets[:240])
    assert counted(left_out) == counted(shorter)
    assert left_out.targeted_recall == shorter.targeted_recall
    assert left_out.false_alarms_per_day == shorter.false_alarms_per_day
    as_normal = evaluate(half, targets=targets, unlabelled=Unlabelled.NORMAL)
    assert counted(as_normal) == counted(evaluate(outcome, targets=targets))


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_false_alarms_are_the_detectors_own_whatever_is_left_out(seed: int) -> None:
    random = np.random.default_rng(seed)
    outcome, _ = drawn(seed)
    labels = np.where(random.random(300) < 0.3, Label.UNLABELLED, outcome.labels).astype(np.int8)
    labels[40] = Label.ATTACK
    scored = Scored(
        last_rows=outcome.last_rows,
        times=np.datetime64("2024-01-01", "s") + outcome.last_rows * np.timedelta64(5, "s"),
        scores=outcome.scores,
        alarms=outcome.alarms,
        labels=labels,
        threshold=Threshold(score=2, quantile=0.9, clean_windows=100),
        stride_s=5.0,
    )
    found = evaluate(replace(outcome, labels=labels))
    assert found.false_alarms_per_day == pytest.approx(scored.false_alarms_per_day())


def test_what_cannot_be_evaluated_says_so() -> None:
    outcome, targets = drawn(5)
    with pytest.raises(SettingError, match="one mark per window"):
        evaluate(outcome, targets=targets[:-1])
    calm = replace(outcome, labels=np.zeros(300, dtype=np.int8))
    with pytest.raises(SettingError, match="no window is labelled attack"):
        evaluate(calm)
    with pytest.raises(SettingError, match="all 300 windows are unlabelled"):
        evaluate(unknown_from(outcome, 0))
    only_attacks = replace(
        outcome,
        labels=np.where(outcome.attack, Label.ATTACK, Label.UNLABELLED).astype(np.int8),
    )
    with pytest.raises(SettingError, match="no window is normal once 230 unlabelled ones"):
        evaluate(only_attacks)
    assert evaluate(only_attacks, unlabelled=Unlabelled.NORMAL).f1 == evaluate(outcome).f1


def test_point_adjustment_by_hand(make_outcome: Make) -> None:
    # The example in Xu and others (WWW 2018) style: one hit pays for three windows.
    outcome = make_outcome([0, 0, 1, 1, 1, 0, 0, 1, 1, 0], [1, 0, 0, 0, 1, 1, 0, 0, 0, 0])
    assert point_adjusted_f1(outcome) == pytest.approx(2 * 3 / (2 * 3 + 2 + 2))


def test_point_adjustment_praises_random_alarms() -> None:
    random = np.random.default_rng(0)
    labels = np.zeros(20_000, dtype=np.int8)
    for start in range(1000, 20_000, 4000):
        labels[start : start + 800] = Label.ATTACK
    outcome = Outcome(
        scores=random.random(20_000),
        alarms=random.random(20_000) < 0.01,
        labels=labels,
        last_rows=np.arange(20_000),
        stride_s=5.0,
    )
    assert evaluate(outcome).f1 < 0.03
    assert point_adjusted_f1(outcome) > 0.9
