"""The alarm threshold, set on scores of clean windows that the model was not trained on.

Two rules set it. The paper takes a quantile of the clean scores (`Threshold`). An operator asks for
a number of false alarms a week (`RateThreshold`), which `threshold_for` in `tails` computes.
"""

import math
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats
from sluice.errors import SettingError

__all__ = ["AlarmThreshold", "RateThreshold", "Threshold"]

QUANTILE = 0.995


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """The score above which a window is an alarm, and the clean set it was taken from."""

    score: float
    quantile: float
    clean_windows: int

    def __post_init__(self) -> None:
        _demand_score(self.score)
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

    @property
    def origin(self) -> str:
        """How it was set, in words."""
        return f"the {self.quantile:.1%} quantile of {self.clean_windows:,} clean windows"

    def alarms(self, scores: Floats) -> Bools:
        """Return which scores lie strictly above the threshold."""
        above: Bools = scores > self.score
        return above


@dataclass(frozen=True, slots=True, kw_only=True)
class RateThreshold:
    """The score that clean operation exceeds in so many alarm events a week."""

    score: float
    false_alarms_per_week: float  # that the operator asked for
    clean_windows: int
    clean_events: int  # alarm events on the clean windows at this threshold

    def __post_init__(self) -> None:
        _demand_score(self.score)
        if not 0 < self.false_alarms_per_week < math.inf:
            raise SettingError(
                "the number of false alarms a week must be above 0 and finite, got "
                f"{self.false_alarms_per_week}"
            )
        if self.clean_windows < 1 or self.clean_events < 0:
            raise SettingError(
                f"a threshold cannot come from {self.clean_windows} clean windows with "
                f"{self.clean_events} alarm events; calibrate it on clean rows"
            )

    @property
    def origin(self) -> str:
        """How it was set, in words."""
        return (
            f"set for {self.false_alarms_per_week:g} false alarms a week on "
            f"{self.clean_windows:,} clean windows"
        )

    def alarms(self, scores: Floats) -> Bools:
        """Return which scores lie strictly above the threshold."""
        above: Bools = scores > self.score
        return above


AlarmThreshold = Threshold | RateThreshold


def _demand_score(score: float) -> None:
    if not (math.isfinite(score) and score >= 0):
        raise SettingError(f"a threshold must be a finite score of at least 0, got {score}")
