"""A second detector: principal components of windows, learnt from sums that clients can add up.

A client sends how many windows it has, their sum and the sum of their outer products; the sums of
all clients are the sums of the pooled windows, so one exchange gives the components exactly. A
window's score is the mean squared residual off the subspace that the leading components span.

What it cannot see: a window far out but along the subspace, such as a tank level that is merely
too high while everything moves with it. Ranges of the gate's rules are there for that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sluice.arrays import Floats, frozen
from sluice.detector.model import DetectorKind, Weights, blocks
from sluice.errors import ModelFileError, SettingError
from sluice.telemetry import Windows

__all__ = ["Moments", "Subspace", "fit_subspace"]

EXPLAINED = 0.99
CALM = 0.95
FLAT = 1e-9  # of the largest variance: a direction in which the plant does not move


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments:
    """Sums over windows: all that principal components are computed from."""

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
                f"sums over windows of {len(self.total)} and {len(other.total)} values do not add "
                "up; clients share one list of channels"
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subspace:
    """The mean window and the directions in which clean windows differ from it."""

    kind: ClassVar[DetectorKind] = DetectorKind.SUBSPACE

    mean: Floats  # width
    basis: Floats  # rank x width, orthonormal rows, leading component first

    def __post_init__(self) -> None:
        if self.basis.shape[1:] != self.mean.shape or not 1 <= self.rank < self.width:
            raise SettingError(
                f"a subspace of windows of {self.mean.shape} values has 1 to {self.width - 1} "
                f"directions of as many values, got {self.basis.shape}"
            )
        object.__setattr__(self, "mean", frozen(self.mean))
        object.__setattr__(self, "basis", frozen(self.basis))

    @property
    def width(self) -> int:
        """How many values a window holds."""
        return len(self.mean)

    @property
    def rank(self) -> int:
        """How many directions it keeps."""
        return len(self.basis)

    def scores(self, windows: Windows) -> Floats:
        """Return the mean squared residual of each window off the subspace."""
        found = np.empty(len(windows))
        for block, batch in blocks(windows, width=self.width):
            off = batch - self.mean
            residual = off - (off @ self.basis.T) @ self.basis
            found[block] = np.einsum("ij,ij->i", residual, residual) / self.width
        return found

    def tensors(self) -> dict[str, Weights]:
        """Return the arrays a file holds."""
        return {"mean": self.mean, "basis": self.basis}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Weights]) -> "Subspace":
        """Build the model from a file's arrays."""
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
    moments: Moments, clean: Windows, *, explained: float = EXPLAINED, calm: float = CALM
) -> Subspace:
    """Learn the subspace from summed moments; choose its rank on clean validation windows.

    The rank is the smallest that explains 99 % of the variance of the calmest 95 % of the clean
    windows: of the residual scores at each rank the largest 5 % are left out, and so they are at
    rank 0. A few odd but clean windows (a start-up, a valve tried) thus cannot ask for directions
    until nothing is left to alarm about. Directions without variance in training are never taken:
    a constant channel's first change must show.
    """
    if not (0 < explained < 1 and 0 < calm <= 1):
        raise SettingError(f"shares lie between 0 and 1, got {explained=} and {calm=}")
    variances, directions = np.linalg.eigh(moments.covariance)
    basis = directions.T[::-1]
    moving = int(np.sum(variances > FLAT * max(variances[-1], 0.0)))
    most = min(moving, len(basis) - 1)
    if most < 1:
        raise SettingError("the training windows are all alike; nothing can be learnt from them")
    left = _left(moments.mean, basis[:most], clean, calm=calm)
    enough = np.flatnonzero(left <= (1 - explained) * left[0])
    rank = int(enough[0]) if enough.size else most
    return Subspace(mean=moments.mean, basis=basis[: max(rank, 1)].copy())


def _left(mean: Floats, basis: Floats, clean: Windows, *, calm: float) -> Floats:
    """Return the calm windows' mean squared residual at rank 0, 1, 2, ... of the basis."""
    if not len(clean):
        raise SettingError("there is no whole clean window to choose a rank on")
    residuals = np.empty((len(clean), len(basis) + 1))
    for block, batch in blocks(clean, width=len(mean)):
        off = batch - mean
        energy = np.einsum("ij,ij->i", off, off)
        residuals[block, 0] = energy
        residuals[block, 1:] = energy[:, None] - np.cumsum((off @ basis.T) ** 2, axis=1)
    kept = max(int(calm * len(clean)), 1)
    residuals.partition(kept - 1, axis=0)
    left: Floats = residuals[:kept].mean(axis=0) / len(mean)
    return left
