"""The alarm threshold: a quantile of the scores of clean windows the model was not trained on."""

import math
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats
from sluice.errors import SettingError

__all__ = ["Threshold"]

QUANTILE = 0.995


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """The score above which a window is an alarm, and the clean set it was taken from."""

    score: float
    quantile: float
    clean_windows: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.score) and self.score >= 0):
            raise SettingError(
                f"a threshold must be a finite score of at least 0, got {self.score}"
            )
        if not 0 < self.quantile < 1:
            raise SettingError(f"a quantile must lie between 0 and 1, got {self.quantile}")
        least = math.ceil(1 / (1 - self.quantile) - 1e-9)
        if self.clean_windows < least:
            raise SettingError(
                f"{self.clean_windows} clean windows are too few for a {self.quantile:g} quantile; "
                f"give at least {least}"
            )

    @classmethod
    def from_clean(cls, scores: Floats, *, quantile: float = QUANTILE) -> "Threshold":
        """Take the quantile (linear interpolation) of clean validation scores."""
        if not (len(scores) and np.isfinite(scores).all()):
            raise SettingError("a threshold needs finite scores of at least one clean window")
        return cls(
            score=float(np.quantile(scores, quantile)) if 0 < quantile < 1 else 0.0,
            quantile=quantile,
            clean_windows=len(scores),
        )

    def alarms(self, scores: Floats) -> Bools:
        """Return which scores lie strictly above the threshold."""
        above: Bools = scores > self.score
        return above
