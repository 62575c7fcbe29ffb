"""The sources of a grid's records: files in the data folder, or simulated plants."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sluice.errors import GridError, RecordError, SettingError
from sluice.evaluation import Unlabelled
from sluice.lab.grids.gridfile import RecordTable
from sluice.lab.plants import PLANTS, simulate
from sluice.lab.trials import ArtifactCache
from sluice.telemetry import Record, Source, find_record_file, read_record

__all__ = ["Opened", "RecordSource", "resolved"]

CLEAN_SEED, TEST_SEED = 0, 1
NETWORK_PREFIX = "network:"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSource:
    """A record that is available, identified by its content."""

    name: str
    content: str  # digests of the two files, or the simulated plant
    plant: str | None
    days: float | None
    clean: str | None  # absolute
    test: str | None
    every: int
    skip_s: float
    unlabelled: Unlabelled
    sites: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The two records of a source."""

    clean: Record
    test: Record


def resolved(name: str, tables: Mapping[str, RecordTable], *, data: Path) -> RecordSource:
    """Find a record, or the record given as `instead` if its files are absent."""
    table = tables[name]
    if table.plant is not None:
        return _simulated(name, table)
    missing = [path for path in (table.clean, table.test) if path and not (data / path).exists()]
    if not missing:
        return _from_files(name, table, data)
    if table.instead is None:
        raise GridError(
            f"record {name!r}: {missing[0]} is not in the data folder {data}; put it there, "
            "give another folder with --data, or name a substitute record with instead"
        )
    return resolved(table.instead, tables, data=data)


def opened(source: RecordSource, *, cache: ArtifactCache | None = None) -> Opened:
    """Read or simulate both records; simulated ones are stored in the cache."""
    if source.plant is not None:
        clean, test = (_run(source, cache, attacks=attacks) for attacks in (False, True))
    else:
        assert source.clean is not None
        assert source.test is not None
        clean, test = read_record(source.clean), read_record(source.test)
    if source.skip_s:
        if source.skip_s >= len(clean) * clean.stride_s:
            raise SettingError(
                f"record {source.name!r}: skip_s is {source.skip_s:g}, but the record has only "
                f"{len(clean) * clean.stride_s:g} s; give a smaller skip_s"
            )
        clean = clean.without_first(source.skip_s)
    return Opened(clean=clean.every(source.every), test=test.every(source.every))


def _run(source: RecordSource, cache: ArtifactCache | None, *, attacks: bool) -> Record:
    plant, seed = str(source.plant), TEST_SEED if attacks else CLEAN_SEED

    def make() -> Record:
        return simulate(plant, seed=seed, days=source.days, attacks=attacks)

    if cache is None or plant.endswith(
        ".inp"
    ):  # a user's file can change without a change of its name
        return make()
    return cache.record((plant, seed, source.days, attacks), make)


def _simulated(name: str, table: RecordTable) -> RecordSource:
    assert table.plant is not None
    known = tuple(plant.name for plant in PLANTS)
    if table.plant not in known and not table.plant.startswith(NETWORK_PREFIX):
        matches = difflib.get_close_matches(table.plant, known, n=1)
        hint = f"; did you mean {matches[0]!r}?" if matches else ""
        raise GridError(
            f"record {name!r}: unknown plant {table.plant!r}; known are {', '.join(known)}{hint}"
        )
    duration = "" if table.days is None else f" for {table.days:g} days"
    return _source(name, table, content=f"simulated {table.plant}{duration}")


def _from_files(name: str, table: RecordTable, data: Path) -> RecordSource:
    assert table.clean is not None
    assert table.test is not None
    digests = []
    try:
        for path in (table.clean, table.test):
            file = Source(find_record_file(data / path))
            digests.append(f"{file.digest}+{file.companions_digest}")
    except (RecordError, OSError) as error:
        raise GridError(f"record {name!r}: {error}") from None
    return _source(
        name,
        table,
        content=" ".join(digests),
        clean=str((data / table.clean).resolve()),
        test=str((data / table.test).resolve()),
    )


def _source(
    name: str,
    table: RecordTable,
    *,
    content: str,
    clean: str | None = None,
    test: str | None = None,
) -> RecordSource:
    return RecordSource(
        name=name,
        content=content,
        plant=table.plant,
        days=table.days,
        clean=clean,
        test=test,
        every=table.every,
        skip_s=table.skip_s,
        unlabelled=table.unlabelled,
        sites=table.sites,
    )
