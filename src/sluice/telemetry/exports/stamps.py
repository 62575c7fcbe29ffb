"""Time stamps as texts: dates of many countries, with or without a time, am, pm or a zone.

A form that fits the whole column in two ways is refused.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
import polars as pl

from sluice.arrays import Bools, Ints, Times
from sluice.errors import RecordError, SettingChoice, UnclearRecordError
from sluice.telemetry.exports.words import MONTHS, plain_word
from sluice.telemetry.exports.zones import (
    Clock,
    ClockContext,
    from_temporal,
    unreadable_stamp,
    with_offsets,
)
from sluice.telemetry.plantfile import DateOrder

__all__ = ["StampParts", "read_layout", "read_stamps"]

DAY_US = 86_400_000_000
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
    r"\s*([AaPp]\.?\s?[Mm]\.?)?\s*"
    r"(Z|z|[+-]\d{2}(?::?\d{2})?(?:\[[^\[\]]*\])?|\[?[A-Za-z]+(?:/[A-Za-z_\-+0-9]+)*\]?)?)?$"
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


def read_layout(texts: pl.Series, context: ClockContext) -> Clock:
    """Read time stamps by the layout that the plant file declares."""
    declared = layout = context.plant.time_format
    padded = texts
    if re.search(r"%[HIk]", layout) and "%M" not in layout:  # the parser wants minutes
        padded, layout = texts + ":00", layout + ":%M"
    try:
        parsed = padded.str.to_datetime(layout, time_unit="us", strict=False)
    except pl.exceptions.PolarsError as error:
        raise RecordError(
            f"{context.name}: the plant file's time_format {declared!r} cannot be used "
            f"({str(error).splitlines()[0]}); write it as in '%d.%m.%Y %H:%M:%S'"
        ) from None
    if parsed.null_count():
        row = int(parsed.is_null().arg_max() or 0)
        raise RecordError(
            f"{context.name}: row {row} has the time stamp {texts[row]!r}, which does not fit the "
            f"plant file's time_format {declared!r}; correct one of them"
        )
    return from_temporal(parsed, context)


def read_stamps(texts: pl.Series, context: ClockContext) -> Clock:
    """Read time stamps whose form is found from the texts themselves."""
    first = texts.head(1)
    for layout in FAST_LAYOUTS:
        if first.str.to_datetime(layout, strict=False).null_count():
            continue
        times = texts.str.to_datetime(layout, time_unit="us", strict=False)
        if times.null_count() or cast("int", times.dt.year().min()) < FIRST_YEAR:
            break
        if layout.endswith("Z"):
            return Clock(times=times.to_numpy(), utc=True)
        return from_temporal(times, context)
    return _from_parts(texts, context)


def _from_parts(texts: pl.Series, context: ClockContext) -> Clock:
    """Take texts apart by a pattern that the first row fits; all rows must fit it."""
    for family, date in DATE_PARTS.items():
        pattern = date + (COMPACT_TIME if family == "compact" else TIME_PART)
        if not texts.head(1).str.contains(pattern).all():
            continue
        fits = texts.str.contains(pattern)
        if not fits.all():
            raise unreadable_stamp(texts, int((~fits).arg_max() or 0), context.name)
        groups = texts.str.extract_groups(pattern).struct.unnest().get_columns()
        nothing = pl.repeat(None, len(texts), dtype=pl.String, eager=True)
        parts = [*groups, *[nothing] * (9 - len(groups))]
        moments = _moments(family, parts, texts, context)
        order = _decided(family, moments, texts, context)
        clock = with_offsets(moments[order].times, parts[8], texts, context)
        if len(moments) == 1 and family != "numbers":
            return clock
        return replace(clock, settings=(_order_choice(order), *clock.settings))
    raise unreadable_stamp(texts, 0, context.name)


@dataclass(frozen=True, kw_only=True)
class StampParts:
    """The parts of times as whole numbers, one of each per row."""

    year: pl.Series
    month: pl.Series
    day: pl.Series
    hour: pl.Series
    minute: pl.Series
    second: pl.Series
    microsecond: pl.Series

    @classmethod
    def of(cls, *parts: pl.Series) -> "StampParts":
        """Return the times of seven parts, from years to microseconds."""
        year, month, day, hour, minute, second, microsecond = parts
        return cls(
            year=year,
            month=month,
            day=day,
            hour=hour,
            minute=minute,
            second=second,
            microsecond=microsecond,
        )

    @cached_property
    def _months(self) -> Ints:
        years = self.year.to_numpy().astype(np.int64)
        months: Ints = (years - 1970) * 12 + self.month.to_numpy() - 1
        return months

    @cached_property
    def wrong(self) -> Bools:
        """The rows whose parts are no time; the hour 24 is the next midnight."""
        starts = self._months.astype("datetime64[M]").astype("datetime64[D]")
        ends = (self._months + 1).astype("datetime64[M]").astype("datetime64[D]")
        lengths = (ends - starts).astype(np.int64)
        year, month, day = self.year.to_numpy(), self.month.to_numpy(), self.day.to_numpy()
        hour, minute, second = (part.to_numpy() for part in (self.hour, self.minute, self.second))
        midnight = (hour == 24) & (minute == 0) & (second == 0)
        wrong: Bools = (
            (year < FIRST_YEAR)
            | (year > LAST_YEAR)
            | (month < 1)
            | (month > 12)
            | (day < 1)
            | (day > lengths)
            | ((hour > 23) & ~midnight)
            | (minute > 59)
            | (second > 59)
        )
        return wrong

    @cached_property
    def times(self) -> Times:
        """The times; only if no row is wrong."""
        starts = self._months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        days = starts + self.day.to_numpy() - 1
        minutes = self.hour.to_numpy().astype(np.int64) * 60 + self.minute.to_numpy()
        seconds = (days * 1_440 + minutes) * 60 + self.second.to_numpy()
        us: Ints = seconds * 1_000_000 + self.microsecond.to_numpy()
        return us.astype("datetime64[us]")


def _moments(
    family: str, parts: Sequence[pl.Series], texts: pl.Series, context: ClockContext
) -> dict[DateOrder, StampParts]:
    """Return the times in every order of day, month and year that gives one for each row."""
    clock = _time_of_day(parts[3:8], texts, context.name)
    found = {
        order: StampParts.of(
            *(part.cast(pl.Int32, strict=False).fill_null(0) for part in date), *clock
        )
        for order, date in _dates(family, parts[:3], context.plant.date_order).items()
    }
    possible = {order: each for order, each in found.items() if not each.wrong.any()}
    if not possible:
        rows = [int(each.wrong.argmax()) for each in found.values()]
        raise unreadable_stamp(texts, max(rows), context.name)
    return possible


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
        raise unreadable_stamp(texts, int(wrong.arg_max() or 0), name)
    evening = half.str.to_lowercase().str.starts_with("p").fill_null(value=False)
    return hour % 12 + 12 * evening.cast(pl.Int32), minute, second, fraction


def _dates(
    family: str, parts: Sequence[pl.Series], declared: str
) -> dict[DateOrder, tuple[pl.Series, pl.Series, pl.Series]]:
    """Return year, month and day in every order that the form allows; the usual one is first."""
    first, second, third = parts
    if family in ("year first", "compact"):
        return {DateOrder.YMD: (first, second, third)}
    if family == "month first":
        return {DateOrder.MDY: (third, _month(first), second)}
    middle = _month(second) if family == "named month" else second
    orders = {DateOrder.DMY: (_full_year(third), middle, first)}
    if family == "numbers":
        orders[DateOrder.MDY] = (_full_year(third), first, second)
    if (third.str.len_chars() == 2).all():
        orders[DateOrder.YMD] = (_full_year(first), middle, third)
    if declared in orders:
        return {DateOrder(declared): orders[DateOrder(declared)]}
    return orders


def _full_year(part: pl.Series) -> pl.Series:
    year = part.cast(pl.Int32)
    short = part.str.len_chars() <= 2
    century = (year < PIVOT_YEAR).cast(pl.Int32) * 100 + 1900
    return (year + century).zip_with(short, year)


def _month(part: pl.Series) -> pl.Series:
    words = {word: MONTHS.get(plain_word(word), 0) for word in part.unique().to_list()}
    return part.replace_strict(list(words), list(words.values()), return_dtype=pl.Int32)


# -- the order of day and month ---------------------------------------------------------------


def _order_choice(order: DateOrder) -> SettingChoice:
    meanings = {
        DateOrder.DMY: "day, month, year",
        DateOrder.MDY: "month, day, year",
        DateOrder.YMD: "year, month, day",
    }
    return SettingChoice(setting="date_order", value=order.value, meaning=meanings[order])


def _decided(
    family: str, moments: dict[DateOrder, StampParts], texts: pl.Series, context: ClockContext
) -> DateOrder:
    """Return the only order that fits; if several do, the one whose days follow each other."""
    orders = list(moments)
    if len({each.times.tobytes() for each in moments.values()}) == 1:
        return orders[0]
    continuous = [order for order, each in moments.items() if _follows(each.times)]
    if len(continuous) == 1:
        return continuous[0]
    if family != "numbers":
        return orders[0]  # 06-Jan-14 and 06.01.14 begin with the day wherever they are written
    cure = " or ".join(f'date_order = "{order.value}"' for order in orders)
    shown = " or ".join(str(each.times[0].astype("datetime64[D]")) for each in moments.values())
    raise UnclearRecordError(
        f"the date {texts[0]!r} can be {shown}, and no other row decides",
        file=context.name,
        cure=f"[record] {cure}",
        choices=tuple(map(_order_choice, orders)),
    )


def _follows(times: Times) -> bool:
    """Return whether days follow each other: rows step over midnight to the next day.

    With day and month swapped, that step is a month.
    """
    us = times.astype(np.int64)
    steps: Ints = np.diff(us)
    moving = np.abs(steps[steps != 0])
    if not moving.size or np.median(moving) >= DAY_US:
        return False
    over = steps[us[1:] // DAY_US != us[:-1] // DAY_US]
    return bool(over.size) and bool((np.abs(over) <= DAY_US).all())
