"""Windows and the shared scaler."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.errors import MissingChannelError, RecordError, SettingError
from sluice.telemetry.channel import Channel, Codes, Role
from sluice.telemetry.record import Label, Record
from sluice.telemetry.windows import Scaler, feature_names, windows

START = np.datetime64("2024-03-01T10:00:00", "us")


def plant(rows: int = 30) -> Record:
    rng = np.random.default_rng(4)
    return Record(
        name="plant",
        channels=(
            Channel(name="P101", role=Role.ACTUATOR, codes=Codes(off=1, on=(2,))),
            Channel(name="LIT101", role=Role.LEVEL),
            Channel(name="AIT201", role=Role.QUALITY),
        ),
        values=np.column_stack([np.ones(rows), rng.normal(500, 9, rows), rng.normal(7, 1, rows)]),
        times=START + np.arange(rows).astype("timedelta64[s]"),
        stride_s=1,
        labels=np.zeros(rows, np.int8),
    )


def scaler_of(record: Record) -> Scaler:
    return Scaler.fit([record], feature_names(record))


def test_analysers_are_left_out_unless_asked_for() -> None:
    assert feature_names(plant()) == ("LIT101", "P101")
    assert feature_names(plant(), analysers=True) == ("AIT201", "LIT101", "P101")


def test_a_constant_actuators_first_change_is_one_unit() -> None:
    scaler = scaler_of(plant())
    switched = plant().values.copy()
    switched[:, 0] = 2.0
    scaled = scaler.scale(plant().with_values(switched))
    assert np.array_equal(scaled[:, 1], np.ones(30))


def test_scaling_standardises_by_the_population_spread() -> None:
    scaled = scaler_of(plant()).scale(plant())
    assert scaled[:, 0].mean() == pytest.approx(0, abs=1e-12)
    assert scaled[:, 0].std() == pytest.approx(1)


def test_windows_are_flattened_row_by_row() -> None:
    cut = windows(plant(), scaler_of(plant()))
    assert len(cut) == 21
    assert np.array_equal(cut.matrix()[3], cut.rows[3:13].ravel())
    assert np.array_equal(cut.matrix(np.array([5])), cut.rows[5:15].reshape(1, -1))


def test_no_window_crosses_a_time_jump() -> None:
    record = plant()
    times = record.times.copy()
    times[14:] += np.timedelta64(60, "s")
    cut = windows(replace(record, times=times), scaler_of(record))
    assert cut.starts.tolist() == [*range(5), *range(14, 21)]


def test_no_window_holds_a_missing_reading() -> None:
    record = plant()
    values = record.values.copy()
    values[12, 1] = np.nan
    cut = windows(record.with_values(values), scaler_of(record))
    assert cut.starts.tolist() == [0, 1, 2, *range(13, 21)]


def test_a_windows_label_is_the_worst_of_its_rows() -> None:
    labels = np.zeros(30, np.int8)
    labels[0] = Label.UNLABELLED
    labels[20] = Label.ATTACK
    cut = windows(replace(plant(), labels=labels), scaler_of(plant()))
    assert cut.labels.tolist() == [Label.UNLABELLED] + [Label.NORMAL] * 10 + [Label.ATTACK] * 10
    assert np.array_equal(cut.touching(labels == Label.ATTACK), cut.labels == Label.ATTACK)


def test_a_record_shorter_than_a_window_has_none() -> None:
    assert len(windows(plant(9), scaler_of(plant()))) == 0


def test_a_window_holds_one_row_at_least() -> None:
    assert windows(plant(), scaler_of(plant()), length=1).starts.tolist() == [*range(30)]
    for length in (0, -1):
        with pytest.raises(SettingError, match=f"at least one row, got {length}"):
            windows(plant(), scaler_of(plant()), length=length)


def test_the_scaler_names_a_channel_that_a_plant_lacks() -> None:
    with pytest.raises(MissingChannelError, match="'LIT101', which the scaler reads"):
        scaler_of(plant()).scale(plant().without("LIT101"))


def test_a_channel_without_readings_cannot_be_scaled() -> None:
    values = plant().values.copy()
    values[:, 1] = np.nan
    with pytest.raises(RecordError, match="cannot be scaled"):
        scaler_of(plant().with_values(values))
