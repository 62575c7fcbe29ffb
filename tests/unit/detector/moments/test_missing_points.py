"""Statistics, detectors and votes of plants that lack points."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.detector import (
    Framing,
    MomentModel,
    MomentStatistic,
    ReceiverMoments,
    TrainingSummary,
    VotedModel,
    fit_moments,
    moment_settings,
    moment_statistic,
    robust_scaler,
    shared_sum,
)
from sluice.errors import ModelFileError, SettingError
from sluice.federation import VoteSettings, certificate_of, hold_vote, point_support
from sluice.lab.plants import simulate
from sluice.telemetry import Record, feature_names


@pytest.fixture(scope="module")
def line() -> Record:
    return simulate("line", seed=1, days=6)


@pytest.fixture(scope="module")
def receiver(line: Record) -> ReceiverMoments:
    clean = line.rows(0, 2_000)
    scaler = robust_scaler(clean, feature_names(clean))
    return ReceiverMoments(settings=moment_settings(clean), scaler=scaler)


def without(receiver: ReceiverMoments, *names: str) -> ReceiverMoments:
    """Return a receiver that lacks some points."""
    scaler = receiver.scaler
    at = [place for place, name in enumerate(scaler.names) if name not in names]
    own = replace(
        scaler,
        names=tuple(scaler.names[place] for place in at),
        mean=scaler.mean[at],
        spread=scaler.spread[at],
        resolution=scaler.resolution[at],
    )
    return replace(receiver, scaler=own)


def test_sums_of_some_points_are_those_of_their_rows(
    line: Record, receiver: ReceiverMoments
) -> None:
    whole = moment_statistic(line.rows(2_000, 4_000), receiver.settings)
    names = [name for name in receiver.settings.channels if name != "F_PU2"]
    alone = moment_statistic(
        line.rows(2_000, 4_000).without("F_PU2"), receiver.settings.only(names)
    )
    assert whole.only(names) == alone
    assert whole.only(receiver.settings.channels) is whole


def test_a_receiver_without_a_point_gets_the_detector_of_the_others(
    line: Record, receiver: ReceiverMoments
) -> None:
    """Marginal sums of a member with all points equal the sums of a member that lacks it."""
    rows, clean = line.rows(2_000, 4_000), line.rows(4_000, 5_000)
    lacking = without(receiver, "F_PU2")
    framing = Framing(scaler=lacking.scaler, stride_s=line.stride_s)
    windows = framing.windows(clean.without("F_PU2"))
    whole = lacking.fit(moment_statistic(rows, receiver.settings), windows)
    own = receiver.settings.only(lacking.scaler.names)
    partial = fit_moments(moment_statistic(rows.without("F_PU2"), own), lacking.scaler, windows)
    assert np.array_equal(whole.scores(windows), partial.scores(windows))


def test_a_member_without_a_point_does_not_judge_it(
    line: Record, receiver: ReceiverMoments
) -> None:
    rows, clean = line.rows(2_000, 4_000), line.rows(4_000, 5_000)
    own = receiver.settings.only(set(receiver.settings.channels) - {"F_PU2"})
    framing = Framing(scaler=receiver.scaler, stride_s=line.stride_s)
    model = receiver.fit(moment_statistic(rows, own), framing.windows(clean))
    assert isinstance(model, MomentModel)
    column = receiver.scaler.names.index("F_PU2")
    assert model.absent.tolist() == [column]
    values = np.array(clean.values)
    values[:, clean.index("F_PU2")] += 500.0
    attacked = framing.windows(clean.with_values(values))
    assert np.array_equal(model.scores(attacked), model.scores(framing.windows(clean)))
    assert not model.blame(attacked)[:, column].any()
    again = MomentModel.from_tensors(model.tensors())
    assert np.array_equal(again.scores(attacked), model.scores(attacked))


@pytest.mark.parametrize("absent", [[-1], [99], [1, 1], "moving"])
def test_points_that_cannot_be_absent_are_refused(
    line: Record, receiver: ReceiverMoments, absent: list[int] | str
) -> None:
    framing = Framing(scaler=receiver.scaler, stride_s=line.stride_s)
    statistic = moment_statistic(line.rows(2_000, 4_000), receiver.settings)
    model = receiver.fit(statistic, framing.windows(line.rows(4_000, 5_000)))
    assert isinstance(model, MomentModel)
    chosen = model.moving[:1] if absent == "moving" else np.array(absent)
    with pytest.raises(SettingError, match="not read must be ascending positions"):
        replace(model, absent=chosen)
    with pytest.raises(ModelFileError, match="its absent is"):
        MomentModel.from_tensors(model.tensors() | {"absent": chosen.astype(np.float64)})


def test_statistics_of_other_points_are_added_on_those_they_share(
    line: Record, receiver: ReceiverMoments
) -> None:
    settings = receiver.settings
    first = moment_statistic(line.rows(0, 2_000), settings.only(set(settings.channels) - {"F_PU1"}))
    second = moment_statistic(
        line.rows(2_000, 4_000), settings.only(set(settings.channels) - {"F_PU2"})
    )
    both = shared_sum([first, second])
    assert set(settings.channels) - set(both.settings.channels) == {"F_PU1", "F_PU2"}
    names = both.settings.channels
    assert both == first.only(names) + second.only(names)


def test_the_certificate_counts_the_members_of_each_point(
    line: Record, receiver: ReceiverMoments
) -> None:
    settings = receiver.settings
    framing = Framing(scaler=receiver.scaler, stride_s=line.stride_s)
    sums: dict[str, MomentStatistic] = {
        name: moment_statistic(
            line.rows(1_000 * at, 1_000 * (at + 1)),
            settings.only(set(settings.channels) - ({"F_PU2"} if name == "south" else set())),
        )
        for at, name in enumerate(("north", "south", "west"))
    }
    clean = line.rows(4_000, 8_000)
    vote = hold_vote(
        sums,
        receiver,
        framing,
        framing.windows(clean),
        settings=VoteSettings.on(clean, rule="vote", malicious=1, false_alarms_per_week=1.0),
        training=TrainingSummary(records=(), windows=0, seed=0),
    )
    assert isinstance(vote.model, VotedModel)
    support = {each.point: each.members for each in point_support(vote)}
    assert support["F_PU2"] == ("north", "west")
    assert support["L_T1"] == ("north", "south", "west")
    attacked = simulate("line", seed=2, days=6, attacks=True)
    certificate = certificate_of(vote, attacked, malicious=1)
    assert [each.point for each in certificate.partial] == ["F_PU2"]
    assert "Point F_PU2 rests on 2 of 3 members" in " ".join(certificate.sentences)
