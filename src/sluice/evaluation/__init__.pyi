from .etapr import EtaPR, etapr
from .events import AttackOutcome, attacks_found, false_alarms_per_day
from .outcome import Outcome, Unlabelled
from .paired import Pair, PairedDifference, Unit, paired_difference
from .point_adjust import point_adjusted_f1
from .quality import DetectionQuality, evaluate
from .removal import Federation, Reference, Removal, RemovalCase, removal
from .vus import vus_pr
from .windows import Hits, average_precision, hits, oracle_best_f1, recall

__all__ = [
    "AttackOutcome",
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
