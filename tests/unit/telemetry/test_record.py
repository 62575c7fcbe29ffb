"""The record: what it refuses, how it is cut, and that nothing crosses a time jump."""

import numpy as np
import pytest

from sluice.arrays import Run
from sluice.errors import MissingChannelError, PlantFileError, RecordError, SettingError
from sluice.telemetry.channel import Channel, Codes, Role, Span
from sluice.telemetry.record import Gap, Label, Record

START = np.datetime64("2024-03-01T10:00:00", "us")


def filling_tank(rows: int = 12, *, stride_s: int = 5) -> Record:
    """A tank that fills while its valve is open."""
    level = np.linspace(500, 520, rows)
    values = np.column_stack([level, np.full(rows, 2.5), np.full(rows, 2.0)])
    steps = np.arange(rows) * stride_s
    return Record(
        name="march",
        channels=(
            Channel(name="LIT101", role=Role.LEVEL, unit="mm"),
            Channel(name="FIT101", role=Role.FLOW, unit="m3/h"),
            Channel(name="MV101", role=Role.ACTUATOR, codes=Codes(off=1, on=(2,), moving=(0,))),
        ),
        values=values,
        times=START + steps.astype("timedelta64[s]"),
        stride_s=stride_s,
        labels=np.zeros(rows, np.int8),
    )


def altered(record: Record, **changes: object) -> Record:
    kept = {
        "name": record.name,
        "channels": record.channels,
        "values": record.values,
        "times": record.times,
        "stride_s": record.stride_s,
        "labels": record.labels,
    }
    return Record(**{**kept, **changes})  # type: ignore[arg-type]


def test_a_missing_channel_is_named_with_who_needed_it() -> None:
    with pytest.raises(MissingChannelError, match="'FIT201', which rule 'P101~FIT201' reads"):
        filling_tank().index("FIT201", needed_by="rule 'P101~FIT201'")


def test_a_ragged_record_is_refused() -> None:
    with pytest.raises(RecordError, match="ragged"):
        altered(filling_tank(), labels=np.zeros(3, np.int8))


def test_a_channel_named_twice_is_refused() -> None:
    tank = filling_tank()
    with pytest.raises(RecordError, match=r"named twice: \['LIT101'\]"):
        altered(tank, channels=(tank.channels[0], tank.channels[0], tank.channels[2]))


@pytest.mark.parametrize(("row", "what"), [(5, "repeats"), (3, "goes backward")])
def test_a_clock_that_repeats_or_runs_backward_is_refused(row: int, what: str) -> None:
    tank = filling_tank()
    times = tank.times.copy()
    times[6] = times[row]
    with pytest.raises(RecordError, match=f"{what} at row 6"):
        altered(tank, times=times)


@pytest.mark.parametrize("reading", [1e34, -1e34, np.inf])
def test_an_impossible_reading_is_refused(reading: float) -> None:
    values = filling_tank().values.copy()
    values[4, 1] = reading
    with pytest.raises(RecordError, match="'FIT101' reads .* at row 4"):
        altered(filling_tank(), values=values)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_reading_at_the_limit_is_taken(sign: int) -> None:
    values = filling_tank().values.copy()
    values[4, 1] = sign * 1e15
    assert altered(filling_tank(), values=values).values[4, 1] == sign * 1e15
    values[4, 1] = sign * np.nextafter(1e15, np.inf)
    with pytest.raises(RecordError, match="'FIT101' reads .* at row 4"):
        altered(filling_tank(), values=values)


def test_a_stride_is_above_zero() -> None:
    least = np.nextafter(0.0, 1.0)
    assert altered(filling_tank(), stride_s=least).stride_s == least
    for stride in (0.0, -5.0, np.nan):
        with pytest.raises(RecordError, match="has a stride of"):
            altered(filling_tank(), stride_s=stride)


def test_readings_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValueError, match="read-only"):
        filling_tank().values[0, 0] = 1.0


def test_a_missing_reading_is_a_mask_not_a_number() -> None:
    values = filling_tank().values.copy()
    values[2, 0] = np.nan
    tank = altered(filling_tank(), values=values)
    assert tank.missing[2, 0]
    assert tank.missing.sum() == 1


def test_a_time_jump_starts_a_segment_and_cuts_an_attack() -> None:
    tank = filling_tank()
    times = tank.times.copy()
    times[6:] += np.timedelta64(81, "s")
    labels = np.zeros(12, np.int8)
    labels[4:9] = Label.ATTACK
    tank = altered(tank, times=times, labels=labels)
    assert tank.gaps == (Gap(before=5, after=6),)
    assert tank.segments == (Run(0, 6), Run(6, 12))
    assert tank.attack_segments == (Run(4, 6), Run(6, 9))


def test_thinning_keeps_every_fifth_row_and_stretches_the_stride() -> None:
    thinned = filling_tank(12, stride_s=1).every(5)
    assert len(thinned) == 3
    assert thinned.stride_s == 5
    assert thinned.gaps == ()


def test_a_record_is_thinned_by_whole_steps_from_one_on() -> None:
    tank = filling_tank()
    assert np.array_equal(tank.every(1).values, tank.values)
    for step in (0, -1):
        with pytest.raises(SettingError, match="a step of at least 1 row"):
            tank.every(step)


def test_the_start_up_cut_then_the_stride_of_the_paper_leave_94_680_rows() -> None:
    rows = 495_000
    record = Record(
        name="normal",
        channels=(Channel(name="LIT101", role=Role.LEVEL),),
        values=np.zeros((rows, 1)),
        times=START + np.arange(rows).astype("timedelta64[s]"),
        stride_s=1,
        labels=np.zeros(rows, np.int8),
    )
    assert len(record.without_first(21_600).every(5)) == 94_680


def test_a_span_has_a_width() -> None:
    assert Span(low=0.0, high=1.0).high == 1.0
    for high in (0.0, -1.0, float("nan")):
        with pytest.raises(PlantFileError, match="a span needs low"):
            Span(low=0.0, high=high)


def test_rows_outside_the_record_are_refused() -> None:
    with pytest.raises(SettingError, match="has rows 0:12; cannot take 5:20"):
        filling_tank().rows(5, 20)
    for start, stop in ((-1, 5), (5, 5), (5, 4), (0, 13)):
        with pytest.raises(SettingError, match=f"cannot take {start}:{stop}"):
            filling_tank().rows(start, stop)
    assert len(filling_tank().rows(0, 12)) == 12
    assert len(filling_tank().rows(11, 12)) == 1


def test_dropping_a_channel_leaves_the_others_in_order() -> None:
    assert filling_tank().without("FIT101").names == ("LIT101", "MV101")


def test_only_actuators_have_codes() -> None:
    with pytest.raises(
        PlantFileError, match="an actuator needs codes, and no other role may have them"
    ):
        Channel(name="LIT101", role=Role.LEVEL, codes=Codes(off=0, on=(1,)))
    with pytest.raises(
        PlantFileError, match="an actuator needs codes, and no other role may have them"
    ):
        Channel(name="MV101", role=Role.ACTUATOR)


def test_codes_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(PlantFileError, match="no repeats"):
        Codes(off=1, on=(1,))
