"""How fast this machine multiplies matrices (the ceiling for training), and what training needs."""

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
        """Return the higher of two measurements, for NumPy and XLA separately."""
        return Ceiling(numpy=max(self.numpy, other.numpy), xla=max(self.xla, other.xla))


def ceiling(*, size: int, repeats: int) -> Ceiling:
    """Multiply two `size` x `size` matrices in NumPy and in XLA; the fastest of `repeats` counts.

    One extra product first compiles the code and starts the threads.
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
    """Return the operations of one epoch over windows of `width` values, as usually counted.

    A layer of m inputs and n outputs does m x n multiplications and additions per window forwards,
    as many for the gradient of its weights, and as many for the gradient of its inputs: 6
    operations per weight and window. Biases, activations, Adam and padding do not count.
    """
    return 6 * windows * sum(_weights(width))


def needed_flop(width: int, *, windows: int) -> int:
    """Return the same without the gradient of the first layer's inputs, which training ignores."""
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
