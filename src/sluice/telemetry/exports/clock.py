"""Time columns: texts of many forms, numbers since 1970, Excel's days, offsets and local time.

Times with an offset, and local times of a declared zone, become UTC. Times without either stay as
they are written. A form that fits the whole column in two ways is refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sluice.arrays import Bools, Ints, Times
from sluice.errors import Choice, RecordError, UnclearRecordError
from sluice.telemetry.exports.words import MONTHS, plain_word
from sluice.telemetry.plantfile import DateOrder, Epoch, Fold, PlantFile

__all__ = ["Clock", "read_clock"]

DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000
SINCE_1970 = {Epoch.S: 1_000_000, Epoch.MS: 1_000, Epoch.US: 1}
EARLIEST_S, LATEST_S = 631_152_000, 4_102_444_800  # 1990 and 2100
ELAPSED_S = 1e8
"""Smaller numbers of seconds are time since the start of the record, not since 1970."""
EXCEL_1970 = 25_569
EXCEL_FIRST, EXCEL_LAST = 25_569, 73_051  # 1970 and 2100
FIRST_YEAR, LAST_YEAR = 1_900, 2_200
PIVOT_YEAR = 70
"""Two-digit years below are in 2000, others in 1900."""

FAST_LAYOUTS = (
    "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.fZ",
    "%Y-%m-%d %H:%M:%S%.fZ", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y/%m/%d %H:%M:%S%.f",
    "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M",
)  # fmt: skip
"""Layouts that can be read in one way only; they are tried first, because they are quick."""

TIME_PART = (
    r"日?(?:[T ,]\s*(\d{1,2})(?:[:h](\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?"
    r"\s*([AaPp]\.?\s?[Mm]\.?|上午|下午)?\s*"
    r"(Z|z|[+-]\d{2}(?::?\d{2})?|\[?[A-Za-z]+(?:/[A-Za-z_\-+0-9]+)*\]?)?)?$"
)
WEEKDAY = r"^(?:[^\W\d_]{2,10}[.,]?\s+)?"
DATE_PARTS = {
    "year first": r"^(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})",
    "dotted": WEEKDAY + r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4}|\d{2})",
    "numbers": WEEKDAY + r"(\d{1,2})[-/](\d{1,2})[-/](\d{4}|\d{2})",
    "named month": WEEKDAY + r"(\d{1,2})[-/. ]{1,2}([^\W\d_]{3,10})\.?[-/., ]{1,2}(\d{4}|\d{2})",
    "month first": WEEKDAY + r"([^\W\d_]{3,10})\.? (\d{1,2}),? (\d{4})",
    "compact": r"^(\d{4})(\d{2})(\d{2})",
}
COMPACT_TIME = r"[T ]?(?:(\d{2})(\d{2})(\d{2})?)?$"
ZONES_BY_LETTERS = {
    "z": 0, "utc": 0, "gmt": 0, "cet": 1, "cest": 2, "mez": 1, "mesz": 2, "wet": 0, "west": 1,
    "eet": 2, "eest": 3, "hnec": 1, "heec": 2,
}  # fmt: skip
"""Hours ahead of UTC. Letters with several meanings, such as EST or CST, are not here."""
OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The times of all rows, and how they were read."""

    times: Times
    utc: bool  # converted to UTC
    settings: tuple[Choice, ...] = ()  # what was decided, as a plant file declares it
    notes: tuple[str, ...] = ()


def read_clock(
    column: pl.Series, *, name: str, plant: PlantFile, groups: pl.Series | None = None
) -> Clock:
    """Read a time column; `groups` has the tag of every row of a long table."""
    if column.dtype.is_temporal():
        return _temporal(column, name=name, plant=plant, groups=groups)
    if column.dtype == pl.String:
        texts = column.str.strip_chars()
        _refuse_empty(texts, name)
        if plant.time_format:
            return _declared_layout(texts, name=name, plant=plant, groups=groups)
        numbers = _as_numbers(texts)
        if numbers is None:
            return _from_texts(texts, name=name, plant=plant, groups=groups)
        column, written = numbers, texts
    else:
        written = column
    return _from_numbers(column, written, name=name, plant=plant)


def _refuse_empty(texts: pl.Series, name: str) -> None:
    empty = (texts.is_null() | (texts == "")).fill_null(value=True)
    if empty.any():
        raise RecordError(
            f"{name}: row {int(empty.arg_max() or 0)} has no time stamp ({int(empty.sum())} such "
            "rows); every row needs one: correct the export"
        )


def _refuse_row(texts: pl.Series, row: int, name: str) -> RecordError:
    if row == 0:
        return RecordError(
            f"{name}: cannot read the time stamp {texts[0]!r}; set [record] time_format in the "
            'plant file, such as "%d.%m.%Y %H:%M:%S"'
        )
    return RecordError(
        f"{name}: row {row} has the time stamp {texts[row]!r}, the first row {texts[0]!r}; "
        "every row needs the same format"
    )


# -- columns that are times already -----------------------------------------------------------


def _temporal(column: pl.Series, *, name: str, plant: PlantFile, groups: pl.Series | None) -> Clock:
    kind = column.dtype
    if isinstance(kind, pl.Time | pl.Duration):
        raise RecordError(
            f"{name}: column {column.name!r} holds times of day without a date; name the column "
            "of dates in the plant file, [record] time = ..., and this one as time_of_day"
        )
    if column.null_count():
        row = int(column.is_null().arg_max() or 0)
        raise RecordError(
            f"{name}: row {row} has no time stamp ({column.null_count()} such rows); every row "
            "needs one: correct the export"
        )
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        utc = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        note = f"times of zone {kind.time_zone} converted to UTC"
        return Clock(times=_us(utc), utc=True, notes=(note,))
    return _zoned(_us(column), name=name, plant=plant, groups=groups)


def _us(column: pl.Series) -> Times:
    return cast("Times", column.cast(pl.Datetime("us")).to_numpy())


# -- numbers ----------------------------------------------------------------------------------


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


def _from_numbers(column: pl.Series, written: pl.Series, *, name: str, plant: PlantFile) -> Clock:
    floats = column.cast(pl.Float64)
    unreadable = floats.is_null() | floats.is_nan() | floats.is_infinite()
    if unreadable.any():
        row = int(unreadable.arg_max() or 0)
        raise RecordError(
            f"{name}: row {row} has the time stamp {written[row]!r}; expected seconds since 1970"
        )
    if plant.epoch:
        unit = Epoch(plant.epoch)
        settings: tuple[Choice, ...] = ()
    else:
        compact = _compact(column, name=name)
        if compact is not None:
            return _zoned(compact, name=name, plant=plant, groups=None)
        unit = _epoch_unit(floats, column.name, written, name=name)
        settings = () if unit is Epoch.S else (_epoch_choice(unit),)
    if unit is Epoch.EXCEL:
        # Excel's days have 15 digits, so a time is exact to some microseconds: round to 1 ms.
        ms = np.rint((floats.to_numpy() - EXCEL_1970) * 86_400_000.0)
        _demand_years(ms * 1e3, written, name)
        times = (ms.astype(np.int64) * 1_000).astype("datetime64[us]")
        zoned = _zoned(times, name=name, plant=plant, groups=None)
        return Clock(
            times=zoned.times,
            utc=zoned.utc,
            settings=(*settings, *zoned.settings),
            notes=("times are Excel's days since 1900", *zoned.notes),
        )
    scale = 1e-3 if unit is Epoch.NS else float(SINCE_1970[unit])
    _demand_years(floats.to_numpy() * scale, written, name)
    if not column.dtype.is_integer():
        us = np.rint(floats.to_numpy() * scale).astype(np.int64)
    elif unit is Epoch.NS:
        us = column.to_numpy().astype(np.int64) // 1_000
    else:
        us = column.to_numpy().astype(np.int64) * SINCE_1970[unit]
    notes = () if unit is Epoch.S else (f"times are {unit.value} since 1970 (UTC)",)
    return Clock(times=us.astype("datetime64[us]"), utc=True, settings=settings, notes=notes)


def _demand_years(us: NDArray[np.float64], written: pl.Series, name: str) -> None:
    beyond = np.flatnonzero(np.abs(us) > 1e18)
    if beyond.size:
        row = int(beyond[0])
        raise RecordError(
            f"{name}: row {row} has the time stamp {written[row]!r}; expected seconds since 1970 "
            "or another unit that the plant file names in [record] epoch"
        )


def _epoch_choice(unit: Epoch) -> Choice:
    meanings = {
        Epoch.S: "seconds since 1970",
        Epoch.MS: "milliseconds since 1970",
        Epoch.US: "microseconds since 1970",
        Epoch.NS: "nanoseconds since 1970",
        Epoch.EXCEL: "Excel's days since 1900",
    }
    return Choice(setting="epoch", value=unit.value, meaning=meanings[unit])


def _epoch_unit(floats: pl.Series, column: str, written: pl.Series, *, name: str) -> Epoch:
    """Return the unit by magnitude: of years 1990 to 2100, only one unit fits a number."""
    low, high = cast("float", floats.min()), cast("float", floats.max())
    for unit, per_s in ((Epoch.S, 1.0), (Epoch.MS, 1e3), (Epoch.US, 1e6), (Epoch.NS, 1e9)):
        if EARLIEST_S * per_s <= low and high <= LATEST_S * per_s:
            return unit
    if EXCEL_FIRST <= low and high <= EXCEL_LAST:
        thousandths = floats.to_numpy() * 1e3
        if (np.abs(thousandths - np.rint(thousandths)) > 1e-4).any():
            return Epoch.EXCEL  # seconds are not measured to a microsecond and less
        choices = (Epoch.EXCEL, Epoch.S)
    elif abs(low) < ELAPSED_S and abs(high) < ELAPSED_S:
        return Epoch.S
    else:
        choices = (Epoch.S, Epoch.MS, Epoch.US, Epoch.NS)
    cure = " or ".join(f'epoch = "{unit.value}"' for unit in choices)
    raise UnclearRecordError(
        f"the times in column {column!r} are numbers such as {written[0]}, whose unit is unclear",
        file=name,
        cure=f"[record] {cure}",
        choices=tuple(map(_epoch_choice, choices)),
    )


def _compact(column: pl.Series, *, name: str) -> Times | None:
    """Return numbers such as 20240301100500 as times; None if they are others."""
    if not column.dtype.is_integer():
        return None
    low, high = cast("int", column.min()), cast("int", column.max())
    for digits in (14, 12, 10, 8):
        if 1990 * 10 ** (digits - 4) <= low and high < 2100 * 10 ** (digits - 4):
            break
    else:
        return None
    texts = column.cast(pl.String)
    year, month, day = (
        texts.str.slice(at, size).cast(pl.Int32) for at, size in ((0, 4), (4, 2), (6, 2))
    )
    clock = [
        (
            texts.str.slice(at, 2).cast(pl.Int32)
            if digits > at
            else pl.zeros(len(texts), pl.Int32, eager=True)
        )
        for at in (8, 10, 12)
    ]
    times = _built(year, month, day, *clock)
    if times is None:
        return None
    if digits == 10:  # yyyymmddhh has as many digits as seconds since 1970
        raise UnclearRecordError(
            f"the times in column {column.name!r} are numbers such as {texts[0]}, which can be "
            "seconds since 1970 or year, month, day and hour",
            file=name,
            cure='[record] epoch = "s" or time_format = "%Y%m%d%H"',
            choices=(
                _epoch_choice(Epoch.S),
                Choice(setting="time_format", value="%Y%m%d%H", meaning="year, month, day, hour"),
            ),
        )
    return times


# -- texts ------------------------------------------------------------------------------------


def _declared_layout(
    texts: pl.Series, *, name: str, plant: PlantFile, groups: pl.Series | None
) -> Clock:
    layout = plant.time_format
    if re.search(r"%[HIk]", layout) and "%M" not in layout:  # the parser wants minutes
        texts, layout = texts + ":00", layout + ":%M"
    try:
        parsed = texts.str.to_datetime(layout, time_unit="us", strict=False)
    except pl.exceptions.PolarsError as error:
        raise RecordError(
            f"{name}: the plant file's time_format {plant.time_format!r} cannot be used "
            f"({str(error).splitlines()[0]}); write it as in '%d.%m.%Y %H:%M:%S'"
        ) from None
    if parsed.null_count():
        row = int(parsed.is_null().arg_max() or 0)
        raise RecordError(
            f"{name}: row {row} has the time stamp {texts[row]!r}, which does not fit the plant "
            f"file's time_format {plant.time_format!r}; correct one of them"
        )
    return _temporal(parsed, name=name, plant=plant, groups=groups)


def _from_texts(
    texts: pl.Series, *, name: str, plant: PlantFile, groups: pl.Series | None
) -> Clock:
    first = texts.head(1)
    for layout in FAST_LAYOUTS:
        if first.str.to_datetime(layout, strict=False).null_count():
            continue
        times = texts.str.to_datetime(layout, time_unit="us", strict=False)
        if times.null_count() or cast("int", times.dt.year().min()) < FIRST_YEAR:
            break
        if layout.endswith("Z"):
            return Clock(times=_us(times), utc=True)
        return _zoned(_us(times), name=name, plant=plant, groups=groups)
    return _from_parts(texts, name=name, plant=plant, groups=groups)


def _from_parts(
    texts: pl.Series, *, name: str, plant: PlantFile, groups: pl.Series | None
) -> Clock:
    """Take texts apart by a pattern that the first row fits; all rows must fit it."""
    for family, date in DATE_PARTS.items():
        pattern = date + (COMPACT_TIME if family == "compact" else TIME_PART)
        if not texts.head(1).str.contains(pattern).all():
            continue
        fits = texts.str.contains(pattern)
        if not fits.all():
            raise _refuse_row(texts, int((~fits).arg_max() or 0), name)
        parts = texts.str.extract_groups(pattern).struct.unnest()
        columns = [parts.to_series(at) for at in range(parts.width)]
        columns += [pl.Series([None], dtype=pl.String).new_from_index(0, len(texts))] * (
            9 - len(columns)
        )
        return _assembled(family, columns, texts, name=name, plant=plant, groups=groups)
    raise _refuse_row(texts, 0, name)


def _assembled(
    family: str,
    parts: Sequence[pl.Series],
    texts: pl.Series,
    *,
    name: str,
    plant: PlantFile,
    groups: pl.Series | None,
) -> Clock:
    clock = _time_of_day(parts[3:8], texts, name)
    dates = _dates(family, parts[:3], plant)
    readings: dict[DateOrder, Times] = {}
    for order, (year, month, day) in dates.items():
        times = _built(year, month, day, *clock)
        if times is not None:
            readings[order] = times
    if not readings:
        order, (year, month, day) = next(iter(dates.items()))
        raise _refuse_row(texts, _impossible_row(year, month, day, *clock), name)
    order = _decided(readings, texts, name=name)
    settings: tuple[Choice, ...] = ()
    if len(dates) > 1:
        settings = (_order_choice(order),)
    zoned = _with_offsets(readings[order], parts[8], texts, name=name, plant=plant, groups=groups)
    return Clock(
        times=zoned.times,
        utc=zoned.utc,
        settings=(*settings, *zoned.settings),
        notes=zoned.notes,
    )


def _time_of_day(
    parts: Sequence[pl.Series], texts: pl.Series, name: str
) -> tuple[pl.Series, pl.Series, pl.Series, pl.Series]:
    """Return hours, minutes, seconds and microseconds; a date alone is midnight."""
    hour, minute, second = (part.cast(pl.Int32).fill_null(0) for part in parts[:3])
    fraction = parts[3].str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int32).fill_null(0)
    half = parts[4]
    if half.null_count() == len(half):
        return hour, minute, second, fraction
    without = half.is_null() & parts[0].is_not_null()
    wrong = without | (half.is_not_null() & ((hour < 1) | (hour > 12)))
    if wrong.any():
        raise _refuse_row(texts, int(wrong.arg_max() or 0), name)
    evening = half.str.to_lowercase().str.contains(r"^p|下午").fill_null(value=False)
    return (hour % 12 + 12 * evening.cast(pl.Int32)), minute, second, fraction


def _dates(
    family: str, parts: Sequence[pl.Series], plant: PlantFile
) -> dict[DateOrder, tuple[pl.Series, pl.Series, pl.Series]]:
    """Return year, month and day in every order that the form allows."""
    first, second, third = parts
    match family:
        case "year first" | "compact":
            return {DateOrder.YMD: _whole(first, second, third)}
        case "dotted":
            return {DateOrder.DMY: _whole(_full_year(third), second, first)}
        case "named month":
            return {DateOrder.DMY: _whole(_full_year(third), _month(second), first)}
        case "month first":
            return {DateOrder.MDY: _whole(third, _month(first), second)}
    orders = {
        DateOrder.DMY: _whole(_full_year(third), second, first),
        DateOrder.MDY: _whole(_full_year(third), first, second),
    }
    if (third.str.len_chars() == 2).all():
        orders[DateOrder.YMD] = _whole(_full_year(first), second, third)
    if plant.date_order:
        declared = DateOrder(plant.date_order)
        return {declared: orders[declared]} if declared in orders else orders
    return orders


def _whole(*parts: pl.Series) -> tuple[pl.Series, pl.Series, pl.Series]:
    year, month, day = (part.cast(pl.Int32, strict=False).fill_null(0) for part in parts)
    return year, month, day


def _full_year(part: pl.Series) -> pl.Series:
    year = part.cast(pl.Int32)
    short = part.str.len_chars() <= 2
    century = (year < PIVOT_YEAR).cast(pl.Int32) * 100 + 1900
    return (year + century).zip_with(short, year)


def _month(part: pl.Series) -> pl.Series:
    words = {word: MONTHS.get(plain_word(word), 0) for word in part.unique().to_list()}
    return part.replace_strict(list(words), list(words.values()), return_dtype=pl.Int32)


def _wrong(
    year: pl.Series, month: pl.Series, day: pl.Series, hour: pl.Series, minute: pl.Series,
    second: pl.Series, fraction: pl.Series | None = None,
) -> Bools:  # fmt: skip
    """Return the rows whose parts are no time."""
    months = (year.to_numpy().astype(np.int64) - 1970) * 12 + month.to_numpy() - 1
    starts = months.astype("datetime64[M]").astype("datetime64[D]")
    lengths = ((months + 1).astype("datetime64[M]").astype("datetime64[D]") - starts).astype(int)
    years, days, hours = year.to_numpy(), day.to_numpy(), hour.to_numpy()
    midnight = (hours == 24) & (minute.to_numpy() == 0) & (second.to_numpy() == 0)
    wrong: Bools = (
        (years < FIRST_YEAR) | (years > LAST_YEAR)
        | (month.to_numpy() < 1) | (month.to_numpy() > 12)
        | (days < 1) | (days > lengths)
        | ((hours > 23) & ~midnight) | (minute.to_numpy() > 59) | (second.to_numpy() > 59)
    )  # fmt: skip
    return wrong


def _built(
    year: pl.Series, month: pl.Series, day: pl.Series, hour: pl.Series, minute: pl.Series,
    second: pl.Series, fraction: pl.Series | None = None,
) -> Times | None:  # fmt: skip
    """Return times, or None if the parts of one row are no time."""
    if _wrong(year, month, day, hour, minute, second).any():
        return None
    months = (year.to_numpy().astype(np.int64) - 1970) * 12 + month.to_numpy() - 1
    days = (
        months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + day.to_numpy() - 1
    )
    seconds = (hour.to_numpy().astype(np.int64) * 60 + minute.to_numpy()) * 60 + second.to_numpy()
    us = days * DAY_US + seconds * 1_000_000
    if fraction is not None:
        us = us + fraction.to_numpy().astype(np.int64)
    return us.astype("datetime64[us]")


def _impossible_row(*parts: pl.Series) -> int:
    return int(_wrong(*parts[:6]).argmax())


# -- the order of day and month ---------------------------------------------------------------


def _order_choice(order: DateOrder) -> Choice:
    meanings = {
        DateOrder.DMY: "day, month, year",
        DateOrder.MDY: "month, day, year",
        DateOrder.YMD: "year, month, day",
    }
    return Choice(setting="date_order", value=order.value, meaning=meanings[order])


def _decided(readings: dict[DateOrder, Times], texts: pl.Series, *, name: str) -> DateOrder:
    """Return the only order that fits; if several do, the one whose days follow each other."""
    if len(readings) == 1:
        return next(iter(readings))
    different = {times.tobytes(): order for order, times in reversed(readings.items())}
    if len(different) == 1:
        return next(iter(readings))
    continuous = [order for order, times in readings.items() if _follows(times)]
    if len(continuous) == 1:
        return continuous[0]
    cure = " or ".join(f'date_order = "{order.value}"' for order in readings)
    shown = " or ".join(f"{readings[order][0].astype('datetime64[D]')}" for order in readings)
    raise UnclearRecordError(
        f"the date {texts[0]!r} can be {shown}, and no other row decides",
        file=name,
        cure=f"[record] {cure}",
        choices=tuple(_order_choice(order) for order in readings),
    )


def _follows(times: Times) -> bool:
    """Return whether days follow each other: rows step over midnight as they do elsewhere.

    With day and month swapped, the step over midnight is a month.
    """
    us = times.astype(np.int64)
    steps: Ints = np.diff(us)
    steps = steps[steps != 0]
    if not steps.size:
        return False
    stride = int(np.median(np.abs(steps)))
    if stride >= DAY_US:
        return False
    over = us[1:] // DAY_US != us[:-1] // DAY_US
    crossing = np.diff(us)[over]
    return bool(crossing.size) and bool((np.abs(crossing) <= DAY_US).all())


# -- offsets and zones ------------------------------------------------------------------------


def _with_offsets(
    times: Times,
    written: pl.Series,
    texts: pl.Series,
    *,
    name: str,
    plant: PlantFile,
    groups: pl.Series | None,
) -> Clock:
    """Apply the offset or the zone behind each time."""
    if written.null_count() == len(written):
        return _zoned(times, name=name, plant=plant, groups=groups)
    if written.null_count():
        raise _refuse_row(texts, int(written.is_null().arg_max() or 0), name)
    names = written.unique(maintain_order=True).to_list()
    minutes: dict[str, int] = {}
    for zone in names:
        offset = OFFSET.fullmatch(zone)
        if offset:
            size = int(offset[2]) * 60 + int(offset[3] or 0)
            minutes[zone] = -size if offset[1] == "-" else size
        elif zone.strip("[]").casefold() in ZONES_BY_LETTERS:
            minutes[zone] = ZONES_BY_LETTERS[zone.strip("[]").casefold()] * 60
    if len(minutes) == len(names):
        ahead = written.replace_strict(list(minutes), list(minutes.values()), return_dtype=pl.Int64)
        utc = times.astype(np.int64) - ahead.to_numpy() * 60_000_000
        return Clock(
            times=utc.astype("datetime64[us]"), utc=True, notes=("times converted to UTC",)
        )
    unknown = next(zone for zone in names if zone not in minutes)
    if len(names) == 1 and "/" in unknown:
        return _local(times, unknown.strip("[]"), name=name, plant=plant, groups=groups)
    if plant.time_zone:
        return _by_abbreviation(times, written, name=name, plant=plant)
    raise UnclearRecordError(
        f"the time zone {unknown!r} in {texts[0]!r} has several meanings",
        file=name,
        cure='[record] time_zone = "America/New_York" (or another zone)',
        choices=(
            Choice(setting="time_zone", value="America/New_York", meaning="the plant's zone"),
        ),
        free=True,
    )


def _by_abbreviation(times: Times, written: pl.Series, *, name: str, plant: PlantFile) -> Clock:
    """Read times such as `01:30 EDT` in the declared zone; the letters decide in a fold."""
    early, late = _candidates(times, plant.time_zone, name)
    zone = plant.time_zone
    letters = written.str.to_uppercase()
    chosen = np.full(len(times), -1, np.int64)
    for candidate in (late, early):
        aware = pl.Series(candidate.astype("datetime64[us]")).dt.replace_time_zone("UTC")
        shown = aware.dt.convert_time_zone(zone).dt.strftime("%Z").str.to_uppercase()
        fits = (shown == letters).to_numpy()
        chosen[fits] = candidate[fits]
    if (chosen == -1).any():
        row = int((chosen == -1).argmax())
        raise RecordError(
            f"{name}: row {row} has the time zone {written[row]!r}, which is not in use in "
            f"{zone} at that time; correct [record] time_zone in the plant file"
        )
    return Clock(
        times=chosen.astype("datetime64[us]"),
        utc=True,
        notes=(f"times of {zone} converted to UTC",),
    )


def _zoned(times: Times, *, name: str, plant: PlantFile, groups: pl.Series | None) -> Clock:
    """Convert local times to UTC if the plant file names their zone."""
    if not plant.time_zone:
        return Clock(times=times, utc=False)
    return _local(times, plant.time_zone, name=name, plant=plant, groups=groups)


def _local(
    times: Times, zone: str, *, name: str, plant: PlantFile, groups: pl.Series | None
) -> Clock:
    notes = (f"times of {zone} converted to UTC",)
    offset = OFFSET.fullmatch(zone)
    if offset:
        size = (int(offset[2]) * 60 + int(offset[3] or 0)) * 60_000_000
        us = times.astype(np.int64) - (-size if offset[1] == "-" else size)
        return Clock(times=us.astype("datetime64[us]"), utc=True, notes=notes)
    early, late = _candidates(times, zone, name)
    twice = early != late
    utc = early.copy()
    if twice.any():
        second = _second_pass(times, twice, zone, name=name, plant=plant, groups=groups)
        utc[second] = late[second]
    return Clock(times=utc.astype("datetime64[us]"), utc=True, notes=notes)


def _candidates(times: Times, zone: str, name: str) -> tuple[Ints, Ints]:
    """Return the earlier and the later UTC time of each local time; they differ in a fold."""
    naive = pl.Series(times.astype("datetime64[us]"))
    try:
        both = [
            naive.dt.replace_time_zone(zone, ambiguous=which, non_existent="null")
            for which in ("earliest", "latest")
        ]
    except pl.exceptions.PolarsError:
        raise RecordError(
            f"{name}: the time zone {zone!r} is unknown; give one such as 'Europe/Berlin', 'UTC' "
            "or '+01:00' in the plant file, [record] time_zone"
        ) from None
    if both[0].null_count():
        row = int(both[0].is_null().arg_max() or 0)
        raise RecordError(
            f"{name}: row {row} has the local time {times[row]}, which {zone} skips when daylight "
            "saving time begins; the clock does not follow it: set [record] time_zone to a fixed "
            "offset such as '+01:00' in the plant file"
        )
    early, late = (
        each.dt.convert_time_zone("UTC").dt.replace_time_zone(None).to_numpy().astype(np.int64)
        for each in both
    )
    return early, late


def _second_pass(
    times: Times,
    twice: Bools,
    zone: str,
    *,
    name: str,
    plant: PlantFile,
    groups: pl.Series | None,
) -> Bools:
    """Return the rows of the hour that comes twice which belong to its second pass.

    The rows of one tag step back in time exactly once between the passes.
    """
    second = np.zeros(len(times), np.bool_)
    if plant.fold:
        second[twice] = plant.fold == Fold.SECOND
    rows = np.flatnonzero(twice)
    tags = (
        np.zeros(len(rows), np.int64)
        if groups is None
        else groups.gather(pl.Series(rows)).rank("dense").to_numpy().astype(np.int64)
    )
    days = times[rows].astype("datetime64[D]").astype(np.int64)
    order = np.lexsort((rows, days, tags))
    cuts = np.flatnonzero((np.diff(tags[order]) != 0) | (np.diff(days[order]) != 0)) + 1
    for stretch in np.split(order, cuts):
        at = rows[stretch]
        steps = np.diff(times[at].astype(np.int64))
        back = np.flatnonzero(steps <= 0)
        if back.size == 1:
            second[at] = False
            second[at[int(back[0]) + 1 :]] = True
        elif not plant.fold:
            raise UnclearRecordError(
                f"the hour of {times[at[0]]} comes twice in {zone}, and the rows do not show "
                "which of the two is meant",
                file=name,
                cure='[record] fold = "first" or fold = "second"',
                choices=(
                    Choice(
                        setting="fold",
                        value=Fold.FIRST.value,
                        meaning="the first time, in daylight saving time",
                    ),
                    Choice(
                        setting="fold",
                        value=Fold.SECOND.value,
                        meaning="the second time, in standard time",
                    ),
                ),
            )
    return second
