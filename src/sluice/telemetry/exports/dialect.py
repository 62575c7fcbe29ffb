"""The dialect of a text or sheet: its delimiter, its header, and the lines around the header."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sluice.errors import RecordError, SettingChoice, UnclearRecordError
from sluice.telemetry.exports.words import (
    MISSING_MARKS,
    QUALITY_NAMES,
    STATES,
    TIME_NAMES,
    is_status,
    is_unit,
    plain_word,
)

__all__ = [
    "PROBED_LINES",
    "Layout",
    "best_delimiter",
    "find_layout",
    "is_number",
    "is_time",
    "is_time_of_day",
    "quality_of_left",
]

PROBED_LINES = 60
LONGEST_CELL = 64
PROBED_CELLS = 64
"""Cells of a line that are looked at; a line can have thousands."""

NUMBER = re.compile(
    r"[+-]?(?:\d[\d.,'\u00a0\u202f ]*|[.,]\d+)(?:[eE][+-]?\d+)?|[+-]?inf|1\.#\w+|true|false",
    re.IGNORECASE,
)
DATE = re.compile(
    r"(?:\w{2,9}[.,]? )?(?:\d{4}[-/.年]\s?\d{1,2}[-/.月]\s?\d{1,2}日?"
    r"|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
    r"|\d{1,2}[-/. ]{1,2}[^\W\d_]{3,10}\.?[-/., ]{1,2}\d{2,4}|[^\W\d_]{3,10}\.? \d{1,2},? \d{4})"
    r"(?:[T ,]\s*[^;|\t]*)?"
)
TIME_OF_DAY = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?")

EPOCH = re.compile(r"\d{9,19}(?:[.,]\d*)?")


def is_number(cell: str) -> bool:
    """Return whether a cell looks like a number in some country."""
    return len(cell) <= LONGEST_CELL and NUMBER.fullmatch(cell) is not None


def is_time(cell: str) -> bool:
    """Return whether a cell looks like a date, with or without a time."""
    return len(cell) <= LONGEST_CELL and DATE.fullmatch(cell) is not None


def is_time_of_day(cell: str) -> bool:
    """Return whether a cell looks like a time of day without a date."""
    return TIME_OF_DAY.fullmatch(cell) is not None


def _typed(cell: str) -> bool:
    """Return whether a cell looks like data rather than like a name."""
    return (
        cell in MISSING_MARKS
        or is_number(cell)
        or is_time(cell)
        or is_time_of_day(cell)
        or plain_word(cell) in STATES
        or is_status(cell, among_numbers=True)
        or _has_unit(cell)
    )


def _has_unit(cell: str) -> bool:
    match = re.match(r"[+-]?[\d.,]+ ?", cell) if len(cell) <= LONGEST_CELL else None
    return match is not None and is_unit(cell[match.end() :])


def best_delimiter(table: dict[str, list[tuple[str, ...]]]) -> str | None:
    """Return the delimiter whose lines have equally many cells that look like data.

    `table` has the same lines, split by each delimiter. None means that no delimiter splits them.
    """
    best: tuple[float, int] = (-1.0, 0)
    chosen = None
    for mark, rows in table.items():
        counts = Counter(len(row) for row in rows if len(row) > 1)
        if not counts:
            continue
        width, lines = max(counts.items(), key=lambda each: (each[1], each[0]))
        if 2 * lines < len(rows):
            continue
        cells = [cell for row in rows if len(row) == width for cell in row[:PROBED_CELLS]]
        share = sum(map(_typed, cells)) / len(cells) * lines / len(rows)
        if (round(share, 3), width) > best:
            best, chosen = (round(share, 3), width), mark
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the header and the readings of a table stand, counted from 0."""

    header: int
    first: int  # line of the first reading
    names: tuple[str, ...]
    above: tuple[str, ...] = ()  # the line above the header, by column
    units: tuple[str, ...] = ()  # by column, empty without a line of units
    described: int = 0  # other lines between the header and the readings
    times: tuple[int, ...] = ()  # columns that look like times
    dotted_dates: bool = False


def find_layout(
    rows: Sequence[tuple[str, ...]], *, name: str, time: str = "", header_line: int = 0
) -> Layout:
    """Find the header of a table from its first rows.

    The header is the line with a time column's name, else the last line above the readings that
    has a name for every column and is not a line of units.
    """
    width = _width(rows)
    if all(not row[-1] for row in rows if len(row) == width > 2):
        # Readings end with a delimiter, but the header does not.
        rows = [(*row, "") if len(row) == width - 1 else row for row in rows]
    times = _time_columns(rows, width)
    first = _first_reading(rows, width, times)
    if header_line:
        if header_line > len(rows):
            raise RecordError(
                f"{name} has no header in line {header_line}, which the plant file names; it has "
                f"{len(rows)} lines"
            )
        header = header_line - 1
        first = max(first, header + 1)
    else:
        whole = [at for at in range(first) if len(rows[at]) == width and any(rows[at])]
        header = _header(rows, whole, times, name=name, time=time)
    between = rows[header + 1 : first]
    if header_line == 0 and any(any(map(is_number, row)) for row in between):
        first, between = header + 1, ()  # a reading without a time is not a line to skip
    units: tuple[str, ...] = ()
    described = 0
    for row in between:
        if _is_units(row):
            units = tuple(cell.strip("[]() ") if is_unit(cell) else "" for cell in row)
        elif any(row):
            described += 1
    dotted = any(
        re.match(r"\d{1,2}\.\d{1,2}\.\d{2}", row[at])
        for row in rows[first:]
        for at in times
        if at < len(row)
    )
    above = rows[header - 1] if header and len(rows[header - 1]) == len(rows[header]) else ()
    return Layout(
        header=header,
        first=first,
        names=rows[header] if rows else (),
        above=above,
        units=units,
        described=described,
        times=times,
        dotted_dates=dotted,
    )


def _width(rows: Sequence[tuple[str, ...]]) -> int:
    counts = Counter(len(row) for row in rows if any(row))
    return max(counts.items(), key=lambda each: (each[1], each[0]))[0] if counts else 0


def _time_columns(rows: Sequence[tuple[str, ...]], width: int) -> tuple[int, ...]:
    """Return the columns in which most cells of the last rows are times, with their dates."""
    body = [row for row in rows if len(row) == width][-PROBED_LINES // 2 :]
    for looks_like in (is_time, _is_epoch):
        found = []
        for at in range(min(width, 8 * PROBED_CELLS)):
            cells = [row[at] for row in body if row[at]]
            if cells and 2 * sum(map(looks_like, cells)) >= len(cells):
                found.append(at)
        if found:
            return tuple(found) if looks_like is is_time else tuple(found[:1])
    return ()


def _is_epoch(cell: str) -> bool:
    return EPOCH.fullmatch(cell) is not None


def _first_reading(rows: Sequence[tuple[str, ...]], width: int, times: tuple[int, ...]) -> int:
    named = False
    for number, row in enumerate(rows):
        if len(row) != width:
            continue
        if named and any(map(is_number, row)):
            return number
        named = named or (not times and any(plain_word(cell) in TIME_NAMES for cell in row))
        if times:
            # The clock is the column that is a time in most rows; a preamble's date is elsewhere.
            if is_time(row[times[0]]) or _is_epoch(row[times[0]]):
                return number
        elif any(map(is_number, row)) and all(map(_typed, row[:PROBED_CELLS])):
            return number
    return min(1, len(rows))


def _header(
    rows: Sequence[tuple[str, ...]],
    above: Sequence[int],
    times: tuple[int, ...],
    *,
    name: str,
    time: str,
) -> int:
    """Return the header among the lines above the readings that have a cell for every column."""
    if not above:
        if rows and any(map(is_number, rows[0])):
            raise RecordError(
                f"{name} has no header: its first line holds readings ({', '.join(rows[0][:3])}); "
                "export it again with a line of names"
            )
        # Lines of other widths: the first is the header, and the reader names the ragged ones.
        return 0
    for at in reversed(above):
        names = [plain_word(cell) for cell in rows[at]]
        if (time and time in rows[at]) or any(word in TIME_NAMES for word in names):
            return at
    named = [at for at in above if not _is_units(rows[at])]
    named = [at for at in named if _complete(rows[at], times)] or named or list(above)
    if len(named) > 1:
        raise UnclearRecordError(
            f"lines {', '.join(str(at + 1) for at in named[:4])} can all be the header",
            file=name,
            cure=f"[record] header_line = {named[-1] + 1}",
            choices=tuple(
                SettingChoice(
                    setting="header_line",
                    value=at + 1,
                    meaning=f"line {at + 1}: {', '.join(rows[at][:4])} ...",
                )
                for at in reversed(named[-4:])
            ),
        )
    return named[0]


def _complete(row: tuple[str, ...], times: tuple[int, ...]) -> bool:
    """Return whether every column has its own name; that of the clock may be empty."""
    names = [cell for at, cell in enumerate(row) if cell or at not in times]
    return all(names) and len(set(names)) == len(names)


def _is_units(row: tuple[str, ...]) -> bool:
    cells = [cell for cell in row if cell not in MISSING_MARKS and plain_word(cell)]
    return bool(cells) and sum(map(is_unit, cells)) >= max(1, len(cells) - 1)


def quality_of_left(names: Sequence[str]) -> tuple[str, ...]:
    """Name columns such as `Status` that stand behind each tag after the tag at their left."""
    counts = Counter(names)
    renamed = list(names)
    for at, (left, here) in enumerate(pairwise(names), 1):
        if counts[here] > 1 and plain_word(here) in QUALITY_NAMES and left:
            renamed[at] = f"{left} {here}"
    return tuple(renamed)
