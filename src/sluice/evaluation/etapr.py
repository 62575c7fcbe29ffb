"""eTaPR: precision and recall over whole attacks and whole alarms.

Hwang, Yun, Kim and Min, "Do you know existing accuracy metrics overrate time-series anomaly
detections?" (SAC 2022). An attack is *detected* when correct alarms cover at least `theta_r` of it,
and an alarm is *correct* when detected attacks cover at least `theta_p` of it. Attacks and alarms
that fail are removed, together with the coverage they gave, until no more fail. Then

    eTaR = mean over attacks of (d + d * covered share) / 2          d = 1 if detected, else 0
    eTaP = mean over alarms of  (c + c * covered share) / 2          c = 1 if correct, else 0,
           weighted by the square root of the alarm's length

so that one hour-long attack does not outweigh ten short ones, and an alarm that is always on scores
low. An alarm is a maximal stretch of alarming windows.
"""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.errors import SettingError
from sluice.evaluation.outcome import Outcome, Stretches

__all__ = ["EtaPR", "etapr"]

THETA_P = 0.5
THETA_R = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class EtaPR:
    """eTaP, eTaR and their harmonic mean, with the counts behind them."""

    precision: float | None  # eTaP; None if nothing alarmed
    recall: float  # eTaR
    detected_attacks: int
    attacks: int
    correct_alarms: int
    alarms: int

    @property
    def f1(self) -> float:
        """eTaF1; 0 if nothing was detected."""
        precision = self.precision or 0.0
        total = precision + self.recall
        return 2 * precision * self.recall / total if total else 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Overlaps:
    """The number of windows that an alarm and an attack share, one entry per overlapping pair."""

    alarm: Ints
    attack: Ints
    windows: Ints

    def per_alarm(self, alarms: Stretches, attacks_kept: Bools) -> Floats:
        return self._share(self.alarm, self.windows * attacks_kept[self.attack], alarms)

    def per_attack(self, attacks: Stretches, alarms_kept: Bools) -> Floats:
        return self._share(self.attack, self.windows * alarms_kept[self.alarm], attacks)

    @staticmethod
    def _share(owner: Ints, windows: Ints, of: Stretches) -> Floats:
        covered = np.bincount(owner, weights=windows, minlength=len(of))
        share: Floats = covered / of.lengths
        return share


def etapr(outcome: Outcome, *, theta_p: float = THETA_P, theta_r: float = THETA_R) -> EtaPR:
    """Score an outcome's alarms against its attacks."""
    for name, theta in (("theta_p", theta_p), ("theta_r", theta_r)):
        if not 0 < theta <= 1:
            raise SettingError(f"{name} is a share and must be above 0 and at most 1, got {theta}")
    attacks, alarms = outcome.attacks, outcome.stretches(outcome.alarms)
    if not len(attacks):
        raise SettingError("eTaPR needs attacks; give a record with labelled attacks")
    overlaps = _overlaps(outcome, attacks, alarms)
    detected = np.ones(len(attacks), dtype=np.bool_)
    while True:
        of_alarm = overlaps.per_alarm(alarms, detected)
        correct = of_alarm >= theta_p
        of_attack = overlaps.per_attack(attacks, correct)
        still = detected & (of_attack >= theta_r)
        if (still == detected).all():
            break
        detected = still
    weights = np.sqrt(alarms.lengths)
    worth = correct * (1 + of_alarm) / 2
    return EtaPR(
        precision=float((weights * worth).sum() / weights.sum()) if len(alarms) else None,
        recall=float((detected * (1 + of_attack) / 2).mean()),
        detected_attacks=int(detected.sum()),
        attacks=len(attacks),
        correct_alarms=int(correct.sum()),
        alarms=len(alarms),
    )


def _overlaps(outcome: Outcome, attacks: Stretches, alarms: Stretches) -> _Overlaps:
    both = np.flatnonzero(outcome.alarms & outcome.attack)
    alarm = np.searchsorted(alarms.starts, both, side="right") - 1
    attack = np.searchsorted(attacks.starts, both, side="right") - 1
    pairs, windows = np.unique(alarm * len(attacks) + attack, return_counts=True)
    return _Overlaps(alarm=pairs // len(attacks), attack=pairs % len(attacks), windows=windows)
