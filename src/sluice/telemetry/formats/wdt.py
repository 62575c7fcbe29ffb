"""WDT: the hardware-in-the-loop water distribution testbed (Faramondi et al. 2021)."""

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sluice.telemetry.formats.format import Format
from sluice.telemetry.record import Label, Note
from sluice.telemetry.source import Source
from sluice.telemetry.table import Table, clock, delimited, labels_from

__all__ = ["WDT"]

TIME = "Time"
FIRST_TAGS = {"Tank_1", "Pump_1", "Valv_1"}
NUMBERS = ("Label_n", "Lable_n")
WORDS = ("Label", "Lable")
NORMAL_WORDS = ("normal", "nomal")
CLOCKS = ("%d/%m/%y %H:%M:%S", "%d/%m/%Y %H:%M:%S")  # %Y would read the year 21 as 0021


def recognises(source: Source) -> bool:
    """Look for a Time column and the first tank, pump and valve."""
    names = set(source.cells(0))
    return TIME in names and names >= FIRST_TAGS


def load(source: Source) -> Table:
    """Read UTF-16 with tabs or UTF-8 with commas; the numeric label decides, not the word."""
    names = source.cells(0)
    number = next((name for name in NUMBERS if name in names), None)
    word = next((name for name in WORDS if name in names), None)
    frame = delimited(source, header_line=0, text=[TIME, *((word,) if word else ())])
    notes = list(_spelling(number))
    labels: NDArray[np.int8]
    if number is None:
        labels = np.full(len(frame), Label.UNLABELLED, np.int8)
        notes.append(Note(what="no Label_n column: every row is unlabelled"))
    else:
        labels = labels_from(frame[number], _label, name=source.path.name)
    if word is not None:
        notes.extend(_words(frame[word], labels))
    return Table(
        format=WDT.name,
        frame=frame.drop(TIME, *NUMBERS, *WORDS, strict=False),
        times=clock(frame[TIME], CLOCKS, name=source.path.name),
        labels=labels,
        notes=tuple(notes),
    )


def _spelling(number: str | None) -> Iterator[Note]:
    if number == NUMBERS[1]:
        yield Note(what=f"label column spelt {number!r}, read as {NUMBERS[0]!r}")


def _words(column: pl.Series, labels: NDArray[np.int8]) -> Iterator[Note]:
    words = column.str.strip_chars().str.to_lowercase().fill_null("")
    for word, count in words.value_counts(sort=True).iter_rows():
        first = int((words == word).arg_max() or 0)
        if word == NORMAL_WORDS[1]:
            yield Note(what=f"label {word!r} read as 'normal'", rows=count, first_row=first)
        elif word and word not in NORMAL_WORDS:
            yield Note(what=f"rows under attack by {word}", rows=count, first_row=first)
    unlike = words.is_in(NORMAL_WORDS).to_numpy() == (labels == Label.ATTACK)
    rows = np.flatnonzero(unlike & (words != "").to_numpy() & (labels != Label.UNLABELLED))
    if rows.size:
        what = "label word contradicts the label number: the number decides"
        yield Note(what=what, rows=rows.size, first_row=int(rows[0]))


def _label(value: object) -> Label | None:
    known = {0.0: Label.NORMAL, 1.0: Label.ATTACK}
    return known.get(value) if isinstance(value, float) else None


WDT = Format(
    name="wdt", title="Water Distribution Testbed", version="1", recognises=recognises, load=load
)
