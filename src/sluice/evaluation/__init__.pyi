from .ballots import Ballots, covering_groups
from .batadal import BatadalScore, batadal_score, row_alarms
from .certificate import (
    AttackCertificate,
    CertifiedFigures,
    MemberRisk,
    MemberSupport,
    PlantSupport,
    PointSupport,
    VoteCertificate,
    certify,
)
from .etapr import EtaPR, etapr
from .events import (
    MERGE_ROWS,
    AttackOutcome,
    alarm_events,
    attacks_found,
    false_alarms_per_day,
    false_alarms_per_week,
)
from .outcome import Outcome, Unlabelled
from .paired import Pair, PairedDifference, Unit, paired_difference
from .point_adjust import point_adjusted_f1
from .quality import DetectionQuality, evaluate
from .removal import Federation, Reference, Removal, RemovalCase, removal
from .report import DetectionReport, Metric, detection_report
from .vus import vus_pr
from .windows import Hits, average_precision, hits, oracle_best_f1, recall

__all__ = [
    "MERGE_ROWS",
    "AttackCertificate",
    "AttackOutcome",
    "Ballots",
    "BatadalScore",
    "CertifiedFigures",
    "DetectionQuality",
    "DetectionReport",
    "EtaPR",
    "Federation",
    "Hits",
    "MemberRisk",
    "MemberSupport",
    "Metric",
    "Outcome",
    "Pair",
    "PairedDifference",
    "PlantSupport",
    "PointSupport",
    "Reference",
    "Removal",
    "RemovalCase",
    "Unit",
    "Unlabelled",
    "VoteCertificate",
    "alarm_events",
    "attacks_found",
    "average_precision",
    "batadal_score",
    "certify",
    "covering_groups",
    "detection_report",
    "etapr",
    "evaluate",
    "false_alarms_per_day",
    "false_alarms_per_week",
    "hits",
    "oracle_best_f1",
    "paired_difference",
    "point_adjusted_f1",
    "recall",
    "removal",
    "row_alarms",
    "vus_pr",
]
