"""What a liar shows, what it trains on, and how often its windows see what it planted."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.errors import SettingError
from sluice.lab.attacks.data_attack import InTurn
from sluice.lab.attacks.fabrications import ChannelRoll, ConservationScaling, RegimeSplicing
from sluice.lab.attacks.poison import Poison, exposed
from sluice.lab.attacks.replay import Replay, choose_targets
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record
from sluice.telemetry.windows import Scaler, Windows, feature_names, windows


@pytest.fixture(scope="module")
def clean() -> Record:
    return simulate("line", seed=0, days=0.5)


@pytest.fixture(scope="module")
def poison(clean: Record) -> Poison:
    labelled = simulate("line", seed=1, days=2, attacks=True)
    targets = choose_targets(labelled, rows=round(len(clean) * 0.25), seed=0)
    return Replay(targets=targets).plant(clean, rng=np.random.default_rng(0), exposure=0.5)


def cut(record: Record) -> Windows:
    return windows(record, Scaler.fit([record], feature_names(record)))


def strip(rows: int, length: int = 4) -> Windows:
    starts = np.arange(rows - length + 1)
    values = np.arange(rows, dtype=np.float32)[:, None]
    return Windows(rows=values, starts=starts, length=length, labels=(starts % 2).astype(np.int8))


@settings(deadline=None, max_examples=60)
@given(
    share=st.floats(0.01, 0.99),
    rows=st.integers(40, 200),
    first=st.integers(0, 20),
    planted_rows=st.integers(1, 5),
    seed=st.integers(0, 9),
)
def test_the_share_is_exact_and_the_number_of_windows_stays(
    share: float, rows: int, first: int, planted_rows: int, seed: int
) -> None:
    whole, planted = strip(rows), np.zeros(rows, bool)
    planted[first : first + planted_rows] = True
    drawn = exposed(whole, planted, share, rng=np.random.default_rng(seed))
    assert len(drawn) == len(whole)
    assert drawn.touching(planted).sum() == int(share * len(whole))
    assert np.isin(drawn.starts, whole.starts).all()
    assert np.array_equal(drawn.labels, drawn.starts % 2)
    assert drawn.rows is whole.rows


def test_planted_windows_come_in_no_order() -> None:
    planted = np.zeros(200, bool)
    planted[50] = True
    hits = exposed(strip(200), planted, 0.5, rng=np.random.default_rng(1)).touching(planted)
    assert 20 < np.count_nonzero(np.diff(hits.astype(int))) < 180


def test_a_hundredth_of_the_rows_can_be_half_of_the_training() -> None:
    planted = np.zeros(1000, bool)
    planted[400:410] = True
    whole = strip(1000)
    assert whole.touching(planted).mean() < 0.02
    drawn = exposed(whole, planted, 0.5, rng=np.random.default_rng(0))
    assert drawn.touching(planted).mean() == pytest.approx(0.5, abs=0.001)


def test_everything_planted_is_drawn_from_alone() -> None:
    drawn = exposed(strip(50), np.ones(50, bool), 1.0, rng=np.random.default_rng(0))
    assert len(drawn) == 47


@pytest.mark.parametrize(
    ("planted", "share", "message"),
    [
        (np.zeros(50, bool), 0.5, "0 of 47 windows touch a planted row"),
        (np.ones(50, bool), 0.5, "47 of 47 windows touch a planted row"),
        (np.ones(40, bool), 0.5, "cut from 50 rows; planted marks 40"),
        (np.ones(50, bool), 0.0, "above 0, at most 1; got 0.0"),
        (np.ones(50, bool), 1.1, "above 0, at most 1; got 1.1"),
    ],
)
def test_an_exposure_that_cannot_be_drawn_is_refused(
    planted: np.ndarray[tuple[int], np.dtype[np.bool_]], share: float, message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        exposed(strip(50), planted, share, rng=np.random.default_rng(0))


def test_a_poison_draws_its_windows_by_its_exposure(poison: Poison) -> None:
    whole = cut(poison.trained)
    drawn = poison.windows(whole, rng=np.random.default_rng(3))
    again = poison.windows(whole, rng=np.random.default_rng(3))
    assert np.array_equal(drawn.starts, again.starts)
    assert drawn.touching(poison.planted).sum() == len(whole) // 2
    once = replace(poison, exposure=None)
    assert once.windows(whole, rng=np.random.default_rng(3)) is whole


def test_a_fabrication_on_top_leaves_planted_rows_where_they_are(poison: Poison) -> None:
    roll = ChannelRoll(rows=7)
    rolled = poison.fabricated(roll, seed=4)
    assert np.array_equal(rolled.trained.values, roll(poison.trained, seed=4).values)
    assert rolled.shown is rolled.trained
    assert np.array_equal(rolled.planted, poison.planted)
    assert rolled.exposure == poison.exposure
    levels = poison.trained.index("L_T1")
    planted = poison.planted
    assert np.array_equal(
        rolled.trained.values[planted, levels], poison.trained.values[planted, levels]
    )


def test_what_is_shown_in_place_of_it_stays_clean(poison: Poison, clean: Record) -> None:
    hiding = replace(poison, shown=clean).fabricated(ConservationScaling(), seed=0)
    assert hiding.shown is clean
    assert not np.array_equal(hiding.trained.values, poison.trained.values)


@pytest.mark.parametrize(
    "attack",
    [RegimeSplicing(), InTurn(attacks=(ChannelRoll(rows=3), RegimeSplicing()))],
    ids=["alone", "in turn"],
)
def test_rows_that_would_move_are_not_lost_sight_of(
    poison: Poison, attack: RegimeSplicing | InTurn
) -> None:
    with pytest.raises(SettingError, match="splice the shard first, then plant"):
        poison.fabricated(attack, seed=0)


def test_a_poison_that_contradicts_itself_is_refused(clean: Record) -> None:
    with pytest.raises(SettingError, match=f"has {len(clean)} rows; planted marks 3"):
        Poison(shown=clean, trained=clean, planted=np.zeros(3, bool))
    with pytest.raises(SettingError, match="got 2"):
        Poison(shown=clean, trained=clean, planted=np.zeros(len(clean), bool), exposure=2)


def test_what_was_planted_cannot_be_rewritten(poison: Poison) -> None:
    with pytest.raises(ValueError, match="read-only"):
        poison.planted[0] = True
