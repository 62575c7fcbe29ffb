"""The output of a loader: numeric columns, times and labels, before roles are inferred."""

import io
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sluice.arrays import Times
from sluice.errors import RecordError, SettingChoice
from sluice.telemetry.plantfile import Declaration
from sluice.telemetry.record import Label, Note
from sluice.telemetry.source import Source, cut

__all__ = [
    "FURTHEST_S",
    "CellLayout",
    "Table",
    "clock",
    "delimited",
    "from_epoch",
    "labels_from",
    "numeric",
    "parse_cells",
]

MISSING_MARKERS = (
    "", "NaN", "nan", "NA", "N/A", "#N/A", "null", "NULL", "None", "-", "1.#QNAN", "-1.#IND",
    "Bad", "Bad Input", "No Data", "I/O Timeout", "Comm Fail",
)  # fmt: skip
"""The markers that historians write for a missing reading."""

FURTHEST_S = 1e12  # from 1970
TRUTH = {"true": 1.0, "false": 0.0}
LINE_FEED = b"\n"
HEADER_BYTES = 1 << 20  # every header ends before this


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A loader's output: one Float64 column per channel, null where missing."""

    format: str
    frame: pl.DataFrame
    times: Times
    labels: NDArray[np.int8]
    notes: tuple[Note, ...] = ()
    declared: Mapping[str, Declaration] = field(default_factory=dict)  # by the file itself
    settings: tuple[SettingChoice, ...] = ()  # what the loader decided, as a plant file declares it
    utc: bool = False  # times were converted to UTC
    events: bool = False  # the tags have times of their own, so most cells are empty


def delimited(source: Source, *, header_line: int, text: Collection[str]) -> pl.DataFrame:
    """Read delimited text: the columns in `text` as strings, all others as numbers.

    Blanks around column names are stripped. Rows longer or shorter than the header, non-numeric
    cells and repeated tags are errors; the message names the line, row or tag.
    """
    body = source.text
    names = _header(source, body, header_line)
    frame, _ = parse_cells(
        source,
        body,
        CellLayout(
            names=tuple(names),
            delimiter=source.delimiter,
            first_line=header_line + 1,
            text=frozenset(text),
            missing=MISSING_MARKERS,
        ),
        numbers=True,
    )
    return numeric(frame, name=source.path.name, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellLayout:
    """Where the cells of a text stand, and which of them are no numbers."""

    names: tuple[str, ...]
    delimiter: str
    first_line: int  # counted from 0
    text: frozenset[str]  # columns that are never numbers
    missing: tuple[str, ...]  # marks of an empty cell


def parse_cells(
    source: Source, body: bytes, layout: CellLayout, *, numbers: bool
) -> tuple[pl.DataFrame, bool]:
    """Parse the lines of a text; return also whether its numbers were parsed.

    With `numbers`, columns become numbers if all their cells are plain numbers. Otherwise, all
    columns are texts.
    """
    names, delimiter, first_line = layout.names, layout.delimiter, layout.first_line
    source.limits.demand_cells(body.count(LINE_FEED), len(names))
    _refuse_ragged(source, body, first_line - 1, len(names), delimiter)
    typed = {name: pl.String if name in layout.text else pl.Float64 for name in names}
    strings = dict.fromkeys(names, pl.String)
    frame, parsed = None, False
    if numbers:
        with suppress(pl.exceptions.PolarsError):
            frame, parsed = _parse(body, layout, typed), True
    if frame is None:
        # Some cell is not a plain number: read all cells as strings and convert them one by one.
        try:
            frame = _parse(body, layout, strings)
        except pl.exceptions.PolarsError as error:
            raise RecordError(
                f"{source.path.name} is not readable as text separated by {delimiter!r}: "
                f"{str(error).splitlines()[0]}"
            ) from None
    frame = _without_blank_tail(frame)
    if frame.is_empty():
        raise RecordError(f"{source.path.name} has a header but no rows")
    return frame, parsed


def numeric(frame: pl.DataFrame, *, name: str, text: Collection[str] = ()) -> pl.DataFrame:
    """Convert every column except those in `text` to Float64; an unreadable cell is an error."""
    return frame.with_columns(
        _numbers(frame[column], name) for column in frame.columns if column not in text
    )


def clock(texts: pl.Series, formats: Collection[str], *, name: str) -> Times:
    """Parse time stamps with the first format that fits the first row; all rows must fit it."""
    if texts.dtype.is_temporal():
        return texts.cast(pl.Datetime("us")).to_numpy()
    stripped = texts.str.strip_chars()
    for layout in formats:
        if stripped.head(1).str.to_datetime(layout, strict=False).null_count():
            continue
        times = stripped.str.to_datetime(layout, time_unit="us", strict=False)
        if times.null_count():
            row = int(times.is_null().arg_max() or 0)
            raise RecordError(
                f"{name}: row {row} has the time stamp {texts[row]!r}, the first row {texts[0]!r}; "
                "every row needs the same format"
            )
        return times.to_numpy()
    raise RecordError(
        f"{name}: cannot read the time stamp {texts[0]!r}; expected one of {', '.join(formats)}"
    )


def from_epoch(seconds: pl.Series, written: pl.Series, *, name: str) -> Times:
    """Return the times of seconds since 1970; an error shows the time as it is `written`."""
    unreadable = seconds.is_null() | seconds.is_nan() | (seconds.abs() > FURTHEST_S)
    if unreadable.any():
        row = int(unreadable.arg_max() or 0)
        raise RecordError(
            f"{name}: row {row} has the time stamp {written[row]!r}; expected seconds since 1970"
        )
    microseconds = np.rint(seconds.to_numpy() * 1e6).astype(np.int64)
    return microseconds.astype("datetime64[us]")


def labels_from(
    column: pl.Series, known: Callable[[object], Label | None], *, name: str
) -> NDArray[np.int8]:
    """Translate a label column; a value for which `known` returns None is an error."""
    translated: dict[object, int] = {}
    for value in column.unique().to_list():
        label = Label.UNLABELLED if value is None else known(value)
        if label is None:
            raise RecordError(
                f"{name}: label column {column.name!r} holds {value!r}, which means neither normal "
                "nor attack here; declare its meaning in a plant file"
            )
        translated[value] = int(label)
    return column.replace_strict(translated, return_dtype=pl.Int8).to_numpy()


def _header(source: Source, body: bytes, header_line: int) -> list[str]:
    line = (
        body[:HEADER_BYTES].split(LINE_FEED, header_line + 1)[header_line].decode(errors="replace")
    )
    names = cut(line.strip("\r"), source.delimiter)
    if len(names) < 2:
        raise RecordError(
            f"{source.path.name} has one column at most ({names[0][:40]!r}); expected cells "
            "separated by a comma, tab, semicolon or bar"
        )
    # A trailing delimiter makes one unnamed last column.
    repeated = sorted(name for name, count in Counter(names).items() if name and count > 1)
    if repeated:
        raise RecordError(
            f"{source.path.name} names {', '.join(map(repr, repeated[:4]))} more than once in its "
            "header; every channel needs its own name"
        )
    return [name or f"unnamed {position}" for position, name in enumerate(names)]


def _refuse_ragged(source: Source, body: bytes, header_line: int, columns: int, mark: str) -> None:
    below = -1
    for _ in range(header_line + 1):
        below = body.find(LINE_FEED, below + 1)
    if body.count(b'"', below):
        return  # quoted cells may contain delimiters; the parser checks such files
    delimiter = mark.encode()
    rows = body.count(LINE_FEED, below + 1) + (not body.endswith(LINE_FEED))
    if body.count(delimiter, below + 1) == rows * (columns - 1):
        return  # the total fits; the parser checks whether a long and a short row cancel out
    for number, line in enumerate(io.BytesIO(body)):
        cells = line.count(delimiter) + 1
        if number > header_line and line.strip(b"\r\n ") and cells != columns:
            raise RecordError(
                f"{source.path.name} is truncated or ragged: line {number + 1} has {cells} cells, "
                f"the header {columns}; fetch or export the file again"
            )


def _parse(
    body: bytes, layout: CellLayout, schema: Mapping[str, type[pl.DataType]]
) -> pl.DataFrame:
    return pl.read_csv(
        io.BytesIO(body),
        has_header=False,
        separator=layout.delimiter,
        skip_lines=layout.first_line,
        schema=schema,
        null_values=list(layout.missing),
        encoding="utf8-lossy",
        raise_if_empty=False,
    )


def _without_blank_tail(frame: pl.DataFrame) -> pl.DataFrame:
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    return frame.filter(~blank)


def _numbers(column: pl.Series, name: str) -> pl.Series:
    if column.dtype != pl.String:
        return column.cast(pl.Float64)
    stripped = column.str.strip_chars()
    stripped = stripped.set(stripped.is_in(MISSING_MARKERS), None)
    lowered = stripped.str.to_lowercase()
    truths = lowered.replace_strict(TRUTH, default=None, return_dtype=pl.Float64)
    numbers = stripped.cast(pl.Float64, strict=False)
    merged = numbers.zip_with(numbers.is_not_null(), truths)
    unreadable = merged.is_null() & stripped.is_not_null()
    if unreadable.any():
        row = int(unreadable.arg_max() or 0)
        raise RecordError(
            f"{name}: channel {column.name!r} holds {column[row]!r} at row {row} "
            f"({unreadable.sum()} such cells); expected a number or nothing"
        )
    return merged
