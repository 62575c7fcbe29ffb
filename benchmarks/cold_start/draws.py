"""Plants in their first days: months of BATADAL's year, and varied sites of `treatment`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from benchmarks.evidence.study import data_folder
from benchmarks.worth.draws import Draw
from sluice.lab.plants import VariedSite, simulate, varied_site
from sluice.telemetry import Placement, Record, read_record
from sluice.template import Template, derive_template, placements

__all__ = ["SUBJECTS", "Cell", "Subject"]

BLOCK_DAYS = 30
MONTHS = 12
OWN_UNTIL = 14  # the day of the month on which the plant's own rows end
HOURLY = 24

EVERY = 10  # of the rows of `treatment`, one a second: a row every 10 s
DAY_ROWS = 86_400 // EVERY
START_UP_S = 6 * 3_600.0
SITE_DAYS = 2.75  # with the start-up
SITE_OWN_UNTIL = 1.5  # days after the start-up
MEMBER_DAYS = 1.5  # with the start-up
ATTACKED_DAYS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a grid: the days that a plant has, how much sites differ, how many others."""

    days: float
    spread: float = 0.0
    members: int = MONTHS - 1
    draws: int = MONTHS

    @property
    def says(self) -> str:
        """The cell in words."""
        spread = f", spread {self.spread:g}" if self.spread else ""
        return f"{self.days:g} days{spread}, {self.members} members"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A kind of plant: its cells, and how a number makes a draw of one."""

    name: str
    says: str
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    draw: Callable[[int, Cell], Draw]


@cache
def _batadal() -> tuple[Record, Record]:
    folder = data_folder() / "batadal"
    return (
        read_record(folder / "dataset03.csv"),
        read_record(folder / "dataset04_full_labels.csv"),
    )


def _month(year: Record, month: int, first: int, last: int) -> Record:
    start = month * BLOCK_DAYS
    return year.rows((start + first) * HOURLY, (start + last) * HOURLY)


def _months(month: int, cell: Cell) -> Draw:
    """One month is the plant that joins; all others are the other members."""
    year, attacked = _batadal()
    others = [each for each in range(MONTHS) if each != month][: cell.members]
    return Draw(
        own=_month(year, month, OWN_UNTIL - int(cell.days), OWN_UNTIL),
        contributes=False,
        members=tuple(_month(year, each, 0, BLOCK_DAYS) for each in others),
        held=(_month(year, month, OWN_UNTIL, BLOCK_DAYS),),
        attacked=attacked,
    )


@cache
def _reference() -> tuple[Record, Template]:
    reference = _thinned(simulate("treatment", seed=50, days=MEMBER_DAYS))
    return reference, derive_template(reference)


def _thinned(record: Record) -> Record:
    return record.without_first(START_UP_S).every(EVERY)


def _placed(record: Record, placed: Mapping[str, Placement]) -> Record:
    """Return a site's record in the template's points and units."""
    values = np.column_stack([placed[tag].readings(record.column(tag)) for tag in placed])
    channels = tuple(placed[tag].place(record.channel(tag)) for tag in placed)
    return replace(record, channels=channels, values=values)


@lru_cache(maxsize=32)
def _member(seed: int, site: int, spread: float) -> Record:
    """Return a member's clean record in points of the template, sized by its first day."""
    clean = varied_site("treatment", site, seed=seed, days=MEMBER_DAYS, spread=spread)
    own = _thinned(clean.record)
    placed = placements(own.rows(0, DAY_ROWS), _reference()[1], clean.reference)
    return _placed(own, placed)


@lru_cache(maxsize=4)
def _joining(seed: int, spread: float) -> tuple[VariedSite, VariedSite]:
    """Return the clean and the attacked record of the site that joins, with its own tags."""
    clean = varied_site("treatment", 1, seed=seed, days=SITE_DAYS, spread=spread)
    attacked = varied_site(
        "treatment", 1, seed=seed, days=ATTACKED_DAYS, attacks=True, spread=spread
    )
    return clean, attacked


def _sites(seed: int, cell: Cell) -> Draw:
    """Site 1 joins; its few clean rows also say how large it is. Others are the members."""
    clean, attacked = _joining(seed, cell.spread)
    whole, until = _thinned(clean.record), round(SITE_OWN_UNTIL * DAY_ROWS)
    few = whole.rows(until - round(cell.days * DAY_ROWS), until)
    placed = placements(few, _reference()[1], clean.reference)
    return Draw(
        own=_placed(few, placed),
        contributes=False,
        members=(
            _reference()[0],
            *(_member(seed, site, cell.spread) for site in range(2, 1 + cell.members)),
        ),
        held=(_placed(whole.rows(until, len(whole)), placed),),
        attacked=_placed(attacked.record.every(EVERY), placed),
    )


SUBJECTS = (
    Subject(
        name="months of BATADAL",
        says="BATADAL's year, hourly, as 12 plants of 30 days. Each of them joins once, so there "
        "are 12 draws. It has the 3, 7 or 14 days before the 15th day. The other 11 months are the "
        "members, or the first 5 or 3 of them. Clean rows are measured on the 16 days that follow, "
        "attacks on dataset04 (7 attacks)",
        cells=tuple(
            Cell(days=days, members=members) for members in (11, 5, 3) for days in (3, 7, 14)
        ),
        seeds=tuple(range(MONTHS)),
        draw=_months,
    ),
    Subject(
        name="varied treatment sites",
        says="Sites of `treatment` with other tags, units, sizes and sensors, a row every 10 s, "
        "without the first 6 hours. Site 1 joins. The members are the reference plant and the "
        "sites after it, with 1.25 days each. The site has 1/16, 1/4 or 1 day of clean rows, which "
        "also say how large it is. Clean rows are measured on the day that follows, attacks on the "
        "first attacked day (8 attacks). Tags are mapped correctly",
        cells=tuple(
            Cell(days=days, spread=spread, members=members)
            for spread in (0.05, 0.15, 0.25)
            for members in (3, 5, 9)
            for days in (0.0625, 0.25, 1.0)
        ),
        seeds=tuple(range(100, 112)),
        draw=_sites,
    ),
)
