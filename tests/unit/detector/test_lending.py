"""Tails that members lend: what they say, how they set thresholds, and what liars can do."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from sluice.detector import (
    LENT_BYTES,
    LentTail,
    VotedModel,
    Voter,
    borrow_thresholds,
    borrows_thresholds,
    calibration_changes,
    last_calibration,
    lend_tail,
    load_detector,
    recalibrated,
    restored,
    save_detector,
    threshold_for,
    voted_detector,
    voted_model,
)
from sluice.detector.calibration import Detector, Framing, TrainingSummary
from sluice.detector.moments.lending import MAGIC
from sluice.detector.subspace import Moments, fit_subspace
from sluice.errors import ModelFileError, SettingError
from sluice.federation import votes_needed
from sluice.telemetry import Record

STRIDE = 60.0
NOW = datetime(2026, 5, 1, tzinfo=UTC)
HONEST = LentTail(peaks=40, weeks=4.0, level=0.5, scale=0.2, shape=0.0)
NEVER_VOTES = LentTail(peaks=8, weeks=1e-3, level=50.0, scale=50.0, shape=0.5)
OFTEN_VOTES = LentTail(peaks=1_000, weeks=5_200.0, level=0.0, scale=1e-9, shape=-0.5)


def scores_of(weeks: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rows = int(weeks * 604_800 / STRIDE)
    return np.random.default_rng(seed).lognormal(0.0, 0.3, rows), np.arange(rows)


def test_a_lent_tail_gives_the_threshold_that_the_rows_would_give() -> None:
    scores, rows = scores_of(4, seed=1)
    own = threshold_for(scores, rows, stride_s=STRIDE, false_alarms_per_week=1.0)
    tail = lend_tail(scores, rows, stride_s=STRIDE)
    lent = tail.threshold(float(np.median(scores)), false_alarms_per_week=1.0)
    assert lent == pytest.approx(own.score, rel=1e-9)
    assert tail.threshold(2.0, false_alarms_per_week=1.0) == pytest.approx(
        2 * tail.threshold(1.0, false_alarms_per_week=1.0)
    )


def test_hours_of_rows_do_not_lend_what_a_week_reaches() -> None:
    """A tail that is carried too far gives a threshold that no attack passes."""
    scores, rows = scores_of(0.016, seed=1)
    tail = lend_tail(scores, rows, stride_s=STRIDE)
    assert tail.rarest_rate == pytest.approx(1 / (20 * tail.weeks))
    assert tail.rarest_rate > 3.0
    at_rarest = tail.threshold(1.0, false_alarms_per_week=tail.rarest_rate)
    assert tail.threshold(1.0, false_alarms_per_week=1.0) == at_rarest
    assert tail.threshold(1.0, false_alarms_per_week=2 * tail.rarest_rate) < at_rarest
    own = threshold_for(scores, rows, stride_s=STRIDE, false_alarms_per_week=1.0)
    assert at_rarest * float(np.median(scores)) == pytest.approx(own.score, rel=1e-9)


def test_the_tail_does_not_depend_on_the_unit_of_scores() -> None:
    scores, rows = scores_of(1, seed=2)
    one, other = (lend_tail(factor * scores, rows, stride_s=STRIDE) for factor in (1.0, 37.0))
    assert (one.peaks, one.weeks) == (other.peaks, other.weeks)
    assert (one.level, one.scale, one.shape) == pytest.approx(
        (other.level, other.scale, other.shape), rel=1e-9
    )


def test_the_encoding_has_one_reading() -> None:
    raw = HONEST.canonical()
    assert len(raw) == LENT_BYTES
    assert LentTail.at(raw) == HONEST
    assert LentTail.at(raw + b"more") == HONEST
    assert LentTail.at(b"north" + bytes(64)) is None
    with pytest.raises(SettingError, match=f"has {LENT_BYTES} bytes"):
        LentTail.at(raw[:-1])
    with pytest.raises(SettingError, match="cannot be"):
        LentTail.at(raw[:32] + np.float64(np.nan).tobytes() + raw[40:])
    assert not MAGIC[:1].isascii()  # so no name of a member begins like a tail


@pytest.mark.parametrize(
    "change",
    [
        {"peaks": 7},
        {"peaks": 1_001},
        {"weeks": 0.0},
        {"weeks": np.inf},
        {"level": -0.1},
        {"level": np.nan},
        {"level": 51.0},
        {"scale": 0.0},
        {"scale": np.inf},
        {"shape": 0.6},
        {"shape": -0.6},
    ],
)
def test_a_tail_that_cannot_be_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(SettingError, match="lent tail"):
        replace(HONEST, **change)  # type: ignore[arg-type]


def test_scores_without_a_spread_lend_nothing() -> None:
    with pytest.raises(SettingError):
        lend_tail(np.zeros(1_000), np.arange(1_000), stride_s=STRIDE)
    with pytest.raises(SettingError, match="separate peaks"):
        lend_tail(np.arange(40.0) + 1, np.arange(40), stride_s=STRIDE)


@pytest.fixture(scope="module")
def voters(plant: Record, framing: Framing) -> tuple[Voter, ...]:
    clean = framing.windows(plant.rows(2_000, 2_400))
    made = []
    for at in range(5):
        own = Moments.of(framing.windows(plant.rows(at * 400, at * 400 + 400)))
        model = fit_subspace(own, clean)
        made.append(Voter(members=(f"m{at}",), model=model, tail=HONEST))
    return tuple(made)


def vote(
    framing: Framing, voters: tuple[Voter, ...], clean: Record, *, malicious: int = 2
) -> Detector:
    borrowed = borrow_thresholds(
        voters,
        framing.windows(clean),
        stride_s=framing.stride_s,
        false_alarms_per_week=1.0,
        record=clean.name,
    )
    return voted_detector(
        borrowed,
        framing,
        members=tuple(voter.name for voter in voters),
        needed=votes_needed(len(voters), malicious),
        malicious=malicious,
        training=TrainingSummary(records=(), windows=0, seed=0),
        time=NOW,
    )


@pytest.mark.parametrize("lie", [NEVER_VOTES, OFTEN_VOTES])
def test_two_liars_of_five_change_their_own_votes_only(
    voters: tuple[Voter, ...], framing: Framing, plant: Record, lie: LentTail
) -> None:
    """The vote's score stays between the ratios of the honest members, whatever two others lend."""
    honest = voters
    liars = tuple(replace(each, tail=lie) if at < 2 else each for at, each in enumerate(honest))
    clean = plant.rows(2_000, 2_200)
    windows = framing.windows(plant.rows(2_000, 2_600))
    told, lied = (voted_model(vote(framing, each, clean)) for each in (honest, liars))
    kept = told.ratios(windows)[2:]
    assert np.array_equal(lied.ratios(windows)[2:], kept)
    scores = lied.scores(windows)
    assert (scores >= kept.min(axis=0)).all()
    assert (scores <= kept.max(axis=0)).all()
    own = lied.votes(windows)[:2]
    assert own.mean() > 0.3 if lie is OFTEN_VOTES else not own.any()


def test_borrowed_thresholds_are_said_replaced_and_restored(
    voters: tuple[Voter, ...], framing: Framing, plant: Record, tmp_path: Path
) -> None:
    made = voters
    silent = (*made[:4], replace(made[4], tail=None))
    first = vote(framing, silent, plant.rows(2_000, 2_060))
    assert borrows_thresholds(first)
    assert last_calibration(first).act == "borrowed"
    assert voted_model(first).calibration.thresholds[4] == 1e300  # it lends none: no vote of it
    save_detector(first, tmp_path / "borrowed.safetensors")
    again = load_detector(tmp_path / "borrowed.safetensors")
    assert borrows_thresholds(again)
    assert [each.tail for each in voted_model(again).voters] == [*[HONEST] * 4, None]
    own = recalibrated(again, plant.rows(2_000, 4_000), time=NOW)
    assert not borrows_thresholds(own)
    assert len(calibration_changes(own)) == 5
    back = restored(own, time=NOW)
    assert borrows_thresholds(back)
    assert last_calibration(back).borrowed
    kept = recalibrated(again, plant.rows(2_000, 2_100), time=NOW, borrowed=True)
    assert borrows_thresholds(kept)
    assert last_calibration(kept).act == "borrowed again"


def test_thresholds_are_not_borrowed_on_nothing(
    voters: tuple[Voter, ...], framing: Framing, plant: Record
) -> None:
    made = voters
    with pytest.raises(SettingError, match="too few to borrow thresholds on"):
        vote(framing, made, plant.rows(2_000, 2_020))
    none = tuple(replace(each, tail=None) for each in made)
    with pytest.raises(SettingError, match="no member lends"):
        vote(framing, none, plant.rows(2_000, 2_100))


def test_a_file_with_too_few_tails_is_refused(
    voters: tuple[Voter, ...], framing: Framing, plant: Record
) -> None:
    made = voters
    tensors = voted_model(vote(framing, made, plant.rows(2_000, 2_100))).tensors()
    text = tensors["vote"].tobytes().decode()
    start = text.index('"tails":[') + len('"tails":[')
    cut = text[:start] + text[text.index("},{", start) + 2 :]
    tensors["vote"] = np.frombuffer(cut.encode(), np.uint8)
    with pytest.raises(ModelFileError, match="4 lent tails for 5 voters"):
        VotedModel.from_tensors(tensors)
