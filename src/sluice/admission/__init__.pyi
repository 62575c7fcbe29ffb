from .acceptance import Acceptance, unsound
from .gate import EmptyRulesWarning, Gate, demand_measurable, judge
from .measured import MeasuredBatch
from .objections import Objection, ObjectionKind, commands
from .policy import (
    BUILT_IN,
    HardenedPolicy,
    PaperPolicy,
    Policy,
    accept,
    default_policy,
    parse_policy,
    policy_hash,
    policy_text,
    read_policy,
    write_policy,
)
from .reasons import Reason, ReasonKind
from .verdict import Finding, Verdict, WorstRow

__all__ = [
    "BUILT_IN",
    "Acceptance",
    "EmptyRulesWarning",
    "Finding",
    "Gate",
    "HardenedPolicy",
    "MeasuredBatch",
    "Objection",
    "ObjectionKind",
    "PaperPolicy",
    "Policy",
    "Reason",
    "ReasonKind",
    "Verdict",
    "WorstRow",
    "accept",
    "commands",
    "default_policy",
    "demand_measurable",
    "judge",
    "parse_policy",
    "policy_hash",
    "policy_text",
    "read_policy",
    "unsound",
    "write_policy",
]
