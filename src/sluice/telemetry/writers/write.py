"""Write a record in a given layout."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from sluice.files import atomically
from sluice.telemetry.record import Record
from sluice.telemetry.writers import batadal, ipal, plain, swat, wadi
from sluice.telemetry.writers.layout import FileLayout

__all__ = ["write"]

WRITERS: dict[FileLayout, Callable[[Record, BinaryIO], None]] = {
    FileLayout.SWAT: swat.write,
    FileLayout.WADI: wadi.write,
    FileLayout.BATADAL: batadal.write,
    FileLayout.CSV: plain.write_csv,
    FileLayout.PARQUET: plain.write_parquet,
    FileLayout.IPAL: ipal.write,
}


def write(record: Record, path: str | Path, layout: FileLayout) -> None:
    """Write a record atomically: a failed write leaves no file."""
    path = Path(path)
    with atomically(path) as draft, _opened(draft, gzipped=path.suffix.lower() == ".gz") as out:
        WRITERS[layout](record, out)


@contextmanager
def _opened(path: Path, *, gzipped: bool) -> Iterator[BinaryIO]:
    with path.open("wb") as handle:
        if gzipped:
            # Without name and time stamp in the header, equal records give equal files.
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=handle, mtime=0) as archive:
                yield cast("BinaryIO", archive)
        else:
            yield handle
