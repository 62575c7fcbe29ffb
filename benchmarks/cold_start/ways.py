"""Ways to a detector in the first days: alone, the vote, and the vote with borrowed thresholds."""

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import numpy as np

from benchmarks.worth.draws import Draw
from benchmarks.worth.ways import Scoring, alone, robust_framing
from sluice.arrays import Floats
from sluice.detector import (
    Framing,
    LentTail,
    MomentSettings,
    MomentStatistic,
    ReceiverMoments,
    TrainingSummary,
    VotedModel,
    borrow_thresholds,
    cross_fitted_tail,
    moment_settings,
    moment_statistic,
    recalibrated,
    voted_model,
)
from sluice.errors import SettingError
from sluice.federation import VoteSettings, hold_vote
from sluice.telemetry import Record, Scaler, Windows

__all__ = ["ALONE", "BORROWED", "FALSE_TAILS", "FITTED", "WAYS", "ways"]

FALSE_TAILS = 2
BORROWED = ("vote, borrowed", f"vote, borrowed, {FALSE_TAILS} lie")
ALONE, FITTED = "alone", "alone, threshold of fitted rows"
WAYS = (ALONE, "vote, own thresholds", *BORROWED, FITTED)
LATER = datetime(2026, 1, 1, tzinfo=UTC)
OFTEN = LentTail(peaks=1_000, weeks=5_200.0, level=0.0, scale=1e-9, shape=-0.5)
"""The lie that votes most often: an alarm at the median score."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Voted:
    """A vote, as `measured` reads it."""

    framing: Framing
    model: VotedModel
    extrapolated: bool = True

    def ratios(self, windows: Windows) -> Floats:
        """Return scores over thresholds."""
        return self.model.scores(windows)


def ways(draw: Draw, *, asked: float) -> dict[str, Scoring | None]:
    """Make every detector of a draw; None if the rows give none."""
    whole = robust_framing(draw.members[0])
    settings = moment_settings(draw.members[0], lags=whole.window_rows)
    sums: dict[str, MomentStatistic] = {}
    tails: dict[str, LentTail] = {}
    for at, member in enumerate(draw.members):
        own = settings.only(set(member.names))
        name = f"m{at:02}"
        sums[name] = moment_statistic(member, own)
        tails[name] = _tail(member, whole, own)
    lying = min(FALSE_TAILS, (len(sums) - 1) // 2)
    framing = _on(whole, draw.own)
    lent = hold_vote(
        sums,
        ReceiverMoments(settings=settings, scaler=framing.scaler),
        framing,
        framing.windows(draw.own),
        settings=VoteSettings.on(
            draw.own, rule="vote", malicious=lying, false_alarms_per_week=asked, borrowed=True
        ),
        training=TrainingSummary(records=(), windows=0, seed=0),
        tails=tails,
    )
    model = voted_model(lent)
    voters = [
        replace(voter, tail=OFTEN) if at < lying else voter for at, voter in enumerate(model.voters)
    ]
    lied = borrow_thresholds(
        voters,
        framing.windows(draw.own),
        stride_s=framing.stride_s,
        false_alarms_per_week=asked,
        record=draw.own.name,
    ).calibration(model.needed, time=LATER, act="lied")
    own_thresholds: Scoring | None
    try:
        own_model = voted_model(recalibrated(lent, draw.own, time=LATER))
        own_thresholds = Voted(framing=framing, model=own_model)
    except SettingError:
        own_thresholds = None
    return dict(
        zip(
            WAYS,
            (
                alone(draw.own, asked),
                own_thresholds,
                Voted(framing=framing, model=model),
                Voted(framing=framing, model=model.with_calibration(lied)),
                alone(draw.own, asked, parted=False),
            ),
            strict=True,
        )
    )


_TAILS: dict[bytes, LentTail] = {}


def _tail(member: Record, whole: Framing, own: MomentSettings) -> LentTail:
    """Return a member's tail, computed once: it does not depend on the plant that joins."""
    key = hashlib.sha256(member.values.tobytes() + whole.scaler.mean.tobytes()).digest()
    if key not in _TAILS:
        summed = partial(moment_statistic, settings=own)
        _TAILS[key] = cross_fitted_tail(member, _on(whole, member), summed)
    return _TAILS[key]


def _on(whole: Framing, record: Record) -> Framing:
    """Return the framing of the points that a plant has."""
    scaler = whole.scaler
    at = np.array([place for place, name in enumerate(scaler.names) if name in record.names])
    return replace(
        whole,
        scaler=Scaler(
            names=tuple(scaler.names[place] for place in at),
            mean=scaler.mean[at],
            spread=scaler.spread[at],
            resolution=scaler.resolution[at] if len(scaler.resolution) else scaler.resolution,
        ),
    )
