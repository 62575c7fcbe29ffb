"""Metrics per window: targeted recall (equation 6), precision, F1, average precision."""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.errors import SettingError

__all__ = ["Curve", "Hits", "average_precision", "hits", "oracle_best_f1", "recall"]


def recall(alarms: Bools, attack: Bools, among: Bools | None = None) -> float | None:
    """Return the share of attack windows that alarm: of all of them, or of those in `among`.

    If `among` marks the windows that contain a target row, this is the paper's targeted recall
    (equation 6). None if there is no such window: on BATADAL every attack is a target, so there is
    no untargeted attack window.
    """
    counted = attack if among is None else attack & among
    total = int(counted.sum())
    return int((alarms & counted).sum()) / total if total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """Counts of windows, by whether they alarmed and whether they are attack."""

    true_alarms: int
    false_alarms: int
    missed: int

    @property
    def precision(self) -> float | None:
        """The share of alarms that are attack; None if nothing alarmed."""
        alarms = self.true_alarms + self.false_alarms
        return self.true_alarms / alarms if alarms else None

    @property
    def recall(self) -> float:
        """The share of attack windows that alarmed."""
        return self.true_alarms / (self.true_alarms + self.missed)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 if no attack window alarmed."""
        return 2 * self.true_alarms / (2 * self.true_alarms + self.false_alarms + self.missed)


def hits(alarms: Bools, attack: Bools) -> Hits:
    """Count alarms against labels, window by window, without adjustment."""
    _expect_attack(attack)
    true_alarms = int((alarms & attack).sum())
    return Hits(
        true_alarms=true_alarms,
        false_alarms=int(alarms.sum()) - true_alarms,
        missed=int(attack.sum()) - true_alarms,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """The alarms that a threshold at each distinct score would raise, highest score first."""

    thresholds: Floats
    true_alarms: Ints
    alarms: Ints

    @classmethod
    def of(cls, scores: Floats, attack: Bools) -> "Curve":
        """Rank the windows; windows with equal scores alarm together."""
        _expect_attack(attack)
        order = np.argsort(-scores, kind="stable")
        ranked = scores[order]
        ends = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
        return cls(
            thresholds=ranked[ends], true_alarms=np.cumsum(attack[order])[ends], alarms=ends + 1
        )


def average_precision(scores: Floats, attack: Bools) -> float:
    """Return the area under the precision-recall curve (AUC-PR) in steps, not interpolated.

    It is the precision at each distinct score, weighted by the recall that the threshold adds:
    scikit-learn's definition. A constant score gets the share of attack windows.
    """
    curve = Curve.of(scores, attack)
    gained = np.diff(curve.true_alarms, prepend=0) / curve.true_alarms[-1]
    return float((gained * curve.true_alarms / curve.alarms).sum())


def oracle_best_f1(scores: Floats, attack: Bools) -> float:
    """Return the best F1 that any threshold reaches on these windows.

    That threshold is unknown in operation, so this is an upper bound, never a result.
    """
    curve = Curve.of(scores, attack)
    return float((2 * curve.true_alarms / (curve.alarms + curve.true_alarms[-1])).max())


def _expect_attack(attack: Bools) -> None:
    if not attack.any():
        raise SettingError(
            "no window is labelled attack, so there is nothing to find; give a record with "
            "labelled attacks"
        )
