"""SWaT, December 2015: six-stage water treatment (Goh et al. 2016), as .xlsx or .csv."""

from collections.abc import Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sluice.errors import RecordError
from sluice.telemetry.channel import Role
from sluice.telemetry.formats.format import Format
from sluice.telemetry.record import Label, Note
from sluice.telemetry.source import Container, Source
from sluice.telemetry.spreadsheet import first_rows, sheet
from sluice.telemetry.table import Table, clock, delimited, labels_from

__all__ = ["START_UP_S", "STRIDE", "SWAT"]

START_UP_S = 21_600
"""The paper drops the first six hours of the normal record, while the tanks fill."""

STRIDE = 5
"""The paper keeps every fifth row of both records."""

TIME = "timestamp"
LABEL = "normal/attack"
STAGES = {TIME, "fit101", "lit301", "fit601"}  # identify a SWaT file without labels
PROBED_ROWS = 5
CLOCKS = (
    "%d/%m/%y %I:%M:%S %p",  # before the next: %Y would read the year 15 as 0015
    "%d/%m/%Y %I:%M:%S %p",
    "%d/%m/%Y %H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
)
LABELS = {"normal": Label.NORMAL, "attack": Label.ATTACK}


def recognises(source: Source) -> bool:
    """Look for a Normal/Attack column, or tags of several stages, within the first rows."""
    return _header_row(source) is not None


def load(source: Source) -> Table:
    """Read either container, with or without the title row above the header."""
    row = _header_row(source)
    if row is None:
        raise RecordError(
            f"{source.path.name} has no SWaT header in its first {PROBED_ROWS} rows; expected "
            "Timestamp, FIT101, ..., Normal/Attack"
        )
    names = [name for name in _rows(source)[row] if name]
    time = _column(names, TIME, source)
    label = next((name for name in names if _is_label(name)), None)
    text = [time] if label is None else [time, label]
    if source.container is Container.EXCEL:
        frame = sheet(source, header_row=row, text=text)
    else:
        frame = delimited(source, header_line=row, text=text)
    notes = list(_header_notes(source, row))
    times = clock(frame[time], CLOCKS, name=source.path.name)
    labels = _labels(frame, label, source, notes)
    return Table(
        format=SWAT.name,
        frame=frame.drop(text),
        times=times,
        labels=labels,
        notes=tuple(notes),
    )


def _rows(source: Source) -> tuple[tuple[str, ...], ...]:
    if source.container is Container.EXCEL:
        return first_rows(source, PROBED_ROWS)
    return tuple(source.cells(line) for line in range(PROBED_ROWS))


def _header_row(source: Source) -> int | None:
    for row, cells in enumerate(_rows(source)):
        names = {cell.lower() for cell in cells}
        if any(map(_is_label, cells)) or names >= STAGES:
            return row
    return None


def _is_label(name: str) -> bool:
    return name.lower().startswith(LABEL)


def _column(names: Iterable[str], wanted: str, source: Source) -> str:
    for name in names:
        if name.lower() == wanted:
            return name
    raise RecordError(
        f"{source.path.name} has a Normal/Attack column but no Timestamp column; a record needs a "
        "clock: add the column or load the file as plain CSV with a plant file"
    )


def _header_notes(source: Source, row: int) -> Iterable[Note]:
    if row > 0:
        yield Note(what=f"header on row {row + 1}, below a title row")
    if source.container is Container.TEXT:
        cells = source.head[row].split(source.delimiter)
        blank = [cell.strip() for cell in cells if cell != cell.strip()]
        if blank:
            yield Note(what=f"stray blanks in the names of {', '.join(blank)}")


def _labels(
    frame: pl.DataFrame, column: str | None, source: Source, notes: list[Note]
) -> NDArray[np.int8]:
    if column is None:
        notes.append(Note(what="no Normal/Attack column: every row is unlabelled"))
        return np.full(len(frame), Label.UNLABELLED, np.int8)
    written = frame[column].cast(pl.String).str.strip_chars()
    split = written.str.contains(r"\s")
    if split.any():
        rows = np.flatnonzero(split.fill_null(value=False).to_numpy())
        spelling = written[int(rows[0])]
        what = f"label {spelling!r} read as {''.join(spelling.split())!r}"
        notes.append(Note(what=what, rows=rows.size, first_row=int(rows[0])))
    labels = labels_from(written, _label, name=source.path.name)
    unlabelled = np.flatnonzero(labels == Label.UNLABELLED)
    if unlabelled.size:
        what = "empty label cells: rows left unlabelled"
        notes.append(Note(what=what, rows=unlabelled.size, first_row=int(unlabelled[0])))
    return labels


def _label(value: object) -> Label | None:
    return LABELS.get("".join(str(value).split()).lower())


SWAT = Format(
    name="swat",
    title="SWaT (December 2015)",
    version="1",
    recognises=recognises,
    load=load,
    units=((Role.LEVEL, "mm"), (Role.FLOW, "m3/h")),
)
