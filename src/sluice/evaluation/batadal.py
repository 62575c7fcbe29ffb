"""BATADAL's score: how soon each attack is detected, and how well rows are classified.

Taormina et al., "Battle of the attack detection algorithms" (2018). The competition counts rows
(hours) and not windows, so the score needs the labels of rows. With gamma = 0.5,

    S      = gamma S_TTD + (1 - gamma) S_CM
    S_TTD  = 1 - mean over attacks of TTD / length; TTD is the time from the attack's first row to
             the first alarm inside the attack, and the whole length for a missed attack
    S_CM   = (TPR + TNR) / 2 over rows

A perfect detector scores 1. One that never alarms scores 0.25, and one that always alarms 0.75.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Bools, Ints, Run, runs
from sluice.errors import SettingError
from sluice.evaluation.outcome import Unlabelled
from sluice.telemetry import Label

__all__ = ["BatadalScore", "batadal_score", "row_alarms"]

GAMMA = 0.5  # the weight of the time to detection, from the competition's rules


@dataclass(frozen=True, slots=True, kw_only=True)
class BatadalScore:
    """The score and its parts."""

    time_to_detection: float  # S_TTD
    true_positive_rate: float
    true_negative_rate: float

    @property
    def classification(self) -> float:
        """S_CM: the mean of the two rates."""
        return (self.true_positive_rate + self.true_negative_rate) / 2

    @property
    def score(self) -> float:
        """S: 1 is perfect."""
        return GAMMA * self.time_to_detection + (1 - GAMMA) * self.classification


def row_alarms(last_rows: Ints, alarms: Bools, *, rows: int) -> Bools:
    """Return one alarm per row: a window alarms at its last row, other rows do not alarm."""
    if len(last_rows) and not 0 <= int(last_rows.max()) < rows:
        raise SettingError(
            f"a window ends at row {int(last_rows.max())} of a record of {rows} rows; give the "
            "labels of the record that was scored"
        )
    alarmed = np.zeros(rows, dtype=np.bool_)
    alarmed[last_rows[alarms]] = True
    return alarmed


def batadal_score(
    alarms: Bools, labels: NDArray[np.int8], *, unlabelled: Unlabelled = Unlabelled.EXCLUDE
) -> BatadalScore:
    """Score alarms of rows against labels of rows.

    Unlabelled rows are left out of the true negative rate, or counted as normal.
    """
    if alarms.shape != labels.shape:
        raise SettingError(
            f"BATADAL's score compares rows: got {len(alarms)} alarms for {len(labels)} labels"
        )
    attack = labels == Label.ATTACK
    normal = ~attack if unlabelled is Unlabelled.NORMAL else labels == Label.NORMAL
    attacks = runs(attack)
    if not attacks or not normal.any():
        raise SettingError(
            f"BATADAL's score needs attack rows and normal rows, got {int(attack.sum())} and "
            f"{int(normal.sum())}; give a labelled record, or count unlabelled rows as normal"
        )
    return BatadalScore(
        time_to_detection=1 - float(np.mean([_late(alarms, one) for one in attacks])),
        true_positive_rate=float(alarms[attack].mean()),
        true_negative_rate=float((~alarms[normal]).mean()),
    )


def _late(alarms: Bools, attack: Run) -> float:
    """Return the share of an attack that passes before its first alarm; 1 if it is missed."""
    inside = np.flatnonzero(alarms[attack.slice])
    return float(inside[0]) / attack.rows if inside.size else 1.0
