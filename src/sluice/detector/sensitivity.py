"""How the autoencoder's score answers to the readings: the slope that an attacker climbs."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Ints
from sluice.detector.autoencoder import Parameters, unflatten, width_of
from sluice.detector.training import Batches, errors, padded
from sluice.errors import SettingError
from sluice.telemetry import Windows

__all__ = ["score_gradient"]

CHUNK_WINDOWS = 1_024


def score_gradient(parameters: Parameters, windows: Windows) -> tuple[float, NDArray[np.float32]]:
    """Return the mean score of the windows and its slope in every scaled reading of their rows.

    Windows overlap, and a reading's slope is the sum over all that hold it; a reading that no
    window holds has slope 0.
    """
    width, met = width_of(len(parameters)), windows.length * windows.rows.shape[1]
    if met != width:
        raise SettingError(f"the model reads {width} values a window; these windows hold {met}")
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
    """Lay windows out in rows of one length, so that no record is ever held ten times over."""
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
        found = jax.value_and_grad(part)(rows, chunk)
        return jax.tree.map(jnp.add, sums, found), None

    sums, _ = jax.lax.scan(add, (jnp.float32(0), jnp.zeros_like(rows)), chunks)
    return sums
