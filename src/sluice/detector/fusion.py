"""One score from two detectors, a model and the plant's rules.

`Fusion` turns both into tail probabilities of clean operation first.

A model's score and the rules' score have different units and different tails. Each is turned into
its surprise, -log10 of the share of clean windows that reach it. The fused score is the length of
the two surprises together: either alone can raise an alarm, and two that are nearly surprised can
raise one together. The threshold is then set on the fused score, so the false alarms that the
operator asked for are those of both together.

`OrRules` is for a vote: an alarm of the vote is an alarm, and an alarm of the rules is one. The
rules are the plant's own and members have no influence on them, so what malicious members can do
can still be counted. A fused score would let members who are almost surprised tip the rules.
"""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats, Ints
from sluice.detector.physics import Physics
from sluice.detector.tails import ScoreTail, fit_tail
from sluice.telemetry import Record

__all__ = ["Fusion", "OrRules", "RuleRatios", "Surprises"]


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleRatios:
    """The scores of a vote and of the rules over their thresholds; above 1 is an alarm."""

    model: Floats
    rules: Floats

    @property
    def fused(self) -> Floats:
        """The larger of the two."""
        return np.maximum(self.model, self.rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrRules:
    """The rules beside a vote, with a threshold of their own."""

    physics: Physics
    threshold: float

    def surprises(
        self, scores: Floats, record: Record, last_rows: Ints, *, rows: int
    ) -> RuleRatios:
        """Return the ratios of windows, given the vote's scores of them."""
        return RuleRatios(
            model=scores, rules=self.physics.scores(record, last_rows, rows=rows) / self.threshold
        )
