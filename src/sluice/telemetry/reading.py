"""Read a path into a `Record`: detect the format, load, fill if requested, infer roles."""

import difflib
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from sluice.arrays import Bools, Floats, Ints
from sluice.errors import PlantFileError, RecordError, SettingError, UnknownFormatError
from sluice.telemetry.cache import cached_load
from sluice.telemetry.channel import Channel
from sluice.telemetry.filling import Fill
from sluice.telemetry.formats import FORMATS, Format, plain
from sluice.telemetry.plantfile import PlantFile
from sluice.telemetry.record import Note, Record
from sluice.telemetry.roles import infer_channels
from sluice.telemetry.source import Source, find_record_file
from sluice.telemetry.table import Table

__all__ = ["format_names", "read_record"]

MARKER_COLUMN = "unnamed "


def format_names() -> tuple[str, ...]:
    """Return the names that `format_name` accepts."""
    return (*FORMATS, plain(PlantFile()).name)


def read_record(
    path: str | Path,
    *,
    plant: PlantFile | None = None,
    format_name: str | None = None,
    fill: Fill | None = None,
) -> Record:
    """Read a plant record from a file or folder.

    The format is detected unless `format_name` gives it. Without `fill`, the format decides:
    missing readings stay missing unless the format's own documentation fills them.
    """
    if fill is not None and fill not in list(Fill):
        raise SettingError(f"unknown fill {fill!r}; known are {', '.join(Fill)}")
    plant = plant or PlantFile()
    source = Source(find_record_file(Path(path)))
    format_ = _named(format_name, plant) if format_name else _detected(source, plant)
    try:
        table = cached_load(format_, source)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RecordError(
            f"{source.path.name} cannot be read as {format_.title}: {reason[:200]}; fetch it again"
        ) from None
    return _assembled(table, format_, source.path, plant=plant, fill=fill or format_.fill)


def _detected(source: Source, plant: PlantFile) -> Format:
    for known in (*FORMATS.values(), plain(plant)):
        if known.recognises(source):
            return known
    raise UnknownFormatError(
        f"{source.path.name} is a workbook of an unknown format; save its sheet as CSV with one "
        "header line and a time column"
    )


def _named(name: str, plant: PlantFile) -> Format:
    fallback = plain(plant)
    known = {**FORMATS, fallback.name: fallback}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise SettingError(f"unknown format {name!r}; known are {', '.join(known)}{hint}")
    return known[name]


def _assembled(
    table: Table, format_: Format, path: Path, *, plant: PlantFile, fill: Fill
) -> Record:
    name = path.name.split(".")[0]
    frame, empty = _without_empty(table.frame.drop(plant.ignored, strict=False))
    unknown = [tag for tag in plant.channels if tag not in (*frame.columns, *empty)]
    if unknown:
        raise PlantFileError(
            f"the plant file declares {unknown[0]!r}, which record {name!r} does not have; "
            f"it has {', '.join(frame.columns[:8])}, ..."
        )
    if frame.width == 0:
        raise RecordError(f"record {name!r} has no channel with a reading")
    values, notes = _readings(frame)
    stride_s = plant.stride_s or _stride_s(table, name)
    if fill is not Fill.REFUSE:
        values, filled = _filled(values, tuple(frame.columns), fill)
        notes += filled
    inferred = infer_channels(tuple(frame.columns), values, {**table.declared, **plant.channels})
    dropped = tuple(Note(what="dropped: no reading at all", channel=tag) for tag in empty)
    return Record(
        name=name,
        channels=_with_units(inferred, format_, plant),
        values=values,
        times=table.times,
        stride_s=stride_s,
        labels=table.labels,
        notes=(*table.notes, *dropped, *notes),
    )


def _with_units(
    channels: tuple[Channel, ...], format_: Format, plant: PlantFile
) -> tuple[Channel, ...]:
    """Give channels the units that the format documents, unless the plant file gives one."""
    units = dict(format_.units)
    declared = {
        name for name, declaration in plant.channels.items() if declaration.unit is not None
    }
    return tuple(
        channel
        if channel.name in declared or channel.role not in units
        else replace(channel, unit=units[channel.role])
        for channel in channels
    )


def _without_empty(frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    empty = [column for column in frame.columns if frame[column].null_count() == len(frame)]
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
