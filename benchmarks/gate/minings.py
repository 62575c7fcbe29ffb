"""Many minings of many plants, each with honest records that it has not seen."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from sluice.arrays import Run
from sluice.lab.plants import simulate
from sluice.telemetry import Record, read_record

__all__ = ["PLANTS", "Mining", "minings"]

FIRST = 100  # smaller seeds were used to choose settings
UNSEEN = {"Ridge": FIRST + 20, "ky4": FIRST + 20}  # their smaller seeds were looked at
START_UP_S = 6 * 3_600.0
NETWORK_START_UP_S = 100 * 3_600.0
NETWORKS = ("Net1", "Ridge", "Terraces", "Wells", "Net3", "ky4")
PLANTS = ("BATADAL", "WDT", *NETWORKS, "line", "200 tags", "treatment")
"""In the order of what they cost. Net2 has no pump and no valve, so no gate is asked of it."""
COPIES = 18  # of `line`, with 11 tags each


@dataclass(frozen=True, slots=True, kw_only=True)
class Mining:
    """Clean rows to mine, and honest records to judge."""

    plant: str
    mined_on: str
    clean: Callable[[], Record]
    honest: Callable[[], tuple[Record, ...]]


def minings(plant: str) -> Iterator[Mining]:
    """Yield the minings of a plant; none if its record is not at hand."""
    if plant == "treatment":
        yield from _treatment()
    elif plant == "line":
        yield from _line()
    elif plant in NETWORKS:
        yield from _network(plant)
    elif plant == "200 tags":
        yield _wide()
    elif plant == "BATADAL" and _file("batadal/dataset03.csv").exists():
        yield from _batadal()
    elif plant == "WDT" and _file("wdt/phy_norm.csv").exists():
        yield _wdt()


def _treatment() -> Iterator[Mining]:
    rows = 28_404
    for seed in range(FIRST, FIRST + 4):
        for start in (0, rows, 2 * rows):
            yield Mining(
                plant="treatment",
                mined_on=f"seed {seed}, rows {start}:{start + rows}",
                clean=partial(_rows, partial(_treated, seed), Run(start, start + rows)),
                honest=partial(_each, (partial(_treated, seed + 10),)),
            )


@cache
def _treated(seed: int) -> Record:
    return simulate("treatment", seed=seed).without_first(START_UP_S).every(5)


def _line() -> Iterator[Mining]:
    for seed in range(FIRST, FIRST + 4):
        yield Mining(
            plant="line",
            mined_on=f"seed {seed}, 21 days",
            clean=partial(simulate, "line", seed=seed, days=21),
            honest=partial(_each, (partial(simulate, "line", seed=seed + 10, days=90),)),
        )


def _network(name: str) -> Iterator[Mining]:
    first = UNSEEN.get(name, FIRST)
    for seed in (first, first + 1):
        others = (2 * first + 1 - seed, first + 2)
        yield Mining(
            plant=name,
            mined_on=f"seed {seed}, 176 days",
            clean=partial(_supplied, name, seed),
            honest=partial(_each, tuple(partial(_supplied, name, other) for other in others)),
        )


@cache
def _supplied(name: str, seed: int) -> Record:
    made = simulate(f"network:{name}", seed=seed, days=180)
    return made.without_first(NETWORK_START_UP_S)


def _batadal() -> Iterator[Mining]:
    rows = 4_380
    for start in range(0, rows + 1, 730):
        stop = start + rows
        rest = tuple(run for run in (Run(0, start), Run(stop, len(_year()))) if run.rows)
        yield Mining(
            plant="BATADAL",
            mined_on=f"dataset03 rows {start}:{stop}",
            clean=partial(_rows, _year, Run(start, stop)),
            honest=partial(_each, tuple(partial(_rows, _year, run) for run in rest)),
        )


@cache
def _year() -> Record:
    return read_record(_file("batadal/dataset03.csv"))


def _rows(record: Callable[[], Record], run: Run) -> Record:
    return record().rows(*run)


def _each(records: tuple[Callable[[], Record], ...]) -> tuple[Record, ...]:
    return tuple(record() for record in records)


def _wdt() -> Mining:
    record = read_record(_file("wdt/phy_norm.csv"))
    return Mining(
        plant="WDT",
        mined_on="phy_norm rows 0:2400",
        clean=lambda: record.rows(0, 2_400),
        honest=lambda: (record.rows(2_400, len(record)),),
    )


def _wide() -> Mining:
    return Mining(
        plant="200 tags",
        mined_on=f"{COPIES} copies of line side by side, 14 days",
        clean=lambda: _beside(range(FIRST, FIRST + COPIES), days=14),
        honest=lambda: (_beside(range(FIRST + 50, FIRST + 50 + COPIES), days=14),),
    )


def _beside(seeds: range, *, days: float) -> Record:
    """Return copies of `line` as one plant, each tag with the number of its copy."""
    parts = [simulate("line", seed=seed, days=days) for seed in seeds]
    channels = tuple(
        replace(channel, name=f"{channel.name}_{at:02d}")
        for at, part in enumerate(parts)
        for channel in part.channels
    )
    return replace(
        parts[0],
        name="200 tags",
        channels=channels,
        values=np.hstack([part.values for part in parts]),
        notes=(),
    )


def _file(name: str) -> Path:
    return Path(os.environ.get("SLUICE_DATA", "../shared/data")) / name
