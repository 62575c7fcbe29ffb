"""The artifact cache: a worker reads what another worker stored, to the last bit."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sluice.lab.attacks import makers
from sluice.lab.attacks.poison import Poison
from sluice.lab.grids import sources, workbench
from sluice.lab.grids.gridfile import parse_grid
from sluice.lab.grids.planning import planned
from sluice.lab.grids.work import Work
from sluice.lab.grids.workbench import Workbench
from sluice.lab.plants.catalogue import simulate
from sluice.lab.trials.artifact_cache import ArtifactCache, content_of
from sluice.telemetry.record import Record

GRID = """
name = "cached"
[training]
detector = "subspace"
[record.tanks]
plant = "line"
days = 8.0
clients = 5
[[study]]
name = "removal"
records = ["tanks"]
rules = ["fedavg"]
attacks = ["replay"]
modes = ["physics-aware", "gated"]
invariants = ["paper-wide"]
seeds = [0]
"""


def works(folder: Path) -> tuple[Work, ...]:
    return planned(parse_grid(GRID, where="grid"), data=folder).works


def never(*_: object, **__: object) -> Record:
    raise AssertionError("made again")


def test_a_second_run_neither_simulates_nor_mines_nor_projects_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ArtifactCache(folder=tmp_path / "kept", code="this")
    bench = Workbench(cache=cache)
    first = [bench.work(work, {}) for work in works(tmp_path)]
    monkeypatch.setattr(makers, "project", never)
    monkeypatch.setattr(workbench, "mine", never)
    monkeypatch.setattr(sources, "simulate", never)
    bench = Workbench(cache=cache)
    again = [bench.work(work, {}) for work in works(tmp_path)]
    assert [replace(one, wall_s=0) for one in again] == [replace(one, wall_s=0) for one in first]
    with pytest.raises(
        AssertionError, match="made again"
    ):  # another version of the code does not use it
        Workbench(cache=replace(cache, code="other")).work(works(tmp_path)[0], {})


def test_a_stored_artifact_is_read_back_to_the_last_bit(tmp_path: Path) -> None:
    cache = ArtifactCache(folder=tmp_path, code="this")
    shown, trained = simulate("line", seed=0, days=1), simulate("line", seed=1, days=1)
    for poison in (
        Poison(shown=shown, trained=shown, planted=np.arange(1440) < 9, exposure=0.5),
        Poison(shown=shown, trained=trained, planted=np.arange(1440) < 9),
    ):
        key = (poison.exposure,)
        cache.poison(key, lambda poison=poison: poison)  # type: ignore[misc]
        read = cache.poison(key, never)  # type: ignore[arg-type]
        assert content_of(read.shown) == content_of(poison.shown)
        assert content_of(read.trained) == content_of(poison.trained)
        assert read.shown.channels == shown.channels
        assert (read.planted == poison.planted).all()
        assert read.exposure == poison.exposure
        assert (read.trained is read.shown) == (poison.trained is poison.shown)


def test_a_file_that_was_broken_off_is_made_again(tmp_path: Path) -> None:
    cache = ArtifactCache(folder=tmp_path, code="this")
    record = simulate("line", seed=0, days=1)
    cache.record(("plant",), lambda: record)
    (stored,) = (tmp_path / "records").iterdir()
    stored.write_bytes(stored.read_bytes()[:1000])
    made = cache.record(("plant",), lambda: record)
    assert made is record
    assert content_of(cache.record(("plant",), never)) == content_of(record)


def test_a_cache_that_cannot_be_written_does_not_stop_the_work(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file in the folder's place")
    record = simulate("line", seed=0, days=1)
    cache = ArtifactCache(folder=tmp_path / "kept", code="this")
    assert cache.record(("plant",), lambda: record) is record


def test_readings_clocks_and_labels_all_make_other_content() -> None:
    record = simulate("line", seed=0, days=1)
    values = record.values.copy()
    values[7, 0] += 1e-12
    others = (
        record.with_values(values),
        replace(record, times=record.times + np.timedelta64(1, "s")),
        replace(record, labels=1 - record.labels),
    )
    assert len({content_of(one) for one in (record, *others)}) == 4
