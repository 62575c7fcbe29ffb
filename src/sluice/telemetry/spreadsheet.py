"""Workbooks (.xlsx): read the first rows cheaply, or the whole first sheet as a table."""

import io
import logging
import re
import zipfile
from collections.abc import Collection, Iterator
from xml.etree import ElementTree as ET  # expat itself bounds how far entities expand

import fastexcel
import polars as pl

from sluice.errors import RecordError
from sluice.telemetry.source import Source
from sluice.telemetry.table import numeric

__all__ = ["first_rows", "sheet", "strings"]

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
)
REFERENCE = re.compile(r"([A-Z]+)([0-9]+)")
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def first_rows(source: Source, count: int = 5) -> tuple[tuple[str, ...], ...]:
    """Return the stripped cells of the first sheet's rows 0..count-1.

    fastexcel decompresses the whole sheet to read any of it (20 s on SWaT), so this function
    streams only the first rows.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(source.data)) as book:
            rows = [dict(row) for row in _head(book, count)]
            wanted = [int(text) for row in rows for kind, text in row.values() if kind == "s"]
            shared = _shared_strings(book, max(wanted, default=-1) + 1)
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
    try:
        # Infer a column's type from all rows: otherwise a single word late in a numeric column
        # would silently become a missing reading.
        frame = (
            fastexcel.read_excel(source.data)
            .load_sheet(0, header_row=header_row, schema_sample_rows=None)
            .to_polars()
        )
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError) as error:
        raise _damaged(source, error) from None
    unnamed = [
        name
        for name in frame.columns
        if name.startswith("__UNNAMED__") and frame[name].null_count() == len(frame)
    ]
    frame = frame.drop(unnamed)
    stripped = {name: name.strip() for name in frame.columns}
    if len(set(stripped.values())) < len(stripped):
        raise RecordError(
            f"{source.path.name} names a column more than once in row {header_row + 1}; "
            "every channel needs its own name"
        )
    frame = frame.rename(stripped)
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    frame = frame.filter(~blank)
    if frame.is_empty():
        raise RecordError(f"{source.path.name} has a header but no rows")
    return numeric(frame, name=source.path.name, text=text)


def strings(source: Source) -> tuple[tuple[str, ...], ...]:
    """Return every row of a small first sheet as stripped strings; an empty cell is empty."""
    try:
        frame = (
            fastexcel.read_excel(source.data)
            .load_sheet(0, header_row=None, dtypes="string")
            .to_polars()
        )
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError) as error:
        raise _damaged(source, error) from None
    return tuple(tuple((cell or "").strip() for cell in row) for row in frame.iter_rows())


def _damaged(source: Source, error: Exception) -> RecordError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return RecordError(
        f"{source.path.name} is not a workbook or is damaged ({reason}); fetch it again"
    )


def _head(book: zipfile.ZipFile, count: int) -> Iterator[dict[int, tuple[str, str]]]:
    """Yield rows 0..count-1 of the first sheet as column -> (kind, text)."""
    reached = 0
    with book.open(_first_sheet(book)) as stream:
        for _, element in ET.iterparse(stream):  # noqa: S314
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


def _cell(cell: ET.Element, position: int) -> tuple[int, tuple[str, str]]:
    reference = REFERENCE.fullmatch(cell.get("r", ""))
    column = position if reference is None else _column(reference[1])
    parts = cell.iter(f"{MAIN}t" if cell.get("t") == "inlineStr" else f"{MAIN}v")
    return column, (cell.get("t", "n"), "".join(part.text or "" for part in parts))


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _first_sheet(book: zipfile.ZipFile) -> str:
    first = ET.fromstring(book.read("xl/workbook.xml")).find(f"{MAIN}sheets/{MAIN}sheet")  # noqa: S314
    if first is None:
        raise ValueError("a workbook without sheets")
    for relation in ET.fromstring(book.read("xl/_rels/workbook.xml.rels")):  # noqa: S314
        if relation.get("Id") == first.get(RELATION):
            target = relation.get("Target", "")
            return target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    raise ValueError("a workbook whose first sheet is missing")


def _shared_strings(book: zipfile.ZipFile, count: int) -> list[str]:
    texts: list[str] = []
    if count == 0:
        return texts
    with book.open("xl/sharedStrings.xml") as stream:
        for _, element in ET.iterparse(stream):  # noqa: S314
            if element.tag != f"{MAIN}si":
                continue
            texts.append("".join(part.text or "" for part in element.iter(f"{MAIN}t")))
            element.clear()
            if len(texts) == count:
                break
    return texts
