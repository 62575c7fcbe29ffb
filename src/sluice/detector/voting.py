"""Calibrate a vote at the plant that uses it, and say who voted for an alarm.

Recalibration is an act of an operator and never happens by itself. It returns a new detector with
one more entry in its list of calibrations, so that the act can be compared with the one before and
undone.
"""

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from sluice.arrays import Bools
from sluice.detector.calibration import Detector, Framing, TrainingSummary, sealed
from sluice.detector.fusion import OrRules
from sluice.detector.physics import Physics
from sluice.detector.tails import alarm_events, threshold_for
from sluice.detector.threshold import RateThreshold
from sluice.detector.vote import LEAST_THRESHOLD, VotedModel
from sluice.detector.voters import CleanRules, CleanVotes, borrow_thresholds, calibrate_voters
from sluice.errors import SettingError
from sluice.telemetry import Record, Windows

__all__ = [
    "ThresholdChange",
    "VotedAlarm",
    "borrows_thresholds",
    "recalibrated_vote",
    "restored_vote",
    "threshold_changes",
    "voted_alarms",
    "voted_detector",
    "voted_model",
    "with_rules",
]

MOST_TAGS = 3
OWN_RULES = "the plant's own rules"
FIRST_ACTS = {False: "calibrated", True: "borrowed"}


def voted_detector(  # noqa: PLR0913 - a vote is these parts
    clean: CleanVotes,
    framing: Framing,
    *,
    members: tuple[str, ...],
    needed: int,
    malicious: int,
    training: TrainingSummary,
    time: datetime,
    abstaining: tuple[tuple[str, ...], ...] = (),
) -> Detector:
    """Build the detector of a vote; its thresholds come from the plant that uses it."""
    model = VotedModel(
        members=members,
        voters=clean.voters,
        abstaining=abstaining,
        needed=needed,
        malicious=malicious,
        calibrations=(clean.calibration(needed, time=time, act=FIRST_ACTS[clean.borrowed]),),
    )
    return _sealed(model, framing, training)


def recalibrated_vote(
    detector: Detector,
    clean: Record,
    *,
    time: datetime,
    false_alarms_per_week: float | None = None,
    borrowed: bool = False,
) -> Detector:
    """Set the thresholds of all voters on other clean rows; the models stay as they are.

    Without `false_alarms_per_week`, the number of the last calibration is asked for again. With
    `borrowed`, the rows give each voter's usual score only, and its member's tail the threshold.
    """
    model, framing, physics = voted_model(detector), detector.framing, _physics(detector)
    asked = false_alarms_per_week
    windows = framing.windows(clean)
    again = (borrow_thresholds if borrowed else calibrate_voters)(
        model.voters,
        windows,
        stride_s=framing.stride_s,
        false_alarms_per_week=model.calibration.false_alarms_per_week
        if asked is None
        else asked * (0.5 if physics else 1.0),
        record=clean.name,
    )
    if physics is not None:
        again = _beside_rules(again, physics, framing, clean, windows)
    act = "borrowed again" if borrowed else "recalibrated"
    calibration = again.calibration(model.needed, time=time, act=act)
    return _sealed(model.with_calibration(calibration), framing, detector.training, physics)


def with_rules(detector: Detector, physics: Physics, clean: Record) -> Detector:
    """Put a plant's own rules beside a vote: an alarm of either is an alarm.

    `clean` is the record that calibrated the vote. The rules get as many false alarms a week as
    each voter has.
    """
    model, framing, windows = voted_model(detector), detector.framing, detector.framing.windows
    first, cut = model.calibration, windows(clean)
    votes = CleanVotes(
        voters=model.voters,
        thresholds=np.array(first.thresholds),
        votes=model.votes(cut),
        last_rows=cut.last_rows,
        stride_s=framing.stride_s,
        false_alarms_per_week=first.false_alarms_per_week,
        record=clean.name,
        borrowed=first.borrowed,
    )
    votes = _beside_rules(votes, physics, framing, clean, cut)
    both = votes.calibration(model.needed, time=datetime.fromisoformat(first.time), act=first.act)
    return _sealed(replace(model, calibrations=(both,)), framing, detector.training, physics)


def _beside_rules(
    votes: CleanVotes, physics: Physics, framing: Framing, clean: Record, windows: Windows
) -> CleanVotes:
    rounded, last = framing.scaler.rounded(clean), windows.last_rows
    scores = physics.scores(rounded, last, rows=windows.length)
    threshold = threshold_for(
        scores,
        last,
        stride_s=framing.stride_s,
        false_alarms_per_week=votes.false_alarms_per_week,
    )
    limit = max(threshold.score, LEAST_THRESHOLD)
    alarms: Bools = scores / limit > 1
    return replace(votes, rules=CleanRules(threshold=limit, alarms=alarms))


def _physics(detector: Detector) -> Physics | None:
    return detector.fusion.physics if detector.fusion else None


def restored_vote(detector: Detector, *, time: datetime) -> Detector:
    """Undo the last calibration: use the thresholds of the one before, as a new entry."""
    model = voted_model(detector)
    if len(model.calibrations) < 2:
        raise SettingError(
            "the vote has its first calibration, so there is none to go back to; recalibrate it on "
            "clean rows"
        )
    before = model.calibrations[-2]
    now = time.isoformat(timespec="seconds")
    again = replace(before, time=now, act=f"restored from {before.time}")
    after = model.with_calibration(again)
    return _sealed(after, detector.framing, detector.training, _physics(detector))


def voted_model(detector: Detector) -> VotedModel:
    """Return the vote inside a detector; refuse a detector that is none."""
    if not isinstance(detector.model, VotedModel):
        raise SettingError(
            f"the detector is of kind {detector.model.kind!r} and has no voters; make one with "
            "'sluice federate --rule vote'"
        )
    return detector.model


def borrows_thresholds(detector: Detector) -> bool:
    """Whether the thresholds in use rest on tails that members lend, until a recalibration."""
    return isinstance(detector.model, VotedModel) and detector.model.calibration.borrowed


def _sealed(
    model: VotedModel,
    framing: Framing,
    training: TrainingSummary,
    physics: Physics | None = None,
) -> Detector:
    used, limit = model.calibration, model.calibration.rules_threshold
    fusion = None
    if physics is not None and limit is not None:
        fusion = OrRules(physics=physics, threshold=limit)
    threshold = RateThreshold(
        score=1.0,
        false_alarms_per_week=used.false_alarms_per_week * (2 if fusion else 1),
        clean_windows=used.windows,
        clean_events=used.clean_events,
    )
    return sealed(model, framing, threshold=threshold, training=training, fusion=fusion)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdChange:
    """One voter's threshold before and after a calibration."""

    voter: str
    before: float
    after: float


def threshold_changes(model: VotedModel) -> tuple[ThresholdChange, ...]:
    """Compare the last calibration with the one before; empty after the first."""
    if len(model.calibrations) < 2:
        return ()
    before, after = model.calibrations[-2:]
    changes = tuple(
        ThresholdChange(voter=voter.name, before=old, after=new)
        for voter, old, new in zip(model.voters, before.thresholds, after.thresholds, strict=True)
    )
    if before.rules_threshold is None or after.rules_threshold is None:
        return changes
    rules = ThresholdChange(
        voter=OWN_RULES, before=before.rules_threshold, after=after.rules_threshold
    )
    return (*changes, rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class VotedAlarm:
    """An alarm event: when, which tags stand out, which voters voted for it and which did not."""

    first_row: int
    last_row: int
    start: np.datetime64
    end: np.datetime64
    tags: tuple[str, ...]  # the largest share of blame first
    voted: tuple[str, ...]  # for an alarm on at least one window of the event
    dissented: tuple[str, ...]  # those that abstain included


def voted_alarms(detector: Detector, record: Record) -> tuple[VotedAlarm, ...]:
    """Return the alarm events of a record; alarms less than 10 rows apart are one event."""
    model, windows = voted_model(detector), detector.framing.windows(record)
    votes, alarms = model.votes(windows), detector.score(record).alarms
    alarmed = np.flatnonzero(alarms)
    inside = windows.take(alarmed)
    blame = model.blame(inside) if len(alarmed) else np.empty((0, 0))
    names = detector.framing.scaler.names
    events = []
    for event in alarm_events(inside.last_rows):
        part = alarmed[event.slice]
        voted: Bools = np.asarray(votes[:, part].any(axis=1))
        shares = blame[event.slice].mean(axis=0)
        worst = np.argsort(-shares, kind="stable")[:MOST_TAGS]
        first, last = (int(windows.last_rows[at]) for at in (part[0], part[-1]))
        events.append(
            VotedAlarm(
                first_row=first,
                last_row=last,
                start=record.times[first],
                end=record.times[last],
                tags=tuple(names[at] for at in worst if shares[at] > 0),
                voted=model.named(voted),
                dissented=model.named(~voted, silent=True),
            )
        )
    return tuple(events)
