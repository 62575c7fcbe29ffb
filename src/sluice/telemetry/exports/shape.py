"""The shape of a table: wide (a column per tag), long (a row per reading), or pairs of columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from sluice.arrays import Times
from sluice.errors import RecordError, SettingChoice, UnclearRecordError
from sluice.telemetry.exports.clock import read_clock
from sluice.telemetry.exports.dialect import is_time, is_time_of_day
from sluice.telemetry.exports.opening import PAIR_TIME, CellTable
from sluice.telemetry.exports.quality import good_rows, mask_by_quality, masked
from sluice.telemetry.exports.words import (
    DATE_NAMES,
    KEY_NAMES,
    META_NAMES,
    QUALITY_NAMES,
    ROW_NAMES,
    TAG_NAMES,
    TIME_NAMES,
    TIME_OF_DAY_NAMES,
    UNIT_NAMES,
    VALUE_NAMES,
    plain_word,
    spelt_unit,
)
from sluice.telemetry.exports.zones import Clock, ClockContext
from sluice.telemetry.limits import ReadLimits
from sluice.telemetry.plantfile import Declaration, Duplicates, PlantFile, Unsorted
from sluice.telemetry.record import Note

__all__ = ["Shaped", "shaped"]

TIME, TAG, VALUE = "\x1ftime", "\x1ftag", "\x1fvalue"
QUALITY_ORDER = ("opcquality", "qualitydetail", "qualitycode", "dataintegrity", "quality")
"""Of several quality columns, the first of these decides; `Quality` alone has many meanings."""
PROBED_ROWS = 50
EVENTS_SHARE = 0.5
"""If no more cells of a widened table are filled, its tags have times of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """A wide table without its clock: one column per tag, and other columns such as labels."""

    frame: pl.DataFrame
    times: Times
    utc: bool
    events: bool = False
    declared: Mapping[str, Declaration] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    settings: tuple[SettingChoice, ...] = ()

    def renamed(self, names: Mapping[str, str]) -> "Shaped":
        """Return the table with other names of tags."""
        if not names:
            return self
        declared = {names.get(name, name): each for name, each in self.declared.items()}
        return replace(self, frame=self.frame.rename(dict(names)), declared=declared)


@dataclass(frozen=True, slots=True, kw_only=True)
class LongColumns:
    """The columns of a long table."""

    time: str
    tag: str
    value: str
    quality: str | None = None


def shaped(
    opened: CellTable, *, name: str, plant: PlantFile, limits: ReadLimits, labels: tuple[str, ...]
) -> Shaped:
    """Find the clock and the shape of a table; `labels` are columns that are no readings."""
    frame = opened.frame
    if any(column.startswith(PAIR_TIME) for column in frame.columns):
        pairs = LongColumns(time=TIME, tag=TAG, value=VALUE)
        return _long(_unpaired(frame), pairs, name=name, plant=plant, limits=limits)
    frame, time, joined = _one_clock(frame, plant)
    keys, frame = _influx_keys(frame)
    tag, value = _long_columns(frame, plant, keys=keys)
    time = time or _time_column(frame, plant, name, exclude=(tag, value))
    if tag and value and time:
        quality = _long_quality(frame, plant)
        columns = LongColumns(time=time, tag=tag, value=value, quality=quality)
        found = _long(frame, columns, name=name, plant=plant, limits=limits)
        extra = [_setting("tag", tag), _setting("value", value)] if tag != TAG else []
        if quality:
            extra.append(_setting("quality", quality))
        return _with_settings(found, (*joined, *_time_setting(time, joined), *extra))
    return _with_settings(
        _wide(frame, time, name=name, plant=plant, labels=labels),
        (*joined, *_time_setting(time, joined)),
    )


def _setting(name: str, value: str) -> SettingChoice:
    return SettingChoice(setting=name, value=value, meaning="")


def _time_setting(time: str | None, joined: tuple[SettingChoice, ...]) -> tuple[SettingChoice, ...]:
    return () if time is None or joined else (_setting("time", time),)


def _with_settings(found: Shaped, settings: tuple[SettingChoice, ...]) -> Shaped:
    return replace(found, settings=(*settings, *found.settings))


# -- the clock --------------------------------------------------------------------------------


def _all(column: pl.Series, looks_like: object) -> bool:
    """Return whether the first cells of a column of texts all look like something."""
    cells = column.drop_nulls().head(PROBED_ROWS).to_list()
    return bool(cells) and all(looks_like(cell.strip()) for cell in cells)  # type: ignore[operator]


def _one_clock(
    frame: pl.DataFrame, plant: PlantFile
) -> tuple[pl.DataFrame, str | None, tuple[SettingChoice, ...]]:
    """Join a column of dates and a column of times of day into one."""
    if plant.time and plant.time_of_day:
        wanted = (plant.time, plant.time_of_day)
        if any(column not in frame.columns for column in wanted):
            return frame, None, ()
        dates, hours = wanted
    elif plant.time:
        return frame, None, ()
    else:
        by_word = {plain_word(column): column for column in reversed(frame.columns)}
        dates = next(
            (
                by_word[word]
                for word in by_word
                if word in DATE_NAMES and _is_dates(frame[by_word[word]])
            ),
            "",
        )
        hours = next(
            (
                by_word[w]
                for w in by_word
                if w in TIME_OF_DAY_NAMES and _is_hours(frame[by_word[w]])
            ),
            "",
        )
        if not dates or not hours or dates == hours:
            return frame, None, ()
    date, hour = frame[dates], frame[hours]
    if date.dtype.is_temporal():
        date = date.cast(pl.Date).cast(pl.String)
    if hour.dtype.is_temporal():
        hour = hour.cast(pl.Time).cast(pl.String).str.replace(r"\.0+$", "")
    if date.dtype != pl.String or hour.dtype != pl.String:
        return frame, None, ()
    # A spreadsheet writes midnight behind a date that has no time.
    day = date.str.strip_chars().str.replace(r"[T ]+00:00(:00(\.0+)?)?$", "")
    whole = (day + " " + hour.str.strip_chars()).alias(TIME)
    frame = frame.drop(dates, hours).insert_column(0, whole)
    return frame, TIME, (_setting("time", dates), _setting("time_of_day", hours))


def _is_dates(column: pl.Series) -> bool:
    if column.dtype.is_temporal():
        return not isinstance(column.dtype, pl.Time | pl.Duration)
    return column.dtype == pl.String and _all(column, is_time)


def _is_hours(column: pl.Series) -> bool:
    if isinstance(column.dtype, pl.Time):
        return True
    return column.dtype == pl.String and _all(column, is_time_of_day)


def _time_column(
    frame: pl.DataFrame, plant: PlantFile, name: str, exclude: tuple[str | None, ...]
) -> str | None:
    """Return the clock: by the plant file, by its name, else the only column of times."""
    if plant.time:
        return plant.time if plant.time in frame.columns else None
    columns = [column for column in frame.columns if column not in exclude]
    named = [
        column
        for column in columns
        if (plain_word(column) in TIME_NAMES and plain_word(column) not in META_NAMES)
        and not _is_hours(frame[column])
    ]
    readable = [column for column in named if _is_dates(frame[column])]
    named = readable or named
    if not named:
        if plant.stride_s and not plant.resample:
            return None
        named = [
            column
            for column in columns
            if not isinstance(frame[column].dtype, pl.Time | pl.Duration)
            and _is_dates(frame[column])
        ]
    if len(named) > 1:
        raise UnclearRecordError(
            f"{len(named)} columns hold times ({', '.join(map(repr, named[:4]))})",
            file=name,
            cure=f'[record] time = "{named[0]}"',
            choices=tuple(
                SettingChoice(setting="time", value=column, meaning=f"the clock is {column!r}")
                for column in named[:9]
            ),
        )
    return named[0] if named else None


# -- wide -------------------------------------------------------------------------------------


def _wide(
    frame: pl.DataFrame, time: str | None, *, name: str, plant: PlantFile, labels: tuple[str, ...]
) -> Shaped:
    if time is None:
        if plant.time or not plant.stride_s:
            raise _no_clock(frame, plant, name)
        steps = np.arange(len(frame)) * round(plant.stride_s * 1e6)
        times = np.datetime64(0, "us") + steps.astype("timedelta64[us]")
        clock = Clock(times=times, utc=False)
    else:
        clock = read_clock(frame[time], ClockContext(name=name, plant=plant))
        frame = frame.drop(time)
    frame, counters = _without_counters(frame)
    others = [label for label in labels if label in frame.columns]
    readings, notes = mask_by_quality(frame.drop(others), name=name, plant=plant)
    return Shaped(
        frame=readings.with_columns(frame[label] for label in others),
        times=clock.times,
        utc=clock.utc,
        notes=(*(Note(what=each) for each in (*clock.notes, *counters)), *notes),
        settings=clock.settings,
    )


def _no_clock(frame: pl.DataFrame, plant: PlantFile, name: str) -> UnclearRecordError:
    looked = plant.time or "time, timestamp, datetime, date, Zeit, Datum, horodatage, fecha, ..."
    return UnclearRecordError(
        f"the file has no time column; expected one such as {looked}",
        file=name,
        cure="[record] time = ... to its name, or stride_s to the seconds between two rows,",
        choices=tuple(
            SettingChoice(setting="time", value=column, meaning=f"the clock is {column!r}")
            for column in frame.columns[:4]
        ),
        free=True,
    )


def _without_counters(frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Drop columns that number the rows."""
    dropped = []
    for column in frame.columns:
        if plain_word(column) not in ROW_NAMES or len(frame) < 2:
            continue
        numbers = frame[column].cast(pl.Int64, strict=False)
        if not numbers.null_count() and (numbers.diff().drop_nulls() == 1).all():
            dropped.append(column)
    return frame.drop(dropped), tuple(f"row numbers in {column!r} dropped" for column in dropped)


# -- long -------------------------------------------------------------------------------------


def _unpaired(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a long table of pairs of columns; a series can be shorter than the others."""
    parts = []
    for column in frame.columns:
        if column.startswith(PAIR_TIME):
            tag = column.removeprefix(PAIR_TIME)
            pair = frame.select(pl.col(column).alias(TIME), pl.col(tag).alias(VALUE))
            pair = pair.filter(pl.col(TIME).is_not_null())
            parts.append(pair.with_columns(pl.lit(tag).alias(TAG)))
    return pl.concat(parts, how="vertical_relaxed")


def _influx_keys(frame: pl.DataFrame) -> tuple[bool, pl.DataFrame]:
    """Make one tag of the key columns of an InfluxDB export; only those that vary are needed."""
    if not set(KEY_NAMES) <= set(frame.columns):
        return False, frame
    time = [column for column in frame.columns if plain_word(column) in TIME_NAMES]
    others = [
        column
        for column in frame.columns
        if column not in (*KEY_NAMES, *time)
        and plain_word(column) not in META_NAMES | VALUE_NAMES
        and not column.startswith("unnamed ")
        and frame[column].dtype == pl.String
    ]
    varying = [column for column in ("_measurement", *others) if frame[column].n_unique() > 1]
    keys = [pl.col(column).fill_null("") for column in (*varying, "_field")]
    joined = frame.with_columns(pl.concat_str(keys, separator="/").alias(TAG))
    return True, joined.drop(*KEY_NAMES, *others)


def _long_columns(
    frame: pl.DataFrame, plant: PlantFile, *, keys: bool
) -> tuple[str | None, str | None]:
    """Return the tag and value columns of a long table."""
    words = {plain_word(column): column for column in reversed(frame.columns)}
    values = [words[word] for word in words if word in VALUE_NAMES]
    value = plant.value or (_best_value(values) if values else "")
    if keys:
        return TAG, value or None
    # `Tag` is a day in German: such a column holds dates.
    tags = [
        words[word] for word in words if word in TAG_NAMES and not _is_dates(frame[words[word]])
    ]
    tag = plant.tag or (tags[-1] if tags else "")
    named = (tag, value)
    if not tag or not value or any(column not in frame.columns for column in named):
        return None, None
    return tag, value


def _best_value(values: list[str]) -> str:
    """Return `Value`, not `vValue`, which repeats it as text."""
    return min(
        values, key=lambda column: (plain_word(column) not in ("value", "floatvalue"), column)
    )


def _long_quality(frame: pl.DataFrame, plant: PlantFile) -> str | None:
    if plant.quality:
        return plant.quality if plant.quality in frame.columns else None
    words = {plain_word(column): column for column in reversed(frame.columns)}
    for word in (*QUALITY_ORDER, *sorted(QUALITY_NAMES)):
        if word in words:
            return words[word]
    return None


def _long(
    frame: pl.DataFrame,
    columns: LongColumns,
    *,
    name: str,
    plant: PlantFile,
    limits: ReadLimits,
) -> Shaped:
    time, tag, value, quality = columns.time, columns.tag, columns.value, columns.quality
    tags = frame[tag].cast(pl.String).str.strip_chars()
    if tags.null_count():
        row = int(tags.is_null().arg_max() or 0)
        raise RecordError(f"{name}: row {row} has no name in column {tag!r}; correct the export")
    clock = read_clock(frame[time], ClockContext(name=name, plant=plant, groups=tags))
    notes = [Note(what=each) for each in clock.notes]
    readings = _values(frame, value)
    if quality:
        good = good_rows(frame[quality], name=name, plant=plant)
        bad = int((~good).sum())
        if bad:
            first = int((~good).arg_max() or 0)
            what = f"bad quality by {quality!r}, readings masked"
            notes.append(Note(what=what, rows=bad, first_row=first))
        readings = masked(readings, good)
    long = pl.DataFrame({TIME: clock.times, TAG: tags, VALUE: readings})
    long = _one_value_each(long, frame[time], name=name, plant=plant)
    _refuse_unsorted(long, name=name, plant=plant)
    names, count = long[TAG].unique(maintain_order=True), long[TIME].n_unique()
    limits.demand_cells(count, len(names))
    wide = long.pivot(TAG, index=TIME, values=VALUE, maintain_order=True).sort(TIME)
    notes.append(Note(what=f"long form, read as {len(names)} columns"))
    used = {tag, value, time, quality}
    ignored = [
        column for column in frame.columns if column not in used and not column.startswith("\x1f")
    ]
    declared = _units_by_tag(frame, tags, name)
    ignored = [column for column in ignored if plain_word(column) not in UNIT_NAMES]
    if ignored:
        notes.append(Note(what=f"columns without readings dropped: {', '.join(ignored[:12])}"))
    filled = sum(wide[column].count() for column in wide.columns[1:])
    events = filled <= EVENTS_SHARE * count * len(names) and count > 2
    return Shaped(
        frame=wide.drop(TIME),
        times=wide[TIME].to_numpy(),
        utc=clock.utc,
        events=events,
        declared=declared,
        notes=tuple(notes),
        settings=clock.settings,
    )


def _values(frame: pl.DataFrame, value: str) -> pl.Series:
    """Return the readings; a historian can have one column for floats and one for integers."""
    words = {plain_word(column): column for column in frame.columns}
    if plain_word(value) == "floatvalue" and "intvalue" in words:
        floats, whole = frame[value], frame[words["intvalue"]]
        if pl.String in (floats.dtype, whole.dtype):
            floats, whole = floats.cast(pl.String), whole.cast(pl.String)
        return floats.zip_with(floats.is_not_null(), whole.cast(floats.dtype))
    return frame[value]


def _one_value_each(
    long: pl.DataFrame, written: pl.Series, *, name: str, plant: PlantFile
) -> pl.DataFrame:
    repeated = long.select(TIME, TAG).is_duplicated()
    if not repeated.any():
        return long
    if plant.duplicates == Duplicates.REFUSE:
        row = int(repeated.arg_max() or 0)
        raise UnclearRecordError(
            f"tag {long[TAG][row]!r} has more than one value at {written[row]!r}",
            file=name,
            cure='[record] duplicates = "keep-last" or duplicates = "keep-first"',
            choices=(
                SettingChoice(
                    setting="duplicates", value="keep-last", meaning="the last value counts"
                ),
                SettingChoice(
                    setting="duplicates", value="keep-first", meaning="the first value counts"
                ),
            ),
        )
    keep = "last" if plant.duplicates == Duplicates.LAST else "first"
    return long.unique(subset=[TIME, TAG], keep=keep, maintain_order=True)  # type: ignore[arg-type]


def _refuse_unsorted(long: pl.DataFrame, *, name: str, plant: PlantFile) -> None:
    """Refuse a tag whose own rows are out of order; the order of the tags means nothing."""
    if plant.unsorted == Unsorted.SORT:
        return
    back = long.select((pl.col(TIME).diff().over(TAG) < pl.duration()).alias("back")).to_series()
    back = back.fill_null(value=False)
    if back.any():
        row = int(back.arg_max() or 0)
        raise UnclearRecordError(
            f"the clock of tag {long[TAG][row]!r} goes backward at row {row} to {long[TIME][row]}",
            file=name,
            cure='[record] unsorted = "sort", or time_zone if daylight saving time ends there,',
            choices=(
                SettingChoice(
                    setting="unsorted", value="sort", meaning="put the rows in order of time"
                ),
                SettingChoice(
                    setting="time_zone", value="Europe/Berlin", meaning="daylight saving time"
                ),
            ),
        )


def _units_by_tag(frame: pl.DataFrame, tags: pl.Series, name: str) -> dict[str, Declaration]:
    column = next((each for each in frame.columns if plain_word(each) in UNIT_NAMES), None)
    if column is None or frame[column].dtype != pl.String:
        return {}
    pairs = pl.DataFrame({"tag": tags, "unit": frame[column].str.strip_chars()}).unique()
    units: dict[str, Declaration] = {}
    for tag, unit in pairs.drop_nulls().sort("tag", "unit").iter_rows():
        if tag in units:
            raise RecordError(
                f"{name}: tag {tag!r} has readings in {units[tag].unit!r} and in {unit!r}; export "
                "it in one unit"
            )
        units[tag] = Declaration(unit=spelt_unit(unit.strip("[]()")))
    return units
