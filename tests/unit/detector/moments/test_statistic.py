"""Exact lagged sums of registers."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.detector.moments.settings import MomentSettings, moment_settings
from sluice.detector.moments.statistic import (
    WEIGHT_LIMIT,
    MomentStatistic,
    moment_statistic,
    sum_windows,
    trapezoid,
)
from sluice.errors import MissingChannelError, RecordError, SettingError
from sluice.invariants.encoding import REGISTER_TOP, Register
from sluice.telemetry.channel import Channel, Role, Span
from sluice.telemetry.record import Label, Record


def plain(channels: int, lags: int) -> MomentSettings:
    registers = (Register(channel=f"c{at}", low=0.0, step=1.0) for at in range(channels))
    return MomentSettings(registers=tuple(registers), lags=lags)


def by_python(rows: list[list[int]], weights: list[int], lags: int) -> list[list[list[int]]]:
    """The definition, in Python's own integers."""
    channels = range(len(rows[0]))
    return [
        [
            [
                sum(
                    weight * rows[t][i] * rows[t - lag][j]
                    for t, weight in enumerate(weights)
                    if weight
                )
                for j in channels
            ]
            for i in channels
        ]
        for lag in range(lags)
    ]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_sums_are_those_of_python_integers(data: st.DataObject) -> None:
    lags = data.draw(st.integers(1, 4))
    channels = data.draw(st.integers(1, 3))
    count = data.draw(st.integers(lags, 30))
    reading = st.one_of(st.just(REGISTER_TOP), st.integers(0, REGISTER_TOP))
    row = st.lists(reading, min_size=channels, max_size=channels)
    rows = data.draw(st.lists(row, min_size=count, max_size=count))
    weights = [0] * (lags - 1) + trapezoid(count - lags + 1).tolist()
    found = sum_windows(np.array(rows), np.array(weights), plain(channels, lags))
    assert found.lagged.tolist() == by_python(rows, weights, lags)
    assert found.sums.tolist() == [
        sum(weight * row[at] for weight, row in zip(weights, rows, strict=True))
        for at in range(channels)
    ]
    assert (found.weight, found.count) == (sum(weights), count - lags + 1)


def test_the_largest_registers_over_whole_blocks_stay_exact() -> None:
    """Full blocks of full registers with full weights: the case that needs every bit."""
    rows = 3 * 4_096 + 77
    registers = np.full((rows, 2), REGISTER_TOP)
    registers[::2, 1] -= 1
    weights = np.concatenate(([0], trapezoid(rows - 1)))
    found = sum_windows(registers, weights, plain(2, 2))
    total = sum(weights.tolist())
    odd = sum(weights[1::2].tolist())
    assert found.lagged[0, 0, 0] == REGISTER_TOP**2 * total
    assert found.lagged[1, 0, 1] == REGISTER_TOP * (
        REGISTER_TOP * (total - odd) + (REGISTER_TOP - 1) * odd
    )


def test_a_window_counts_whole_or_not_at_all(plant: Record) -> None:
    """A time jump begins a new segment, with its own ramps."""
    first, second = plant.rows(0, 700), plant.rows(900, 1_500)
    jumped = replace(
        first,
        values=np.concatenate([first.values, second.values]),
        times=np.concatenate([first.times, second.times]),
        labels=np.concatenate([first.labels, second.labels]),
    )
    chosen = moment_settings(plant)
    both = moment_statistic(first, chosen) + moment_statistic(second, chosen)
    assert moment_statistic(jumped, chosen) == both
    assert both.count == 691 + 591


def test_weights_rise_stay_and_fall() -> None:
    assert trapezoid(5).tolist() == [1, 2, 3, 2, 1]
    assert trapezoid(6).tolist() == [1, 2, 3, 3, 2, 1]
    long = trapezoid(2_000)
    assert (long[:512] == np.arange(1, 513)).all()
    assert (long[512:-512] == 512).all()
    assert (long == long[::-1]).all()


def test_parts_add_up_in_any_order(plant: Record) -> None:
    chosen = moment_settings(plant)
    a, b, c = (moment_statistic(plant.rows(at, at + 900), chosen) for at in (0, 1_000, 2_500))
    assert (a + b) + c == c + (b + a)
    assert ((a + b) + c).digest == (c + (b + a)).digest
    assert (a + b) != a


def test_the_canonical_form_comes_back_and_nothing_else_does(plant: Record) -> None:
    chosen = moment_settings(plant)
    found = moment_statistic(plant.rows(0, 900), chosen)
    content = found.canonical()
    assert MomentStatistic.from_canonical(content, chosen) == found
    with pytest.raises(SettingError, match="bytes, got"):
        MomentStatistic.from_canonical(content[:-8], chosen)
    with pytest.raises(SettingError, match="other settings"):
        MomentStatistic.from_canonical(b"x" + content[1:], chosen)
    other = replace(
        chosen, registers=(replace(chosen.registers[0], low=-9.0), *chosen.registers[1:])
    )
    with pytest.raises(SettingError, match="other settings"):
        MomentStatistic.from_canonical(content, other)


def test_statistics_of_other_settings_do_not_add_up(plant: Record) -> None:
    chosen = moment_settings(plant)
    fewer = replace(chosen, registers=chosen.registers[1:])
    with pytest.raises(SettingError, match="of other settings cannot be added"):
        moment_statistic(plant, chosen) + moment_statistic(plant, fewer)


def small(**changed: object) -> MomentStatistic:
    parts: dict[str, object] = {
        "settings": plain(2, 1),
        "count": 3,
        "weight": 4,
        "sums": np.array([1, 2]),
        "lagged": np.ones((1, 2, 2), np.int64),
    }
    return MomentStatistic(**(parts | changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sums": np.array([1, 2, 3])}, "have the shapes"),
        ({"sums": np.array([1.0, 2.0])}, "64-bit integers, not float64"),
        ({"sums": np.array([-1, 2])}, "a sum of -1 cannot come from registers"),
        ({"sums": np.array([1, 4 * REGISTER_TOP + 1])}, "a sum of 262,141 cannot"),
        ({"lagged": np.array([[[1, 2], [3, 1]]])}, "not symmetric"),
        (
            {"lagged": np.full((1, 2, 2), 4 * REGISTER_TOP**2 + 1)},
            "a lagged sum of 17,179,344,901 cannot",
        ),
        ({"weight": 2}, "at least the number of windows"),
        ({"count": -1}, "at least the number of windows"),
        ({"weight": WEIGHT_LIMIT}, "below 2,147,483,648"),
    ],
)
def test_sums_that_cannot_be_are_refused(changed: dict[str, object], message: str) -> None:
    assert small().count == 3
    with pytest.raises(SettingError, match=message):
        small(**changed)


def test_sums_that_could_overflow_are_refused() -> None:
    heavy = small(weight=WEIGHT_LIMIT - 1)
    with pytest.raises(SettingError, match="sums stay exact below"):
        heavy + small()
    with pytest.raises(SettingError, match="a largest of 513"):
        sum_windows(np.ones((20, 2), np.int64), np.full(20, 513), plain(2, 1))


def test_a_missing_reading_is_refused_by_row_and_channel(plant: Record) -> None:
    chosen, values = moment_settings(plant), plant.values.copy()
    values[7, plant.index("L_T2")] = np.nan
    with pytest.raises(RecordError, match=r"no reading of 'L_T2' at row 7 \(1 such rows\)"):
        moment_statistic(plant.with_values(values), chosen)


def test_a_record_without_a_whole_window_is_refused(plant: Record) -> None:
    with pytest.raises(RecordError, match="no 10 consecutive rows"):
        moment_statistic(plant.rows(0, 9), moment_settings(plant))


def test_a_channel_that_is_not_there_is_named(plant: Record) -> None:
    with pytest.raises(MissingChannelError, match="'L_T2', which the statistic reads"):
        moment_statistic(plant.without("L_T2"), moment_settings(plant))


def test_constant_and_untied_channels_have_no_register(plant: Record) -> None:
    values = plant.values.copy()
    values[:, plant.index("L_T1")] = 3.0
    chosen = moment_settings(plant.with_values(values), untied=("L_T2",))
    assert {"L_T1", "L_T2"}.isdisjoint(chosen.channels)
    assert "L_T3" in chosen.channels
    assert {"L_T1", "L_T2"} <= set(moment_settings(plant).channels)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lags": 0}, "1 to 1000 lags, got 0"),
        ({"registers": ()}, "channels, got 0"),
        ({"registers": (Register(channel="a", low=0.0, step=0.0),)}, "cannot become integers"),
        ({"registers": (Register(channel="a", low=0.0, step=1.0),) * 2}, "names 'a' twice"),
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        replace(plain(1, 1), **wrong)  # type: ignore[arg-type]


def test_channels_that_are_left_out_have_zeros_and_the_others_keep_their_sums() -> None:
    rows = np.random.default_rng(0).integers(1, 100, (40, 3))
    weights = np.concatenate((np.zeros(1, np.int64), trapezoid(39)))
    whole = sum_windows(rows, weights, plain(3, 2))
    assert whole.summed == ("c0", "c1", "c2")
    part = whole.without(["c1", "not summed"])
    assert part.summed == ("c0", "c2")
    zeroed = np.where(np.arange(3) == 1, 0, rows)
    kept = sum_windows(zeroed, weights, plain(3, 2))
    assert part == kept
    assert whole.without([]) == whole
    # One entry other than zero is a sum of its channel.
    lagged = part.lagged.copy()
    lagged[1, 1, 0] = 1
    assert replace(part, lagged=lagged).summed == ("c0", "c1", "c2")


def test_51_channels_and_100000_rows_are_summed_in_less_than_a_second() -> None:
    """Processor time of all threads, from readings to the sums."""
    rows, names = 100_000, [f"c{at}" for at in range(51)]
    values = np.random.default_rng(0).uniform(0, 100, (rows, len(names)))
    span = Span(low=0.0, high=100.0)
    record = Record(
        name="large",
        channels=tuple(Channel(name=name, role=Role.FLOW, span=span) for name in names),
        values=values,
        times=np.datetime64("2026-01-01", "us") + np.arange(rows) * np.timedelta64(5, "s"),
        stride_s=5.0,
        labels=np.full(rows, Label.NORMAL, np.int8),
    )
    begun = time.process_time()
    statistic = moment_statistic(record, moment_settings(record))
    assert time.process_time() - begun < 1.0
    assert len(statistic.settings.channels) == len(names)
    assert statistic.count == rows - statistic.settings.lags + 1
