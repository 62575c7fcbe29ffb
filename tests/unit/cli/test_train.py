"""`sluice train` from the outside."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from sluice.detector.modelfile import load_detector
from sluice.detector.threshold import RateThreshold
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Label, Record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def plant() -> Record:
    return simulate("line", seed=0, days=5)


@pytest.fixture(scope="module")
def folder(plant: Record, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("plant")
    write(plant, made / "clean.parquet", FileLayout.PARQUET)
    labels = plant.labels.copy()
    labels[100] = Label.ATTACK
    write(replace(plant, labels=labels), made / "attacked.parquet", FileLayout.PARQUET)
    return made


def test_help_has_an_example(sluice: Run) -> None:
    assert "Example: sluice train" in sluice("train", "--help").out


def test_a_detector_of_an_older_kind(sluice: Run, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    options = ("--detector", "subspace", "--false-alarms-per-week", 3, "--out", path)
    seen = sluice("train", folder / "clean.parquet", *options, "--json")
    assert (seen.code, seen.err) == (0, "")
    detector = load_detector(path)
    assert isinstance(detector.threshold, RateThreshold)
    assert detector.threshold.false_alarms_per_week == 3
    assert seen.json["detector"] == detector.model.kind == "subspace"
    assert seen.json["threshold"] == detector.threshold.score
    assert tuple(cast("list[str]", seen.json["channels"])) == detector.framing.scaler.names
    shown = sluice("train", folder / "clean.parquet", *options)
    assert "set for 3 false alarms a week" in shown.out


def test_too_few_clean_rows_for_the_asked_rate_are_said(
    sluice: Run, folder: Path, tmp_path: Path
) -> None:
    clean, path, other = folder / "clean.parquet", tmp_path / "m.safetensors", tmp_path / "o"
    options, rare = ("--json", "--out"), ("--false-alarms-per-week", "0.05")
    usual = sluice("train", clean, "--detector", "subspace", *options, path)
    assert (usual.code, usual.err) == (0, "")
    again = sluice("model", "recalibrate", path, "--clean", clean, *rare, *options, other)
    trained = sluice("train", clean, "--detector", "subspace", *rare, *options, path)
    for seen in (trained, again):
        assert seen.code == 0
        assert "too few for 0.05 false alarms a week, so the threshold is that of" in seen.err


@pytest.mark.parametrize(
    ("record", "options", "message"),
    [
        ("clean", ("--detector", "subspce"), "did you mean 'subspace'?"),
        ("clean", ("--detector", "subspace", "--false-alarms-per-week", 0), "must be above 0"),
        ("attacked", ("--detector", "subspace"), "holds rows labelled attack"),
    ],
)
def test_bad_input_exits_2_and_writes_nothing(
    sluice: Run,
    folder: Path,
    tmp_path: Path,
    record: str,
    options: tuple[object, ...],
    message: str,
) -> None:
    path = tmp_path / "m.safetensors"
    seen = sluice("train", folder / f"{record}.parquet", *options, "--out", path)
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err
    assert not path.exists()


def test_the_record_is_not_written_over(sluice: Run, folder: Path) -> None:
    record = folder / "clean.parquet"
    seen = sluice("train", record, "--out", record)
    assert (seen.code, "is an input of this command" in seen.err) == (2, True)
