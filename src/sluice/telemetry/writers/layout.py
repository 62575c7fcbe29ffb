"""The makes of file that a record can be written as."""

from enum import StrEnum
from pathlib import Path

from sluice.errors import SettingError

__all__ = ["FileLayout", "layout_for"]


class FileLayout(StrEnum):
    """How a record lies on disk."""

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
    """Tell the layout from a file's name."""
    name = path.name.lower()
    for suffix, layout in SUFFIXES.items():
        if name.endswith(suffix):
            return layout
    raise SettingError(
        f"cannot tell from the name {path.name!r} how to write it; end it in "
        f"{', '.join(SUFFIXES)}, or name a layout ({', '.join(FileLayout)})"
    )
