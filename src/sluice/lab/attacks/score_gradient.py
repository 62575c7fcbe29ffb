"""How a model's mean score changes with each reading: the slope that a perturbation climbs."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Ints
from sluice.detector import Batches, Parameters, errors, padded, unflatten, width_of
from sluice.errors import SettingError
from sluice.telemetry import Windows

__all__ = ["score_gradient"]

CHUNK_WINDOWS = 1_024


def score_gradient(parameters: Parameters, windows: Windows) -> tuple[float, NDArray[np.float32]]:
    """Return the mean score of the windows and its gradient in each scaled reading of their rows.

    Windows overlap: a reading's gradient is the sum over all windows that hold it, and 0 if none
    does.
    """
    width, given = width_of(len(parameters)), windows.length * windows.rows.shape[1]
    if given != width:
        raise SettingError(f"the model reads {width} values a window; these windows hold {given}")
    if not len(windows):
        raise SettingError("there is no whole window to score; give more consecutive rows")
    score, slope = _compiled(
        jnp.asarray(parameters, jnp.float32),
        padded(windows.rows),
        _chunks(windows.starts),
        length=windows.length,
    )
    return float(score), np.asarray(slope)[: len(windows.rows)]


def _chunks(starts: Ints) -> Batches:
    """Split windows into equal chunks: all of them at once would hold a record ten times."""
    empty = -len(starts) % CHUNK_WINDOWS
    weights = np.pad(np.ones(len(starts), np.float32), (0, empty))
    shape = (-1, CHUNK_WINDOWS)
    return Batches(
        starts=np.pad(starts, (0, empty)).astype(np.int32).reshape(shape),
        weights=weights.reshape(shape),
    )


@partial(jax.jit, static_argnames="length")
def _compiled(parameters: Any, rows: Any, chunks: Batches, *, length: int) -> Any:
    layers = unflatten(parameters)
    within = jnp.arange(length)
    share = 1 / jnp.sum(chunks.weights)

    def part(rows: Any, chunk: Batches) -> Any:
        windows = rows[chunk.starts[:, None] + within].reshape(CHUNK_WINDOWS, -1)
        return share * jnp.sum(chunk.weights * errors(layers, windows))

    def add(sums: Any, chunk: Batches) -> tuple[Any, None]:
        added = jax.value_and_grad(part)(rows, chunk)
        return jax.tree.map(jnp.add, sums, added), None

    sums, _ = jax.lax.scan(add, (jnp.float32(0), jnp.zeros_like(rows)), chunks)
    return sums
