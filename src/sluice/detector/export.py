"""Export detectors to ONNX, for any runtime: raw readings in, score and alarm out."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper

from sluice.arrays import Floats
from sluice.detector.autoencoder import Autoencoder, unflatten
from sluice.detector.calibration import Detector
from sluice.detector.model import Model, Weights
from sluice.detector.moments import MomentModel
from sluice.detector.subspace import Subspace
from sluice.errors import SettingError
from sluice.files import atomically

__all__ = ["export_onnx"]

OPSET = 17
IR_VERSION = 8  # belongs to that opset; runtimes refuse newer graphs than they know


@dataclass(slots=True)
class _Graph:
    """The nodes and constants of a graph, in the order in which they are added."""

    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)

    def constant(self, value: Weights) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def then(self, operation: str, *inputs: str, out: str = "", to: int = 0) -> str:
        name = out or f"step_{len(self.nodes)}"
        attributes: dict[str, Any] = {"to": to} if to else {}
        self.nodes.append(helper.make_node(operation, list(inputs), [name], **attributes))
        return name


def export_onnx(detector: Detector, path: Path) -> None:
    """Write a graph from `readings` (windows x rows x channels, float64) to `score` and `alarm`.

    Readings are in the plant's own units, channels in the order of the metadata `channels`. They
    are scaled in float64, as in Sluice: float32 is too coarse for a level of 500 that moves by
    0.001.
    """
    model = _model(detector)
    with atomically(path) as draft:
        draft.write_bytes(model.SerializeToString())


def _model(detector: Detector) -> ModelProto:
    framing, model = detector.framing, detector.model
    scaler = framing.scaler
    graph = _Graph()
    readings = "readings"
    if len(scaler.resolution):
        steps = graph.then("Div", readings, graph.constant(scaler.resolution))
        readings = graph.then("Mul", graph.then("Round", steps), graph.constant(scaler.resolution))
    centred = graph.then("Sub", readings, graph.constant(scaler.mean))
    scaled = graph.then("Div", centred, graph.constant(scaler.spread))
    single = graph.then("Cast", scaled, to=TensorProto.FLOAT)
    flat = graph.then("Reshape", single, graph.constant(np.array([-1, model.width], np.int64)))
    residual, kind = _residual(graph, model, flat)
    squared = graph.then("Mul", residual, residual)
    total = graph.then("MatMul", squared, graph.constant(np.full(model.width, 1, kind)))
    mean = graph.then("Div", total, graph.constant(np.array(model.width, kind)))
    score = graph.then("Cast", mean, out="score", to=TensorProto.DOUBLE)
    graph.then("Greater", score, graph.constant(np.array(detector.threshold.score)), out="alarm")
    shape: list[str | int | None] = ["windows", framing.window_rows, len(scaler.names)]
    onnx_graph = helper.make_graph(
        graph.nodes,
        f"sluice-{model.kind}",
        [helper.make_tensor_value_info("readings", TensorProto.DOUBLE, shape)],
        [
            helper.make_tensor_value_info("score", TensorProto.DOUBLE, ["windows"]),
            helper.make_tensor_value_info("alarm", TensorProto.BOOL, ["windows"]),
        ],
        graph.constants,
    )
    onnx_model = helper.make_model(
        onnx_graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="sluice"
    )
    onnx_model.ir_version = IR_VERSION
    helper.set_model_props(
        onnx_model, {"channels": "\n".join(scaler.names), "stride_s": repr(framing.stride_s)}
    )
    checker.check_model(onnx_model, full_check=True)
    return onnx_model


def _residual(graph: _Graph, model: Model, flat: str) -> tuple[str, type[np.floating]]:
    """Add the model's own nodes; return the name of the residual and its precision."""
    if isinstance(model, Autoencoder):
        *hidden, last = unflatten(model.parameters)
        active = flat
        for weights, bias in hidden:
            product = graph.then("MatMul", active, graph.constant(weights))
            active = graph.then("Relu", graph.then("Add", product, graph.constant(bias)))
        product = graph.then("MatMul", active, graph.constant(last.weights))
        rebuilt = graph.then("Add", product, graph.constant(last.bias))
        return graph.then("Sub", rebuilt, flat), np.float32
    if isinstance(model, Subspace):
        double = graph.then("Cast", flat, to=TensorProto.DOUBLE)
        off = graph.then("Sub", double, graph.constant(model.mean))
        along = graph.then("MatMul", off, graph.constant(model.basis.T))
        within = graph.then("MatMul", along, graph.constant(model.basis))
        return graph.then("Sub", off, within), np.float64
    if isinstance(model, MomentModel):
        double = graph.then("Cast", flat, to=TensorProto.DOUBLE)
        off = graph.then("Sub", double, graph.constant(np.tile(model.mean, model.rows)))
        return graph.then("MatMul", off, graph.constant(_whitening(model))), np.float64
    raise SettingError(f"a {model.kind} model cannot be exported to ONNX")


def _whitening(model: MomentModel) -> Floats:
    """Return the whitening over all values of a window; channels that stand still stay as is."""
    whitening = np.eye(model.width)
    places = (np.arange(model.rows)[:, np.newaxis] * len(model.mean) + model.moving).ravel()
    whitening[np.ix_(places, places)] = model.whitener.T
    return whitening
