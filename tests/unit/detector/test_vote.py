"""A vote of detectors: who votes, what is saved, how it is calibrated and taken back."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from sluice.arrays import Floats
from sluice.detector import (
    CleanVotes,
    Detector,
    Framing,
    Subspace,
    TrainingSummary,
    VoteCalibration,
    VotedModel,
    Voter,
    calibrate_voters,
    fit_subspace,
    load_detector,
    recalibrated,
    restored,
    save_detector,
    threshold_changes,
    voted_alarms,
    voted_detector,
)
from sluice.detector.calibration import sealed
from sluice.detector.model import Weights
from sluice.detector.subspace import Moments
from sluice.errors import ModelFileError, SettingError
from sluice.telemetry import Label, Record, Windows

NOW = datetime(2026, 5, 1, tzinfo=UTC)
LATER = datetime(2026, 6, 1, tzinfo=UTC)


class Fixed:
    """A model that scores windows as it is given."""

    kind: ClassVar[str] = "fixed"

    def __init__(self, scores: list[float], blame: list[float]) -> None:
        self._scores, self._blame = np.array(scores), np.array(blame)

    width = 20

    def scores(self, windows: Windows) -> Floats:
        return self._scores[: len(windows)]

    def blame(self, windows: Windows) -> Floats:
        return np.tile(self._blame, (len(windows), 1))

    def tensors(self) -> dict[str, Weights]:
        return {}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Weights]) -> "Fixed":
        raise NotImplementedError


def calibration(*thresholds: float) -> VoteCalibration:
    return VoteCalibration(
        time="2026-05-01T00:00:00+00:00",
        act="calibrated",
        record="march",
        windows=100,
        clean_events=0,
        false_alarms_per_week=1.0,
        thresholds=thresholds,
    )


def three(**changes: object) -> VotedModel:
    voters = (
        Voter(members=("a",), model=Fixed([1, 5, 5], [0.5, 0.5])),
        Voter(members=("b",), model=Fixed([10, 30, 10], [1.0, 0.0])),
        Voter(members=("c",), model=Fixed([0, 1, 9], [0.0, 1.0])),
    )
    made = VotedModel(
        members=("a", "b", "c"),
        voters=voters,
        needed=2,
        malicious=1,
        calibrations=(calibration(2, 20, 2),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


WINDOWS = Windows(
    rows=np.zeros((12, 2), np.float32),
    starts=np.arange(3),
    length=10,
    labels=np.zeros(3, np.int8),
)


def test_an_alarm_needs_two_of_three_votes() -> None:
    model = three()
    assert model.votes(WINDOWS).tolist() == [
        [False, True, True],
        [False, True, False],
        [False, False, True],
    ]
    assert model.scores(WINDOWS) == pytest.approx([0.5, 1.5, 2.5])  # the second largest ratio


def test_the_blame_is_the_median_over_those_that_vote() -> None:
    shares = three().blame(WINDOWS)
    assert shares[1] == pytest.approx([0.75, 0.25])  # a and b
    assert shares[2] == pytest.approx([0.25, 0.75])  # a and c
    assert shares[0] == pytest.approx([0.5, 0.5])  # none votes: all count


def test_voters_that_agree_on_no_tag_name_all_of_theirs() -> None:
    """Of three voters that each blamed another tag, the median was 0 everywhere: no tag."""
    voters = [
        Voter(members=(name,), model=Fixed([90.0] * 3, [float(at == own) for at in range(3)]))
        for own, name in enumerate("abc")
    ]
    shares = three(voters=tuple(voters)).blame(WINDOWS)
    assert shares == pytest.approx(np.full((3, 3), 1 / 3))


def test_a_voter_without_a_score_withholds_its_vote() -> None:
    """NaN is ranked as the largest ratio: one vote for an alarm and one NaN were two votes."""
    nan = float("nan")
    nothing = Voter(members=("c",), model=Fixed([nan, nan, nan], [0.0, 1.0]))
    model = three(voters=(*three().voters[:2], nothing))
    assert model.votes(WINDOWS).sum(axis=0).tolist() == [0, 2, 1]
    assert (model.scores(WINDOWS) > 1).tolist() == [False, True, False]


def test_members_that_abstain_count_as_votes_against() -> None:
    model = three(members=("a", "b", "c", "d"), abstaining=(("d",),), needed=4)
    assert model.scores(WINDOWS).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"needed": 0}, "an alarm needs 0 votes of 3"),
        ({"needed": 4}, "an alarm needs 4 votes of 3"),
        ({"voters": ()}, "an alarm needs 2 votes of 0"),
        ({"members": ("a", "b")}, r"voters name no others \(found c\)"),
        ({"members": ("a", "b", "c", "c")}, "found a name twice"),
        ({"abstaining": ((),)}, "a voter depends on no member"),
        ({"malicious": 3}, "a vote of 3 members cannot withstand 3"),
        ({"calibrations": ()}, "a vote has no thresholds"),
        ({"calibrations": (calibration(1, 2),)}, "has 2 thresholds for 3 voters"),
    ],
)
def test_a_vote_that_cannot_be_held_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        three(**change)


def test_voters_of_other_widths_are_refused() -> None:
    other = Fixed([1], [1])
    other.width = 30
    voters = (*three().voters[:2], Voter(members=("c",), model=other))
    with pytest.raises(SettingError, match=r"voters read windows of \[20, 30\] values"):
        three(voters=voters)


@pytest.mark.parametrize("threshold", [0.0, -1.0, float("inf"), float("nan")])
def test_a_threshold_that_decides_nothing_is_refused(threshold: float) -> None:
    with pytest.raises(SettingError, match="thresholds of voters must be finite"):
        calibration(1.0, threshold)


# -- on a plant ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def held(plant: Record, framing: Framing) -> Detector:
    """A vote of three members, each with its own 1,500 rows."""
    validation = plant.rows(5_000, 8_000)
    clean = framing.windows(validation)
    voters = [
        Voter(
            members=(name,),
            model=fit_subspace(
                Moments.of(framing.windows(plant.rows(at * 1_500, (at + 1) * 1_500))), clean
            ),
        )
        for at, name in enumerate(("north", "south", "west"))
    ]
    votes = calibrate_voters(
        voters, clean, stride_s=framing.stride_s, false_alarms_per_week=20, record="march"
    )
    return voted_detector(
        votes,
        framing,
        members=("north", "south", "west"),
        needed=2,
        malicious=1,
        training=TrainingSummary(records=("north", "south", "west"), windows=4_000, seed=0),
        time=NOW,
    )


@pytest.fixture(scope="module")
def attacked(plant: Record) -> Record:
    """Rows in which a pump reports the opposite of what it does, for 200 rows."""
    batch = plant.rows(8_000, 8_600)
    values, labels = batch.values.copy(), batch.labels.copy()
    column = batch.index("S_PU1")
    values[200:400, column] = 1 - values[200:400, column]
    labels[200:400] = Label.ATTACK
    return replace(batch, values=values, labels=labels)


def model_of(detector: Detector) -> VotedModel:
    assert isinstance(detector.model, VotedModel)
    return detector.model


def test_alarms_are_scores_above_one(held: Detector, attacked: Record) -> None:
    scored = held.score(attacked)
    votes = model_of(held).votes(held.framing.windows(attacked))
    assert scored.threshold.score == 1
    assert scored.alarms.tolist() == (votes.sum(axis=0) >= 2).tolist()
    assert scored.alarms[200:380].all()


def test_an_alarm_names_tags_and_who_voted(held: Detector, attacked: Record) -> None:
    alarms = voted_alarms(held, attacked)
    inside = [alarm for alarm in alarms if 200 <= alarm.first_row < 400]
    assert inside
    assert inside[0].tags
    assert "PU1" in inside[0].tags[0]
    for alarm in alarms:
        assert sorted((*alarm.voted, *alarm.dissented)) == ["north", "south", "west"]
        assert len(alarm.voted) >= 2
        assert attacked.times[alarm.first_row] == alarm.start


def test_a_quiet_record_has_no_alarms(held: Detector, plant: Record) -> None:
    changed = model_of(held).with_calibration(calibration(1e6, 1e6, 1e6))
    deaf = sealed(changed, held.framing, threshold=held.threshold, training=held.training)
    assert voted_alarms(deaf, plant.rows(0, 500)) == ()


def test_a_saved_vote_scores_the_same(held: Detector, attacked: Record, tmp_path: Path) -> None:
    path = tmp_path / "vote.safetensors"
    save_detector(held, path)
    loaded = load_detector(path)
    assert loaded.score(attacked).scores.tolist() == held.score(attacked).scores.tolist()
    assert model_of(loaded).calibrations == model_of(held).calibrations
    assert [voter.members for voter in model_of(loaded).voters] == [
        ("north",),
        ("south",),
        ("west",),
    ]


def test_recalibration_is_listed_and_can_be_taken_back(held: Detector, plant: Record) -> None:
    changed = recalibrated(held, plant.rows(3_000, 6_000), time=LATER, false_alarms_per_week=30)
    first, last = model_of(changed).calibrations
    assert first == model_of(held).calibration
    assert (last.act, last.record, last.time) == (
        "recalibrated",
        plant.name,
        "2026-06-01T00:00:00+00:00",
    )
    assert last.false_alarms_per_week == changed.threshold.false_alarms_per_week == 30  # type: ignore[union-attr]
    changes = threshold_changes(model_of(changed))
    assert [(c.voter, c.before, c.after) for c in changes] == list(
        zip(("north", "south", "west"), first.thresholds, last.thresholds, strict=True)
    )
    assert any(change.before != change.after for change in changes)
    back = model_of(restored(changed, time=LATER))
    assert back.calibration.thresholds == first.thresholds
    assert back.calibration.act == "restored from 2026-05-01T00:00:00+00:00"
    assert back.calibration.clean_events == first.clean_events
    assert len(back.calibrations) == 3
    assert threshold_changes(model_of(held)) == ()


def test_recalibration_asks_for_as_many_false_alarms_as_before(
    held: Detector, plant: Record
) -> None:
    changed = model_of(recalibrated(held, plant.rows(3_000, 6_000), time=LATER))
    assert changed.calibration.false_alarms_per_week == 20


def test_the_first_calibration_cannot_be_taken_back(held: Detector) -> None:
    with pytest.raises(SettingError, match="none to go back to"):
        restored(held, time=LATER)


def test_attacked_rows_do_not_calibrate(held: Detector, attacked: Record) -> None:
    with pytest.raises(SettingError, match="windows given as clean are labelled attack"):
        recalibrated(held, attacked, time=LATER)


class Flat(Fixed):
    """A model that finds every window alike: no threshold can be set on its scores."""

    def __init__(self, width: int) -> None:
        super().__init__([], [])
        self.width = width

    def scores(self, windows: Windows) -> Floats:
        return np.ones(len(windows))

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Weights]) -> "Flat":
        raise NotImplementedError


def test_a_member_whose_detector_gives_no_threshold_never_votes_and_stops_no_other(
    held: Detector, clean: Windows
) -> None:
    honest = model_of(held).voters
    flat = Voter(members=("flat",), model=Flat(honest[0].model.width))
    stride_s = held.framing.stride_s

    def calibrate(*voters: Voter) -> CleanVotes:
        return calibrate_voters(
            voters, clean, stride_s=stride_s, false_alarms_per_week=1, record="march"
        )

    both = calibrate(*honest, flat)
    assert both.thresholds[:3].tolist() == calibrate(*honest).thresholds.tolist()
    assert not both.votes[3].any()
    with pytest.raises(SettingError, match="separate peaks"):
        calibrate(flat)


def _saved(held: Detector, **changes: Weights | None) -> dict[str, Weights]:
    tensors = model_of(held).tensors() | {k: v for k, v in changes.items() if v is not None}
    return {name: array for name, array in tensors.items() if changes.get(name, array) is not None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "its vote is not JSON"),
        (b"{}", "its vote is damaged: kind"),
        (b"[" * 500, "nest"),
    ],
)
def test_a_damaged_vote_is_refused(held: Detector, text: bytes, message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        VotedModel.from_tensors(_saved(held, vote=np.frombuffer(text, np.uint8)))


def test_a_vote_without_its_ballot_is_refused(held: Detector) -> None:
    with pytest.raises(ModelFileError, match="it holds no vote"):
        VotedModel.from_tensors(_saved(held, vote=None))


def test_an_array_of_no_voter_is_refused(held: Detector) -> None:
    tensors = _saved(held) | {"7.mean": np.zeros(3)}
    with pytest.raises(ModelFileError, match="'7.mean', which belongs to none of its voters"):
        VotedModel.from_tensors(tensors)


def test_voters_of_an_unknown_kind_are_refused(held: Detector) -> None:
    text = bytes(model_of(held).tensors()["vote"]).replace(b'"subspace"', b'"oracle"')
    with pytest.raises(ModelFileError, match="kind 'oracle'; known are"):
        VotedModel.from_tensors(_saved(held, vote=np.frombuffer(text, np.uint8)))


def test_the_voters_are_models_of_their_kind(held: Detector) -> None:
    assert all(isinstance(voter.model, Subspace) for voter in model_of(held).voters)
