"""The interface of every detector model: score windows, save arrays, load arrays."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Floats
from sluice.errors import SettingError
from sluice.telemetry import Windows

__all__ = ["DetectorKind", "Model", "Weights", "blocks", "demand_width", "shares_by_channel"]

BLOCK_WINDOWS = 4_096

Weights = NDArray[Any]


class DetectorKind(StrEnum):
    """The available models."""

    AUTOENCODER = "autoencoder"
    SUBSPACE = "subspace"
    MOMENTS = "moments"


class Model(Protocol):
    """A scorer of windows: the higher the score, the less a window looks like clean operation."""

    kind: ClassVar[str]

    @property
    def width(self) -> int:
        """Number of values per window: rows x channels."""

    def scores(self, windows: Windows) -> Floats:
        """Return one score per window."""

    def blame(self, windows: Windows) -> Floats:
        """Return each channel's share of each window's score: windows x channels.

        A share is not negative. The shares of a window sum to 1, or are all 0 if nothing stands
        out.
        """

    def tensors(self) -> dict[str, Weights]:
        """Return the arrays to save in a model file."""

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Weights]) -> Self:
        """Build the model from a file's arrays; refuse missing, misshapen or NaN arrays."""


def blocks(windows: Windows, *, width: int) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Yield flattened windows in blocks: all at once would need ten times the record's memory."""
    demand_width(windows, width)
    for start in range(0, len(windows), BLOCK_WINDOWS):
        block = slice(start, min(start + BLOCK_WINDOWS, len(windows)))
        yield block, windows.matrix(np.arange(block.start, block.stop))


def demand_width(windows: Windows, width: int) -> None:
    """Refuse windows of another size than the model reads."""
    actual = windows.length * windows.rows.shape[1]
    if actual != width:
        raise SettingError(
            f"the model reads {width} values a window; these windows hold {actual} "
            f"({windows.length} rows of {windows.rows.shape[1]} channels)"
        )


def shares_by_channel(squares: NDArray[Any], channels: int) -> Floats:
    """Sum the squares of flattened windows by channel, and divide them by the window's total."""
    by_channel: Floats = squares.reshape(len(squares), -1, channels).sum(axis=1, dtype=np.float64)
    total = by_channel.sum(axis=1, keepdims=True)
    shares: Floats = np.zeros_like(by_channel)
    np.divide(by_channel, total, out=shares, where=total > 0)
    return shares
