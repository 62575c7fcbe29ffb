"""WADI, October 2017: water distribution (Ahmed et al. 2017), releases A1 and A2."""

import re
from collections.abc import Iterable, Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sluice.arrays import Times
from sluice.errors import RecordError
from sluice.telemetry.filling import Fill
from sluice.telemetry.formats.format import Format
from sluice.telemetry.formats.wadi_attacks import PUBLISHED, attacks_in
from sluice.telemetry.record import Label, Note
from sluice.telemetry.source import Source
from sluice.telemetry.table import Table, clock, delimited, labels_from

__all__ = ["WADI"]

CLOCK_COLUMNS = ("Row", "Date", "Time")
LABEL_PREFIX = "attack lable"  # sic
AGGREGATES = ("LEAK_DIFF_PRESSURE", "PLANT_START_STOP_LOG", "TOTAL_CONS_REQUIRED_FLOW")
"""Columns that the historian computes; they are not instruments of the plant."""

PROBED_LINES = 6
TAG = re.compile(r"[123][AB]?_[A-Z]+_\d{3}_[A-Z]+")
DAYS = ("%m/%d/%y", "%m/%d/%Y")  # in this order: %Y would read the year 17 as 0017
CLOCKS = tuple(f"{day} {hour}" for day in DAYS for hour in ("%I:%M:%S%.f %p", "%H:%M:%S%.f"))
ATTACK_SHEET = "attack_description.xlsx"
NORMAL_START = np.datetime64("2017-09-25T18:00:00", "us")
CAMPAIGN_START = np.datetime64("2017-10-09T18:00:00", "us")
CAMPAIGN_END = np.datetime64("2017-10-11T18:00:01", "us")
HOURLESS = r"^\d{1,2}:\d{2}\.\d$"
SECOND = np.timedelta64(1_000_000, "us")


def recognises(source: Source) -> bool:
    """Look for Row, Date and Time with a WADI tag or the label column of release A2."""
    return _header_line(source) is not None


def load(source: Source) -> Table:
    """Read a normal or an attack file of either release."""
    line = _header_line(source)
    if line is None:
        raise RecordError(
            f"{source.path.name} has no WADI header in its first {PROBED_LINES} lines; expected "
            "Row, Date, Time and tags such as 1_FIT_001_PV"
        )
    frame = delimited(source, header_line=line, text=["Date", "Time"])
    notes = list(_header_notes(source, line))
    frame = frame.rename({name: _tag(name) for name in frame.columns})
    times = _times(frame, source, notes)
    label = next((name for name in frame.columns if _is_label(name)), None)
    if label is not None:
        labels = labels_from(frame[label], _label, name=source.path.name)
    else:
        labels = _labels_by_time(times, source, notes)
    channels = frame.drop(*CLOCK_COLUMNS, *((label,) if label else ()))
    channels = _without_useless(channels, notes)
    return Table(format=WADI.name, frame=channels, times=times, labels=labels, notes=tuple(notes))


def _header_line(source: Source) -> int | None:
    for line in range(PROBED_LINES):
        names = [_tag(cell) for cell in source.cells(line)]
        is_wadi = any(_is_label(name) or TAG.fullmatch(name) for name in names)
        if is_wadi and set(CLOCK_COLUMNS) <= set(names):
            return line
    return None


def _tag(name: str) -> str:
    r"""Remove the OPC path: `\\HOST\LOG_DATA\SUTD_WADI\LOG_DATA\1_FIT_001_PV`."""
    return name.rsplit("\\", 1)[-1].strip()


def _is_label(name: str) -> bool:
    return name.lower().startswith(LABEL_PREFIX)


def _label(value: object) -> Label | None:
    known = {1.0: Label.NORMAL, -1.0: Label.ATTACK}
    return known.get(value) if isinstance(value, float) else None


def _header_notes(source: Source, line: int) -> Iterator[Note]:
    if line > 0:
        yield Note(what=f"{line} line(s) above the header skipped")
    cells = source.head[line].split(source.delimiter)
    paths = sum("\\" in cell for cell in cells)
    if paths:
        yield Note(what=f"OPC path cut off {paths} column names")
    blank = [cell.strip() for cell in cells if cell != cell.strip()]
    if blank:
        yield Note(what=f"stray blanks in the names of {', '.join(blank)}")
    tail = source.text[-65536:].rstrip(b", \r\n").count(b"\n")
    empty = source.text[-65536:].removesuffix(b"\n").count(b"\n") - tail
    if empty:
        yield Note(what=f"{empty} empty line(s) at the end dropped")


def _times(frame: pl.DataFrame, source: Source, notes: list[Note]) -> Times:
    hours = frame["Time"].str.strip_chars()
    if hours.head(1).str.contains(HOURLESS).any():
        return _times_by_row(frame, hours, source, notes)
    stamps = frame["Date"].str.strip_chars() + " " + hours
    return clock(stamps, CLOCKS, name=source.path.name)


def _times_by_row(
    frame: pl.DataFrame, minutes: pl.Series, source: Source, notes: list[Note]
) -> Times:
    """Rebuild a clock whose hours a spreadsheet lost (`00:00.0`) from the row number."""
    days = clock(frame["Date"], DAYS, name=source.path.name)
    start = NORMAL_START if days[0] < CAMPAIGN_START.astype("datetime64[D]") else CAMPAIGN_START
    row = (frame["Row"].to_numpy() - 1).astype(np.int64)
    times = start + row * SECOND
    parts = minutes.str.extract_groups(r"^(\d{1,2}):(\d{2})\.").struct.unnest()
    written = parts.select(pl.all().cast(pl.Int64, strict=False)).to_numpy()
    of_hour = (times - times.astype("datetime64[h]")) // SECOND
    agree = (written[:, 0] * 60 + written[:, 1] == of_hour) & (
        days == times.astype("datetime64[D]")
    )
    if not agree.all():
        first = int(np.argmin(agree))
        raise RecordError(
            f"{source.path.name}: the Time column has lost its hours and row {first} "
            f"({frame['Date'][first]} {minutes[first]}) does not fit row number "
            f"{frame['Row'][first]} counted from {start}; export the file again with full times"
        )
    notes.append(
        Note(what=f"hours lost in Time: rebuilt from the row number at 1 Hz since {start}")
    )
    return times


def _labels_by_time(times: Times, source: Source, notes: list[Note]) -> NDArray[np.int8]:
    if NORMAL_START <= times[0] < CAMPAIGN_START:
        what = "no label column: rows are normal by the record's documentation (14 clean days)"
        notes.append(Note(what=what, rows=len(times)))
        return np.full(len(times), Label.NORMAL, np.int8)
    if not CAMPAIGN_START <= times[0] < CAMPAIGN_END:
        what = "no label column, and not the plant's days of 2017: every row is unlabelled"
        notes.append(Note(what=what, rows=len(times)))
        return np.full(len(times), Label.UNLABELLED, np.int8)
    companion = source.path.parent / ATTACK_SHEET
    attacks = PUBLISHED
    if companion.is_file():
        attacks, repairs = attacks_in(Source(companion))
        notes.extend(repairs)
        origin = f"{ATTACK_SHEET} ({len(attacks)} intervals)"
    else:
        origin = (
            f"the published table of 15 attacks, for there is no {ATTACK_SHEET} beside the file"
        )
    labels = np.full(len(times), Label.NORMAL, np.int8)
    starts = np.sort(np.array([attack.start for attack in attacks], "datetime64[us]"))
    ends = np.sort(np.array([attack.end for attack in attacks], "datetime64[us]"))
    begun, over = np.searchsorted(starts, times, "right"), np.searchsorted(ends, times, "right")
    labels[begun > over] = Label.ATTACK
    attacked = int((labels == Label.ATTACK).sum())
    notes.append(Note(what=f"no label column: attack rows come from {origin}", rows=attacked))
    return labels


def _without_useless(channels: pl.DataFrame, notes: list[Note]) -> pl.DataFrame:
    aggregates = [name for name in AGGREGATES if name in channels.columns]
    if aggregates:
        notes.append(Note(what=f"aggregates dropped: {', '.join(aggregates)}"))
    channels = channels.drop(aggregates)
    empty = _empty(channels)
    if empty:
        notes.append(Note(what=f"columns without a single reading dropped: {', '.join(empty)}"))
    return channels.drop(empty)


def _empty(channels: pl.DataFrame) -> list[str]:
    counts: Iterable[int] = channels.null_count().row(0)
    rows = len(channels)
    return [name for name, nulls in zip(channels.columns, counts, strict=True) if nulls == rows]


WADI = Format(
    name="wadi",
    title="WADI (October 2017)",
    version="1",
    recognises=recognises,
    load=load,
    fill=Fill.LINEAR,  # short gaps in the analysers 2B_AIT_004, 3_AIT_002, 1_AIT_002 and others
)
