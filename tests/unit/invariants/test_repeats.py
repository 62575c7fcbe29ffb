"""Copies of earlier stretches of a level, with jitter, offset or drift, and what is no copy."""

import numpy as np
import pytest

from sluice.arrays import Floats
from sluice.invariants.repeats import LOOK_BACK, known_repeats, repeated_rows
from sluice.lab.plants import simulate

ROWS = 600
MILLIMETRES = 0.001


def tank(seed: int, rows: int = ROWS) -> Floats:
    """A level in metres that fills and drains by a pump, under a demand that is never the same."""
    rng = np.random.default_rng(seed)
    level, filling, readings = 3.0, False, []
    for demand in 0.15 + 0.1 * rng.random(rows):
        filling = level < 2.0 or (filling and level < 4.5)
        level += 0.4 * filling - demand
        readings.append(level)
    return np.array(readings)


def copied(readings: Floats, *, rows: int, jitter: float, seed: int = 0) -> Floats:
    forged = readings.copy()
    noise = np.random.default_rng(seed).normal(0, jitter, rows)
    forged[-rows:] = readings[:rows] + noise
    return forged


@pytest.mark.parametrize("seed", range(5))
def test_a_live_tank_repeats_nothing(seed: int) -> None:
    assert not repeated_rows(tank(seed)).any()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("jitter", [0.0, 1 * MILLIMETRES, 3 * MILLIMETRES])
def test_a_copy_with_millimetres_of_jitter_is_found(seed: int, jitter: float) -> None:
    marked = repeated_rows(copied(tank(seed), rows=240, jitter=jitter, seed=seed))
    assert marked[-240:].mean() > 0.9
    assert not marked[: ROWS - 240 - 48].any()  # only the later copy


@pytest.mark.parametrize("rows", [96, 144])
def test_a_copy_of_two_stretches_is_long_enough(rows: int) -> None:
    assert repeated_rows(copied(tank(1), rows=rows, jitter=3 * MILLIMETRES))[-rows:].mean() > 0.7


@pytest.mark.parametrize("seed", range(3))
def test_a_level_of_forty_days_repeats_no_hour_by_chance(seed: int) -> None:
    level = simulate("line", seed=seed, days=40).column("L_T1")
    assert not repeated_rows(level).any()


@pytest.mark.parametrize("jitter", [0.0, 3 * MILLIMETRES])
@pytest.mark.parametrize("rows", [10_000, 40_000])
def test_a_copy_is_found_in_a_long_batch(rows: int, jitter: float) -> None:
    forged = tank(4, rows)
    forged[-240:] = forged[-6_000:-5_760] + np.random.default_rng(0).normal(0, jitter, 240)
    marked = repeated_rows(forged)
    assert marked[-240:].mean() > 0.7
    assert not marked[: -240 - 48].any()


@pytest.mark.parametrize("length", [30, 60, 100])
def test_a_short_copy_is_found_in_a_long_batch_if_it_is_exact(length: int) -> None:
    forged = tank(5, 40_000)
    forged[-length:] = forged[-6_000 : -6_000 + length]
    assert repeated_rows(forged)[-length:].all()


def test_an_offset_and_a_drift_do_not_hide_a_copy() -> None:
    forged = copied(tank(2), rows=240, jitter=3 * MILLIMETRES)
    forged[-240:] += 0.4 + 0.001 * np.arange(240)
    assert repeated_rows(forged)[-240:].mean() > 0.9


def test_a_missing_reading_does_not_hide_a_copy() -> None:
    forged = copied(tank(3), rows=240, jitter=3 * MILLIMETRES)
    forged[-200] = np.nan
    assert repeated_rows(forged)[-150:].mean() > 0.8


@pytest.mark.parametrize(
    "readings",
    [np.full(300, 2.0), 2.0 + 0.01 * np.arange(300)],
    ids=["flat", "straight"],
)
def test_straight_lines_are_no_copies(readings: Floats) -> None:
    assert not repeated_rows(readings).any()


def slow_tank(rows: int, seed: int = 0) -> Floats:
    """A level in whole millimetres that moves by a few of them from row to row."""
    steps = np.random.default_rng(seed).integers(-2, 3, rows)
    return np.asarray(np.cumsum(steps) * MILLIMETRES, float)


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_tank_repeats_a_dozen_readings_by_chance(seed: int) -> None:
    readings = np.round(slow_tank(40_000, seed) % 0.006, 3)
    dozens = np.lib.stride_tricks.sliding_window_view(readings, 12)
    assert len(np.unique(dozens, axis=0)) < len(dozens)  # it does repeat itself
    assert not repeated_rows(readings).any()


@pytest.mark.parametrize(("rows", "marked"), [(12, 0), (24, 24), (60, 60)])
def test_a_longer_copy_of_a_slow_tank_is_no_chance(rows: int, marked: int) -> None:
    forged = np.concatenate([slow_tank(400), slow_tank(400, seed=1)])
    forged[-rows:] = forged[100 : 100 + rows]
    assert repeated_rows(forged).sum() == marked
    assert repeated_rows(forged)[-marked or None :].all() == (marked > 0)


@pytest.mark.parametrize("steps", [[0.3], [0.3, 0.1], [0.1, 0.1, 0.1, 0.4]])
def test_a_pattern_of_few_steps_is_no_copy(steps: list[float]) -> None:
    dozen = np.cumsum(np.resize(steps, 12))
    assert not repeated_rows(np.concatenate([dozen, [9.0, 8.0], dozen])).any()


def test_readings_that_are_missing_are_no_copy() -> None:
    gap = np.full(30, np.nan)
    assert not repeated_rows(np.concatenate([tank(0, 100), gap, tank(1, 100), gap])).any()


def test_a_repetition_is_visible_at_its_last_row() -> None:
    forged = copied(tank(1), rows=14, jitter=0.0)
    assert list(np.flatnonzero(known_repeats(forged))) == [ROWS - 3, ROWS - 2, ROWS - 1]


def test_noise_around_a_line_is_no_copy() -> None:
    noise = np.random.default_rng(0).normal(0, MILLIMETRES, 500)
    assert not repeated_rows(2.0 + 0.01 * np.arange(500) + noise).any()


def regular(rows: int, seed: int) -> Floats:
    """A level in millimetres that fills and drains at the same rates, with a meter's noise."""
    course = 200.0 * np.abs(((np.arange(rows) / 271.0) % 2.0) - 1.0)
    return np.asarray(500.0 + course + np.random.default_rng(seed).normal(0, 0.1, rows))


@pytest.mark.parametrize("seed", range(3))
def test_two_fillings_at_one_rate_have_noise_of_their_own(seed: int) -> None:
    assert not repeated_rows(regular(1_500, seed)).any()


@pytest.mark.parametrize("kept", [1.0, 0.0])
def test_a_copy_of_one_filling_is_found_with_noise_added_and_with_its_noise_removed(
    kept: float,
) -> None:
    readings = regular(1_500, 0)
    clean = 500.0 + 200.0 * np.abs(((np.arange(1_500) / 271.0) % 2.0) - 1.0)
    forged = readings.copy()
    added = np.random.default_rng(9).normal(0, 0.1, 400)
    forged[1_100:] = clean[16:416] + kept * (readings[16:416] - clean[16:416]) + kept * added
    assert repeated_rows(forged)[1_100:].mean() > 0.5


def test_copies_are_looked_for_in_a_limited_number_of_earlier_rows() -> None:
    long = np.concatenate([tank(4, 240), tank(5, LOOK_BACK + 4_000), tank(4, 240)])
    far = repeated_rows(long + np.random.default_rng(1).normal(0, MILLIMETRES, len(long)))
    assert not far[-240:].any()
