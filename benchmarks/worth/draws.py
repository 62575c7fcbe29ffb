"""Plants that join a federation: their own clean rows, the others' rows, and rows to measure on."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from benchmarks.evidence.study import data_folder
from sluice.lab.plants import simulate
from sluice.seeding import stream
from sluice.telemetry import Record, read_record

__all__ = ["SUBJECTS", "Draw", "Subject"]

DAYS = (3, 7, 14)
BLOCK_DAYS = 30
SEASON_DAYS = 90
MEMBER_DAYS = 20  # of a block; the last 10 days of it are measured on in `season`
YEAR_BLOCKS = 12
LINE_MEMBERS = 10
LINE_DAY_ROWS = 1_440


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draw:
    """One plant that joins."""

    own: Record  # its clean rows
    contributes: bool  # whether it also is a member; with few rows, they only set thresholds
    members: tuple[Record, ...]  # of the others
    held: tuple[Record, ...]  # clean rows of the plant that no detector has read
    attacked: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A kind of draw: what it is, and how a seed makes one for each number of days."""

    name: str
    says: str
    days: tuple[int, ...]
    draw: Callable[[int, int], Draw]  # seed, days


@cache
def _batadal() -> tuple[Record, Record]:
    folder = data_folder() / "batadal"
    clean, attacked = "dataset03.csv", "dataset04_full_labels.csv"
    return read_record(folder / clean), read_record(folder / attacked)


def _block(year: Record, first_day: int, days: int) -> Record:
    """Return so many days; of a block that passes the end of the year, its longer part."""
    rows, first = len(year), (first_day * 24) % len(year)
    stop = first + days * 24
    if stop <= rows:
        return year.rows(first, stop)
    return year.rows(first, rows) if rows - first >= stop - rows else year.rows(0, stop - rows)


def _cold(seed: int, days: int) -> Draw:
    """A month of the year is the plant's; it has `days` days before the 14th."""
    year, attacked = _batadal()
    first = int(stream(seed, "worth", "cold").integers(0, len(year) // 24 - BLOCK_DAYS))
    return Draw(
        own=_block(year, first + DAYS[-1] - days, days),
        contributes=False,
        members=tuple(
            _block(year, first + BLOCK_DAYS * at, BLOCK_DAYS) for at in range(1, YEAR_BLOCKS)
        ),
        held=(_block(year, first + DAYS[-1], BLOCK_DAYS - DAYS[-1]),),
        attacked=attacked,
    )


def _season(seed: int, days: int) -> Draw:
    """Three months are the plant's; the months on the other side of the year are measured on."""
    year, attacked = _batadal()
    first = int(stream(seed, "worth", "season").integers(0, len(year) // 24 - days))
    blocks = [first + days + BLOCK_DAYS * at for at in range(YEAR_BLOCKS - days // BLOCK_DAYS)]
    opposite = blocks[len(blocks) // 2 - 1 : len(blocks) // 2 + 2]
    return Draw(
        own=year.rows(first * 24, (first + days) * 24),
        contributes=True,
        members=tuple(_block(year, each, MEMBER_DAYS) for each in blocks),
        held=tuple(_block(year, each + MEMBER_DAYS, BLOCK_DAYS - MEMBER_DAYS) for each in opposite),
        attacked=attacked,
    )


@cache
def _line_members() -> tuple[Record, ...]:
    return tuple(simulate("line", seed=300 + at, days=14) for at in range(LINE_MEMBERS))


def _line(seed: int, days: int) -> Draw:
    """A simulated plant with a row a minute among ten like it."""
    own = simulate("line", seed=seed, days=28)
    middle = DAYS[-1] * LINE_DAY_ROWS
    return Draw(
        own=own.rows(middle - days * LINE_DAY_ROWS, middle),
        contributes=False,
        members=_line_members(),
        held=(own.rows(middle, len(own)),),
        attacked=simulate("line", seed=seed + 100, days=10, attacks=True),
    )


SUBJECTS = (
    Subject(
        name="cold start",
        says=f"BATADAL's year, hourly. A drawn month is the plant that joins, and has 3, 7 or 14 "
        f"days of clean rows. The other {YEAR_BLOCKS - 1} months are the other members. Clean rows "
        f"are measured on the {BLOCK_DAYS - DAYS[-1]} days that follow, attacks on dataset04 (7 "
        "attacks)",
        days=DAYS,
        draw=_cold,
    ),
    Subject(
        name="unseen season",
        says=f"BATADAL's year, hourly. The plant has {SEASON_DAYS} clean days and is a member too. "
        "The other nine months are the other members, each with 20 days. Clean rows are measured "
        "on the last 10 days of the three months on the other side of the year, of which the plant "
        "has seen nothing; attacks on dataset04",
        days=(SEASON_DAYS,),
        draw=_season,
    ),
    Subject(
        name="row a minute",
        says="The simulated plant `line`, a row a minute. The plant has 3, 7 or 14 clean days, "
        f"and {LINE_MEMBERS} plants of other seeds are the other members, with 14 days each. Clean "
        "rows are measured on 14 days that follow, attacks on 10 days of another seed",
        days=DAYS,
        draw=_line,
    ),
)
