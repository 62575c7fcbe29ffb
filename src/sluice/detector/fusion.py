"""One score from two detectors: both become tail probabilities of clean operation first.

A model's score and the rules' score have different units and different tails. Each is turned into
its surprise, -log10 of the share of clean windows that reach it. The fused score is the length of
the two surprises together: either alone can raise an alarm, and two that are nearly surprised can
raise one together. The threshold is then set on the fused score, so the false alarms that the
operator asked for are those of both together.
"""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats, Ints
from sluice.detector.physics import Physics
from sluice.detector.tails import ScoreTail, fit_tail
from sluice.telemetry import Record

__all__ = ["Fusion", "Surprises"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surprises:
    """How surprising each window is to the model and to the rules."""

    model: Floats
    rules: Floats

    @property
    def fused(self) -> Floats:
        """The score of both together."""
        return np.hypot(self.model, self.rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusion:
    """The rules beside a model, and the tails of both on clean rows."""

    physics: Physics
    model_tail: ScoreTail
    rules_tail: ScoreTail

    @classmethod
    def fit(
        cls, physics: Physics, scores: Floats, clean: Record, last_rows: Ints, *, rows: int
    ) -> "Fusion":
        """Fit both tails on clean rows; `scores` are the model's, at these rows."""
        return cls(
            physics=physics,
            model_tail=fit_tail(scores, last_rows),
            rules_tail=fit_tail(physics.scores(clean, last_rows, rows=rows), last_rows),
        )

    def surprises(self, scores: Floats, record: Record, last_rows: Ints, *, rows: int) -> Surprises:
        """Return the surprises of windows, given the model's scores of them."""
        return Surprises(
            model=self.model_tail.surprise(scores),
            rules=self.rules_tail.surprise(self.physics.scores(record, last_rows, rows=rows)),
        )
