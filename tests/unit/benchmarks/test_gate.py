"""The benchmarks of the gate: coverage with jitter, and a run that goes on where it was stopped."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gate import honest
from benchmarks.gate.evaluation import jittered
from benchmarks.gate.minings import Mining
from sluice.admission import Gate, HardenedPolicy
from sluice.invariants import Profile
from sluice.invariants.mining import mine
from sluice.lab.audits import coverage
from sluice.lab.plants import simulate
from sluice.telemetry import Label, read_record

PlantData = Callable[..., Path]


@pytest.mark.data
def test_jitter_of_three_millimetres_hides_no_attack_of_batadal(plant_data: PlantData) -> None:
    year = read_record(plant_data("batadal", "dataset03.csv"))
    attacked = read_record(plant_data("batadal", "dataset04_full_labels.csv"))
    rules = mine(year.rows(0, 2_628), year.rows(2_628, 4_380), profile=Profile.HARDENED)
    gate = Gate.of(rules, HardenedPolicy())
    disguised = jittered(attacked, 0.003, 100)
    rows = np.flatnonzero((disguised.values != attacked.values).any(axis=1))
    assert set(rows) == set(np.flatnonzero(attacked.labels == Label.ATTACK))
    for record in (attacked, disguised):
        found = coverage(record, gate)
        assert (found.covered, found.total) == (7, 7)


def test_a_mining_that_was_measured_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = simulate("line", seed=5, days=3)

    def minings(plant: str) -> list[Mining]:
        return [
            Mining(
                plant=plant,
                mined_on=f"mining {at}",
                clean=lambda: record.rows(0, 2_500),
                honest=lambda: (record.rows(2_500, 4_320),),
            )
            for at in (1, 2)
        ]

    monkeypatch.setattr(honest, "PLANTS", ("line",))
    monkeypatch.setattr(honest, "minings", minings)
    out, kept = tmp_path / "page.md", tmp_path / "kept"
    monkeypatch.setattr(
        sys, "argv", ["honest", "--out", str(out), "--keep", str(kept), "--plants", "line"]
    )
    honest.main()
    assert capsys.readouterr().out.count("line, mining") == 2
    first = out.read_text("utf-8")
    assert "| line | 2 | 300 | 12 |" in first
    (kept / "line-mining-2.json").unlink()
    honest.main()
    assert capsys.readouterr().out.startswith("line, mining 2")
    assert out.read_text("utf-8") == first
