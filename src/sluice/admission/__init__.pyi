from .acceptance import accept, unsound
from .gate import EmptyRulesWarning, Gate, judge
from .policy import (
    BUILT_IN,
    HardenedPolicy,
    PaperPolicy,
    Policy,
    policy_hash,
    read_policy,
    write_policy,
)
from .verdict import Finding, Verdict, WorstRow

__all__ = [
    "BUILT_IN",
    "EmptyRulesWarning",
    "Finding",
    "Gate",
    "HardenedPolicy",
    "PaperPolicy",
    "Policy",
    "Verdict",
    "WorstRow",
    "accept",
    "judge",
    "policy_hash",
    "read_policy",
    "unsound",
    "write_policy",
]
