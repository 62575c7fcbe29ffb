"""Slices of a record as options write them: a share in time order, or rows A:B."""

import re

from sluice.arrays import Run
from sluice.errors import SettingError
from sluice.telemetry import Record

__all__ = ["range_of", "slice_of"]

RANGE = re.compile(r"(\d*):(\d*)")


def slice_of(text: str, record: Record, *, after: int, option: str) -> Run:
    """Return the rows that an option asks for; a share begins at row `after`."""
    if ":" in text:
        return range_of(text, record, option=option)
    try:
        share = float(text)
    except ValueError:
        raise SettingError(
            f"{option} is {text!r}; it must be a share such as 0.15 or rows such as 0:5000"
        ) from None
    if not 0 < share <= 1:
        raise SettingError(f"{option} is {text}; a share lies above 0 and is at most 1")
    rows = int(share * len(record) + 1e-9)  # 0.15 of 94,680 rows is 14,202, also in floats
    if rows < 1 or after + rows > len(record):
        raise SettingError(
            f"{option} {text} asks for rows {after}:{after + rows}; record {record.name!r} has "
            f"rows 0:{len(record)}"
        )
    return Run(after, after + rows)


def range_of(text: str, record: Record, *, option: str) -> Run:
    """Return rows A:B, B left out, as Python slices are; either end may be left out."""
    found = RANGE.fullmatch(text.strip())
    if not found:
        raise SettingError(f"{option} is {text!r}; rows are given as A:B, such as 0:5000")
    start = int(found[1] or 0)
    stop = int(found[2] or len(record))
    if not start < stop <= len(record):
        raise SettingError(f"{option} is {text}; record {record.name!r} has rows 0:{len(record)}")
    return Run(start, stop)
