"""Plain CSV or Parquet with a time column: wide (a column per tag) or long (a row per reading)."""

import io
import re

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sluice.errors import RecordError
from sluice.telemetry.channel import CHANNELS, CHANNELS_KEY
from sluice.telemetry.formats.format import Format
from sluice.telemetry.parquet import read_parquet
from sluice.telemetry.plantfile import Declaration, PlantFile
from sluice.telemetry.record import Label, Note
from sluice.telemetry.source import Container, Source
from sluice.telemetry.table import Table, clock, delimited, from_epoch, labels_from, numeric

__all__ = ["plain"]

VERSION = 1
TIME_NAMES = ("time", "timestamp", "datetime", "date_time", "date", "ts", "t_stamp", "epoch")
LABEL_NAMES = ("label", "attack", "att_flag", "normal/attack", "anomaly", "class", "is_attack")
NORMAL_WORDS = ("normal", "benign", "0", "0.0", "false", "ok")
ATTACK_WORDS = ("attack", "anomaly", "malicious", "1", "1.0", "true")
UNLABELLED_WORDS = ("unlabelled", "unlabeled", "unknown", "-999", "-999.0", "")
LAYOUTS = (
    "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.fZ", "%Y-%m-%d %H:%M",
    "%Y/%m/%d %H:%M:%S", "%d.%m.%y %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M",
    "%d/%m/%y %H:%M:%S", "%d/%m/%y %H:%M", "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %I:%M:%S %p",
    "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p",
)  # fmt: skip
"""Year first, then day first, then month first. Two-digit years come before four-digit ones, which
would read 24 as the year 24. The first layout that fits the first row must fit all rows."""

QUALITY_SUFFIX = re.compile(r"[._ ](q|qual|quality)$", re.IGNORECASE)
GOOD_WORDS = ("good", "ok", "1", "1.0", "true", "192", "192.0")
OPC_GOOD = 192
"""OPC quality codes from 192 up are good, below are uncertain or bad."""


def plain(plant: PlantFile) -> Format:
    """Return the format of plain tables; the plant file gives columns with unusual names."""
    columns = (plant.time, plant.time_format, plant.stride_s, plant.label)
    words = (plant.normal_labels, plant.attack_labels, plant.ignored)
    return Format(
        name="plain",
        title="plain CSV or Parquet",
        version=f"{VERSION}:{columns}:{words}",
        recognises=lambda source: source.container is not Container.EXCEL,
        load=lambda source: _load(source, plant),
    )


def _load(source: Source, plant: PlantFile) -> Table:
    frame = _with_one_clock(_frame(source, plant))
    long = _long_columns(frame, plant)
    if long:
        frame = _widened(frame, *long, name=source.path.name)
    notes: list[Note] = [Note(what=f"long form, read as {frame.width} columns")] if long else []
    times, frame = _times(frame, source, plant)
    labels, frame = _labels(frame, source, plant)
    frame = numeric(
        frame.drop(plant.ignored, strict=False), name=source.path.name, text=_quality(frame)
    )
    frame, masked = _respect_quality(frame)
    if frame.width == 0:
        raise RecordError(f"{source.path.name} has a time column but no channels beside it")
    return Table(
        format="plain",
        frame=frame,
        times=times,
        labels=labels,
        notes=(*notes, *masked),
        declared=_declared(source),
    )


def _declared(source: Source) -> dict[str, Declaration]:
    """Return the channels that a Parquet file written by Sluice declares."""
    if source.container is not Container.PARQUET:
        return {}
    declared = pl.read_parquet_metadata(io.BytesIO(source.data)).get(CHANNELS_KEY)
    try:
        channels = CHANNELS.validate_json(declared) if declared else ()
    except ValueError:
        return {}  # another program uses the same key: infer instead
    return {
        c.name: Declaration(role=c.role, unit=c.unit, codes=c.codes, span=c.span) for c in channels
    }


def _frame(source: Source, plant: PlantFile) -> pl.DataFrame:
    if source.container is Container.PARQUET:
        frame = read_parquet(source)
        if frame.is_empty():
            raise RecordError(f"{source.path.name} has columns but no rows")
        return frame
    names = source.cells(0)
    text = [
        name
        for name in names
        if name.lower() in (*TIME_NAMES, *LABEL_NAMES, "tag")
        or name in (plant.time, plant.label)
        or QUALITY_SUFFIX.search(name)
    ]
    return delimited(source, header_line=0, text=[*text, *plant.ignored])


def _with_one_clock(frame: pl.DataFrame) -> pl.DataFrame:
    """Join a date column and a time-of-day column into one."""
    lower = {name.lower(): name for name in frame.columns}
    date, time = lower.get("date"), lower.get("time")
    if not date or not time or frame[date].dtype != pl.String or frame[time].dtype != pl.String:
        return frame
    joined = frame[date].str.strip_chars() + " " + frame[time].str.strip_chars()
    return frame.drop(date, time).insert_column(0, joined.alias("time"))


def _long_columns(frame: pl.DataFrame, plant: PlantFile) -> tuple[str, str, str] | None:
    """Return the time, tag and value columns of a long table, None for a wide one."""
    lower = {name.lower(): name for name in frame.columns}
    time = _time_column(frame, plant)
    tag, value = lower.get("tag"), lower.get("value")
    return (time, tag, value) if time and tag and value else None


def _widened(frame: pl.DataFrame, time: str, tag: str, value: str, *, name: str) -> pl.DataFrame:
    repeated = frame.select(time, tag).is_duplicated()
    if repeated.any():
        row = int(repeated.arg_max() or 0)
        raise RecordError(
            f"{name}: tag {frame[tag][row]!r} has more than one value at {frame[time][row]!r}"
        )
    return frame.pivot(tag, index=time, values=value, maintain_order=True)


def _time_column(frame: pl.DataFrame, plant: PlantFile) -> str | None:
    if plant.time:
        return plant.time if plant.time in frame.columns else None
    for name in frame.columns:
        if name.strip().lower() in TIME_NAMES or frame[name].dtype.is_temporal():
            return name
    return None


def _times(
    frame: pl.DataFrame, source: Source, plant: PlantFile
) -> tuple[NDArray[np.datetime64], pl.DataFrame]:
    column = _time_column(frame, plant)
    if column is None and plant.stride_s and not plant.time:
        steps = np.arange(len(frame)) * round(plant.stride_s * 1e6)
        return np.datetime64(0, "us") + steps.astype("timedelta64[us]"), frame
    if column is None:
        raise RecordError(
            f"{source.path.name} has no time column (looked for "
            f"{plant.time or ', '.join(TIME_NAMES)}); name it in a plant file, "
            "[record] time = ..., or give its stride_s there"
        )
    texts = frame[column]
    seconds = texts.cast(pl.Float64, strict=False) if texts.dtype == pl.String else texts
    if seconds.dtype.is_numeric() and not seconds.null_count():
        times = from_epoch(seconds.cast(pl.Float64), texts, name=source.path.name)
    else:
        layouts = [plant.time_format] if plant.time_format else LAYOUTS
        times = clock(texts, layouts, name=source.path.name)
    return times, frame.drop(column)


def _labels(
    frame: pl.DataFrame, source: Source, plant: PlantFile
) -> tuple[NDArray[np.int8], pl.DataFrame]:
    named = [name for name in frame.columns if name.lower() in LABEL_NAMES]
    column = plant.label or (named[0] if named else "")
    if not column:
        return np.full(len(frame), Label.UNLABELLED, np.int8), frame
    if column not in frame.columns:
        raise RecordError(
            f"{source.path.name} has no label column {column!r}, which the plant file names"
        )

    def known(value: object) -> Label | None:
        text = str(value).strip()
        for label, words in (
            (Label.NORMAL, plant.normal_labels or NORMAL_WORDS),
            (Label.ATTACK, plant.attack_labels or ATTACK_WORDS),
            (Label.UNLABELLED, UNLABELLED_WORDS),
        ):
            if text in words or text.lower() in words:
                return label
        return None

    return labels_from(frame[column], known, name=source.path.name), frame.drop(column)


def _quality(frame: pl.DataFrame) -> list[str]:
    """Return the columns that hold the quality of another column's readings."""
    return [
        name
        for name in frame.columns
        if QUALITY_SUFFIX.search(name) and QUALITY_SUFFIX.sub("", name) in frame.columns
    ]


def _respect_quality(frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    notes = []
    for quality in _quality(frame):
        tag = QUALITY_SUFFIX.sub("", quality)
        bad = ~_good(frame[quality])
        masked = frame[tag].set(bad, None)
        frame = frame.with_columns(masked).drop(quality)
        if bad.any():
            what = f"bad quality by {quality!r}, readings masked"
            first = int(bad.arg_max() or 0)
            notes.append(Note(what=what, channel=tag, rows=int(bad.sum()), first_row=first))
    return frame, tuple(notes)


def _good(quality: pl.Series) -> pl.Series:
    texts = quality.cast(pl.String).str.strip_chars().str.to_lowercase()
    codes = texts.cast(pl.Float64, strict=False)
    opc = codes.max()
    if isinstance(opc, float) and opc >= OPC_GOOD:
        return (codes >= OPC_GOOD).fill_null(value=False)
    return texts.is_in(GOOD_WORDS).fill_null(value=False)
