"""The paired difference and its interval."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.errors import SettingError
from sluice.evaluation.paired import Pair, Unit, paired_difference


def pair(seed: int, difference: float, *, targets: str = "a", record: str = "swat") -> Pair:
    unit = Unit(seed=seed, record=record, targets=targets)
    return Pair(unit=unit, recall=0.5 + difference, against=0.5)


def test_every_pair_counts_whether_or_not_there_was_damage() -> None:
    found = paired_difference([pair(seed, 0.03 * (seed % 3)) for seed in range(6)], seed=1)
    assert found.mean == pytest.approx(0.03)
    assert (found.pairs, found.seeds, found.level) == (6, 6, 0.95)
    assert found.low < found.mean < found.high


def test_the_same_seed_draws_the_same_interval() -> None:
    pairs = [pair(seed, 0.01 * seed**1.5) for seed in range(8)]
    assert paired_difference(pairs, seed=5) == paired_difference(pairs[::-1], seed=5)
    assert paired_difference(pairs, seed=5).low != paired_difference(pairs, seed=6).low


def test_equal_runs_differ_by_nothing() -> None:
    found = paired_difference([pair(seed, 0.0) for seed in range(4)], seed=0)
    assert found.mean == found.low == found.high == 0


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000), shift=st.floats(-0.2, 0.2))
def test_the_interval_moves_and_turns_with_the_differences(seed: int, shift: float) -> None:
    differences = np.random.default_rng(seed).normal(0, 0.05, 7)
    here = paired_difference([pair(at, d) for at, d in enumerate(differences)], seed=3, draws=500)
    moved = paired_difference(
        [pair(at, d + shift) for at, d in enumerate(differences)], seed=3, draws=500
    )
    turned = paired_difference(
        [pair(at, -d) for at, d in enumerate(differences)], seed=3, draws=500
    )
    assert (moved.low, moved.high) == pytest.approx((here.low + shift, here.high + shift))
    assert (turned.low, turned.high) == pytest.approx((-here.high, -here.low))


def test_more_runs_of_one_seed_are_not_more_seeds() -> None:
    random = np.random.default_rng(0)
    own = random.normal(0, 0.05, 6)
    alone = [pair(seed, own[seed]) for seed in range(6)]
    # The same six seeds, ten target sets each that hardly differ: still six seeds' worth.
    many = [
        pair(seed, own[seed] + random.normal(0, 1e-4), targets=str(targets))
        for seed, targets in itertools.product(range(6), range(10))
    ]
    one, ten = paired_difference(alone, seed=1), paired_difference(many, seed=1)
    assert ten.pairs == 60
    assert ten.seeds == 6
    assert ten.high - ten.low == pytest.approx(one.high - one.low, rel=0.05)


def test_within_a_seed_its_runs_are_drawn_too() -> None:
    # All seeds have the same mean, and wide runs within: only drawing those gives any width.
    pairs = [
        pair(seed, d, targets=str(at)) for seed in range(6) for at, d in enumerate((-0.1, 0, 0.1))
    ]
    found = paired_difference(pairs, seed=1)
    assert found.high - found.low > 0.05


def test_seeds_may_have_different_numbers_of_runs() -> None:
    pairs = [pair(0, 0.3), *(pair(1, 0.0, targets=str(at)) for at in range(3))]
    found = paired_difference(pairs, seed=2)
    assert found.mean == pytest.approx(0.075)
    assert found.low == pytest.approx(0)
    assert found.high == pytest.approx(0.3)


@pytest.mark.parametrize(("seeds", "least"), [(5, 0.88), (10, 0.91)])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(seeds: int, least: float) -> None:
    random = np.random.default_rng(17)
    held = 0
    for turn in range(200):
        pairs = [pair(at, d) for at, d in enumerate(random.normal(0.02, 0.05, seeds))]
        found = paired_difference(pairs, seed=turn, draws=1000)
        held += found.low <= 0.02 <= found.high
    assert least <= held / 200 <= 0.99


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(SettingError, match="at least two seeds, got 1"):
        paired_difference([pair(0, 0.1), pair(0, 0.2, targets="b")], seed=0)
    with pytest.raises(SettingError, match="at least two seeds, got 0"):
        paired_difference([], seed=0)
    with pytest.raises(SettingError, match=r"seed 0 on 'swat', targets 'a' is given twice"):
        paired_difference([pair(0, 0.1), pair(0, 0.2), pair(1, 0.1)], seed=0)
    with pytest.raises(SettingError, match="recall of 1.2"):
        pair(0, 0.7)
    two = [pair(0, 0.1), pair(1, 0.1)]
    with pytest.raises(SettingError, match="level"):
        paired_difference(two, seed=0, level=95)
    with pytest.raises(SettingError, match="at least once"):
        paired_difference(two, seed=0, draws=0)
