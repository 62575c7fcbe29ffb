"""Lengths, directions and distances of a round's updates."""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats
from sluice.errors import SettingError

__all__ = [
    "MedianLength",
    "Threshold",
    "check_threshold",
    "clip_factors",
    "directions",
    "lower_median",
    "squared_distances",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MedianLength:
    """A threshold taken anew each round: the median length of what is to be clipped."""

    lower: bool = False  # of an even number the lower middle one, as the paper's code has it

    def of(self, lengths: Floats) -> float:
        """Return the median of the lengths."""
        return float(lower_median(lengths) if self.lower else np.median(lengths))


Threshold = float | MedianLength


def check_threshold(tau: Threshold, rule: str) -> None:
    """Refuse a fixed threshold that would clip everything away."""
    if not isinstance(tau, MedianLength) and not (np.isfinite(tau) and tau > 0):
        raise SettingError(f"{rule} clips at a length tau > 0, got {tau}")


def clip_factors(rows: Floats, tau: Threshold) -> Floats:
    """Return per row the factor in [0, 1] that brings its length down to the threshold."""
    lengths = np.linalg.norm(rows, axis=1)
    limit = tau.of(lengths) if isinstance(tau, MedianLength) else tau
    factors: Floats = np.ones_like(lengths)
    np.divide(limit, lengths, out=factors, where=lengths > limit)
    return factors


def lower_median(lengths: Floats) -> float:
    """Return the middle value, of an even number the lower one."""
    return float(np.sort(lengths)[(len(lengths) - 1) // 2])


def directions(rows: Floats) -> Floats:
    """Return each row at length one; a row of zeros has no direction and stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    towards: Floats = np.zeros_like(rows)
    np.divide(rows, lengths, out=towards, where=lengths > 0)
    return towards


def squared_distances(rows: Floats) -> Floats:
    """Return all squared Euclidean distances between rows.

    Differences are taken before squaring: the Gram matrix is faster, but one far row would drown
    the distances between all the near ones.
    """
    found = np.zeros((len(rows), len(rows)))
    for at, row in enumerate(rows[:-1]):
        apart = rows[at + 1 :] - row
        found[at, at + 1 :] = np.einsum("ij,ij->i", apart, apart)
    return found + found.T
