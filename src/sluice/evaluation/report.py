"""Every metric of a scored record, from one function."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Bools
from sluice.evaluation.batadal import BatadalScore, batadal_score, row_alarms
from sluice.evaluation.events import MERGE_ROWS, alarm_events, false_alarms_per_week
from sluice.evaluation.outcome import Outcome, ScoredWindows, Unlabelled
from sluice.evaluation.quality import DetectionQuality, evaluate
from sluice.evaluation.vus import vus_pr
from sluice.telemetry import Label

__all__ = ["DetectionReport", "Metric", "detection_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One line of a report: the key of JSON output, words for people, and the value."""

    key: str
    words: str
    value: float | None

    @property
    def shown(self) -> str:
        """The value as text; a dash if it is not defined on this record."""
        if self.value is None:
            return "-"
        return f"{self.value:,}" if isinstance(self.value, int) else f"{self.value:.4g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionReport:
    """A detector's metrics on one labelled record, at the detector's own threshold.

    `quality` and `vus_pr` count windows: a window is attack if it contains an attack row. `batadal`
    counts rows, as the competition does. Alarms less than 10 rows apart are one event.
    """

    quality: DetectionQuality
    vus_pr: float
    batadal: BatadalScore
    events: int
    false_alarms_per_week: float | None  # None if no window is normal
    time_in_alarm: float  # share of normal windows that alarm

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics, in the order in which a report prints them."""
        quality, batadal, etapr = self.quality, self.batadal, self.quality.etapr
        return tuple(
            Metric(key=key, words=words, value=value)
            for key, words, value in (
                ("average_precision", "average precision", quality.auc_pr),
                ("vus_pr", "VUS-PR", self.vus_pr),
                ("etapr_f1", "eTaPR, F1", etapr.f1),
                ("etapr_precision", "eTaPR, precision", etapr.precision),
                ("etapr_recall", "eTaPR, recall", etapr.recall),
                ("batadal_score", "BATADAL's score S", batadal.score),
                ("batadal_ttd", "S_TTD, time to detection", batadal.time_to_detection),
                ("batadal_cm", "S_CM, classification of rows", batadal.classification),
                ("attacks", "attacks", len(quality.attacks)),
                ("attacks_detected", "attacks detected", quality.detected_attacks),
                ("detection_delay_s", "median detection delay, s", quality.median_delay_s),
                ("recall", "recall of windows", quality.recall),
                ("precision", "precision of windows", quality.precision),
                ("f1", "F1 of windows", quality.f1),
                ("alarm_events", "alarm events", self.events),
                ("false_alarms_per_week", "false alarms a week", self.false_alarms_per_week),
                ("time_in_alarm", "share of normal windows in alarm", self.time_in_alarm),
            )
        )


def detection_report(
    scored: ScoredWindows,
    labels: NDArray[np.int8],
    *,
    targets: Bools | None = None,
    unlabelled: Unlabelled = Unlabelled.EXCLUDE,
    merge_rows: int = MERGE_ROWS,
) -> DetectionReport:
    """Measure a scored record; `labels` are those of the record's rows.

    report = sluice.detection_report(sluice.score(record, detector), record.labels)
    for metric in report.metrics:
        print(metric.words, metric.shown)
    """
    outcome = Outcome.of(scored)
    by_row = row_alarms(outcome.last_rows, outcome.alarms, rows=len(labels))
    quality = evaluate(outcome, targets=targets, unlabelled=unlabelled)
    settled = outcome.settled(unlabelled)
    # An event over an excluded window is not entirely normal, so it is not false.
    whole = settled if unlabelled is Unlabelled.NORMAL else outcome
    normal = whole.labels == Label.NORMAL
    return DetectionReport(
        quality=quality,
        vus_pr=vus_pr(settled),
        batadal=batadal_score(by_row, labels, unlabelled=unlabelled),
        events=len(alarm_events(whole, merge_rows=merge_rows)),
        false_alarms_per_week=false_alarms_per_week(whole, merge_rows=merge_rows),
        time_in_alarm=float(whole.alarms[normal].mean()),
    )
