"""Limits of reading: how far a record may grow in memory, compared with its file.

A file of a kilobyte can hold a gigabyte of blanks, or one cell a million rows below the others. A
reader therefore compares what a file would become with what it is, before it parses the file.
"""

from dataclasses import dataclass

from sluice.errors import RecordError

__all__ = ["LARGEST_RECORD", "MOST_COLUMNS", "ReadLimits"]

LARGEST_RECORD = 8 << 30
"""Bytes of the largest record file."""
FREE_BYTES = 32 << 20
BYTES_PER_BYTE = 64
"""Telemetry as text shrinks to a fifth or a tenth when it is compressed; blanks to a thousandth."""
FREE_CELLS = 1_000_000
CELLS_PER_BYTE = 8
MOST_COLUMNS = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """What one file may become."""

    name: str
    size: int  # bytes on disk

    @property
    def most_bytes(self) -> int:
        """The most bytes that the file may have after decompression."""
        return FREE_BYTES + BYTES_PER_BYTE * self.size

    @property
    def most_cells(self) -> int:
        """The most cells, which are rows times columns, that the file may have."""
        return FREE_CELLS + CELLS_PER_BYTE * self.size

    def demand_bytes(self, count: int) -> None:
        """Raise a `RecordError` if the file has more bytes after decompression than it may have."""
        if count > self.most_bytes:
            raise RecordError(
                f"{self.name} grows from {self.size:,} bytes to more than {self.most_bytes:,} when "
                "it is decompressed; a plant record does not shrink that much: fetch it again, or "
                "decompress it yourself and give the result"
            )

    def demand_cells(self, rows: int, columns: int) -> None:
        """Raise a `RecordError` if the file has more columns or cells than it may have."""
        if columns > MOST_COLUMNS:
            raise RecordError(
                f"{self.name} has {columns:,} columns; expected at most {MOST_COLUMNS:,}: give a "
                "record with fewer channels"
            )
        if rows * columns > self.most_cells:
            raise RecordError(
                f"{self.name} has {self.size:,} bytes but {rows:,} rows of {columns:,} columns; "
                f"expected at most {self.most_cells:,} cells in a file of this size: fetch it "
                "again, or give it as uncompressed CSV"
            )
