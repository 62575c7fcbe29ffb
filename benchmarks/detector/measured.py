"""One detector on one case: its metrics, and its false alarms on clean rows kept apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from benchmarks.detector.subjects import Case
from sluice.arrays import Floats
from sluice.detector import (
    WEEK_S,
    Detector,
    DetectorKind,
    RateThreshold,
    Scored,
    complete_rows,
    recalibrated,
    train,
)
from sluice.errors import InputError
from sluice.evaluation import average_precision, detection_report
from sluice.seeding import stream
from sluice.telemetry import Label, Record

__all__ = ["Failed", "Measured", "measure"]

DRAWS = 200
BLOCK_WINDOWS = 168
FIT_SHARE = 0.7  # of the clean rows; the others set the threshold of `moments`


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The numbers of one line of the page."""

    case: str
    detector: str
    asked: float  # false alarms a week
    average_precision: float
    low: float  # of its 95 % interval over blocks of windows
    high: float
    vus_pr: float
    batadal_score: float
    attacks: int
    detected: int
    recall: float
    targeted: float | None
    delay_s: float | None
    false_per_week: float | None  # on the labelled record's normal windows
    held_events: int
    held_weeks: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A detector that could not be trained on a case, and why."""

    case: str
    detector: str
    why: str


def measure(case: Case, kind: str, *, asked: Sequence[float]) -> list[Measured | Failed]:
    """Train once, set the threshold for each number of false alarms a week, and measure."""
    try:
        detector = train(case.clean, kind=kind, false_alarms_per_week=asked[0])
        earlier = detector
        if case.trained_before is not case.clean:
            earlier = train(case.trained_before, kind=kind, false_alarms_per_week=asked[0])
    except InputError as error:
        return [Failed(case=case.name, detector=kind, why=str(error))]
    found: list[Measured | Failed] = []
    for rate in asked:
        own = _asking(detector, case.clean, rate)
        before = own if earlier is detector else _asking(earlier, case.trained_before, rate)
        found.append(_measured(case, kind, own, before, asked=rate))
    return found


def _asking(detector: Detector, clean: Record, rate: float) -> Detector:
    """Return the detector with a threshold for another rate, from the rows it was calibrated on."""
    threshold = detector.threshold
    if isinstance(threshold, RateThreshold) and threshold.false_alarms_per_week == rate:
        return detector
    if detector.model.kind != DetectorKind.MOMENTS:  # which keeps other rows for its threshold
        return train(clean, kind=detector.kind, false_alarms_per_week=rate)
    whole = complete_rows(clean)
    rest = whole.rows(int(FIT_SHARE * len(whole)), len(whole))
    now = datetime.fromtimestamp(0, UTC)
    return recalibrated(detector, rest, time=now, false_alarms_per_week=rate)


def _measured(
    case: Case, kind: str, detector: Detector, earlier: Detector, *, asked: float
) -> Measured:
    scored = detector.score(case.attacked)
    targets = case.targets
    touched = None
    if targets is not None:
        touched = detector.framing.windows(case.attacked).touching(targets)
    report = detection_report(scored, case.attacked.labels, targets=touched)
    held = earlier.score(case.held_out)
    low, high = _interval(scored)
    quality = report.quality
    return Measured(
        case=case.name,
        detector=kind,
        asked=asked,
        average_precision=quality.auc_pr,
        low=low,
        high=high,
        vus_pr=report.vus_pr,
        batadal_score=report.batadal.score,
        attacks=len(quality.attacks),
        detected=quality.detected_attacks,
        recall=quality.recall,
        targeted=quality.targeted_recall,
        delay_s=quality.median_delay_s,
        false_per_week=report.false_alarms_per_week,
        held_events=len(held.events()),
        held_weeks=len(held) * held.stride_s / WEEK_S,
    )


def _interval(scored: Scored) -> tuple[float, float]:
    """Return the 95 % interval of average precision over drawn blocks of windows."""
    attack = scored.labels == Label.ATTACK
    rng, count = stream(0, "detector", "blocks"), len(scored)
    length = min(BLOCK_WINDOWS, count)
    drawn: list[float] = []
    while len(drawn) < DRAWS:
        starts = rng.integers(0, count - length + 1, -(-count // length))
        rows = (starts[:, np.newaxis] + np.arange(length)).ravel()
        if attack[rows].any():
            drawn.append(average_precision(scored.scores[rows], attack[rows]))
    ends: Floats = np.quantile(drawn, (0.025, 0.975))
    return float(ends[0]), float(ends[1])
