"""The report with every metric of a scored record."""

import numpy as np
import pytest

from sluice.errors import SettingError
from sluice.evaluation.batadal import batadal_score, row_alarms
from sluice.evaluation.events import alarm_events, false_alarms_per_week
from sluice.evaluation.outcome import Unlabelled
from sluice.evaluation.quality import evaluate
from sluice.evaluation.report import detection_report
from sluice.evaluation.vus import vus_pr

from .conftest import Make

WEEK_S = 604_800


def test_alarms_less_than_ten_rows_apart_are_one_event(make_outcome: Make) -> None:
    alarms = np.zeros(60, dtype=int)
    alarms[[0, 9, 18, 28, 40]] = 1  # 9, 9, 10 and 12 rows apart
    events = alarm_events(make_outcome(np.zeros(60), alarms))
    assert events.starts.tolist() == [0, 28, 40]
    assert events.stops.tolist() == [19, 29, 41]


def test_missing_windows_count_as_rows(make_outcome: Make) -> None:
    outcome = make_outcome([0, 0, 0], [1, 1, 1], last_rows=np.array([9, 18, 28]))
    assert alarm_events(outcome).starts.tolist() == [0, 2]


def test_an_alarm_that_never_ends_is_one_event(make_outcome: Make) -> None:
    outcome = make_outcome(np.zeros(500), np.ones(500), stride_s=WEEK_S / 500)
    assert false_alarms_per_week(outcome) == pytest.approx(1)


def test_no_alarm_is_no_event(make_outcome: Make) -> None:
    outcome = make_outcome(np.zeros(20))
    assert len(alarm_events(outcome)) == 0
    assert false_alarms_per_week(outcome) == 0


def test_an_event_that_touches_an_attack_is_not_false(make_outcome: Make) -> None:
    labels = np.zeros(100, dtype=int)
    labels[50:53] = 1
    alarms = np.zeros(100, dtype=int)
    alarms[[5, 46, 52, 58, 80]] = 1  # 46, 52 and 58 are one event, and 52 is an attack window
    outcome = make_outcome(labels, alarms, stride_s=WEEK_S / 97)
    assert false_alarms_per_week(outcome) == pytest.approx(2)


def test_an_event_around_an_attack_without_an_alarm_on_it_is_false(make_outcome: Make) -> None:
    labels = np.zeros(40, dtype=int)
    labels[20] = 1
    alarms = np.zeros(40, dtype=int)
    alarms[[18, 22]] = 1
    outcome = make_outcome(labels, alarms, stride_s=WEEK_S / 39)
    assert false_alarms_per_week(outcome) == pytest.approx(1)


def test_a_record_without_normal_windows_has_no_rate(make_outcome: Make) -> None:
    assert false_alarms_per_week(make_outcome([1, 1], [1, 0])) is None


def test_merging_needs_a_row(make_outcome: Make) -> None:
    with pytest.raises(SettingError, match="at least 1 row, got 0"):
        alarm_events(make_outcome([0]), merge_rows=0)


def test_the_report_holds_every_metric(make_outcome: Make) -> None:
    random = np.random.default_rng(0)
    labels = np.zeros(200, dtype=np.int8)
    labels[40:70] = labels[120:150] = 1
    scores = random.normal(size=200) + 2 * labels
    outcome = make_outcome(labels, scores > 2, scores=scores, stride_s=3600.0)
    rows = np.concatenate((np.zeros(9, dtype=np.int8), labels))
    report = detection_report(outcome, rows)
    quality = evaluate(outcome)
    by_row = row_alarms(outcome.last_rows, outcome.alarms, rows=len(rows))
    normal = labels == 0
    expected = {
        "average_precision": quality.auc_pr,
        "vus_pr": vus_pr(outcome),
        "etapr_f1": quality.etapr.f1,
        "etapr_precision": quality.etapr.precision,
        "etapr_recall": quality.etapr.recall,
        "batadal_score": batadal_score(by_row, rows).score,
        "batadal_ttd": batadal_score(by_row, rows).time_to_detection,
        "batadal_cm": batadal_score(by_row, rows).classification,
        "attacks": 2,
        "attacks_detected": quality.detected_attacks,
        "detection_delay_s": quality.median_delay_s,
        "recall": quality.recall,
        "precision": quality.precision,
        "f1": quality.f1,
        "alarm_events": len(alarm_events(outcome)),
        "false_alarms_per_week": false_alarms_per_week(outcome),
        "time_in_alarm": outcome.alarms[normal].mean(),
    }
    assert {metric.key: metric.value for metric in report.metrics} == pytest.approx(expected)


def test_unlabelled_windows_are_left_out_or_normal(make_outcome: Make) -> None:
    labels = [0] * 30 + [1] * 5 + [2] * 30
    alarms = [0] * 32 + [1] + [0] * 20 + [1] + [0] * 11
    outcome = make_outcome(labels, alarms, stride_s=WEEK_S / 60)
    rows = np.concatenate((np.zeros(9, dtype=np.int8), np.asarray(labels, dtype=np.int8)))
    left_out = detection_report(outcome, rows)
    assert left_out.false_alarms_per_week == 0
    assert left_out.batadal.true_negative_rate == 1
    counted = detection_report(outcome, rows, unlabelled=Unlabelled.NORMAL)
    assert counted.false_alarms_per_week == pytest.approx(1)
    assert counted.batadal.true_negative_rate < 1


def test_a_metric_that_is_not_defined_shows_as_a_dash(make_outcome: Make) -> None:
    report = detection_report(make_outcome([0, 1, 0]), np.array([0] * 10 + [1, 0], dtype=np.int8))
    shown = {metric.key: metric.shown for metric in report.metrics}
    assert shown["precision"] == shown["detection_delay_s"] == "-"
    assert shown["attacks"] == "1"
    assert shown["batadal_score"] == "0.25"
