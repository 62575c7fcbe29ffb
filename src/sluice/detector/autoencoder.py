"""Section 4.3 of the paper: a dense autoencoder over flattened windows, and its parameters.

The network is d-128-24-128-d with d = window rows x channels: ReLU after both hidden layers and
after the code, a linear output. A window's score is the mean squared error of its reconstruction.

Parameters are one float32 vector, so that an update is a difference of vectors. Layout: the four
layers in order from input to output, each as its weights (inputs x outputs, row by row) followed
by its bias. The length alone determines the width d: it is 257 d + 6,424.

Everything here is numpy; `sluice.detector.training` holds the same forward pass in jax.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Floats, frozen
from sluice.detector.model import DetectorKind, Weights, blocks, shares_by_channel
from sluice.errors import ModelFileError, SettingError
from sluice.seeding import stream
from sluice.telemetry import Windows

__all__ = [
    "Autoencoder",
    "Descent",
    "Layer",
    "Parameters",
    "flatten",
    "initial",
    "parameter_count",
    "scores",
    "unflatten",
]

HIDDEN = 128
CODE = 24

Parameters = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """Settings of local training. The paper states a batch of 1,024; its code ran with 128."""

    epochs: int = 2
    batch: int = 1_024
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1 or not 0 < self.learning_rate < np.inf:
            raise SettingError(
                "training takes at least 1 epoch, a batch of at least 1 window and a learning rate "
                f"above 0; got {self}"
            )


class Layer(NamedTuple):
    """One dense layer: inputs @ weights + bias (numpy or jax arrays alike)."""

    weights: Any  # inputs x outputs
    bias: Any  # outputs


def shapes(width: int) -> tuple[tuple[int, int], ...]:
    """Return (inputs, outputs) of each layer for windows of `width` values."""
    return (width, HIDDEN), (HIDDEN, CODE), (CODE, HIDDEN), (HIDDEN, width)


def parameter_count(width: int) -> int:
    """Return the number of parameters for windows of `width` values."""
    return sum((inputs + 1) * outputs for inputs, outputs in shapes(width))


def width_of(count: int) -> int:
    """Return the window width for a number of parameters."""
    width, rest = divmod(count - parameter_count(0), parameter_count(1) - parameter_count(0))
    if rest or width < 1:
        raise SettingError(
            f"{count} parameters fit no autoencoder; one of width d has "
            f"{parameter_count(1) - parameter_count(0)} d + {parameter_count(0)}"
        )
    return width


def unflatten(parameters: Any) -> tuple[Layer, ...]:
    """Split a flat vector into its layers (views, no copies)."""
    return tuple(_layers(parameters))


def _layers(parameters: Any) -> Iterator[Layer]:
    start = 0
    for inputs, outputs in shapes(width_of(len(parameters))):
        bias = start + inputs * outputs
        yield Layer(
            parameters[start:bias].reshape(inputs, outputs), parameters[bias : bias + outputs]
        )
        start = bias + outputs


def flatten(layers: tuple[Layer, ...]) -> Parameters:
    """Join layers into one flat vector."""
    parts = [np.ravel(part) for layer in layers for part in layer]
    return np.concatenate(parts).astype(np.float32)


def initial(width: int, *, seed: int) -> Parameters:
    """Draw the first parameters from the stream `("autoencoder", "initial")` of a seed.

    Weights and biases are uniform within 1 / sqrt(inputs), the default of the torch layers in the
    paper's code. The distribution is the same; torch's random numbers are not reproduced.
    """
    rng = stream(seed, "autoencoder", "initial")
    layers = []
    for inputs, outputs in shapes(width):
        limit = 1 / np.sqrt(inputs)
        weights = rng.uniform(-limit, limit, (inputs, outputs))
        layers.append(Layer(weights, rng.uniform(-limit, limit, outputs)))
    return flatten(tuple(layers))


def scores(parameters: Parameters, windows: Windows) -> Floats:
    """Return the mean squared reconstruction error of each window."""
    layers = unflatten(parameters)
    mean_squares = np.empty(len(windows))
    for block, batch in blocks(windows, width=width_of(len(parameters))):
        error = _reconstruct(layers, batch) - batch
        mean_squares[block] = np.einsum("ij,ij->i", error, error) / batch.shape[1]
    return mean_squares


def _reconstruct(layers: tuple[Layer, ...], batch: NDArray[np.float32]) -> NDArray[np.float32]:
    *hidden, last = layers
    for weights, bias in hidden:
        batch = batch @ weights
        batch += bias
        np.maximum(batch, 0, out=batch)
    out: NDArray[np.float32] = batch @ last.weights
    out += last.bias
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Autoencoder:
    """The network with its parameters, behind the `Model` interface."""

    kind: ClassVar[str] = DetectorKind.AUTOENCODER.value

    parameters: Parameters

    def __post_init__(self) -> None:
        width_of(len(self.parameters))
        if self.parameters.dtype != np.float32 or not np.isfinite(self.parameters).all():
            raise SettingError("an autoencoder's parameters must be finite float32 numbers")
        object.__setattr__(self, "parameters", frozen(self.parameters))

    @property
    def width(self) -> int:
        """Number of values per window."""
        return width_of(len(self.parameters))

    def scores(self, windows: Windows) -> Floats:
        """Return the mean squared reconstruction error of each window."""
        return scores(self.parameters, windows)

    def blame(self, windows: Windows) -> Floats:
        """Return each channel's share of the squared reconstruction error: windows x channels."""
        layers, channels = unflatten(self.parameters), windows.rows.shape[1]
        shares = np.empty((len(windows), channels))
        for block, batch in blocks(windows, width=self.width):
            error = _reconstruct(layers, batch) - batch
            shares[block] = shares_by_channel(error * error, channels)
        return shares

    def tensors(self) -> dict[str, Weights]:
        """Return the arrays to save in a model file."""
        return {"parameters": self.parameters}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Weights]) -> "Autoencoder":
        """Build the model from the arrays of a model file."""
        if set(tensors) != {"parameters"}:
            raise ModelFileError(f"it holds {sorted(tensors)}, not the one vector 'parameters'")
        parameters = tensors["parameters"]
        if parameters.dtype != np.float32 or parameters.ndim != 1:
            raise ModelFileError(
                f"its parameters are {parameters.dtype} of shape {parameters.shape}; expected a "
                "float32 vector"
            )
        return cls(parameters.astype(np.float32))
