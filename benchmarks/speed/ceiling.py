"""How fast this machine multiplies matrices: what training can at most reach, and what it needs."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from sluice.detector import shapes
from sluice.seeding import stream

__all__ = ["Ceiling", "ceiling", "needed_flop", "training_flop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The most float32 operations a second in products of large square matrices."""

    numpy: float
    xla: float

    @property
    def flops(self) -> float:
        """The larger of the two."""
        return max(self.numpy, self.xla)

    def or_higher(self, other: "Ceiling") -> "Ceiling":
        """Return the higher of two measurements, each for itself."""
        return Ceiling(numpy=max(self.numpy, other.numpy), xla=max(self.xla, other.xla))


def ceiling(*, size: int, repeats: int) -> Ceiling:
    """Multiply two `size` x `size` matrices in NumPy and in XLA; the least of several times counts.

    One more product before them compiles and wakes the threads.
    """
    rng = stream(0, "ceiling", size)
    left, right = rng.standard_normal((2, size, size), dtype=np.float32)
    on_device = jnp.asarray(left), jnp.asarray(right)
    product = jax.jit(jnp.matmul)
    work = 2 * size**3
    return Ceiling(
        numpy=work / _least(lambda: left @ right, repeats=repeats),
        xla=work / _least(lambda: product(*on_device).block_until_ready(), repeats=repeats),
    )


def training_flop(width: int, *, windows: int) -> int:
    """Return the operations of one epoch over windows of `width` values, as they are usually told.

    A layer of m inputs and n outputs multiplies and adds m x n times per window forwards, as often
    for the slope in its weights, and again for the slope in its inputs: 6 per weight and window.
    Biases, activations, Adam and what a step computes on empty places do not count.
    """
    return 6 * windows * sum(_weights(width))


def needed_flop(width: int, *, windows: int) -> int:
    """Return those without the slope in the first layer's inputs, which nobody has a use for."""
    return training_flop(width, windows=windows) - 2 * windows * _weights(width)[0]


def _weights(width: int) -> list[int]:
    return [inputs * outputs for inputs, outputs in shapes(width)]


def _least(work: Callable[[], object], *, repeats: int) -> float:
    work()
    seconds = np.inf
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        seconds = min(seconds, time.perf_counter() - began)
    return float(seconds)
