"""`sluice model` from the outside."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import pytest

from sluice.detector.alone import train
from sluice.detector.model import DetectorKind
from sluice.detector.modelfile import load_detector, save_detector
from sluice.lab.plants.catalogue import simulate
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    save_detector(train(simulate("line", seed=0, days=2), kind=DetectorKind.SUBSPACE), path)
    return path


def test_show_prints_the_card(sluice: Run, model: Path) -> None:
    seen = sluice("model", "show", model, "--json")
    detector = load_detector(model)
    assert seen.code == 0
    assert seen.json["kind"] == "subspace"
    assert seen.json["channels"] == list(detector.framing.scaler.names)
    assert seen.json["threshold"] == detector.threshold.score
    assert (seen.json["federation"], seen.json["rounds"]) == (None, 1)
    shown = sluice("model", "show", model)
    assert (shown.code, "window rows" in shown.out, "subspace" in shown.out) == (0, True, True)


def test_an_exported_model_scores_as_the_detector_does(
    sluice: Run, model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    seen = sluice("model", "export", model, "--format", "onnx", "--out", path, "--json")
    assert (seen.code, seen.json["format"], seen.json["file"]) == (0, "onnx", str(path))
    detector, record = load_detector(model), simulate("line", seed=1, days=1)
    scored, names = detector.score(record), detector.framing.scaler.names
    columns = [record.index(name) for name in names]
    rows = detector.framing.window_rows
    readings = np.stack(
        [record.values[at : at + rows, columns] for at in range(len(record) - rows + 1)]
    ).astype(np.float64)
    score, alarm = onnxruntime.InferenceSession(path).run(
        ["score", "alarm"], {"readings": readings}
    )
    assert np.allclose(score, scored.scores, rtol=1e-5)
    assert np.array_equal(alarm, scored.alarms)


def test_an_export_never_replaces_its_model(sluice: Run, model: Path) -> None:
    before = model.read_bytes()
    seen = sluice("model", "export", model, "--out", model)
    assert (seen.code, seen.out) == (2, "")
    assert model.read_bytes() == before
