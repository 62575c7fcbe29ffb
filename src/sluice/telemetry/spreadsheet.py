"""Workbooks (.xlsx): read the first rows cheaply, or the whole first sheet as a table."""

import logging
import re
import zipfile
import zlib
from collections.abc import Collection, Iterator
from itertools import islice
from typing import IO, Any
from xml.etree import ElementTree as ET  # expat itself bounds how far entities expand

import fastexcel
import polars as pl

from sluice.errors import RecordError
from sluice.telemetry.source import Source
from sluice.telemetry.table import numeric
from sluice.telemetry.workbook import (
    MOST_COLUMN,
    DamagedBookError,
    demand_limits,
    open_book,
    read_part,
)

__all__ = ["first_rows", "read_rows", "sheet", "sheet_heads", "strings"]

# fastexcel logs a warning for every column without readings, which is normal in plant files.
logging.getLogger("fastexcel").addHandler(logging.NullHandler())

UNREADABLE = (
    zipfile.BadZipFile,
    ET.ParseError,
    KeyError,
    IndexError,
    EOFError,
    ValueError,
    OSError,
    zlib.error,
    NotImplementedError,
    DamagedBookError,
)
REFERENCE = re.compile(r"([A-Z]+)([0-9]+)")
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
HEAD_BYTES = 2 << 20
"""Bytes of XML in which the first rows must stand."""
LARGEST_INDEX = 1 << 20
MOST_STRINGS = 1 << 20
MOST_INSIDE = 10_000
MOST_SHEETS = 64
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def first_rows(source: Source, count: int = 5) -> tuple[tuple[str, ...], ...]:
    """Return the stripped cells of the first sheet's rows 0..count-1.

    fastexcel decompresses the whole sheet to read any of it (20 s on SWaT), so this function
    streams only the first rows.
    """
    try:
        with open_book(source) as book:
            rows = [dict(row) for row in islice(_head(book, count), count)]
            wanted = [int(text) for row in rows for kind, text in row.values() if kind == "s"]
            shared = _shared_strings(book, wanted, most_bytes=source.limits.most_bytes)
            return tuple(
                tuple(
                    (shared[int(text)] if kind == "s" else text).strip()
                    for kind, text in (
                        row.get(at, ("", "")) for at in range(max(row, default=-1) + 1)
                    )
                )
                for row in rows
            )
    except UNREADABLE as error:
        raise _damaged(source, error) from None


def sheet(source: Source, *, header_row: int, text: Collection[str]) -> pl.DataFrame:
    """Read the first sheet below `header_row`: columns in `text` unchanged, others as numbers.

    Blanks around column names are stripped; unnamed columns without readings are dropped.
    """
    named = [name for name in first_rows(source, header_row + 1)[header_row] if name]
    if len(set(named)) < len(named):  # the library would give the second one a name of its own
        raise RecordError(
            f"{source.path.name} names a column more than once in row {header_row + 1}; "
            "every channel needs its own name"
        )
    # Infer a column's type from all rows: otherwise a single word late in a numeric column would
    # silently become a missing reading.
    frame = _loaded(source, header_row=header_row, schema_sample_rows=None)
    source.limits.demand_cells(len(frame), frame.width)
    unnamed = [
        name
        for name in frame.columns
        if name.startswith("__UNNAMED__") and frame[name].null_count() == len(frame)
    ]
    frame = frame.drop(unnamed)
    frame = frame.rename({name: name.strip() for name in frame.columns})
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    frame = frame.filter(~blank)
    if frame.is_empty():
        raise RecordError(f"{source.path.name} has a header but no rows")
    written = [
        pl.col(name).cast(pl.String)
        for name in text
        if name in frame.columns and not frame[name].dtype.is_temporal()
    ]
    return numeric(frame.with_columns(written), name=source.path.name, text=text)


def strings(source: Source) -> tuple[tuple[str, ...], ...]:
    """Return every row of a small first sheet as stripped strings; an empty cell is empty."""
    frame = _loaded(source, header_row=None, dtypes="string")
    return tuple(tuple((cell or "").strip() for cell in row) for row in frame.iter_rows())


def sheet_heads(source: Source, count: int) -> dict[str, list[tuple[str, ...]]]:
    """Return the first rows of every sheet as stripped strings; a sheet without cells has none."""
    try:
        demand_limits(source)
        book = fastexcel.read_excel(source.data)
        heads = {}
        for name in book.sheet_names[:MOST_SHEETS]:
            frame = book.load_sheet(
                name, header_row=None, skip_rows=0, n_rows=count, dtypes="string"
            ).to_polars()
            heads[name] = [tuple((cell or "").strip() for cell in row) for row in frame.iter_rows()]
    except (*UNREADABLE, fastexcel.FastExcelError, pl.exceptions.PolarsError) as error:
        raise _damaged(source, error) from None
    return heads


def read_rows(source: Source, *, sheet: str, first: int) -> pl.DataFrame:
    """Read a sheet from row `first` on; a column of mixed cells becomes texts."""
    frame = _loaded(source, sheet, header_row=None, skip_rows=first, schema_sample_rows=None)
    source.limits.demand_cells(len(frame), frame.width)
    return frame


def _loaded(source: Source, sheet: str | int = 0, **options: Any) -> pl.DataFrame:
    """Load a sheet after a check of what it would become in memory."""
    try:
        demand_limits(source)
        book = fastexcel.read_excel(source.data)
        frame: pl.DataFrame = book.load_sheet(sheet, **options).to_polars()
    except (*UNREADABLE, fastexcel.FastExcelError, pl.exceptions.PolarsError) as error:
        raise _damaged(source, error) from None
    return frame


def _damaged(source: Source, error: Exception) -> RecordError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return RecordError(
        f"{source.path.name} is not a workbook or is damaged ({reason}); fetch it again"
    )


def _head(book: zipfile.ZipFile, count: int) -> Iterator[dict[int, tuple[str, str]]]:
    """Yield rows 0..count-1 of the first sheet as column -> (kind, text)."""
    reached = 0
    with book.open(_first_sheet(book)) as stream:
        for _, element in ET.iterparse(_Opening(stream, HEAD_BYTES)):  # noqa: S314
            if element.tag != f"{MAIN}row":
                continue
            row = int(element.get("r", reached + 1)) - 1
            for _ in range(reached, min(row, count)):
                yield {}
            if row >= count:
                return
            yield dict(_cell(cell, at) for at, cell in enumerate(element.iter(f"{MAIN}c")))
            reached = row + 1
            if reached == count:
                return


class _Opening:
    """The first bytes of a stream; reading on is an error."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream = stream
        self._left = most

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes."""
        if self._left <= 0:
            raise DamagedBookError("what should stand at the start of a part does not")
        content = self._stream.read(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(content)
        return content


def _cell(cell: ET.Element, position: int) -> tuple[int, tuple[str, str]]:
    reference = REFERENCE.fullmatch(cell.get("r", ""))
    column = position if reference is None else _column(reference[1])
    if column >= MOST_COLUMN:
        raise DamagedBookError(f"a cell stands in column {cell.get('r', '')[:20]}")
    parts = cell.iter(f"{MAIN}t" if cell.get("t") == "inlineStr" else f"{MAIN}v")
    return column, (cell.get("t", "n"), "".join(part.text or "" for part in parts))


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _first_sheet(book: zipfile.ZipFile) -> str:
    index = _parsed_part(book, "xl/workbook.xml")
    first = index.find(f"{MAIN}sheets/{MAIN}sheet")
    if first is None:
        raise ValueError("a workbook without sheets")
    for relation in _parsed_part(book, "xl/_rels/workbook.xml.rels"):
        if relation.get("Id") == first.get(RELATION):
            target = relation.get("Target", "")
            return target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    raise ValueError("a workbook whose first sheet is missing")


def _parsed_part(book: zipfile.ZipFile, name: str) -> ET.Element:
    return ET.fromstring(read_part(book, name, most=LARGEST_INDEX))  # noqa: S314


def _shared_strings(book: zipfile.ZipFile, wanted: list[int], *, most_bytes: int) -> list[str]:
    """Return the shared texts up to the last wanted one."""
    texts: list[str] = []
    count = max(wanted, default=-1) + 1
    if count == 0:
        return texts
    if min(wanted) < 0 or count > MOST_STRINGS:
        raise DamagedBookError("a cell refers to a text that no workbook has")
    with book.open("xl/sharedStrings.xml") as stream:
        inside = 0  # elements since the last text
        parser = ET.iterparse(_Opening(stream, most_bytes), events=("start", "end"))  # noqa: S314
        _, root = next(parser)
        for event, element in parser:
            inside += event == "start"
            if inside > MOST_INSIDE:
                raise DamagedBookError("a shared text has too many parts")
            if event == "start" or element.tag != f"{MAIN}si":
                continue
            texts.append("".join(part.text or "" for part in element.iter(f"{MAIN}t")))
            root.clear()
            inside = 0
            if len(texts) == count:
                break
    return texts
