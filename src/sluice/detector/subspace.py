"""A second detector: principal components of windows, computed from sums that clients can add.

A client sends its number of windows, their sum and the sum of their outer products. The sums over
all clients are the sums over the pooled windows, so one exchange gives the components exactly. A
window's score is the mean squared residual off the subspace that the leading components span.

It cannot detect a window that is far out but within the subspace, such as a tank level that is too
high while all other channels follow it. The range rules of the gate cover that case.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Floats, frozen
from sluice.detector.model import DetectorKind, Weights, blocks, shares_by_channel
from sluice.errors import ModelFileError, SettingError
from sluice.telemetry import Windows

__all__ = ["Moments", "Subspace", "fit_subspace"]

EXPLAINED = 0.99
CALM = 0.95
FLAT = 1e-9  # of the largest variance: a direction in which the plant does not move


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments:
    """Sums over windows, from which the principal components are computed."""

    count: int
    total: Floats  # width
    outer: Floats  # width x width

    @classmethod
    def of(cls, windows: Windows) -> "Moments":
        """Sum a client's windows."""
        width = windows.length * windows.rows.shape[1]
        total, outer = np.zeros(width), np.zeros((width, width))
        for _, block in blocks(windows, width=width):
            batch = block.astype(np.float64)
            total += batch.sum(axis=0)
            outer += batch.T @ batch
        return cls(count=len(windows), total=total, outer=outer)

    def __add__(self, other: "Moments") -> "Moments":
        if len(self.total) != len(other.total):
            raise SettingError(
                f"sums over windows of {len(self.total)} and {len(other.total)} values cannot be "
                "added; all clients need the same channels"
            )
        return Moments(
            count=self.count + other.count,
            total=self.total + other.total,
            outer=self.outer + other.outer,
        )

    @property
    def mean(self) -> Floats:
        """The mean window."""
        if not self.count:
            raise SettingError("there is no whole window to learn from; give more consecutive rows")
        return self.total / self.count

    @property
    def covariance(self) -> Floats:
        """The population covariance of the windows."""
        mean = self.mean
        return self.outer / self.count - np.outer(mean, mean)


class SecondMoments(Protocol):
    """The mean window and the covariance of windows, however they were summed."""

    @property
    def mean(self) -> Floats:
        """The mean window."""
        ...

    @property
    def covariance(self) -> Floats:
        """The covariance of the windows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subspace:
    """The mean window and the directions in which clean windows differ from it."""

    kind: ClassVar[str] = DetectorKind.SUBSPACE.value

    mean: Floats  # width
    basis: Floats  # rank x width, orthonormal rows, leading component first

    def __post_init__(self) -> None:
        if self.basis.shape[1:] != self.mean.shape or not 1 <= self.rank < self.width:
            raise SettingError(
                f"a subspace of windows of {self.mean.shape} values needs 1 to {self.width - 1} "
                f"directions of the same length, got {self.basis.shape}"
            )
        object.__setattr__(self, "mean", frozen(self.mean))
        object.__setattr__(self, "basis", frozen(self.basis))

    @property
    def width(self) -> int:
        """Number of values per window."""
        return len(self.mean)

    @property
    def rank(self) -> int:
        """Number of directions."""
        return len(self.basis)

    def scores(self, windows: Windows) -> Floats:
        """Return each window's mean squared residual outside the subspace."""
        mean_squares = np.empty(len(windows))
        for block, batch in blocks(windows, width=self.width):
            residual = self._residual(batch)
            mean_squares[block] = np.einsum("ij,ij->i", residual, residual) / self.width
        return mean_squares

    def blame(self, windows: Windows) -> Floats:
        """Return each channel's share of the squared residual: windows x channels."""
        channels = windows.rows.shape[1]
        shares = np.empty((len(windows), channels))
        for block, batch in blocks(windows, width=self.width):
            shares[block] = shares_by_channel(self._residual(batch) ** 2, channels)
        return shares

    def _residual(self, batch: NDArray[np.float32]) -> Floats:
        off = batch - self.mean
        residual: Floats = off - (off @ self.basis.T) @ self.basis
        return residual

    def tensors(self) -> dict[str, Weights]:
        """Return the arrays to save in a model file."""
        return {"mean": self.mean, "basis": self.basis}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Weights]) -> "Subspace":
        """Build the model from the arrays of a model file."""
        if set(tensors) != {"mean", "basis"}:
            raise ModelFileError(f"it holds {sorted(tensors)}, not 'mean' and 'basis'")
        mean, basis = tensors["mean"], tensors["basis"]
        if (
            mean.dtype != np.float64
            or basis.dtype != np.float64
            or (mean.ndim, basis.ndim)
            != (
                1,
                2,
            )
        ):
            raise ModelFileError(
                f"its mean is {mean.dtype} of shape {mean.shape} and its basis {basis.dtype} of "
                f"shape {basis.shape}"
            )
        if not np.allclose(basis @ basis.T, np.eye(len(basis)), atol=1e-6):
            raise ModelFileError("its directions are not orthonormal")
        return cls(mean=mean, basis=basis)


def fit_subspace(
    moments: SecondMoments, clean: Windows, *, explained: float = EXPLAINED, calm: float = CALM
) -> Subspace:
    """Fit the subspace to summed moments; choose its rank on clean validation windows.

    The rank is the smallest that explains 99 % of the variance of the calmest 95 % of the clean
    windows. At every rank, including rank 0, the largest 5 % of the residuals are left out.
    Otherwise a few unusual clean windows (a start-up, a valve test) would add directions until no
    window could raise an alarm. Directions without variance in training are never used, so that
    the first change of a constant channel raises the score.
    """
    if not (0 < explained < 1 and 0 < calm <= 1):
        raise SettingError(f"shares must lie between 0 and 1, got {explained=} and {calm=}")
    variances, directions = np.linalg.eigh(moments.covariance)
    basis = directions.T[::-1]
    moving = int(np.sum(variances > FLAT * max(variances[-1], 0.0)))
    max_rank = min(moving, len(basis) - 1)
    if max_rank < 1:
        raise SettingError(
            "the training windows are all alike; give a record with changing readings"
        )
    residuals = _residuals_by_rank(moments.mean, basis[:max_rank], clean, calm=calm)
    enough = np.flatnonzero(residuals <= (1 - explained) * residuals[0])
    rank = int(enough[0]) if enough.size else max_rank
    return Subspace(mean=moments.mean, basis=basis[: max(rank, 1)].copy())


def _residuals_by_rank(mean: Floats, basis: Floats, clean: Windows, *, calm: float) -> Floats:
    """Return the calm windows' mean squared residual at rank 0, 1, 2, ... of the basis."""
    if not len(clean):
        raise SettingError(
            "there is no whole clean window to choose a rank on; give more clean rows"
        )
    residuals = np.empty((len(clean), len(basis) + 1))
    for block, batch in blocks(clean, width=len(mean)):
        off = batch - mean
        energy = np.einsum("ij,ij->i", off, off)
        residuals[block, 0] = energy
        residuals[block, 1:] = energy[:, None] - np.cumsum((off @ basis.T) ** 2, axis=1)
    calm_windows = max(int(calm * len(clean)), 1)
    residuals.partition(calm_windows - 1, axis=0)
    means: Floats = residuals[:calm_windows].mean(axis=0) / len(mean)
    return means
