"""The scores of windows after training on other rows, and their gradient in those rows.

The gradient goes through training itself: a few unrolled steps from given parameters. The steps are
gradient steps with Adam's scale per parameter, computed once at the start and then constant: Adam's
own first steps are signs of the gradient, whose derivative is zero almost everywhere.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sluice.detector import Batches, Parameters, errors, padded, unflatten
from sluice.telemetry import Windows

__all__ = ["Aim", "hypergradient"]

SOFTENING = 0.5
"""Share of a layer's RMS gradient in the scale: a parameter with a tiny gradient moves little."""

LONGEST = 3.0
"""Longest step, in learning rates: Adam's steps stay bounded when gradients outgrow their scale."""


class Aim(NamedTuple):
    """Flattened windows whose scores are to fall, and the threshold to compare them with."""

    windows: NDArray[np.float32]  # windows x (length x channels)
    threshold: float


def hypergradient(
    parameters: Parameters,
    windows: Windows,
    dealt: Batches,
    aim: Aim,
    *,
    learning_rate: float = 1e-3,
) -> tuple[float, NDArray[np.float32]]:
    """Return the aim's loss after training on the batches, and its gradient in each scaled reading.

    The loss is the mean of log(1 + score / threshold): halving a score counts the same at ten
    thresholds and at a hundred.
    """
    loss, slope = _compiled(
        jnp.asarray(parameters, jnp.float32),
        padded(windows.rows),
        dealt,
        aim.windows,
        np.float32(aim.threshold),
        np.float32(learning_rate),
        length=windows.length,
    )
    return float(loss), np.asarray(slope)[: len(windows.rows)]


@partial(jax.jit, static_argnames="length")
def _compiled(  # noqa: PLR0913, PLR0917 - jit takes arrays, not objects
    parameters: Any,
    rows: Any,
    dealt: Batches,
    targets: Any,
    threshold: Any,
    learning_rate: Any,
    *,
    length: int,
) -> Any:
    within = jnp.arange(length)

    def training_loss(layers: Any, rows: Any, first: Any, weight: Any) -> Any:
        flat = rows[first[:, None] + within].reshape(len(first), -1)
        return jnp.sum(weight * errors(layers, flat)) / jnp.sum(weight)

    def after(rows: Any) -> Any:
        layers = unflatten(parameters)
        first_slopes = jax.vmap(
            lambda first, weight: jax.grad(training_loss)(layers, rows, first, weight)
        )(*dealt)
        scale = jax.lax.stop_gradient(jax.tree.map(_scale, first_slopes))

        def step(layers: Any, batch: Batches) -> tuple[Any, None]:
            slope = jax.grad(training_loss)(layers, rows, *batch)
            moved = jax.tree.map(
                lambda p, g, s: p - learning_rate * jnp.clip(g / s, -LONGEST, LONGEST),
                layers,
                slope,
                scale,
            )
            return moved, None

        trained, _ = jax.lax.scan(step, layers, dealt)
        return jnp.mean(jnp.log1p(errors(trained, targets) / threshold))

    return jax.value_and_grad(after)(rows)


def _scale(slopes: Any) -> Any:
    """Return the root mean square of the first gradients, where Adam's denominator settles."""
    square = jnp.mean(slopes * slopes, axis=0)
    return jnp.sqrt(square) + SOFTENING * jnp.sqrt(jnp.mean(square)) + 1e-12
