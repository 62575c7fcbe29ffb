"""All metrics of a detector on one labelled record."""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools
from sluice.errors import SettingError
from sluice.evaluation.etapr import EtaPR, etapr
from sluice.evaluation.events import AttackOutcome, attacks_found, false_alarms_per_day
from sluice.evaluation.outcome import Outcome, Unlabelled
from sluice.evaluation.windows import average_precision, hits, oracle_best_f1, recall
from sluice.telemetry import Label

__all__ = ["DetectionQuality", "evaluate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionQuality:
    """A detector's metrics on one labelled record, at the detector's own threshold.

    Only `auc_pr`, `targeted_auc_pr` and `oracle_best_f1` use other thresholds, and the last one
    chooses its threshold with the test labels.
    """

    windows: int  # that are attack or normal
    attack_windows: int
    targeted_recall: float | None  # equation 6; None if there are no targets
    untargeted_recall: float | None  # over the other attack windows; None if there are none
    targeted_auc_pr: float | None  # of targeted against normal windows, at every threshold
    precision: float | None  # None if nothing alarmed
    recall: float
    f1: float
    auc_pr: float
    oracle_best_f1: float
    attacks: tuple[AttackOutcome, ...]
    false_alarms_per_day: float | None  # None if no window is normal
    etapr: EtaPR

    @property
    def detected_attacks(self) -> int:
        """Number of attacks with at least one alarm."""
        return sum(attack.detected for attack in self.attacks)

    @property
    def median_delay_s(self) -> float | None:
        """The median delay of the detected attacks; None if none was detected."""
        delays = [attack.delay_s for attack in self.attacks if attack.delay_s is not None]
        return float(np.median(delays)) if delays else None


def evaluate(
    outcome: Outcome,
    *,
    targets: Bools | None = None,
    unlabelled: Unlabelled = Unlabelled.EXCLUDE,
) -> DetectionQuality:
    """Evaluate a detector's outcome on a labelled record.

    `targets` marks the windows that contain a row targeted by the poisoning; without it, the
    targeted metrics are None. VUS-PR takes longer and has its own function (`vus_pr`).
    """
    if targets is not None and targets.shape != (len(outcome),):
        raise SettingError(
            f"targets mark {targets.shape} windows of {len(outcome)}; give one mark per window"
        )
    settled = outcome.settled(unlabelled)
    counted = hits(settled.alarms, settled.attack)
    if settled.attack.all():
        raise SettingError(
            f"no window is normal once {len(outcome) - len(settled)} unlabelled ones are left out, "
            "so precision would be 1 for every detector; count them as normal, or give a "
            "record with full labels"
        )
    # An excluded window still counts here: an alarm stretch over it is not entirely normal.
    whole = settled if unlabelled is Unlabelled.NORMAL else outcome
    return DetectionQuality(
        windows=len(settled),
        attack_windows=counted.true_alarms + counted.missed,
        targeted_recall=_recall_among(outcome, targets),
        untargeted_recall=_recall_among(outcome, None if targets is None else ~targets),
        targeted_auc_pr=None if targets is None else _auc_pr_among(whole, targets),
        precision=counted.precision,
        recall=counted.recall,
        f1=counted.f1,
        auc_pr=average_precision(settled.scores, settled.attack),
        oracle_best_f1=oracle_best_f1(settled.scores, settled.attack),
        attacks=attacks_found(settled),
        false_alarms_per_day=false_alarms_per_day(whole),
        etapr=etapr(settled),
    )


def _recall_among(outcome: Outcome, windows: Bools | None) -> float | None:
    return None if windows is None else recall(outcome.alarms, outcome.attack, windows)


def _auc_pr_among(outcome: Outcome, windows: Bools) -> float | None:
    """Return the average precision of the selected attack windows against all normal ones."""
    selected = outcome.attack & windows
    among = selected | (outcome.labels == Label.NORMAL)
    return average_precision(outcome.scores[among], selected[among]) if selected.any() else None
