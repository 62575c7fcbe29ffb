"""Time columns: texts, numbers since 1970, Excel's days, or times of a container.

Times with an offset, and local times of a declared zone, become UTC. Times without either stay as
they are written.
"""

from dataclasses import replace
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sluice.arrays import Times
from sluice.errors import RecordError, SettingChoice, UnclearRecordError
from sluice.telemetry.exports.stamps import StampParts, read_layout, read_stamps
from sluice.telemetry.exports.zones import Clock, ClockContext, from_temporal, zoned
from sluice.telemetry.plantfile import Epoch

__all__ = ["read_clock"]

SINCE_1970 = {Epoch.S: 1_000_000, Epoch.MS: 1_000, Epoch.US: 1}
EARLIEST_S, LATEST_S = 631_152_000, 4_102_444_800  # 1990 and 2100
ELAPSED_S = 1e8
"""Smaller numbers of seconds are time since the start of the record, not since 1970."""
EXCEL_1970 = 25_569
EXCEL_FIRST, EXCEL_LAST = 25_569, 73_051  # 1970 and 2100
FURTHEST_US = 1e18
UNITS = {
    Epoch.S: "seconds since 1970",
    Epoch.MS: "milliseconds since 1970",
    Epoch.US: "microseconds since 1970",
    Epoch.NS: "nanoseconds since 1970",
    Epoch.EXCEL: "Excel's days since 1900",
}


def read_clock(column: pl.Series, context: ClockContext) -> Clock:
    """Read a time column."""
    if column.dtype.is_temporal():
        return from_temporal(column, context)
    if column.dtype != pl.String:
        return _from_numbers(column, column, context)
    texts = column.str.strip_chars()
    empty = (texts.is_null() | (texts == "")).fill_null(value=True)
    if empty.any():
        raise RecordError(
            f"{context.name}: row {int(empty.arg_max() or 0)} has no time stamp "
            f"({int(empty.sum())} such rows); every row needs one: correct the export"
        )
    if context.plant.time_format:
        return read_layout(texts, context)
    numbers = _as_numbers(texts)
    if numbers is None:
        return read_stamps(texts, context)
    return _from_numbers(numbers, texts, context)


def _as_numbers(texts: pl.Series) -> pl.Series | None:
    """Return texts as whole numbers, else as floats; None if one of them is no number.

    A whole number of nanoseconds has more digits than a float.
    """
    if texts.head(1).str.contains(r"^[+-]?\d+([.,]\d*)?([eE][+-]?\d+)?$").all():
        whole = texts.cast(pl.Int64, strict=False)
        if not whole.null_count():
            return whole
        floats = texts.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
        if not floats.null_count():
            return floats
    return None


def _from_numbers(column: pl.Series, written: pl.Series, context: ClockContext) -> Clock:
    floats = column.cast(pl.Float64)
    unreadable = floats.is_null() | floats.is_nan() | floats.is_infinite()
    if unreadable.any():
        raise _not_a_time(written, int(unreadable.arg_max() or 0), context)
    if context.plant.epoch:
        unit = Epoch(context.plant.epoch)
    else:
        compact = _compact(column, context)
        if compact is not None:
            return zoned(compact, context)
        unit = _epoch_unit(floats, written, context)
    settings = () if unit is Epoch.S else (_epoch_choice(unit),)
    notes = () if unit is Epoch.S else (f"times are {UNITS[unit]}",)
    if unit is Epoch.EXCEL:
        # Excel's days have 15 digits, so a time is exact to some microseconds: round to 1 ms.
        ms = np.rint((floats.to_numpy() - EXCEL_1970) * 86_400_000.0)
        _demand_near(ms * 1e3, written, context)
        local = zoned((ms.astype(np.int64) * 1_000).astype("datetime64[us]"), context)
        return replace(local, settings=(*settings, *local.settings), notes=(*notes, *local.notes))
    scale = 1e-3 if unit is Epoch.NS else float(SINCE_1970[unit])
    _demand_near(floats.to_numpy() * scale, written, context)
    if not column.dtype.is_integer():
        us = np.rint(floats.to_numpy() * scale).astype(np.int64)
    elif unit is Epoch.NS:
        us = column.to_numpy().astype(np.int64) // 1_000
    else:
        us = column.to_numpy().astype(np.int64) * SINCE_1970[unit]
    return Clock(times=us.astype("datetime64[us]"), utc=True, settings=settings, notes=notes)


def _demand_near(us: NDArray[np.float64], written: pl.Series, context: ClockContext) -> None:
    beyond = np.flatnonzero(np.abs(us) > FURTHEST_US)
    if beyond.size:
        raise _not_a_time(written, int(beyond[0]), context)


def _not_a_time(written: pl.Series, row: int, context: ClockContext) -> RecordError:
    return RecordError(
        f"{context.name}: row {row} has the time stamp {written[row]!r}; expected seconds since "
        "1970, or another unit that the plant file names in [record] epoch"
    )


def _epoch_choice(unit: Epoch) -> SettingChoice:
    return SettingChoice(setting="epoch", value=unit.value, meaning=UNITS[unit])


def _epoch_unit(floats: pl.Series, written: pl.Series, context: ClockContext) -> Epoch:
    """Return the unit by magnitude: of years 1990 to 2100, only one unit fits a number."""
    low, high = cast("float", floats.min()), cast("float", floats.max())
    for unit, per_s in ((Epoch.S, 1.0), (Epoch.MS, 1e3), (Epoch.US, 1e6), (Epoch.NS, 1e9)):
        if low >= EARLIEST_S * per_s and high <= LATEST_S * per_s:
            return unit
    choices: tuple[Epoch, ...] = (Epoch.S, Epoch.MS, Epoch.US, Epoch.NS)
    if low >= EXCEL_FIRST and high <= EXCEL_LAST:
        thousandths = floats.to_numpy() * 1e3
        if (np.abs(thousandths - np.rint(thousandths)) > 1e-4).any():
            return Epoch.EXCEL  # no clock of a plant shows seconds to a part of a microsecond
        choices = (Epoch.EXCEL, Epoch.S)
    elif max(abs(low), abs(high)) < ELAPSED_S:
        return Epoch.S
    cure = " or ".join(f'epoch = "{unit.value}"' for unit in choices)
    raise UnclearRecordError(
        f"the times in column {written.name!r} are numbers such as {written[0]}, whose unit is "
        "unclear",
        file=context.name,
        cure=f"[record] {cure}",
        choices=tuple(map(_epoch_choice, choices)),
    )


def _compact(column: pl.Series, context: ClockContext) -> Times | None:
    """Return numbers such as 20240301100500 as times; None if they are others."""
    if not column.dtype.is_integer():
        return None
    low, high = cast("int", column.min()), cast("int", column.max())
    for digits in (14, 12, 10, 8):
        if low >= 1990 * 10 ** (digits - 4) and high < 2100 * 10 ** (digits - 4):
            break
    else:
        return None
    texts = column.cast(pl.String)
    nothing = pl.zeros(len(texts), pl.Int32, eager=True)
    parts = [
        texts.str.slice(at, size).cast(pl.Int32) if digits > at else nothing
        for at, size in ((0, 4), (4, 2), (6, 2), (8, 2), (10, 2), (12, 2))
    ]
    moments = StampParts.of(*parts, nothing)
    if moments.wrong.any():
        return None
    if digits == 10:  # yyyymmddhh has as many digits as seconds since 1970
        raise UnclearRecordError(
            f"the times in column {column.name!r} are numbers such as {texts[0]}, which can be "
            "seconds since 1970 or year, month, day and hour",
            file=context.name,
            cure='[record] epoch = "s" or time_format = "%Y%m%d%H"',
            choices=(
                _epoch_choice(Epoch.S),
                SettingChoice(
                    setting="time_format", value="%Y%m%d%H", meaning="year, month, day, hour"
                ),
            ),
        )
    return moments.times
