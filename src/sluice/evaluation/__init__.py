"""Evaluation says how well a detector finds attacks, and what poisoning and its defence change."""

from sluice.evaluation.etapr import EtaPR, etapr
from sluice.evaluation.events import Attack, attacks_found, false_alarms_per_day
from sluice.evaluation.outcome import Outcome, Unlabelled
from sluice.evaluation.paired import Pair, PairedDifference, Unit, paired_difference
from sluice.evaluation.point_adjust import point_adjusted_f1
from sluice.evaluation.quality import DetectionQuality, evaluate
from sluice.evaluation.removal import Federation, Reference, Removal, RemovalCase, removal
from sluice.evaluation.vus import vus_pr
from sluice.evaluation.windows import Hits, average_precision, hits, oracle_best_f1, recall

__all__ = [
    "Attack",
    "DetectionQuality",
    "EtaPR",
    "Federation",
    "Hits",
    "Outcome",
    "Pair",
    "PairedDifference",
    "Reference",
    "Removal",
    "RemovalCase",
    "Unit",
    "Unlabelled",
    "attacks_found",
    "average_precision",
    "etapr",
    "evaluate",
    "false_alarms_per_day",
    "hits",
    "oracle_best_f1",
    "paired_difference",
    "point_adjusted_f1",
    "recall",
    "removal",
    "vus_pr",
]
