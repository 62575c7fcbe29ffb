"""The file layouts in which a record can be written."""

from enum import StrEnum
from pathlib import Path

from sluice.errors import SettingError

__all__ = ["FileLayout", "layout_for"]


class FileLayout(StrEnum):
    """A file layout."""

    SWAT = "swat"
    WADI = "wadi"
    BATADAL = "batadal"
    CSV = "csv"
    PARQUET = "parquet"
    IPAL = "ipal"


SUFFIXES = {
    ".csv": FileLayout.CSV,
    ".csv.gz": FileLayout.CSV,
    ".parquet": FileLayout.PARQUET,
    ".state": FileLayout.IPAL,
    ".state.gz": FileLayout.IPAL,
    ".jsonl": FileLayout.IPAL,
    ".jsonl.gz": FileLayout.IPAL,
    ".json": FileLayout.IPAL,
    ".json.gz": FileLayout.IPAL,
}


def layout_for(path: Path) -> FileLayout:
    """Return the layout that a file name implies."""
    name = path.name.lower()
    for suffix, layout in SUFFIXES.items():
        if name.endswith(suffix):
            return layout
    raise SettingError(
        f"the file name {path.name!r} does not imply a layout; end it in "
        f"{', '.join(SUFFIXES)}, or give a layout ({', '.join(FileLayout)})"
    )
