"""What every detector model can do: score windows, and be a few arrays in a file."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Floats
from sluice.errors import SettingError
from sluice.telemetry import Windows

__all__ = ["DetectorKind", "Model", "Weights", "blocks"]

BLOCK_WINDOWS = 4_096

Weights = NDArray[Any]


class DetectorKind(StrEnum):
    """The models there are."""

    AUTOENCODER = "autoencoder"
    SUBSPACE = "subspace"


class Model(Protocol):
    """A scorer of windows: the higher the score, the less a window looks like clean operation."""

    kind: ClassVar[DetectorKind]

    @property
    def width(self) -> int:
        """How many values a window holds: rows x channels."""

    def scores(self, windows: Windows) -> Floats:
        """Return one score per window."""

    def tensors(self) -> dict[str, Weights]:
        """Return the arrays a file holds."""

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Weights]) -> Self:
        """Build the model from a file's arrays; refuse what is missing, misshapen or NaN."""


def blocks(windows: Windows, *, width: int) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Walk windows in flattened blocks, so that no record is ever held ten times over."""
    met = windows.length * windows.rows.shape[1]
    if met != width:
        raise SettingError(
            f"the model reads {width} values a window; these windows hold {met} "
            f"({windows.length} rows of {windows.rows.shape[1]} channels)"
        )
    for start in range(0, len(windows), BLOCK_WINDOWS):
        block = slice(start, min(start + BLOCK_WINDOWS, len(windows)))
        yield block, windows.matrix(np.arange(block.start, block.stop))
