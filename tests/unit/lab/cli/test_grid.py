"""`sluice lab` from the outside."""

import json
import sqlite3
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import polars as pl
import pytest

from sluice.lab.grids import running
from sluice.lab.results.store import ResultStore
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]

GRID = """
name = "small"
[training]
detector = "subspace"
[record.tanks]
plant = "line"
days = 8.0
clients = 5
[record.lost]
clean = "lost/clean.csv"
test = "lost/test.csv"
clients = 5
instead = "tanks"
[[study]]
name = "removal"
records = ["lost"]
rules = ["fedavg"]
attacks = ["channel-roll", "replay"]
modes = ["clean", "naive", "physics-aware", "gated"]
invariants = ["paper-wide"]
seeds = [0]
"""


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def test_a_grid_runs_is_looked_at_and_exported(sluice: Run, grid: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    told = sluice("lab", "run", grid, "--out", results, "--workers", 1, "--json")
    assert told.code == 0, told.err
    assert "WARNING: tanks STANDS IN for lost" in told.err
    assert told.json["cells"] == told.json["cells_done"] == 8
    assert told.json["federations"] == 7
    assert told.json["failures"] == []
    seen = sluice("lab", "status", results)
    assert "8 of 8 cells done" in seen.out
    assert "tanks STANDS IN for lost" in seen.out
    again = sluice("lab", "resume", results, "--quiet")
    assert again.code == 0
    out = sluice("lab", "export", results, "--out", tmp_path / "tables", "--json")
    assert out.json["rows"] == 8
    frame = pl.read_parquet(tmp_path / "tables" / "cells.parquet")
    assert frame["stand_in"].unique().to_list() == ["tanks"]
    assert json.loads(frame["settings"][0])["layout"]["seed"] == 0
    assert frame["targeted_recall"].is_not_null().all()
    clean = frame.filter(pl.col("mode") == "clean")
    assert clean["federation"].n_unique() == 1
    assert (tmp_path / "tables" / "times.parquet").exists()
    audited = sluice("lab", "audit", results, "--batches", 3, "--size", 300, "--json")
    assert audited.code == 0, audited.err
    assert (audited.json["sets"], audited.json["proofs"]) == (1, 1)
    page, tables = tmp_path / "report.html", tmp_path / "tables"
    drawn = sluice("lab", "report", results, "--out", page, "--tables", tables, "--json")
    assert drawn.code == 0, drawn.err
    assert drawn.json["figures"] == 5  # separation, coverage, two attacks, the heat map
    assert "Separation of clean from fabricated telemetry" in page.read_text()
    assert "channel-roll" in (tables / "separation.csv").read_text()
    refused = sluice("lab", "run", grid, "--out", results)
    assert refused.code == 2
    assert "sluice lab resume" in refused.err


def test_a_plan_says_how_many_federations_it_avoids(sluice: Run, tmp_path: Path) -> None:
    told = sluice("lab", "plan", "paper", "--only", "swat", "--data", tmp_path, "--json")
    assert told.code == 0
    assert told.json["cells"] == 907
    assert told.json["avoided"] == 361
    shown = sluice("lab", "plan", "paper", "--only", "swat", "--data", tmp_path)
    assert "907 cells need 546 federations; 361 cells (40%) reuse the federation" in shown.out
    assert "treatment STANDS IN for swat" in shown.err


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (('"fedavg"', '"fedavgg"'), "did you mean 'fedavg'?"),
        (("seeds = [0]", "seeds = [-1]"), "seed -1 is negative"),
        (('instead = "tanks"', ""), "lost/clean.csv is not in the data folder"),
        (("days = 8.0", "dys = 8.0"), "did you mean 'days'?"),
    ],
)
def test_a_bad_grid_ends_with_2_and_nothing_is_written(
    sluice: Run, grid: Path, tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    grid.write_text(GRID.replace(*change))
    told = sluice("lab", "run", grid, "--out", tmp_path / "results")
    assert told.code == 2
    assert why in told.err
    assert not (tmp_path / "results").exists()


def test_a_cell_that_cannot_run_says_why_and_other_code_is_not_mixed_in_unless_told(
    sluice: Run, grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid.write_text(GRID.replace("days = 8.0", "days = 0.01"))
    results = tmp_path / "results"
    told = sluice("lab", "run", grid, "--out", results, "--workers", 1, "--quiet")
    assert told.code == 3
    assert "7 failed" in told.out
    assert "too short for an attack" in told.out
    assert sluice("lab", "status", results, "--json").json["failed"] == 7
    made_by = import_module("sluice.lab.results.provenance")
    monkeypatch.setattr(made_by, "_commit", lambda _: "a page was corrected")
    assert sluice("lab", "resume", results, "--quiet").code == 3
    monkeypatch.setattr(made_by, "_code", lambda _: "other")
    refused = sluice("lab", "resume", results)
    assert refused.code == 2
    assert "come from other code" in refused.err
    mixed = sluice("lab", "resume", results, "--mixed", "--quiet")
    assert mixed.code == 3
    assert "every result states which it comes from" in mixed.err


def test_a_folder_without_results_is_refused(sluice: Run, tmp_path: Path) -> None:
    for command in ("status", "resume", "export"):
        told = sluice("lab", command, tmp_path)
        assert told.code == 2
        assert "holds no results" in told.err


def test_a_locked_database_ends_with_2_and_one_sentence(
    sluice: Run, grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results"
    with monkeypatch.context() as unrun:
        unrun.setattr(running, "run_store", lambda store, **_: store.counts())
        assert sluice("lab", "run", grid, "--out", results, "--quiet").code == 0
    monkeypatch.setattr(
        ResultStore.__init__, "__kwdefaults__", {"read_only": False, "patience_s": 0.05}
    )
    other = sqlite3.connect(results / "cells.sqlite", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    told = sluice("lab", "resume", results, "--failed")
    other.execute("ROLLBACK")
    other.close()
    assert told.code == 2
    assert "is locked by another program; close that program, then continue with" in told.err
    assert "Traceback" not in told.err
    assert sluice("lab", "status", results, "--json").json["cells"] == 8
