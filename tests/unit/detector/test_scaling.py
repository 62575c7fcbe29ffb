"""Robust, floored scales of channels."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.detector.scaling import robust_scaler
from sluice.errors import RecordError
from sluice.telemetry.channel import Channel, Codes, Role, Span
from sluice.telemetry.record import Record


def record(readings: np.ndarray[tuple[int], np.dtype[np.float64]], channel: Channel) -> Record:
    rows = len(readings)
    return Record(
        name="r",
        channels=(channel,),
        values=readings[:, None],
        times=np.datetime64("2024-01-01T00:00:00", "us") + np.arange(rows) * np.timedelta64(1, "h"),
        stride_s=3600.0,
        labels=np.zeros(rows, np.int8),
    )


LEVEL = Channel(name="x", role=Role.LEVEL)
PUMP = Channel(name="x", role=Role.ACTUATOR, codes=Codes(off=0, on=(1,)))


def test_a_standby_pump_is_not_measured_in_its_own_tiny_spread() -> None:
    readings = np.zeros(8_760)
    readings[100:104] = 1
    assert robust_scaler(record(readings, PUMP), ("x",)).spread[0] == 0.1
    flow = readings * 24.0
    assert robust_scaler(record(flow, LEVEL), ("x",)).spread[0] == pytest.approx(2.4)


def test_a_reading_that_hardly_moves_is_measured_by_its_size() -> None:
    readings = 2.98 + 0.006 * np.sin(np.arange(500.0))
    assert robust_scaler(record(readings, LEVEL), ("x",)).spread[0] == pytest.approx(0.02986)
    spanned = replace(LEVEL, span=Span(low=0.0, high=10.0))
    assert robust_scaler(record(readings, spanned), ("x",)).spread[0] == pytest.approx(0.1)


def test_a_few_wild_readings_do_not_widen_the_scale() -> None:
    readings = np.sin(np.arange(2_000.0))
    usual = robust_scaler(record(readings, LEVEL), ("x",)).spread[0]
    readings[:3] = 4.0
    assert robust_scaler(record(readings, LEVEL), ("x",)).spread[0] < 1.1 * usual


def test_a_record_with_more_digits_scores_the_same() -> None:
    readings = 3 + np.sin(np.arange(300.0) / 7) + 1e-6
    scaler = robust_scaler(record(readings, LEVEL), ("x",))
    coarse = record(np.round(readings, 2), LEVEL)
    assert scaler.resolution[0] == 0.01
    assert scaler.scale(coarse) == pytest.approx(scaler.scale(record(readings, LEVEL)), abs=1e-9)


def test_a_meter_that_never_moved_shows_any_flow() -> None:
    scaler = robust_scaler(record(np.zeros(50), LEVEL), ("x",))
    assert scaler.scale(record(np.full(50, 5.0), LEVEL)).min() > 100


def test_missing_readings_are_left_out_and_a_channel_of_them_is_refused() -> None:
    readings = np.sin(np.arange(300.0))
    readings[5] = np.nan
    assert np.isfinite(robust_scaler(record(readings, LEVEL), ("x",)).spread[0])
    with pytest.raises(RecordError, match="no reading of 'x'"):
        robust_scaler(record(np.full(9, np.nan), LEVEL), ("x",))
