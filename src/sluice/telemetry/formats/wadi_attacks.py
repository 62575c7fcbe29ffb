"""The times of WADI's attacks: from the sheet beside the record, else as published."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from sluice.errors import RecordError
from sluice.telemetry.record import Note
from sluice.telemetry.source import Source
from sluice.telemetry.spreadsheet import strings

__all__ = ["PUBLISHED", "WadiAttack", "attacks_in"]

CAMPAIGN_YEAR = 2017
CAMPAIGN_MONTH = 10
CAMPAIGN_DAYS = (9, 10, 11)
DATE_LAYOUTS = ("%Y-%m-%d", "%d/%m/%Y", "%d-%m-%Y", "%d/%m/%y")
A_DAY = timedelta(days=1)
OVERLAP = timedelta(hours=1)
"""Phases of one attack may be listed slightly out of order; a wrong day is further off."""

TIME_OF_DAY = re.compile(r"(\d{1,2})[:.](\d{2})[:.](\d{2})(?:\.\d+)?\s*([AP]M)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class WadiAttack:
    """One interval, half open: the row at `end` is no longer under attack."""

    name: str
    start: datetime
    end: datetime


def _on(day: int, start: str, end: str, name: str) -> WadiAttack:
    day_of = date(CAMPAIGN_YEAR, CAMPAIGN_MONTH, day)
    return WadiAttack(
        name=name,
        start=datetime.combine(day_of, time.fromisoformat(start)),
        end=datetime.combine(day_of, time.fromisoformat(end)),
    )


PUBLISHED: tuple[WadiAttack, ...] = (
    _on(9, "19:25:00", "19:50:16", "1"),
    _on(10, "10:24:10", "10:34:00", "2"),
    _on(10, "10:55:00", "11:24:00", "3-4"),
    _on(10, "11:30:40", "11:44:50", "5"),
    _on(10, "13:39:30", "13:50:40", "6"),
    _on(10, "14:48:17", "14:59:55", "7"),
    _on(10, "14:53:44", "15:00:32", "7, second phase"),
    _on(10, "17:40:00", "17:49:40", "8"),
    _on(11, "10:55:00", "10:56:27", "9"),
    _on(11, "11:17:54", "11:31:20", "10"),
    _on(11, "11:36:31", "11:47:00", "11"),
    _on(11, "11:59:00", "12:05:00", "12"),
    _on(11, "12:07:30", "12:10:52", "13"),
    _on(11, "12:16:00", "12:25:36", "14"),
    _on(11, "15:26:30", "15:37:00", "15"),
)
"""The 15 attacks of October 2017: 14 segments and 9,971 rows, as the sheet gives them."""


def attacks_in(source: Source) -> tuple[tuple[WadiAttack, ...], tuple[Note, ...]]:
    """Read attack_description.xlsx; typing errors are repaired, each with a note."""
    rows = strings(source)
    header = next((at for at, row in enumerate(rows) if row and row[0] == "S.No"), None)
    if header is None:
        raise RecordError(
            f"{source.path.name} has no row that starts with 'S.No'; give the attack list of WADI "
            "or remove the file to use the published times"
        )
    names = rows[header]
    columns = [
        _column(names, wanted, source) for wanted in ("S.No", "Date", "Start Time", "End Time")
    ]
    notes: list[Note] = []
    cells = ([row[column] for column in columns] for row in rows[header + 1 :])
    attacks = tuple(_read(cells, source, notes))
    if not attacks:
        raise RecordError(f"{source.path.name} lists no attack below its 'S.No' row")
    return attacks, tuple(notes)


def _column(names: Sequence[str], wanted: str, source: Source) -> int:
    for at, name in enumerate(names):
        if " ".join(name.split()).lower() == wanted.lower():
            return at
    raise RecordError(
        f"{source.path.name} has no column {wanted!r}; it has {', '.join(filter(None, names))}"
    )


def _read(rows: Iterable[Sequence[str]], source: Source, notes: list[Note]) -> Iterator[WadiAttack]:
    day: date | None = None
    latest = datetime.combine(date(CAMPAIGN_YEAR, 1, 1), time())
    number = ""
    for written_number, written_day, written_start, written_end in rows:
        number = written_number.removesuffix(".0") or number
        if written_day:
            day = _day(written_day, number, source, notes)
        if not (written_start and written_end):
            continue
        if day is None:
            raise RecordError(f"{source.path.name}: attack {number} has times but no date above it")
        start = datetime.combine(day, _time(written_start, number, source))
        end = datetime.combine(day, _time(written_end, number, source))
        if end < start:
            end += A_DAY
            notes.append(Note(what=f"attack {number} ends before it starts: taken past midnight"))
        # The list is in time order: a dated row hours before the previous one has the wrong day.
        if written_day and start < latest - OVERLAP:
            start, end = start + A_DAY, end + A_DAY
            notes.append(
                Note(what=f"attack {number} is out of order: taken to be on {start:%d %B}")
            )
        day, latest = start.date(), start
        yield WadiAttack(name=number, start=start, end=end)


def _day(written: str, number: str, source: Source, notes: list[Note]) -> date:
    for layout in DATE_LAYOUTS:
        try:
            day = datetime.strptime(written.split(" ", 1)[0], layout).date()  # noqa: DTZ007
        except ValueError:
            continue
        if (day.year, day.month) == (CAMPAIGN_YEAR, CAMPAIGN_MONTH):
            return day
        if day.day in CAMPAIGN_DAYS:
            repaired = day.replace(year=CAMPAIGN_YEAR, month=CAMPAIGN_MONTH)
            notes.append(Note(what=f"attack {number} dated {day}: taken as {repaired}"))
            return repaired
    raise RecordError(
        f"{source.path.name}: attack {number} is dated {written!r}, which is not a day of the "
        "campaign of 9 to 11 October 2017; correct the sheet"
    )


def _time(written: str, number: str, source: Source) -> time:
    # Excel writes the date of its epoch before the time in a time cell.
    match = TIME_OF_DAY.fullmatch(re.sub(r"^\d{4}-\d{2}-\d{2} ", "", written))
    if match:
        hour, minute, second, half = match.groups()
        of_day = int(hour) if half is None else int(hour) % 12 + 12 * (half.upper() == "PM")
        try:
            return time(of_day, int(minute), int(second))
        except ValueError:
            pass
    raise RecordError(
        f"{source.path.name}: attack {number} has the time {written!r}; expected hh:mm:ss"
    )
