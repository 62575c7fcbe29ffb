"""Workbooks (.xlsx): the archive and its sheets are measured before a library reads them.

A workbook is a ZIP archive of XML. The library that reads it allocates a cell for every position up
to the last row and column, so one cell in a far corner costs as much as a full sheet. This module
measures what the library would allocate, and refuses a workbook that would become too large.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sluice.errors import RecordError
from sluice.telemetry.limits import ReadLimits
from sluice.telemetry.source import Source

__all__ = ["MOST_COLUMN", "DamagedBookError", "demand_limits", "open_book", "read_part"]

END = b"PK\x05\x06"
END_BYTES = 22
LOCATOR_64 = b"PK\x06\x07"
LOCATOR_BYTES = 20
LOCAL = b"PK\x03\x04"
LOCAL_BYTES = 30
MOST_PARTS = 4_096
ENCRYPTED = 0x1
CHUNK_BYTES = 1 << 20
LONGEST_TAG = 1 << 20
MOST_OTHER_TAGS = 500_000
"""Tags in parts that are neither sheets nor the table of texts, such as styles."""
MOST_ROW, MOST_COLUMN = 1_048_576, 16_384
FREE_CELLS = 500_000
CELLS_PER_BYTE = 1
FREE_POSITIONS = 2_000_000
POSITIONS_PER_BYTE = 4
"""Excel needs two to six compressed bytes for a cell. Positions include those without a cell."""


class DamagedBookError(Exception):
    """The file is not a workbook, or parts of it are missing or damaged."""


def open_book(source: Source) -> zipfile.ZipFile:
    """Open the archive; refuse one that another reader could understand in a different way.

    The directory must end the file, without a comment or a 64-bit version, and no name may stand
    twice.
    """
    data = source.data
    end = len(data) - END_BYTES
    if not data.startswith(END, max(end, 0)):
        raise DamagedBookError("its archive does not end with a directory")
    size, offset = (int.from_bytes(data[end + at : end + at + 4], "little") for at in (12, 16))
    if data[end + 20 :] != b"\x00\x00" or offset + size != end:
        raise DamagedBookError("its archive has something before or behind its directory")
    if data.startswith(LOCATOR_64, max(end - LOCATOR_BYTES, 0)):
        raise DamagedBookError("its archive has a 64-bit directory")
    book = zipfile.ZipFile(io.BytesIO(data))
    parts = book.infolist()
    if len(parts) > MOST_PARTS:
        raise DamagedBookError(f"its archive has {len(parts):,} parts")
    if len({part.filename.lower() for part in parts}) < len(parts):
        raise DamagedBookError("its archive has two parts of the same name")
    for part in parts:
        if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DamagedBookError(f"its part {part.filename!r} is compressed in another way")
        if part.flag_bits & ENCRYPTED:
            raise DamagedBookError("it is encrypted; save it without a password")
    return book


def read_part(book: zipfile.ZipFile, name: str, *, most: int) -> bytes:
    """Read a small part whole."""
    with book.open(name) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise DamagedBookError(f"its part {name!r} has more than {most:,} bytes")
    return content


def demand_limits(source: Source) -> None:
    """Raise a `RecordError` if the library that reads workbooks would need too much for this one.

    Every part is measured, because the library decides which parts it reads.
    """
    limits = source.limits
    expanded = longest = texts = references = other = 0
    with open_book(source) as book:
        for part in book.infolist():
            measured = _Measure()
            for chunk in _inflated(source.data, part):
                expanded += len(chunk)
                limits.demand_bytes(expanded)
                measured.add(chunk)
            measured.finish()
            if measured.is_sheet:
                _demand_cells(limits, measured)
            elif not measured.is_texts:
                other += measured.tags
            longest, texts = max(longest, measured.longest), texts + measured.texts
            references = max(references, measured.references)
    if other > MOST_OTHER_TAGS:
        raise DamagedBookError(f"its styles and other parts have {other:,} tags")
    _demand(limits, texts, "texts", FREE_CELLS + CELLS_PER_BYTE * limits.size)
    # Every cell that refers to a text becomes a copy of it.
    limits.demand_bytes(longest * references)


def _demand_cells(limits: ReadLimits, sheet: "_Measure") -> None:
    _demand(limits, sheet.cells, "cells", FREE_CELLS + CELLS_PER_BYTE * limits.size)
    # A row or a cell without a reference follows the one before. So the last one can be as far
    # behind the largest reference as there are rows, or cells in a row.
    rows, columns = sheet.last_row + sheet.rows, sheet.last_column + sheet.widest
    _demand(
        limits,
        rows * columns,
        f"positions up to row {rows:,} and column {columns:,}",
        FREE_POSITIONS + POSITIONS_PER_BYTE * limits.size,
    )


def _demand(limits: ReadLimits, count: int, what: str, most: int) -> None:
    if count > most:
        raise RecordError(
            f"{limits.name} has {limits.size:,} bytes but a sheet with {count:,} {what}; expected "
            f"at most {most:,} in a workbook of this size: remove cells far from the readings, or "
            "save the sheet as CSV"
        )


def _inflated(data: bytes, part: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the content of a part, all of it, even if it is longer than the directory says."""
    head = data[part.header_offset : part.header_offset + LOCAL_BYTES]
    if len(head) < LOCAL_BYTES or not head.startswith(LOCAL):
        raise DamagedBookError(f"its part {part.filename!r} is missing")
    names = sum(int.from_bytes(head[at : at + 2], "little") for at in (26, 28))
    start = part.header_offset + LOCAL_BYTES + names
    packed = memoryview(data)[start : start + part.compress_size]
    if part.compress_type == zipfile.ZIP_STORED:
        for at in range(0, len(packed), CHUNK_BYTES):
            yield bytes(packed[at : at + CHUNK_BYTES])
        return
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    for at in range(0, len(packed), CHUNK_BYTES):
        rest = bytes(packed[at : at + CHUNK_BYTES])
        while rest and not stream.eof:
            chunk = stream.decompress(rest, CHUNK_BYTES)
            if not chunk and len(stream.unconsumed_tail) == len(rest):
                raise DamagedBookError(f"its part {part.filename!r} cannot be decompressed")
            rest = stream.unconsumed_tail
            yield chunk
    if not stream.eof:
        raise DamagedBookError(f"its part {part.filename!r} ends early")


Bytes = NDArray[np.uint8]
SPACES = np.zeros(256, np.bool_)
SPACES[[*b" \t\r\n"]] = True
QUOTES = np.zeros(256, np.bool_)
QUOTES[[*b"\"'"]] = True
OPENS = np.zeros(256, np.bool_)  # the character before a tag's name, with or without a prefix
OPENS[[*b"<:"]] = True
CLOSES = SPACES.copy()  # the character behind a tag's name
CLOSES[[*b"/>"]] = True
MARGIN = b"\x00" * 16
UNUSUAL = re.compile(rb"[\s\"'][rt](?:\s+=\s*|=\s+)[\"']")
TEXTS = re.compile(rb"<(?:[^\s<>/:]+:)?sst[\s/>]")
MOST_LETTERS, MOST_DIGITS = 3, 7


class _Measure:
    """The size of one part as a sheet or as the table of texts, from its XML as bytes.

    It never counts too little: tags inside comments and texts count too.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._at = 0  # bytes before `_rest`
        self._in_row = 0  # cells since the last row began
        self._last_text: int | None = None
        self.is_sheet = False
        self.is_texts = False
        self.tags = 0
        self.rows = 0
        self.cells = 0
        self.widest = 0
        self.last_row = 0
        self.last_column = 0
        self.references = 0  # cells that refer to a text
        self.texts = 0
        self.longest = 0  # bytes of a text

    def add(self, chunk: bytes) -> None:
        """Measure up to the last tag, which may be incomplete."""
        content = self._rest + chunk
        cut = max(content.rfind(b"<"), 0)
        self._measure(content[:cut])
        self._rest = content[cut:]
        if len(self._rest) > LONGEST_TAG:
            if self.is_sheet or self.is_texts:
                raise DamagedBookError(f"a tag or text has more than {LONGEST_TAG:,} bytes")
            self._measure(self._rest)
            self._rest = b""

    def finish(self) -> None:
        """Measure the end."""
        self._measure(self._rest)
        self._rest = b""
        if self._last_text is not None:
            self.longest = max(self.longest, self._at - self._last_text)
        self.widest = max(self.widest, self._in_row)

    def _measure(self, content: bytes) -> None:
        if not content:
            return
        self.tags += content.count(b"<")
        self.is_sheet = self.is_sheet or b"sheetData" in content
        self.is_texts = self.is_texts or (b"sst" in content and TEXTS.search(content) is not None)
        if self.is_sheet or self.is_texts:
            letters = np.frombuffer(b"\x00" + content + MARGIN, np.uint8)
            if self.is_sheet:
                self._measure_sheet(letters, content)
            if self.is_texts:
                self._measure_texts(letters)
        self._at += len(content)

    def _measure_sheet(self, letters: Bytes, content: bytes) -> None:
        equals = np.flatnonzero(letters == ord("="))
        blank = SPACES[letters[equals - 1]] | SPACES[letters[equals + 1]]
        if blank.any() and UNUSUAL.search(content):
            raise DamagedBookError("its references have blanks around the equals sign")
        rows, cells = _tags(letters, b"row"), _tags(letters, b"c")
        self.rows += len(rows)
        self.cells += len(cells)
        before = np.searchsorted(cells, rows)  # cells before each row
        if len(rows):
            self.widest = max(
                self.widest, self._in_row + int(before[0]), int(np.diff(before).max(initial=0))
            )
            self._in_row = len(cells) - int(before[-1])
        else:
            self._in_row += len(cells)
        kinds = _values(letters, equals, ord("t"))
        self.references += int(((letters[kinds] == ord("s")) & QUOTES[letters[kinds + 1]]).sum())
        self._refer(letters, _values(letters, equals, ord("r")))

    def _refer(self, letters: Bytes, at: NDArray[np.int64]) -> None:
        """Follow the references of rows and cells, such as `r="AB12"`."""
        column = np.zeros(len(at), np.int64)
        row = np.zeros(len(at), np.int64)
        for _ in range(MOST_LETTERS):
            letter = letters[at] & 0xDF  # upper case
            is_letter = (letter >= ord("A")) & (letter <= ord("Z"))
            column = np.where(is_letter, column * 26 + (letter & 0x1F), column)
            at = at + is_letter
        for _ in range(MOST_DIGITS):
            digit = letters[at] - np.uint8(ord("0"))  # a smaller character wraps around
            is_digit = digit <= 9
            row = np.where(is_digit, row * 10 + digit, row)
            at = at + is_digit
        if not QUOTES[letters[at]].all():
            raise DamagedBookError("a reference of its cells is not like AB12")
        self.last_row = max(self.last_row, int(row.max(initial=0)))
        self.last_column = max(self.last_column, int(column.max(initial=0)))
        if self.last_row > MOST_ROW or self.last_column > MOST_COLUMN:
            raise DamagedBookError(
                f"a cell stands in row {self.last_row:,} or column {self.last_column:,}, outside "
                "of any sheet"
            )

    def _measure_texts(self, letters: Bytes) -> None:
        starts = _tags(letters, b"si")
        self.texts += len(starts)
        if not len(starts):
            return
        if self._last_text is not None:
            self.longest = max(self.longest, self._at + int(starts[0]) - self._last_text)
        self.longest = max(self.longest, int(np.diff(starts).max(initial=0)))
        self._last_text = self._at + int(starts[-1])


def _tags(letters: Bytes, name: bytes) -> NDArray[np.int64]:
    """Return where tags of a name begin; the first and the last letters are a margin."""
    end = len(letters) - len(MARGIN)
    at = np.flatnonzero(letters[1:end] == name[0]) + 1
    at = at[OPENS[letters[at - 1]]]
    for step, letter in enumerate(name[1:], 1):
        at = at[letters[at + step] == letter]
    at = at[CLOSES[letters[at + len(name)]]]
    return at.astype(np.int64)


def _values(letters: Bytes, equals: NDArray[np.int64], name: int) -> NDArray[np.int64]:
    """Return where the values of an attribute with a name of one letter begin."""
    at = equals[(letters[equals - 1] == name) & QUOTES[letters[equals + 1]]]
    values: NDArray[np.int64] = at[(SPACES | QUOTES)[letters[at - 2]]] + 2
    return values
