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
    """A threshold computed in each round: the median length of the vectors to clip."""

    lower: bool = False  # of an even number take the lower middle value, as the paper's code does

    def of(self, lengths: Floats) -> float:
        """Return the median of the lengths."""
        return float(lower_median(lengths) if self.lower else np.median(lengths))


Threshold = float | MedianLength


def check_threshold(tau: Threshold, rule: str) -> None:
    """Refuse a fixed threshold that would clip every update to zero."""
    if not isinstance(tau, MedianLength) and not (np.isfinite(tau) and tau > 0):
        raise SettingError(f"{rule} clips at a length tau > 0, got {tau}")


def clip_factors(rows: Floats, tau: Threshold) -> Floats:
    """Return for each row the factor in [0, 1] that reduces its length to the threshold."""
    lengths = np.linalg.norm(rows, axis=1)
    limit = tau.of(lengths) if isinstance(tau, MedianLength) else tau
    factors: Floats = np.ones_like(lengths)
    np.divide(limit, lengths, out=factors, where=lengths > limit)
    return factors


def lower_median(lengths: Floats) -> float:
    """Return the middle value; of an even number, the lower of the two."""
    return float(np.sort(lengths)[(len(lengths) - 1) // 2])


def directions(rows: Floats) -> Floats:
    """Return each row scaled to length one; a row of zeros has no direction and stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    towards: Floats = np.zeros_like(rows)
    np.divide(rows, lengths, out=towards, where=lengths > 0)
    return towards


def squared_distances(rows: Floats) -> Floats:
    """Return all squared Euclidean distances between rows.

    Differences are taken before squaring. The Gram matrix is faster, but with one distant row,
    rounding would destroy the distances between all the others.
    """
    distances = np.zeros((len(rows), len(rows)))
    for at, row in enumerate(rows[:-1]):
        apart = rows[at + 1 :] - row
        distances[at, at + 1 :] = np.einsum("ij,ij->i", apart, apart)
    return distances + distances.T
