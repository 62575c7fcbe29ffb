"""Set the thresholds of voters: on clean rows of the plant, or by the tails that members lend."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.detector.calibration import refuse_attacks
from sluice.detector.tails import alarm_events, threshold_for
from sluice.detector.vote import LEAST_THRESHOLD, VoteCalibration, Voter
from sluice.errors import SettingError
from sluice.telemetry import Windows

__all__ = ["CleanRules", "CleanVotes", "borrow_thresholds", "calibrate_voters"]

NEVER = 1e300  # a threshold that no score reaches
FEWEST_WINDOWS = 20  # whose median score stands for the usual one


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanVotes:
    """Voters with thresholds from clean windows, and their votes on these windows."""

    voters: tuple[Voter, ...]
    thresholds: Floats  # one per voter
    votes: Bools  # voters x windows
    last_rows: Ints
    stride_s: float
    false_alarms_per_week: float  # asked of each voter, and of the rules if there are some
    record: str
    rules: "CleanRules | None" = None
    borrowed: bool = False  # whether the members' tails set the thresholds

    def calibration(self, needed: int, *, time: datetime, act: str) -> VoteCalibration:
        """Return the entry for the list of calibrations."""
        alarms = self.votes.sum(axis=0) >= needed
        if self.rules is not None:
            alarms = alarms | self.rules.alarms
        return VoteCalibration(
            time=time.isoformat(timespec="seconds"),
            act=act,
            record=self.record,
            windows=len(self.last_rows),
            clean_events=len(alarm_events(self.last_rows[alarms])),
            false_alarms_per_week=self.false_alarms_per_week,
            thresholds=tuple(self.thresholds.tolist()),
            rules_threshold=self.rules.threshold if self.rules else None,
            borrowed=self.borrowed,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanRules:
    """The plant's rules with a threshold from clean windows, and their alarms on these windows."""

    threshold: float
    alarms: Bools


def calibrate_voters(
    voters: Sequence[Voter],
    clean: Windows,
    *,
    stride_s: float,
    false_alarms_per_week: float,
    record: str,
) -> CleanVotes:
    """Set each voter's threshold on clean windows, for so many false alarms a week of its own.

    A voter whose scores give no threshold, while those of other voters do, never votes: one
    member's contribution must not stop the others.
    """
    refuse_attacks(clean)
    scores = np.stack([voter.model.scores(clean) for voter in voters])
    set_for: list[float] = []
    failed: SettingError | None = None
    for own in scores:
        try:
            threshold = threshold_for(
                own,
                clean.last_rows,
                stride_s=stride_s,
                false_alarms_per_week=false_alarms_per_week,
            )
        except SettingError as error:
            failed = error
            set_for.append(NEVER)
        else:
            set_for.append(threshold.score)
    if failed is not None and all(score == NEVER for score in set_for):
        raise failed
    thresholds = np.maximum(set_for, LEAST_THRESHOLD)
    return CleanVotes(
        voters=tuple(voters),
        thresholds=thresholds,
        votes=scores / thresholds[:, np.newaxis] > 1,
        last_rows=clean.last_rows,
        stride_s=stride_s,
        false_alarms_per_week=false_alarms_per_week,
        record=record,
    )


def borrow_thresholds(
    voters: Sequence[Voter],
    clean: Windows,
    *,
    stride_s: float,
    false_alarms_per_week: float,
    record: str,
) -> CleanVotes:
    """Set each voter's threshold by the tail that its member lends, on a few clean windows.

    The clean windows give the median score of each voter, and the member's tail says how far above
    it the threshold lies. A voter whose member lends no tail never votes while thresholds are
    borrowed.
    """
    refuse_attacks(clean)
    if len(clean) < FEWEST_WINDOWS:
        raise SettingError(
            f"{len(clean)} clean windows are too few to borrow thresholds on; give at least "
            f"{FEWEST_WINDOWS}"
        )
    if not any(voter.tail for voter in voters):
        raise SettingError(
            "no member lends a tail of its scores, so thresholds cannot be borrowed; found the "
            "federation with --lend-thresholds, or calibrate on more clean rows"
        )
    scores = np.stack([voter.model.scores(clean) for voter in voters])
    asked = false_alarms_per_week
    set_for = [
        voter.tail.threshold(float(np.median(own)), false_alarms_per_week=asked)
        if voter.tail is not None
        else NEVER
        for voter, own in zip(voters, scores, strict=True)
    ]
    thresholds = np.clip(set_for, LEAST_THRESHOLD, NEVER)
    return CleanVotes(
        voters=tuple(voters),
        thresholds=thresholds,
        votes=scores / thresholds[:, np.newaxis] > 1,
        last_rows=clean.last_rows,
        stride_s=stride_s,
        false_alarms_per_week=asked,
        record=record,
        borrowed=True,
    )
