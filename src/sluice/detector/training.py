"""Local training of the autoencoder: Adam on mean squared error, compiled once per shape."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Ints
from sluice.detector.autoencoder import Descent, Layer, Parameters, unflatten
from sluice.errors import SettingError
from sluice.telemetry import Windows

__all__ = ["Batches", "batches", "descend", "padded", "train"]

# Adam's own constants, as in Kingma and Ba and in torch.
DECAY_MEAN = 0.9
DECAY_SQUARE = 0.999
EPSILON = 1e-8
ROW_QUANTUM = 1_024


class Batches(NamedTuple):
    """Which windows each step reads: the first row of each, and whether the place is taken.

    The last batch of an epoch is rarely full. Its empty places read window 0 with weight 0, so
    that every step has one shape and the loss is still the mean over the windows that are there.
    """

    starts: NDArray[np.int32]  # steps x batch
    weights: NDArray[np.float32]  # steps x batch, 1 or 0


def train(
    parameters: Parameters,
    windows: Windows,
    *,
    descent: Descent = Descent(),  # noqa: B008 - frozen, so sharing it is safe
    shuffle: np.random.Generator,
) -> Parameters:
    """Return the parameters after some epochs on a client's windows.

    Adam starts afresh at each call, as the paper's clients do each round. `shuffle` orders the
    windows of each epoch: give each client and round its own, such as
    `stream(seed, "shuffle", client, round)`. The same generator state gives the same parameters on
    one machine.
    """
    trained = np.asarray(
        _compiled(
            jnp.asarray(parameters, jnp.float32),
            padded(windows.rows),
            batches(windows.starts, descent, shuffle=shuffle),
            np.float32(descent.learning_rate),
            length=windows.length,
        )
    )
    if not np.isfinite(trained).all():
        raise SettingError(
            f"training left the numbers at a learning rate of {descent.learning_rate:g}; lower "
            "it, or look for readings far outside the plant's range"
        )
    return trained


def batches(starts: Ints, descent: Descent, *, shuffle: np.random.Generator) -> Batches:
    """Deal windows into batches, in a new order each epoch."""
    if not len(starts):
        raise SettingError("there is no whole window to train on; give more consecutive rows")
    # A client with fewer windows than a batch would mostly compute on empty places.
    places = min(descent.batch, 1 << (len(starts) - 1).bit_length())
    steps = -(-len(starts) // places)
    dealt = np.zeros((descent.epochs, steps * places), np.int32)
    weights = np.zeros((descent.epochs, steps * places), np.float32)
    weights[:, : len(starts)] = 1
    for epoch in dealt:
        epoch[: len(starts)] = shuffle.permutation(starts)
    shape = (descent.epochs * steps, places)
    return Batches(starts=dealt.reshape(shape), weights=weights.reshape(shape))


def padded(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Add rows no window reads, so that shards of nearly one length share one compilation.

    Missing readings become 0: no window holds them, and 0 x NaN would still be NaN.
    """
    extra = -len(rows) % ROW_QUANTUM
    return np.pad(np.where(np.isnan(rows), np.float32(0), rows), ((0, extra), (0, 0)))


def descend(parameters: Any, rows: Any, dealt: Batches, learning_rate: Any, *, length: int) -> Any:
    """Walk one client's batches: pure jax, for `jit` and for `vmap` over clients alike."""
    layers = unflatten(parameters)
    zeros = jax.tree.map(jnp.zeros_like, layers)
    within = jnp.arange(length)

    def step(state: Any, dealt: Batches) -> tuple[Any, None]:
        layers, mean, square, count = state
        first, weight = dealt
        windows = rows[first[:, None] + within].reshape(len(first), -1)
        slope = jax.grad(_loss)(layers, windows, weight)
        count = count + 1
        mean = jax.tree.map(lambda m, g: DECAY_MEAN * m + (1 - DECAY_MEAN) * g, mean, slope)
        square = jax.tree.map(
            lambda s, g: DECAY_SQUARE * s + (1 - DECAY_SQUARE) * g * g, square, slope
        )
        whole_mean = 1 - DECAY_MEAN**count
        whole_square = 1 - DECAY_SQUARE**count
        layers = jax.tree.map(
            lambda p, m, s: (
                p - learning_rate * (m / whole_mean) / (jnp.sqrt(s / whole_square) + EPSILON)
            ),
            layers,
            mean,
            square,
        )
        return (layers, mean, square, count), None

    state: Any = (layers, zeros, zeros, jnp.float32(0))
    (layers, *_), _ = jax.lax.scan(step, state, dealt)
    return jnp.concatenate([part.ravel() for layer in layers for part in layer])


def _loss(layers: tuple[Layer, ...], windows: Any, weight: Any) -> Any:
    *hidden, last = layers
    active = windows
    for layer in hidden:
        active = jax.nn.relu(active @ layer.weights + layer.bias)
    error = active @ last.weights + last.bias - windows
    return jnp.sum(weight * jnp.mean(error * error, axis=1)) / jnp.sum(weight)


@partial(jax.jit, static_argnames="length")
def _compiled(
    parameters: Any, rows: Any, dealt: Batches, learning_rate: Any, *, length: int
) -> Any:
    return descend(parameters, rows, dealt, learning_rate, length=length)
