"""The makes of file that a record can be written as."""

from enum import StrEnum
from pathlib import Path

from sluice.errors import SettingError

__all__ = ["Layout", "layout_for"]


class Layout(StrEnum):
    """How a record lies on disk."""

    SWAT = "swat"
    WADI = "wadi"
    BATADAL = "batadal"
    CSV = "csv"
    PARQUET = "parquet"
    IPAL = "ipal"


SUFFIXES = {
    ".csv": Layout.CSV,
    ".csv.gz": Layout.CSV,
    ".parquet": Layout.PARQUET,
    ".state": Layout.IPAL,
    ".state.gz": Layout.IPAL,
    ".jsonl": Layout.IPAL,
    ".jsonl.gz": Layout.IPAL,
    ".json": Layout.IPAL,
    ".json.gz": Layout.IPAL,
}


def layout_for(path: Path) -> Layout:
    """Tell the layout from a file's name."""
    name = path.name.lower()
    for suffix, layout in SUFFIXES.items():
        if name.endswith(suffix):
            return layout
    raise SettingError(
        f"cannot tell from the name {path.name!r} how to write it; end it in "
        f"{', '.join(SUFFIXES)}, or name a layout ({', '.join(Layout)})"
    )
