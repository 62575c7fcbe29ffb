"""The plants on which the gate is evaluated: their mined, labelled and honest records."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sluice.lab.audits import Pool
from sluice.lab.plants import simulate
from sluice.lab.plants.treatment import ATTACKED, run_period
from sluice.telemetry import Record, read_record

__all__ = ["NAMES", "Effort", "Season", "Subject", "absent", "subject"]

START_UP_S = 6 * 3_600.0
NETWORK_START_UP_S = 100 * 3_600.0
MINED, OTHER = 100, 101  # smaller seeds were used to choose settings
NAMES = ("treatment", "line", "network:ky4", "BATADAL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Size of the run."""

    seeds: tuple[int, ...]
    batches: int  # originals for fabrications, freezes and ramps
    draws: int  # per random fabrication
    line_days: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Season:
    """Honest records of one kind, made one at a time, each with the name of its seed."""

    name: str
    records: Callable[[], Iterator[tuple[str, Record]]]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One plant; its records are made on demand."""

    name: str
    mined_on: str
    labelled_as: str
    clean_as: str
    fabricated_from: str
    slices: Callable[[], tuple[Record, Record]]  # to fit and to calibrate on
    labelled: Callable[[], Record]
    clean: Callable[[], Record]  # other rows than those mined
    seasons: tuple[Season, ...]
    pools: Callable[[], tuple[Pool, ...]]  # of rows that were not mined
    jitter: float = 0.0  # of levels on attacked rows, in their unit; coverage is measured with it


def subject(name: str, effort: Effort) -> Subject:
    """Return a plant by name."""
    makers = {"treatment": _treatment, "line": _line, "network:ky4": _network, "BATADAL": _batadal}
    return makers[name](effort)


def absent(name: str) -> str:
    """Return why a plant cannot be evaluated here; an empty string if it can."""
    if name == "BATADAL" and not _batadal_file("dataset03.csv").exists():
        return (
            f"BATADAL was skipped: {_data()} holds no batadal/dataset03.csv; set SLUICE_DATA to "
            "the folder of plant records."
        )
    return ""


def _span(seeds: tuple[int, ...]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _season(name: str, seeds: tuple[int, ...], size: int, make: Callable[[int], Record]) -> Season:
    def records() -> Iterator[tuple[str, Record]]:
        for seed in seeds:
            yield f"seed {seed}", make(seed)

    return Season(name=f"{name}, {_span(seeds)}", records=records, size=size)


def _some(pool: Pool, batches: int) -> Pool:
    """Return at most `batches` of a pool's disjoint batches, evenly spaced."""
    step = max(1, len(pool.starts) // batches)
    return Pool(record=pool.record, size=pool.size, starts=pool.starts[::step][:batches])


def _treatment(effort: Effort) -> Subject:
    def clean(seed: int) -> Record:
        return simulate("treatment", seed=seed).without_first(START_UP_S).every(5)

    def calendar(seed: int) -> Record:
        return run_period(seed=seed, period=ATTACKED).record.every(5)

    def slices() -> tuple[Record, Record]:
        record = clean(MINED)
        return record.rows(0, 14_202), record.rows(14_202, 28_404)

    return Subject(
        name="treatment",
        mined_on=f"seed {MINED}, every 5 s after the 6 h start-up, rows 0:14202 and 14202:28404",
        labelled_as=f"seed {MINED}, attack period, every 5 s",
        clean_as=f"seed {OTHER}",
        fabricated_from=f"seed {OTHER}",
        slices=slices,
        labelled=lambda: simulate("treatment", seed=MINED, attacks=True).every(5),
        clean=lambda: clean(OTHER),
        seasons=(
            _season("clean calendar", effort.seeds, 1_000, clean),
            _season("attack calendar without attacks", effort.seeds, 1_000, calendar),
        ),
        pools=lambda: (_some(Pool.disjoint(clean(OTHER), 1_000), effort.batches),),
    )


def _line(effort: Effort) -> Subject:
    def long(seed: int) -> Record:
        return simulate("line", seed=seed, days=effort.line_days)

    def slices() -> tuple[Record, Record]:
        record = simulate("line", seed=MINED, days=30)
        return record.rows(0, 15_000), record.rows(15_000, 30_000)

    return Subject(
        name="line",
        mined_on=f"seed {MINED}, every 60 s, rows 0:15000 and 15000:30000 of 30 days",
        labelled_as=f"seed {OTHER}, 30 days",
        clean_as=f"seed {OTHER}",
        fabricated_from=f"seed {OTHER}",
        slices=slices,
        labelled=lambda: simulate("line", seed=OTHER, days=30, attacks=True),
        clean=lambda: simulate("line", seed=OTHER, days=30),
        seasons=(_season(f"{effort.line_days:g} days each", effort.seeds, 1_000, long),),
        pools=lambda: (_some(Pool.disjoint(long(OTHER), 1_000), effort.batches),),
    )


@cache
def _ky4(seed: int) -> Record:
    return simulate("network:ky4", seed=seed, days=60).without_first(NETWORK_START_UP_S)


def _network(effort: Effort) -> Subject:
    def slices() -> tuple[Record, Record]:
        record = simulate("network:ky4", seed=MINED, days=90)
        return record.rows(0, 1_000), record.rows(1_000, 2_000)

    return Subject(
        name="network:ky4",
        mined_on=f"seed {MINED}, hourly, rows 0:1000 and 1000:2000 of 90 days",
        labelled_as=f"seed {OTHER}, 60 days",
        clean_as=f"seed {OTHER}",
        fabricated_from=_span(effort.seeds),
        slices=slices,
        labelled=lambda: simulate("network:ky4", seed=OTHER, days=60, attacks=True),
        clean=lambda: _ky4(OTHER),
        seasons=(_season("60 days each, first 100 h left out", effort.seeds, 300, _ky4),),
        pools=lambda: tuple(Pool.disjoint(_ky4(seed), 300) for seed in effort.seeds),
    )


def _data() -> Path:
    return Path(os.environ.get("SLUICE_DATA", "../shared/data"))


def _batadal_file(name: str) -> Path:
    return _data() / "batadal" / name


def _batadal(effort: Effort) -> Subject:
    def year() -> Record:
        return read_record(_batadal_file("dataset03.csv"))

    def unseen() -> Record:
        return year().rows(4_380, 8_761)

    def slices() -> tuple[Record, Record]:
        record = year()
        return record.rows(0, 2_628), record.rows(2_628, 4_380)

    def shards() -> Iterator[tuple[str, Record]]:
        yield "rows 4380:8761", unseen()

    return Subject(
        name="BATADAL",
        mined_on="dataset03, hourly, rows 0:2628 and 2628:4380",
        labelled_as="dataset04 with full labels",
        clean_as="dataset03 rows 4380:8761",
        fabricated_from="dataset03 rows 4380:8761 (overlapping)",
        slices=slices,
        labelled=lambda: read_record(_batadal_file("dataset04_full_labels.csv")),
        clean=unseen,
        seasons=(Season(name="dataset03 rows 4380:8761", records=shards, size=600),),
        pools=lambda: (Pool.spread(unseen(), 600, effort.batches),),
        jitter=0.003,
    )
