"""What a plant gains over its own detector where plants share statistics; nothing is sent.

One detector is the vote of all members, the other is made of this plant's statistic only. Both read
windows as the federation agreed. Both get their thresholds on one half of clean rows that this
plant has not summed, and are measured on the other half. The plant's own rules are in neither.
"""

from dataclasses import dataclass

import numpy as np

from sluice.attestation.systems import Circuit
from sluice.detector import (
    WEEK_S,
    Detector,
    ReceiverMoments,
    TrainingSummary,
    alarm_events,
)
from sluice.errors import SettingError
from sluice.federation import VoteSettings, hold_vote
from sluice.network.plant.gain import Own
from sluice.network.plant.model import SeenStatistics
from sluice.network.statistics import plant_statistic, vote_of
from sluice.network.terms import FederationTerms
from sluice.telemetry import Label, Record

__all__ = ["VoteFigures", "VoteGain", "measured_vote_gain"]

LEAST_WINDOWS = 100
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteFigures:
    """The figures of one detector on a plant's own records."""

    false_alarms_per_week: float  # events on clean rows
    time_in_alarm: float  # share of clean windows
    recall: float | None  # share of attack windows that raise an alarm; None without attacks


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteGain:
    """The figures of the plant's own detector and of the members' vote."""

    members: int
    asked: float  # false alarms a week
    days: float  # of the plant's own rows in its statistic
    windows: int  # clean windows measured
    attacked: int  # attack windows measured
    alone: VoteFigures
    federation: VoteFigures


def measured_vote_gain(
    terms: FederationTerms,
    received: SeenStatistics,
    own: Own,
    *,
    circuit: Circuit,
    false_alarms_per_week: float,
) -> VoteGain:
    """Measure the vote and the plant's own detector on the same clean rows."""
    middle = len(own.clean) // 2
    first, second = own.clean.rows(0, middle), own.clean.rows(middle, len(own.clean))
    framing = terms.framing_on(own.clean.names)
    windows = framing.windows(second)
    if min(len(windows), len(framing.windows(first))) < LEAST_WINDOWS:
        raise SettingError(
            f"{len(own.clean):,} clean rows are too few to compare detectors on; give at least "
            f"{2 * (LEAST_WINDOWS + terms.window_rows):,} that the plant does not share"
        )
    vote = vote_of(
        received.shared,
        terms,
        first,
        rounds=received.round,
        rules=None,
        false_alarms_per_week=false_alarms_per_week,
    )
    alone = _alone(terms, own, first, circuit, false_alarms_per_week)
    attacked = 0
    if own.attacks is not None:
        attacked = int(np.sum(framing.windows(own.attacks).labels == Label.ATTACK))
    return VoteGain(
        members=len(received.shared.members),
        asked=false_alarms_per_week,
        days=len(own.batch) * terms.stride_s / DAY_S,
        windows=len(windows),
        attacked=attacked,
        alone=_figures(alone, second, own.attacks),
        federation=_figures(vote, second, own.attacks),
    )


def _alone(
    terms: FederationTerms, own: Own, clean: Record, circuit: Circuit, asked: float
) -> Detector:
    """Make the detector of this plant's statistic only, as a vote of one member."""
    statistic = plant_statistic(own.batch, terms, circuit)
    framing = terms.framing_on(clean.names)
    return hold_vote(
        {own.plant: statistic},
        ReceiverMoments(settings=statistic.settings, scaler=framing.scaler),
        framing,
        framing.windows(clean),
        settings=VoteSettings.on(clean, rule="vote", malicious=0, false_alarms_per_week=asked),
        training=TrainingSummary(
            records=(own.batch.name,), windows=statistic.count, seed=terms.seed
        ),
    )


def _figures(detector: Detector, clean: Record, attacks: Record | None) -> VoteFigures:
    scored = detector.score(clean)
    weeks = len(scored) * detector.framing.stride_s / WEEK_S
    recall = None
    if attacks is not None:
        found = detector.score(attacks)
        attacked = found.labels == Label.ATTACK
        recall = float(np.mean(found.alarms[attacked])) if attacked.any() else None
    return VoteFigures(
        false_alarms_per_week=len(alarm_events(scored.last_rows[scored.alarms])) / weeks,
        time_in_alarm=float(np.mean(scored.alarms)),
        recall=recall,
    )
