"""Extreme-value tails: how far clean residuals reach beyond what a record has shown.

A record of a few thousand rows says nothing direct about a residual that occurs once in a million
rows. Peaks over a high threshold follow a generalised Pareto distribution (Pickands, 1975); its
shape and scale are estimated by probability-weighted moments (Hosking and Wallis, 1987), which
stay stable with a few dozen peaks. Peaks that lie close together count once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats

__all__ = ["Tail", "tail_of"]

ABOVE = 0.05  # share of sizes above the threshold
FEWEST_PEAKS = 8
PRIOR_PEAKS = 30.0  # an exponential tail counts as this many peaks
SHAPES = (-0.2, 0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The upper tail of sizes; `per_size` is the number of peaks above the threshold per size."""

    threshold: float
    per_size: float
    shape: float
    scale: float
    largest: float

    def level(self, share: float) -> float:
        """Return the size that a share of all later sizes is expected to exceed."""
        if not self.per_size > 0 or not self.scale > 0:
            return self.largest
        if share >= self.per_size:
            return self.threshold
        rarer = np.log(self.per_size / share)
        if self.shape == 0:
            return self.threshold + self.scale * float(rarer)
        return self.threshold + self.scale * float(np.expm1(self.shape * rarer)) / self.shape


def tail_of(parts: Sequence[Floats], *, apart: int) -> Tail:
    """Return the tail of sizes, one array per stretch of rows; peaks are `apart` rows apart."""
    sizes = np.concatenate([*parts, np.empty(0)])
    if not sizes.size:
        return Tail(threshold=0.0, per_size=0.0, shape=0.0, scale=0.0, largest=0.0)
    threshold, largest = float(np.quantile(sizes, 1 - ABOVE)), float(sizes.max())
    peaks = np.concatenate([_peaks(part, threshold, apart) for part in parts])
    if peaks.size < FEWEST_PEAKS:
        threshold = float(np.quantile(sizes, 0.5))
        peaks = np.concatenate([_peaks(part, threshold, 1) for part in parts])
    shape, scale = _fitted(np.sort(peaks - threshold))
    return Tail(
        threshold=threshold,
        per_size=peaks.size / sizes.size,
        shape=shape,
        scale=scale,
        largest=largest,
    )


def _peaks(sizes: Floats, threshold: float, apart: int) -> Floats:
    """Return the largest size of each group above the threshold; groups are `apart` rows apart."""
    above = np.flatnonzero(sizes > threshold)
    if not above.size:
        return np.empty(0)
    first = np.flatnonzero(np.diff(above, prepend=above[0] - apart - 1) > apart)
    return np.asarray(np.maximum.reduceat(sizes[above], first), np.float64)


def _fitted(excess: Floats) -> tuple[float, float]:
    """Return shape and scale by probability-weighted moments, drawn towards an exponential."""
    count = excess.size
    mean = float(excess.mean()) if count else 0.0
    if count < 2 or not mean > 0:
        return 0.0, mean
    weights = (count - 1 - np.arange(count)) / (count - 1)
    difference = mean - 2 * float((weights * excess).mean())
    shape = 2 - mean / difference if difference > 0 else SHAPES[1]
    shape = float(np.clip(shape * count / (count + PRIOR_PEAKS), *SHAPES))
    return shape, mean * (1 - shape)
