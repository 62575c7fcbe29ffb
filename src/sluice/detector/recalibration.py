"""Set the threshold of a detector again, compare it with the one before, and go back.

Recalibration is an act of an operator and never happens by itself. The model and the rules stay as
they are. Every act is one more entry in the detector's list of calibrations.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from sluice.detector.calibration import (
    Calibration,
    Detector,
    calibrated,
    calibrated_with_rules,
    sealed,
)
from sluice.detector.fusion import Fusion
from sluice.detector.tails import ScoreTail
from sluice.detector.threshold import AlarmThreshold, RateThreshold
from sluice.detector.vote import VotedModel
from sluice.detector.voting import (
    ThresholdChange,
    recalibrated_vote,
    restored_vote,
    threshold_changes,
)
from sluice.errors import SettingError
from sluice.telemetry import Record

__all__ = ["CalibrationAct", "calibration_changes", "last_calibration", "recalibrated", "restored"]

ONE_A_WEEK = 1.0


def recalibrated(
    detector: Detector,
    clean: Record,
    *,
    time: datetime,
    false_alarms_per_week: float | None = None,
    borrowed: bool = False,
) -> Detector:
    """Set the thresholds of a detector on other clean rows; models and rules stay as they are.

    Without `false_alarms_per_week`, the number of the last calibration is asked for again. With
    `borrowed`, a vote keeps the tails that its members lend.
    """
    asked = false_alarms_per_week
    if isinstance(detector.model, VotedModel):
        return recalibrated_vote(
            detector, clean, time=time, false_alarms_per_week=asked, borrowed=borrowed
        )
    model, framing, training = detector.model, detector.framing, detector.training
    before = detector.threshold
    if asked is None and isinstance(before, RateThreshold):
        asked = before.false_alarms_per_week
    if isinstance(detector.fusion, Fusion):
        after = calibrated_with_rules(
            model,
            framing,
            clean,
            physics=detector.fusion.physics,
            training=training,
            false_alarms_per_week=ONE_A_WEEK if asked is None else asked,
        )
    elif isinstance(before, RateThreshold) or asked is not None:
        windows = framing.windows(clean)
        after = calibrated(model, framing, windows, training=training, false_alarms_per_week=asked)
    else:
        windows = framing.windows(clean)
        after = calibrated(model, framing, windows, training=training, quantile=before.quantile)
    act = _entry(after, time=_text(time), act="recalibrated", record=clean.name)
    return _with(after, (*_history(detector), act))


def restored(detector: Detector, *, time: datetime) -> Detector:
    """Undo the last calibration: use the thresholds of the one before, as a new entry."""
    if isinstance(detector.model, VotedModel):
        return restored_vote(detector, time=time)
    history = _history(detector)
    if len(history) < 2:
        raise SettingError(
            "the detector has its first calibration, so there is none to go back to; recalibrate "
            "it on clean rows"
        )
    before = history[-2]
    act = f"restored from {before.time or 'training'}"
    return _with(detector, (*history, replace(before, time=_text(time), act=act)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationAct:
    """The calibration in use, in words and numbers."""

    time: str | None
    act: str
    record: str
    windows: int
    clean_events: int | None  # None: the threshold is a quantile of windows
    borrowed: bool = False  # whether members' tails set the thresholds


def last_calibration(detector: Detector) -> CalibrationAct:
    """Return what set the thresholds in use."""
    if isinstance(detector.model, VotedModel):
        used = detector.model.calibration
        return CalibrationAct(
            time=used.time,
            act=used.act,
            record=used.record,
            windows=used.windows,
            clean_events=used.clean_events,
            borrowed=used.borrowed,
        )
    last, threshold = _history(detector)[-1], detector.threshold
    return CalibrationAct(
        time=last.time,
        act=last.act,
        record=last.record,
        windows=threshold.clean_windows,
        clean_events=threshold.clean_events if isinstance(threshold, RateThreshold) else None,
    )


def calibration_changes(detector: Detector) -> tuple[ThresholdChange, ...]:
    """Compare the last calibration with the one before; empty after the first."""
    if isinstance(detector.model, VotedModel):
        return threshold_changes(detector.model)
    if len(detector.calibrations) < 2:
        return ()
    before, after = detector.calibrations[-2:]
    changes = [
        ThresholdChange(
            voter="threshold", before=before.threshold.score, after=after.threshold.score
        )
    ]
    for name, old, new in (
        ("model's score in clean peaks", before.model_tail, after.model_tail),
        ("rules' score in clean peaks", before.rules_tail, after.rules_tail),
    ):
        if old is not None and new is not None:
            changes.append(ThresholdChange(voter=name, before=old.level, after=new.level))
    return tuple(changes)


def _history(detector: Detector) -> tuple[Calibration, ...]:
    """Return the calibrations so far; the first is that of the training."""
    if detector.calibrations:
        return detector.calibrations
    records = ", ".join(detector.training.records) or "clean rows"
    return (_entry(detector, time=None, act="trained", record=records),)


def _entry(detector: Detector, *, time: str | None, act: str, record: str) -> Calibration:
    fusion = detector.fusion
    tails: tuple[ScoreTail | None, ScoreTail | None] = (None, None)
    if isinstance(fusion, Fusion):
        tails = fusion.model_tail, fusion.rules_tail
    threshold: AlarmThreshold = detector.threshold
    return Calibration(
        time=time,
        act=act,
        record=record,
        threshold=threshold,
        model_tail=tails[0],
        rules_tail=tails[1],
    )


def _with(detector: Detector, calibrations: tuple[Calibration, ...]) -> Detector:
    """Return the detector with the last of these calibrations in use."""
    used, fusion = calibrations[-1], detector.fusion
    if isinstance(fusion, Fusion) and used.model_tail is not None and used.rules_tail is not None:
        fusion = replace(fusion, model_tail=used.model_tail, rules_tail=used.rules_tail)
    return sealed(
        detector.model,
        detector.framing,
        threshold=used.threshold,
        training=detector.training,
        fusion=fusion,
        calibrations=calibrations,
    )


def _text(time: datetime) -> str:
    return time.isoformat(timespec="seconds")
