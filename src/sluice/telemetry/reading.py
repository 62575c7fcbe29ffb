"""Read a path into a `Record`: detect the format, load, fill if requested, infer roles."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from sluice.arrays import Bools, Floats, Ints, Times
from sluice.errors import (
    PlantFileError,
    RecordError,
    SettingChoice,
    SettingError,
    UnclearRecordError,
)
from sluice.telemetry.cache import cached_load
from sluice.telemetry.channel import Channel
from sluice.telemetry.exports import (
    Rows,
    demand_order,
    in_order,
    merged_rows,
    plain_word,
    resampled,
    usual_stride_s,
)
from sluice.telemetry.filling import Fill
from sluice.telemetry.formats import FORMATS, Format, plain
from sluice.telemetry.limits import ReadLimits
from sluice.telemetry.plantfile import Declaration, Duplicates, PlantFile, Unsorted, unmatched
from sluice.telemetry.record import Note, Record
from sluice.telemetry.roles import infer_channels
from sluice.telemetry.source import Source, find_record_files
from sluice.telemetry.table import Table

__all__ = [
    "ReadRecord",
    "ReadRows",
    "format_names",
    "read_record",
    "read_rows",
    "read_with_settings",
]

MARKER_COLUMN = "unnamed "


def format_names() -> tuple[str, ...]:
    """Return the names that `format_name` accepts."""
    return (*FORMATS, plain(PlantFile()).name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRecord:
    """A record, and the settings under which it was read, as a plant file declares them."""

    record: Record
    plant: PlantFile


def read_record(
    path: str | Path | Sequence[str | Path],
    *,
    plant: PlantFile | None = None,
    format_name: str | None = None,
    fill: Fill | None = None,
) -> Record:
    """Read a plant record from a file, from several files, or from a folder.

    Several files are one record: rows of the same tags follow each other, and files of different
    tags are joined by time. The format is detected unless `format_name` gives it. Without `fill`,
    the format decides: missing readings stay missing unless the format's own documentation fills
    them.
    """
    return read_with_settings(path, plant=plant, format_name=format_name, fill=fill).record


def read_with_settings(
    path: str | Path | Sequence[str | Path],
    *,
    plant: PlantFile | None = None,
    format_name: str | None = None,
    fill: Fill | None = None,
) -> ReadRecord:
    """Read a plant record as `read_record` does; return also the settings that were detected."""
    if fill is not None and fill not in list(Fill):
        raise SettingError(f"unknown fill {fill!r}; known are {', '.join(Fill)}")
    plant = plant or PlantFile()
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(each) for each in path]
    if not paths:
        raise SettingError("no record is given; give a file or a folder")
    files = [file for each in paths for file in find_record_files(each)]
    loaded = [
        _loaded(Source(file, plant.encoding), plant=plant, format_name=format_name)
        for file in files
    ]
    name = _record_name(paths, files)
    limits = ReadLimits(name=name, size=sum(each.size for each in loaded))
    try:
        whole = loaded[0] if len(loaded) == 1 else _joined(loaded, name, plant=plant, limits=limits)
        whole = replace(whole, table=_regular(whole.table, name, plant, limits))
    except RecordError as error:
        if len(paths) == 1 and len(files) > 1:
            raise _several(paths[0], files, error) from None
        raise
    record = _assembled(
        whole.table, whole.format, name, plant=plant, fill=fill or whole.format.fill
    )
    return ReadRecord(record=record, plant=_with_detected(plant, whole.table.settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows:
    """Rows as they stand in a file, and the settings under which they were read."""

    names: tuple[str, ...]
    times: Times
    values: Floats  # rows x names; NaN where a reading is missing
    plant: PlantFile


def read_rows(
    path: Path, *, plant: PlantFile | None = None, format_name: str | None = None
) -> ReadRows:
    """Read the rows of one file in the order of the file, however few they are.

    No stride is needed, no role is inferred and nothing is filled. The clock may go backward, so
    this is for a reader that follows a file and orders the rows itself.
    """
    plant = plant or PlantFile()
    table = _loaded(Source(path, plant.encoding), plant=plant, format_name=format_name).table
    frame = table.frame
    frame = frame.drop([column for column in frame.columns if plant.ignores(column)])
    values, _ = _readings(frame)
    points = plant.points
    values = np.array(values, order="F")
    for at, column in enumerate(frame.columns):
        if column in points:
            values[:, at] = points[column].readings(values[:, at])
    return ReadRows(
        names=tuple(points[each].name if each in points else each for each in frame.columns),
        times=table.times.astype("datetime64[us]"),
        values=values,
        plant=_with_detected(plant, table.settings),
    )


def _several(folder: Path, files: Sequence[Path], error: RecordError) -> RecordError:
    """Return the error of a folder whose files cannot be read as one record."""
    listed = ", ".join(str(file.relative_to(folder)) for file in files[:6])
    what = f"{folder} holds {len(files)} records ({listed}); name one of them, or make them one"
    if not isinstance(error, UnclearRecordError):
        return RecordError(f"{what}: {error}")
    return UnclearRecordError(
        error.what, file=what, cure=error.cure, choices=error.choices, free=error.free
    )


def _with_detected(plant: PlantFile, settings: tuple[SettingChoice, ...]) -> PlantFile:
    """Add what was detected to what is declared; a declaration stays."""
    unset = dict(PlantFile().settings)
    for choice in settings:
        now = getattr(plant, choice.setting)
        if isinstance(choice.value, tuple):
            known = {plain_word(word) for word in now}
            words = tuple(word for word in choice.value if plain_word(word) not in known)
            plant = plant.having(replace(choice, value=words))
        elif isinstance(choice.value, dict):
            words_read = {word: float(number) for word, number in choice.value.items()}
            plant = replace(plant, words={**words_read, **plant.words})
        elif now == unset[choice.setting]:
            plant = plant.having(choice)
    return plant


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """One file, or several that were joined, as a table."""

    table: Table
    format: Format
    size: int  # bytes on disk


def _loaded(source: Source, *, plant: PlantFile, format_name: str | None) -> _Loaded:
    if format_name:
        format_ = _named(format_name, plant)
        return _Loaded(table=_table(format_, source), format=format_, size=source.size)
    fallback = plain(plant)
    known = next((each for each in FORMATS.values() if each.recognises(source)), None)
    if known is None:
        return _Loaded(table=_table(fallback, source), format=fallback, size=source.size)
    try:
        return _Loaded(table=_table(known, source), format=known, size=source.size)
    except RecordError as refused:
        # The tags are those of a known data set, but the file is another one.
        try:
            table = _table(fallback, source)
        except UnclearRecordError as unclear:
            # Without a header and a clock, it is not a table at all.
            table_found = unclear.choices[0].setting not in ("header_line", "time", "time_format")
            raise (unclear if table_found else refused) from None
        except RecordError:
            raise refused from None
        if not (table.times[1:] > table.times[:-1]).all() and not _reorders(plant):
            raise refused from None  # not read well in this way either
        note = Note(what=f"not {known.title} although its tags are: {refused}")
        table = replace(table, notes=(note, *table.notes))
        return _Loaded(table=table, format=fallback, size=source.size)


def _reorders(plant: PlantFile) -> bool:
    return plant.unsorted == Unsorted.SORT or plant.duplicates != Duplicates.REFUSE


def _table(format_: Format, source: Source) -> Table:
    try:
        return cached_load(format_, source)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RecordError(
            f"{source.path.name} cannot be read as {format_.title}: {reason[:200]}; fetch it again"
        ) from None


def _record_name(paths: Sequence[Path], files: Sequence[Path]) -> str:
    path = files[0] if len(files) == 1 or len(paths) > 1 else paths[0].resolve()
    return path.name.split(".")[0]


# -- several files ----------------------------------------------------------------------------


def _joined(
    loaded: Sequence[_Loaded], name: str, *, plant: PlantFile, limits: ReadLimits
) -> _Loaded:
    """Join files into one record: rows of the same time become one row."""
    first = loaded[0]
    other = next((each for each in loaded if each.format.name != first.format.name), None)
    if other is not None:
        raise RecordError(
            f"record {name!r}: its files are {first.format.title} and {other.format.title}; give "
            "files of one format"
        )
    if len({each.table.utc for each in loaded}) > 1:
        raise RecordError(
            f"record {name!r}: some of its files have times in UTC and some in local time; name "
            "the zone of the local ones in the plant file, [record] time_zone"
        )
    tables = sorted((each.table for each in loaded), key=lambda table: table.times[0])
    columns = {column for table in tables for column in table.frame.columns}
    limits.demand_cells(sum(len(table.times) for table in tables), len(columns))
    frame = pl.concat([table.frame for table in tables], how="diagonal")
    rows = Rows(
        frame=frame,
        times=np.concatenate([table.times.astype("datetime64[us]") for table in tables]),
        labels=np.concatenate([table.labels for table in tables]),
    )
    for table in tables:
        demand_order(table.times, name=name, plant=plant)
    rows = rows.take(np.argsort(rows.times.astype(np.int64), kind="stable"))
    if any(set(table.frame.columns) != columns for table in tables):
        rows = merged_rows(rows, name)
    declared = {key: each for table in reversed(tables) for key, each in table.declared.items()}
    notes = [Note(what=f"{len(loaded)} files read as one record")]
    notes += [note for table in tables for note in table.notes]
    return _Loaded(
        table=Table(
            format=first.table.format,
            frame=rows.frame,
            times=rows.times,
            labels=rows.labels,
            notes=(*notes, *rows.notes),
            declared=declared,
            settings=_shared(tables),
            utc=first.table.utc,
            events=any(table.events for table in tables),
        ),
        format=first.format,
        size=limits.size,
    )


def _shared(tables: Sequence[Table]) -> tuple[SettingChoice, ...]:
    """Return the settings that are right for every file: words of all, and what is the same."""
    return tuple(
        choice
        for table in tables
        for choice in table.settings
        if isinstance(choice.value, tuple | dict)
        or all(choice in other.settings for other in tables)
    )


def _regular(table: Table, name: str, plant: PlantFile, limits: ReadLimits) -> Table:
    """Return the table with rows in order of time, resampled if the plant file asks for it."""
    rows = Rows(frame=table.frame, times=table.times, labels=table.labels, notes=table.notes)
    rows = in_order(rows, name=name, plant=plant)
    if plant.resample and not plant.stride_s:
        stride = usual_stride_s(rows)
        raise UnclearRecordError(
            "it is to be resampled, but the time between two rows is not given",
            file=f"record {name!r}",
            cure=f"[record] stride_s = {stride:g}",
            choices=(
                SettingChoice(
                    setting="stride_s", value=stride, meaning=f"a row every {stride:g} s"
                ),
            ),
            free=True,
        )
    if plant.resample:
        rows = resampled(rows, plant=plant, limits=limits)
    elif table.events:
        stride = usual_stride_s(rows)
        raise UnclearRecordError(
            "it has readings at times that differ from tag to tag",
            file=f"record {name!r}",
            cure=f'[record] resample = "last" or "mean" with stride_s = {stride:g}',
            choices=(
                SettingChoice(
                    setting="resample", value="last", meaning="the last value of each tag"
                ),
                SettingChoice(setting="resample", value="mean", meaning="the mean of each stride"),
            ),
        )
    return replace(table, frame=rows.frame, times=rows.times, labels=rows.labels, notes=rows.notes)


def _named(name: str, plant: PlantFile) -> Format:
    fallback = plain(plant)
    known = {**FORMATS, fallback.name: fallback}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise SettingError(f"unknown format {name!r}; known are {', '.join(known)}{hint}")
    return known[name]


def _assembled(table: Table, format_: Format, name: str, *, plant: PlantFile, fill: Fill) -> Record:
    ignored = [column for column in table.frame.columns if plant.ignores(column)]
    frame, empty = _without_empty(table.frame.drop(ignored))
    unknown = unmatched(plant, (*frame.columns, *empty))
    if unknown is not None:
        raise PlantFileError(
            f"the plant file declares {unknown!r}, which record {name!r} does not have; "
            f"it has {', '.join(frame.columns[:8])}, ..."
        )
    if frame.width == 0:
        raise RecordError(f"record {name!r} has no channel with a reading")
    values, notes = _readings(frame)
    stride_s = plant.stride_s or _stride_s(table, name)
    if fill is not Fill.REFUSE:
        values, filled = _filled(values, tuple(frame.columns), fill)
        notes += filled
    declared = dict(table.declared)
    for column in frame.columns:
        by_plant = plant.declaration(column)
        if by_plant is not None:
            declared[column] = by_plant.over(declared.get(column, Declaration()))
    inferred = infer_channels(tuple(frame.columns), values, declared)
    dropped = tuple(Note(what="dropped: no reading at all", channel=tag) for tag in empty)
    channels, values = _placed(_with_units(inferred, format_, plant), values, plant)
    return Record(
        name=name,
        channels=channels,
        values=values,
        times=table.times,
        stride_s=stride_s,
        labels=table.labels,
        notes=(*table.notes, *dropped, *notes),
    )


def _placed(
    channels: tuple[Channel, ...], values: Floats, plant: PlantFile
) -> tuple[tuple[Channel, ...], Floats]:
    """Return channels and readings as the points that the plant file says they are."""
    points = plant.points
    if not points:
        return channels, values
    placed, readings = [], np.array(values, order="F")
    for at, channel in enumerate(channels):
        point = points.get(channel.name)
        if point is not None:
            readings[:, at] = point.readings(readings[:, at])
        placed.append(channel if point is None else point.place(channel))
    return tuple(placed), readings


def _with_units(
    channels: tuple[Channel, ...], format_: Format, plant: PlantFile
) -> tuple[Channel, ...]:
    """Give channels the units that the format documents, unless the plant file gives one."""
    units = dict(format_.units)
    return tuple(
        channel
        if _declares_unit(plant, channel.name) or channel.role not in units
        else replace(channel, unit=units[channel.role])
        for channel in channels
    )


def _declares_unit(plant: PlantFile, name: str) -> bool:
    declared = plant.declaration(name)
    return declared is not None and declared.unit is not None


def _without_empty(frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    empty = [column for column in frame.columns if not frame[column].is_not_nan().any()]
    unnamed = [column for column in empty if column.startswith(MARKER_COLUMN)]
    return frame.drop(empty), tuple(column for column in empty if column not in unnamed)


def _readings(frame: pl.DataFrame) -> tuple[Floats, tuple[Note, ...]]:
    """Return the readings with infinities masked, and a note per channel with missing ones."""
    values = frame.to_numpy(order="fortran").astype(np.float64, copy=False)
    if not values.flags.writeable:
        values = values.copy(order="F")
    notes = []
    for column, channel in enumerate(frame.columns):
        readings = values[:, column]
        infinite = np.isinf(readings)
        if infinite.any():
            what = "infinite readings masked as missing"
            notes.append(_note(what, channel, infinite))
            readings[infinite] = np.nan
        missing = np.isnan(readings)
        if missing.any():
            notes.append(_note("missing readings", channel, missing))
    return values, tuple(notes)


def _note(what: str, channel: str, rows: Bools) -> Note:
    return Note(what=what, channel=channel, rows=int(rows.sum()), first_row=int(rows.argmax()))


def _stride_s(table: Table, name: str) -> float:
    if len(table.times) < 2:
        raise RecordError(
            f"record {name!r} has {len(table.times)} row, so its stride is unknown; give at least "
            "two rows or a plant file with stride_s"
        )
    steps: Ints = np.diff(table.times.astype("datetime64[us]")).astype(np.int64)
    forward = steps[steps > 0]  # `Record` itself refuses a clock that never advances
    return float(np.median(forward)) / 1e6 if forward.size else 1.0


def _filled(values: Floats, names: tuple[str, ...], fill: Fill) -> tuple[Floats, tuple[Note, ...]]:
    filled = values.copy(order="F")
    notes = []
    rows = np.arange(len(values))
    for column in range(values.shape[1]):
        missing = np.isnan(values[:, column])
        if not missing.any():
            continue
        known = rows[~missing]
        if fill is Fill.LINEAR:
            substitutes = np.interp(rows[missing], known, values[known, column])
        else:
            last = np.searchsorted(known, rows[missing], side="right") - 1
            substitutes = values[known[np.maximum(last, 0)], column]
        filled[missing, column] = substitutes
        notes.append(_note(f"filled ({fill.value})", names[column], missing))
    return filled, tuple(notes)
