"""Statistics at the edges of what a receiver accepts change one vote and break nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from sluice.arrays import Ints
from sluice.detector import (
    Detector,
    Framing,
    MomentStatistic,
    ReceiverMoments,
    TrainingSummary,
    moment_settings,
    moment_statistic,
    robust_scaler,
    voted_alarms,
)
from sluice.evaluation import certify
from sluice.federation import VoteSettings, ballots_of, hold_vote
from sluice.invariants import REGISTER_TOP
from sluice.lab.plants import simulate
from sluice.telemetry import Record, feature_names

HEAVIEST = (1 << 31) - 1  # the largest total weight of a statistic
LIAR = "c"
Made = Callable[[int, np.random.Generator, tuple[int, int]], tuple[Ints, Ints]]


def of_ones(weight: int, rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Ints, Ints]:
    lags, channels = shape
    return np.ones(channels, np.int64), np.stack([np.eye(channels, dtype=np.int64)] * lags)


def of_tops(weight: int, rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Ints, Ints]:
    lags, channels = shape
    top = REGISTER_TOP * weight
    return np.full(channels, top), np.full((lags, channels, channels), REGISTER_TOP * top)


def of_largest_variances(
    weight: int, rng: np.random.Generator, shape: tuple[int, int]
) -> tuple[Ints, Ints]:
    lags, channels = shape
    largest = REGISTER_TOP**2 * weight
    return np.zeros(channels, np.int64), np.full((lags, channels, channels), largest)


def of_opposite_lags(
    weight: int, rng: np.random.Generator, shape: tuple[int, int]
) -> tuple[Ints, Ints]:
    """No rows have such lagged sums: the covariance of windows has negative variances."""
    _, channels = shape
    _, lagged = of_largest_variances(weight, rng, shape)
    lagged[1::2] = 0
    return np.full(channels, REGISTER_TOP * weight // 2), lagged


def of_one_channel(
    weight: int, rng: np.random.Generator, shape: tuple[int, int]
) -> tuple[Ints, Ints]:
    lags, channels = shape
    lagged = np.zeros((lags, channels, channels), np.int64)
    lagged[0, 0, 0] = REGISTER_TOP**2 * weight
    return np.zeros(channels, np.int64), lagged


def at_random(weight: int, rng: np.random.Generator, shape: tuple[int, int]) -> tuple[Ints, Ints]:
    lags, channels = shape
    lagged = rng.integers(0, REGISTER_TOP**2 * weight + 1, (lags, channels, channels))
    lagged[0] = np.triu(lagged[0]) + np.triu(lagged[0], 1).T
    return rng.integers(0, REGISTER_TOP * weight + 1, channels), lagged


MAKERS: tuple[Made, ...] = (
    of_ones,
    of_tops,
    of_largest_variances,
    of_opposite_lags,
    of_one_channel,
    at_random,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plants:
    """Five members' honest sums, and the receiver's clean and attacked rows."""

    sums: Mapping[str, MomentStatistic]
    receiver: ReceiverMoments
    framing: Framing
    clean: Record
    attacked: Record

    def vote(self, sums: Mapping[str, MomentStatistic]) -> Detector:
        return hold_vote(
            sums,
            self.receiver,
            self.framing,
            self.framing.windows(self.clean),
            settings=VoteSettings.on(
                self.clean, rule="vote", malicious=2, false_alarms_per_week=7.0
            ),
            training=TrainingSummary(records=tuple(sums), windows=0, seed=0),
        )


@pytest.fixture(scope="module")
def plants() -> Plants:
    clean = simulate("line", seed=9, days=3)
    framing = Framing(scaler=robust_scaler(clean, feature_names(clean)), stride_s=clean.stride_s)
    settings = moment_settings(clean, lags=framing.window_rows)
    return Plants(
        sums={
            name: moment_statistic(simulate("line", seed=ord(name), days=1), settings)
            for name in "abcde"
        },
        receiver=ReceiverMoments(settings=settings, scaler=framing.scaler),
        framing=framing,
        clean=clean,
        attacked=simulate("line", seed=4, days=2, attacks=True),
    )


@pytest.mark.parametrize("weight", [1, HEAVIEST])
@pytest.mark.parametrize("made", MAKERS, ids=lambda made: made.__name__)
def test_no_statistic_does_more_than_the_certificate_says(
    plants: Plants, made: Made, weight: int
) -> None:
    """Warnings are errors here, so no such statistic overflows or divides by zero either."""
    honest = ballots_of(plants.vote(plants.sums), plants.attacked)
    certified = certify(honest, malicious=1).certified
    settings = plants.receiver.settings
    shape = (settings.lags, len(settings.channels))
    sums, lagged = made(weight, np.random.default_rng(weight), shape)
    told = MomentStatistic(settings=settings, count=1, weight=weight, sums=sums, lagged=lagged)
    detector = plants.vote({**plants.sums, LIAR: told})
    ballots = ballots_of(detector, plants.attacked)
    votes = dict(zip(ballots.voters, ballots.votes, strict=True))
    for voter, own in zip(honest.voters, honest.votes, strict=True):
        assert voter == {LIAR} or np.array_equal(votes[voter], own)
    scored = detector.score(plants.attacked)
    assert np.isfinite(scored.scores).all()
    assert np.array_equal(scored.alarms, ballots.votes.sum(axis=0) >= ballots.needed)
    assert all(alarm.tags and alarm.voted for alarm in voted_alarms(detector, plants.attacked))
    now = certify(ballots, malicious=0).actual
    assert now.recall >= certified.recall
    assert now.attacks_detected >= certified.attacks_detected
    assert now.false_events <= certified.false_events
    assert now.time_in_alarm is not None
    assert certified.time_in_alarm is not None
    assert now.time_in_alarm <= certified.time_in_alarm
