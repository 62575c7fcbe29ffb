"""Parquet files: what a file declares is compared with its size before any page is decompressed.

The footer and the page headers are in Thrift's compact encoding. They say how many rows there are
and how large each page becomes. A library that reads a file allocates what they say.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from sluice.errors import RecordError
from sluice.telemetry.source import Source

__all__ = ["read_parquet"]

MAGIC = b"PAR1"
TAIL_BYTES = 8  # the footer's length and the magic number
LARGEST_FOOTER = 16 << 20
MOST_FIELDS = 1_000_000
MOST_LEVELS = 12
BOUNDED_ENCODINGS = {
    0: "PLAIN",
    2: "PLAIN_DICTIONARY",
    3: "RLE",
    8: "RLE_DICTIONARY",
    9: "BYTE_STREAM_SPLIT",
}
"""With these, a page header says how much a page becomes. With the delta encodings it does not: a
hundred bytes can become gigabytes."""


def read_parquet(source: Source) -> pl.DataFrame:
    """Read a Parquet file whose rows, pages and texts are within the limits of its size."""
    try:
        _demand_limits(source)
        frame = pl.read_parquet(io.BytesIO(source.data))
    except (_MalformedError, pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RecordError(
            f"{source.path.name} is a damaged Parquet file: {reason}; fetch it again"
        ) from None
    for name, kind in frame.schema.items():
        if isinstance(kind, pl.String | pl.Categorical | pl.Enum):
            # Rows can share one long text in memory, but not in what is made of it.
            length = frame[name].cast(pl.String).str.len_bytes().sum()
            source.limits.demand_bytes(int(length or 0))
        elif not (kind.is_numeric() or kind.is_temporal() or kind in (pl.Boolean, pl.Null)):
            raise RecordError(
                f"{source.path.name}: column {name!r} holds {kind}; expected numbers, times or text"
            )
    return frame


def _demand_limits(source: Source) -> None:
    """Raise a `RecordError` if the file would become larger than it may."""
    data, limits = source.data, source.limits
    footer = _footer(data)
    schema = _items(footer.get(2))
    columns = len(schema) - 1
    nested = [element for element in schema[1:] if _number(element, 5)]
    if nested:
        raise RecordError(
            f"{source.path.name} has nested columns; expected one number, time or text in each cell"
        )
    rows, expanded, values = _number(footer, 3), 0, 0
    limits.demand_cells(rows, columns)
    grouped = 0
    for group in _items(footer.get(4)):
        grouped += _number(group, 3)
        limits.demand_cells(grouped, columns)
        for chunk in _items(group.get(1)):
            for page in _pages(data, chunk.get(3)):
                if page.encoding not in BOUNDED_ENCODINGS:
                    raise RecordError(
                        f"{source.path.name} uses Parquet's encoding {page.encoding}; expected one "
                        f"of {', '.join(BOUNDED_ENCODINGS.values())}, because with others a small "
                        "file can become arbitrarily large: write it again with one of these"
                    )
                expanded += page.size
                values += page.values
                limits.demand_bytes(expanded)
                limits.demand_cells(values, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """What a page header declares."""

    size: int  # bytes after decompression
    values: int
    encoding: int


def _pages(data: bytes, column: Any) -> Iterator[_Page]:
    """Yield the pages of a column in one row group."""
    start, offset = _number(column, 9), _number(column, 11)
    at = min(start, offset) if offset else start
    end = at + _number(column, 7)
    if not len(MAGIC) <= at <= end <= len(data):
        raise _MalformedError("a column lies outside the file")
    while at < end:
        reader = _Thrift(data, at)
        header = reader.struct()
        body = header.get(5) or header.get(7) or header.get(8) or {}
        second = 4 if 8 in header else 2  # where the encoding stands, by version of the page
        yield _Page(
            size=_number(header, 2),
            values=_number(body, 1),
            encoding=_number(body, second),
        )
        at = reader.at + _number(header, 3)


def _footer(data: bytes) -> dict[int, Any]:
    if len(data) < len(MAGIC) + TAIL_BYTES or not data.endswith(MAGIC):
        raise _MalformedError("it does not end with a footer")
    length = int.from_bytes(data[-TAIL_BYTES : -len(MAGIC)], "little")
    start = len(data) - TAIL_BYTES - length
    if length > LARGEST_FOOTER or start < len(MAGIC):
        raise _MalformedError(f"its footer has {length:,} bytes")
    return _Thrift(data, start).struct()


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _MalformedError("its footer lacks a list")
    return value


def _number(value: Any, field: int) -> int:
    """Return a field that counts something; 0 if it is missing."""
    number = value.get(field, 0) if isinstance(value, dict) else None
    if not isinstance(number, int) or number < 0:
        raise _MalformedError(f"its footer or a page has no number in field {field}")
    return number


class _MalformedError(Exception):
    """The bytes are not a Parquet file."""


class _Thrift:
    """Reads values in Thrift's compact encoding: numbers, bytes, lists and structures."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._fields = 0
        self.at = at

    def struct(self, level: int = 0) -> dict[int, Any]:
        """Read a structure as its fields by number."""
        if level > MOST_LEVELS:
            raise _MalformedError("its structures are nested too deeply")
        found: dict[int, Any] = {}
        field = 0
        while kind := self._byte():
            delta, kind = kind >> 4, kind & 0x0F
            field = field + delta if delta else self._signed()
            found[field] = self._value(kind, level, element=False)
        return found

    def _value(self, kind: int, level: int, *, element: bool) -> Any:
        self._fields += 1
        if self._fields > MOST_FIELDS:
            raise _MalformedError(f"its footer has more than {MOST_FIELDS:,} fields")
        value: Any
        match kind:
            case 1 | 2:
                value = self._byte() == 1 if element else kind == 1
            case 3:
                value = self._byte()
            case 4 | 5 | 6:
                value = self._signed()
            case 7:
                value = self._bytes(8)
            case 8:
                value = self._bytes(self._unsigned())
            case 9 | 10:
                value = self._list(level)
            case 12:
                value = self.struct(level + 1)
            case _:
                raise _MalformedError(f"its footer has a field of unknown type {kind}")
        return value

    def _list(self, level: int) -> list[Any]:
        head = self._byte()
        count, kind = head >> 4, head & 0x0F
        if count == 0x0F:
            count = self._unsigned()
        if count > len(self._data) - self.at:
            raise _MalformedError("its footer has a list that is longer than the file")
        return [self._value(kind, level + 1, element=True) for _ in range(count)]

    def _byte(self) -> int:
        if self.at >= len(self._data):
            raise _MalformedError("its footer or a page header ends early")
        self.at += 1
        return self._data[self.at - 1]

    def _bytes(self, count: int) -> bytes:
        if count > len(self._data) - self.at:
            raise _MalformedError("its footer or a page header ends early")
        self.at += count
        return self._data[self.at - count : self.at]

    def _unsigned(self) -> int:
        number = shift = 0
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
            if shift > 63:
                raise _MalformedError("a number of its footer is too long")

    def _signed(self) -> int:
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)
