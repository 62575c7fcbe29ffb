"""The Mahalanobis distance of a window from clean operation, from lagged moments.

A window's score is its squared distance, divided by its number of values, so clean windows score
about 1. Channels that did not change in the summed rows have no moments. Each adds the square of
its distance from its usual reading, in units of its scale: its first change shows, and does not
outweigh everything else.

Blame is conditional: by how much the squared distance falls if a tag reads what the other tags
predict. A pump that follows its tank is not blamed for the tank.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sluice.arrays import Floats, Ints, frozen
from sluice.detector.model import DetectorKind, Weights, blocks, demand_width
from sluice.errors import ModelFileError, SettingError
from sluice.telemetry import Windows

__all__ = ["MomentModel"]

BLOCK_WINDOWS = 1_024  # that are multiplied at once: their values fit into a processor's cache


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MomentModel:
    """The mean reading of each channel, and the whitening of windows of the moving channels."""

    kind: ClassVar[str] = DetectorKind.MOMENTS.value

    mean: Floats  # channels
    moving: Ints  # positions of the channels that have moments
    whitener: Floats  # lower triangular, (rows x moving)^2: windows to independent values
    absent: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # positions not read
    rows: int = field(init=False)  # of a window

    def __post_init__(self) -> None:
        width, moving = len(self.whitener), len(self.moving)
        if not moving or width % moving or self.whitener.shape != (width, width):
            raise SettingError(
                f"a whitening of {moving} channels needs a square of a multiple of {moving}, got "
                f"{self.whitener.shape}"
            )
        if (
            self.moving.min() < 0
            or self.moving.max() >= len(self.mean)
            or (np.diff(self.moving) < 1).any()
        ):
            raise SettingError(
                f"the channels with moments must be ascending positions below {len(self.mean)}"
            )
        lacking = self.absent
        if lacking.size and (
            lacking.min() < 0
            or lacking.max() >= len(self.mean)
            or (np.diff(lacking) < 1).any()
            or np.isin(lacking, self.moving).any()
        ):
            raise SettingError(
                f"the channels that are not read must be ascending positions below "
                f"{len(self.mean)} without moments"
            )
        object.__setattr__(self, "rows", width // moving)
        for name in ("mean", "moving", "whitener", "absent"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def width(self) -> int:
        """Number of values per window."""
        return self.rows * len(self.mean)

    @property
    def still(self) -> Ints:
        """The positions of the channels that are read and have no moments."""
        read = np.setdiff1d(np.arange(len(self.mean)), self.absent)
        return np.setdiff1d(read, self.moving)

    def scores(self, windows: Windows) -> Floats:
        """Return each window's squared distance, divided by its number of values."""
        demand_width(windows, self.width)
        squares = np.empty(len(windows))
        if not squares.size:
            return squares
        steps = self._steps()
        moving, still = (self._cut(windows, channels) for channels in (self.moving, self.still))
        for start in range(0, len(windows), BLOCK_WINDOWS):
            block = slice(start, start + BLOCK_WINDOWS)
            first = windows.starts[block]
            total = self._still_squares(still[first])
            off = moving[first]
            for used, step in steps:
                white = off[:, :used] @ step
                total += np.einsum("ij,ij->i", white, white)
            squares[block] = total
        return squares / (self.width - self.rows * len(self.absent))

    def blame(self, windows: Windows) -> Floats:
        """Return each channel's share: the fall of the distance if the others predicted it."""
        precision = self.whitener.T @ self.whitener
        own = [self._own_precision(precision, at) for at in range(len(self.moving))]
        shares = np.zeros((len(windows), len(self.mean)))
        for block, batch in blocks(windows, width=self.width):
            off = self._off(batch)
            moving = off[:, :, self.moving].reshape(len(off), -1)
            pulled = (moving @ precision).reshape(len(off), self.rows, -1)
            falls = np.zeros((len(off), len(self.mean)))
            falls[:, self.still] = (off[:, :, self.still] ** 2).sum(axis=1)
            for at, column in enumerate(self.moving):
                part = pulled[:, :, at]
                falls[:, column] = np.einsum("ij,ij->i", part @ own[at], part)
            falls = np.maximum(falls, 0.0)
            total = falls.sum(axis=1, keepdims=True)
            np.divide(falls, total, out=shares[block], where=total > 0)
        return shares

    def tensors(self) -> dict[str, Weights]:
        """Return the arrays to save in a model file."""
        tensors = {"mean": self.mean, "moving": self.moving, "whitener": self.whitener}
        return tensors | ({"absent": self.absent} if self.absent.size else {})

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Weights]) -> "MomentModel":
        """Build the model from the arrays of a model file."""
        if set(tensors) - {"absent"} != {"mean", "moving", "whitener"}:
            raise ModelFileError(f"it holds {sorted(tensors)}, not 'mean', 'moving' and 'whitener'")
        mean, moving, whitener = tensors["mean"], tensors["moving"], tensors["whitener"]
        absent = tensors.get("absent", np.empty(0, np.int64))
        for name, array, kind, axes in (
            ("mean", mean, np.float64, 1),
            ("moving", moving, np.int64, 1),
            ("whitener", whitener, np.float64, 2),
            ("absent", absent, np.int64, 1),
        ):
            if array.dtype != kind or array.ndim != axes:
                raise ModelFileError(f"its {name} is {array.dtype} of shape {array.shape}")
        if np.triu(whitener, 1).any():
            raise ModelFileError("its whitener is not lower triangular")
        return cls(mean=mean, moving=moving, whitener=whitener, absent=absent)

    def _steps(self) -> list[tuple[int, Floats]]:
        """Return, per row of a window, how many values it reads and its part of the whitener.

        The whitener is triangular, so row i of a window reads rows 0..i only: half the work.
        """
        count = len(self.moving)
        return [
            (end, np.ascontiguousarray(self.whitener[end - count : end, :end].T))
            for end in range(count, len(self.whitener) + 1, count)
        ]

    def _still_squares(self, off: Floats) -> Floats:
        """Return the sum of squares of each window, channel by channel."""
        by_channel = np.ascontiguousarray(off.reshape(len(off), self.rows, -1).transpose(2, 0, 1))
        total: Floats = np.einsum("kij,kij->i", by_channel, by_channel)
        return total

    def _cut(self, windows: Windows, channels: Ints) -> Floats:
        """Return, for each row, the window that begins there, of some channels less their means.

        It is a view. So each reading is converted once, and not once for each window it is in.
        """
        off = np.take(windows.rows, channels, axis=1) - self.mean[channels]
        values = self.rows * len(channels)
        if not values:
            return np.empty((len(off), 0))
        cut: Floats = sliding_window_view(off.ravel(), values)[:: len(channels)]
        return cut

    def _off(self, batch: NDArray[np.float32]) -> Floats:
        off: Floats = batch.reshape(len(batch), self.rows, -1) - self.mean
        return off

    def _own_precision(self, precision: Floats, at: int) -> Floats:
        """Return the inverse of a channel's own block of the precision."""
        places = np.arange(self.rows) * len(self.moving) + at
        return np.asarray(np.linalg.inv(precision[np.ix_(places, places)]), np.float64)
