"""Local training of the autoencoder: Adam on mean squared error, compiled once per shape."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Ints
from sluice.detector.autoencoder import Descent, Layer, Parameters, unflatten, width_of
from sluice.errors import SettingError
from sluice.telemetry import Windows

__all__ = [
    "Batches",
    "batches",
    "descend",
    "errors",
    "flattened",
    "padded",
    "train_parameters",
    "walk",
]

# Adam's constants, as in Kingma and Ba and in torch.
DECAY_MEAN = 0.9
DECAY_SQUARE = 0.999
EPSILON = 1e-8
# Shapes are rounded up to multiples of these: shards of similar size share one compilation.
ROW_QUANTUM = 1_024
STEP_QUANTUM = 16
PLACE_QUANTUM = 128


class Batches(NamedTuple):
    """The windows that each step reads: the first row of each window, and its weight.

    The last batch of an epoch is rarely full. Its empty places read window 0 with weight 0, so
    that every step has the same shape and the loss is still the mean over the real windows.
    """

    starts: NDArray[np.int32]  # steps x batch
    weights: NDArray[np.float32]  # steps x batch, 1 or 0

    def first(self, steps: int) -> "Batches":
        """Return the first steps, even if the last epoch is then incomplete."""
        if not 1 <= steps <= len(self.starts):
            raise SettingError(f"training can take 1 to {len(self.starts)} steps, got {steps}")
        return Batches(starts=self.starts[:steps], weights=self.weights[:steps])


def train_parameters(
    parameters: Parameters,
    windows: Windows,
    *,
    descent: Descent = Descent(),  # noqa: B008 - frozen, so sharing it is safe
    shuffle: np.random.Generator,
    steps: int | None = None,
) -> Parameters:
    """Train on a client's windows, for all epochs or for `steps` steps; return the parameters.

    Adam's moments start at zero in each call, as in each round of the paper. `shuffle` orders the
    windows of each epoch: give each client and round its own, such as
    `stream(seed, "shuffle", client, round)`. On one machine, the same generator state gives the
    same parameters.
    """
    schedule = batches(windows.starts, descent, shuffle=shuffle)
    return walk(
        parameters,
        padded(windows.rows),
        schedule if steps is None else schedule.first(steps),
        learning_rate=descent.learning_rate,
        length=windows.length,
    )


def walk(
    parameters: Any, rows: Any, schedule: Batches, *, learning_rate: float, length: int
) -> Parameters:
    """Train on scheduled batches over `padded` rows, compiled; takes numpy or jax arrays."""
    width, actual = width_of(len(parameters)), length * rows.shape[1]
    if actual != width:
        raise SettingError(f"the model reads {width} values a window; these windows hold {actual}")
    fitted, last = _fitted(schedule)
    trained = np.asarray(
        _compiled(
            jnp.asarray(parameters, jnp.float32),
            rows,
            fitted,
            np.float32(learning_rate),
            length=length,
            last=last,
        )
    )
    if not np.isfinite(trained).all():
        raise SettingError(
            f"training gave NaN or infinite parameters at a learning rate of {learning_rate:g}; "
            "lower it, or look for readings far outside the plant's range"
        )
    return trained


def _fitted(schedule: Batches) -> tuple[Batches, int]:
    """Remove places that no step fills, add empty steps; return also the size of short steps."""
    taken = np.count_nonzero(schedule.weights, axis=1)
    most, fewest = (
        min(-(-count // PLACE_QUANTUM) * PLACE_QUANTUM, schedule.weights.shape[1])
        for count in (int(taken.max()), int(taken.min()))
    )
    extra = (0, -len(taken) % STEP_QUANTUM), (0, 0)
    starts = np.pad(schedule.starts[:, :most], extra)
    return Batches(starts=starts, weights=np.pad(schedule.weights[:, :most], extra)), fewest


def batches(starts: Ints, descent: Descent, *, shuffle: np.random.Generator) -> Batches:
    """Assign windows to batches, in a new order each epoch."""
    if not len(starts):
        raise SettingError("there is no whole window to train on; give more consecutive rows")
    # A client with fewer windows than a batch would mostly compute on empty places.
    places = min(descent.batch, 1 << (len(starts) - 1).bit_length())
    steps = -(-len(starts) // places)
    order = np.zeros((descent.epochs, steps * places), np.int32)
    weights = np.zeros((descent.epochs, steps * places), np.float32)
    weights[:, : len(starts)] = 1
    for epoch in order:
        epoch[: len(starts)] = shuffle.permutation(starts)
    shape = (descent.epochs * steps, places)
    return Batches(starts=order.reshape(shape), weights=weights.reshape(shape))


def padded(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Append rows that no window reads, so that shards of similar length share one compilation.

    Missing readings become 0: no window contains them, but 0 x NaN would still be NaN.
    """
    extra = -len(rows) % ROW_QUANTUM
    return np.pad(np.where(np.isnan(rows), np.float32(0), rows), ((0, extra), (0, 0)))


class _Adam(NamedTuple):
    """The layers between two steps, with the running moments of their gradients."""

    layers: Any
    mean: Any
    square: Any
    steps: Any  # float32

    @classmethod
    def before(cls, layers: Any) -> "_Adam":
        zeros = jax.tree.map(jnp.zeros_like, layers)
        return cls(layers=layers, mean=zeros, square=zeros, steps=jnp.float32(0))

    def stepped(self, gradient: Any, learning_rate: Any) -> "_Adam":
        steps = self.steps + 1
        bias_mean = 1 - DECAY_MEAN**steps
        bias_square = 1 - DECAY_SQUARE**steps

        def moved(p: Any, m: Any, s: Any) -> Any:
            return p - learning_rate * (m / bias_mean) / (jnp.sqrt(s / bias_square) + EPSILON)

        mean = jax.tree.map(lambda m, g: DECAY_MEAN * m + (1 - DECAY_MEAN) * g, self.mean, gradient)
        square = jax.tree.map(
            lambda s, g: DECAY_SQUARE * s + (1 - DECAY_SQUARE) * g * g, self.square, gradient
        )
        layers = jax.tree.map(moved, self.layers, mean, square)
        return _Adam(layers=layers, mean=mean, square=square, steps=steps)


def descend(  # noqa: PLR0913 - jit takes arrays, not objects
    parameters: Any, rows: Any, schedule: Batches, learning_rate: Any, *, length: int, last: int
) -> Any:
    """Train on one client's batches in jax, up to the first empty one.

    A step that fills no more than `last` places is computed on those places only. Otherwise the
    last batch of an epoch would cost as much as a full one.
    """

    def step(state: _Adam, batch: Batches) -> _Adam:
        windows = flattened(rows, batch.starts, length=length)
        return state.stepped(jax.grad(_loss)(state.layers, windows, batch.weights), learning_rate)

    def short(state: _Adam, batch: Batches) -> _Adam:
        return step(state, Batches(batch.starts[:last], batch.weights[:last]))

    def next_step(index: Any, state: _Adam) -> Any:
        batch = Batches(schedule.starts[index], schedule.weights[index])
        if last == len(batch.weights):
            return step(state, batch)
        return jax.lax.cond(batch.weights[last] > 0, step, short, state, batch)

    steps = jnp.count_nonzero(schedule.weights[:, 0])
    end = jax.lax.fori_loop(0, steps, next_step, _Adam.before(unflatten(parameters)))
    return jnp.concatenate([part.ravel() for layer in end.layers for part in layer])


def flattened(rows: Any, first: Any, *, length: int) -> Any:
    """Return the windows that begin at the given rows, each flattened row by row.

    A window is contiguous in the flattened rows and is copied as a whole: copying it row by row
    takes fifteen times as long.
    """
    readings, channels = rows.ravel(), rows.shape[1]
    return jax.vmap(
        lambda start: jax.lax.dynamic_slice(readings, (start * channels,), (length * channels,))
    )(first)


def errors(layers: tuple[Layer, ...], windows: Any) -> Any:
    """Return the mean squared reconstruction error of each flattened window: its score, in jax."""
    *hidden, last = layers
    active = windows
    for layer in hidden:
        active = jax.nn.relu(active @ layer.weights + layer.bias)
    error = active @ last.weights + last.bias - windows
    return jnp.mean(error * error, axis=1)


def _loss(layers: tuple[Layer, ...], windows: Any, weight: Any) -> Any:
    return jnp.sum(weight * errors(layers, windows)) / jnp.sum(weight)


_compiled = jax.jit(descend, static_argnames=("length", "last"))
