"""Honest shards of real and simulated plants: disjoint stretches after the mined rows."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sluice.invariants import Profile, RuleSet
from sluice.invariants.mining import mine
from sluice.lab.plants import simulate
from sluice.telemetry import Record, read_record

__all__ = ["PLANTS", "Shards", "absent", "shards_of"]

START_UP_S = 6 * 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A record, the rows to mine, and how to cut the rest into shards."""

    make: Callable[[], Record]
    fit: int  # rows to fit on
    calibrated: int  # rows up to which to calibrate
    rows: int  # of a shard
    shards: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """A plant's rules, and disjoint stretches of rows that were not mined."""

    plant: str
    rules: RuleSet
    honest: tuple[Record, ...]


def shards_of(plant: str) -> Shards:
    """Mine a plant and cut its remaining rows into shards."""
    source = PLANTS[plant]
    record = source.make()
    fit, calibrated = source.fit, source.calibrated
    rules = mine(record.rows(0, fit), record.rows(fit, calibrated), profile=Profile.HARDENED)
    honest = _cut(record.rows(calibrated, len(record)), source.rows)
    return Shards(plant=plant, rules=rules, honest=tuple(honest)[: source.shards])


def absent(plant: str) -> str:
    """Return why a plant has no shards here; an empty string if it has."""
    needed = {"BATADAL": ("batadal", "dataset03.csv"), "WDT": ("wdt", "phy_norm.csv")}
    if plant in needed and not _data(*needed[plant]).exists():
        return (
            f"{plant} was skipped: SLUICE_DATA holds no {'/'.join(needed[plant])}; set it to the "
            "folder of plant records."
        )
    return ""


def _cut(record: Record, size: int) -> Iterator[Record]:
    for first in range(0, len(record) - size + 1, size):
        yield record.rows(first, first + size)


def _data(*parts: str) -> Path:
    return Path(os.environ.get("SLUICE_DATA", "../shared/data")).joinpath(*parts)


def _treatment() -> Record:
    return simulate("treatment", seed=0).without_first(START_UP_S).every(10)


def _line() -> Record:
    return simulate("line", seed=0, days=30)


def _batadal() -> Record:
    return read_record(_data("batadal", "dataset03.csv"))


def _wdt() -> Record:
    return read_record(_data("wdt", "phy_norm.csv"))


PLANTS = {
    "BATADAL": Source(make=_batadal, fit=2_628, calibrated=4_380, rows=300, shards=14),
    "WDT": Source(make=_wdt, fit=1_000, calibrated=2_000, rows=200, shards=7),
    "treatment": Source(make=_treatment, fit=7_101, calibrated=14_202, rows=400, shards=46),
    "line": Source(make=_line, fit=15_000, calibrated=30_000, rows=400, shards=33),
}
