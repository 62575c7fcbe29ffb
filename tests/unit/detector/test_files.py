"""Model files and ONNX graphs."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import pytest
from safetensors.numpy import load, save

from sluice.detector import modelfile
from sluice.detector.calibration import Detector, sealed
from sluice.detector.export import export_onnx
from sluice.detector.fusion import OrRules
from sluice.detector.modelfile import load_detector, save_detector
from sluice.detector.physics import Physics
from sluice.errors import ModelFileError
from sluice.telemetry.record import Record
from tests.unit.invariants.small_plant import EVERY_RULE

Card = dict[str, object]


def edited(path: Path, edit: Callable[[Card], None]) -> None:
    """Change a file's card and write it back."""
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    card = json.loads(header["__metadata__"]["sluice"])
    edit(card)
    path.write_bytes(save(load(content), metadata={"sluice": json.dumps(card)}))


@pytest.fixture
def model(detector: Detector, tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_detector(detector, path)
    return path


def test_a_saved_detector_comes_back_whole(detector: Detector, model: Path, plant: Record) -> None:
    again = load_detector(model)
    assert again.model.kind is detector.model.kind
    assert again.threshold == detector.threshold
    assert again.training == detector.training
    assert again.framing.scaler.names == detector.framing.scaler.names
    assert np.array_equal(again.framing.scaler.mean, detector.framing.scaler.mean)
    assert np.array_equal(again.score(plant).scores, detector.score(plant).scores)


def test_the_same_detector_is_the_same_file(detector: Detector, model: Path) -> None:
    other = model.with_name("again.safetensors")
    save_detector(load_detector(model), other)
    assert other.read_bytes() == model.read_bytes()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("kind", "forest", "its kind is 'forest'; known are autoencoder, subspace"),
        ("version", 4, "version 4; this Sluice reads 1 to 3"),
        ("window_rows", 9, "values a window"),
        ("window_rows", "10", "its card is damaged: window_rows"),
        ("stride_s", 0.0, "stride above 0 s"),
        ("mean", [0.0], "needs one mean and one spread for each channel"),
        ("resolution", [0.5], "one resolution for each or for none"),
        ("channels", [], "needs one mean and one spread for each channel"),
        ("threshold", {"score": -1.0, "quantile": 0.995, "clean_windows": 900}, "at least 0"),
        ("threshold", {"score": 1.0, "quantile": 0.995, "clean_windows": 0}, "are too few"),
        ("threshold", None, "its card is damaged: threshold"),
    ],
)
def test_a_card_that_cannot_be_is_refused(
    model: Path, key: str, value: object, message: str
) -> None:
    edited(model, lambda card: card.update({key: value}))
    with pytest.raises(ModelFileError, match=f"model.safetensors cannot be used: .*{message}"):
        load_detector(model)


@pytest.mark.parametrize("spread", [0.0, float("nan"), float("inf")])
def test_a_spread_that_cannot_scale_is_refused(model: Path, spread: float) -> None:
    def edit(card: Card) -> None:
        spreads = card["spread"]
        assert isinstance(spreads, list)
        spreads[0] = spread

    edited(model, edit)
    with pytest.raises(ModelFileError, match="cannot scale|damaged"):
        load_detector(model)


@pytest.mark.parametrize(("key", "at"), [("mean", 0), ("mean", -1), ("spread", -1)])
def test_one_number_that_cannot_scale_is_enough(model: Path, key: str, at: int) -> None:
    def edit(card: Card) -> None:
        numbers = card[key]
        assert isinstance(numbers, list)
        numbers[at] = float("inf")

    edited(model, edit)
    with pytest.raises(ModelFileError, match="cannot scale|damaged"):
        load_detector(model)


def test_nan_weights_are_refused(model: Path) -> None:
    content = model.read_bytes()
    tensors = {name: tensor.copy() for name, tensor in load(content).items()}
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    next(one for one in tensors.values() if one.dtype.kind == "f").flat[3] = np.nan
    model.write_bytes(save(tensors, metadata=header["__metadata__"]))
    with pytest.raises(ModelFileError, match="NaN"):
        load_detector(model)


@pytest.mark.parametrize("other", ["float16", "shape", "names"])
def test_other_tensors_are_refused(model: Path, other: str) -> None:
    content = model.read_bytes()
    tensors = dict(load(content))
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    if other == "names":
        tensors["more"] = np.zeros(1)
    elif other == "shape":
        tensors = {name: np.append(tensor, tensor.flat[:1]) for name, tensor in tensors.items()}
    else:
        tensors = {name: tensor.astype(np.float16) for name, tensor in tensors.items()}
    model.write_bytes(save(tensors, metadata=header["__metadata__"]))
    with pytest.raises(ModelFileError, match="cannot be used"):
        load_detector(model)


@pytest.mark.parametrize("cut", [0, 4, 8, 100, -1])
def test_a_cut_file_is_refused(model: Path, cut: int) -> None:
    model.write_bytes(model.read_bytes()[:cut])
    with pytest.raises(ModelFileError, match="not a complete safetensors file"):
        load_detector(model)


@pytest.mark.parametrize("content", [b"\x80\x04\x95import os", b"PK\x03\x04" + bytes(99)])
def test_pickles_and_archives_are_refused(model: Path, content: bytes) -> None:
    model.write_bytes(content)
    with pytest.raises(ModelFileError, match="not a complete safetensors file"):
        load_detector(model)


@pytest.mark.parametrize("card", [None, "nonsense", "[]", "{}", "[" * 100_000])
def test_another_makers_tensors_are_refused(model: Path, card: str | None) -> None:
    metadata = {} if card is None else {"sluice": card}
    model.write_bytes(save({"parameters": np.zeros(3, np.float32)}, metadata=metadata))
    with pytest.raises(ModelFileError, match="card"):
        load_detector(model)


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "F8_E8M0", "BOOL", "C64", "F4", "U16"])
def test_numbers_of_another_make_are_refused(model: Path, dtype: str) -> None:
    content = model.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    bits = {"F4": 4, "BF16": 16, "U16": 16, "C64": 64}.get(dtype, 8)
    card = header["__metadata__"]
    tensor = {"dtype": dtype, "shape": [16], "data_offsets": [0, 2 * bits]}
    text = json.dumps({"__metadata__": card, "parameters": tensor}).encode()
    model.write_bytes(len(text).to_bytes(8, "little") + text + bytes(2 * bits))
    with pytest.raises(ModelFileError, match="cannot be used"):
        load_detector(model)


def test_a_model_file_may_be_as_large_as_the_limits(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = model.read_bytes()
    header = int.from_bytes(content[:8], "little")
    monkeypatch.setattr(modelfile, "LARGEST", len(content))
    monkeypatch.setattr(modelfile, "LARGEST_HEADER", header)
    load_detector(model)
    monkeypatch.setattr(modelfile, "LARGEST_HEADER", header - 1)
    with pytest.raises(ModelFileError, match=f"header would have {header:,} bytes"):
        load_detector(model)
    monkeypatch.setattr(modelfile, "LARGEST", len(content) - 1)
    with pytest.raises(ModelFileError, match="it has more than"):
        load_detector(model)


def test_rules_beside_a_vote_that_has_no_threshold_for_them_are_refused(
    detector: Detector, tmp_path: Path
) -> None:
    beside = OrRules(physics=Physics(rules=EVERY_RULE), threshold=1.0)
    path = tmp_path / "beside.safetensors"
    fused = sealed(
        detector.model,
        detector.framing,
        threshold=detector.threshold,
        training=detector.training,
        fusion=beside,
        calibrations=(),
    )
    save_detector(fused, path)
    with pytest.raises(ModelFileError, match="no threshold beside the vote"):
        load_detector(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="nowhere.safetensors cannot be used: No such file"):
        load_detector(tmp_path / "nowhere.safetensors")


def test_onnx_scores_raw_readings_alike(detector: Detector, plant: Record, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    export_onnx(detector, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    metadata = session.get_modelmeta().custom_metadata_map
    assert tuple(metadata["channels"].split("\n")) == detector.framing.scaler.names
    record = plant.rows(3000, 4000)
    readings = record.select(metadata["channels"].split("\n")).values
    windows = np.array([readings[start : start + 10] for start in range(len(readings) - 9)])
    score, alarm = session.run(None, {"readings": windows})
    expected = detector.score(record)
    assert score == pytest.approx(expected.scores, rel=1e-5, abs=1e-7)
    near = np.isclose(expected.scores, detector.threshold.score, rtol=1e-4)
    assert np.array_equal(alarm[~near], expected.alarms[~near])
