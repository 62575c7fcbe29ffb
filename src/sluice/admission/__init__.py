"""Admission judges a client's batch against its plant's rules and returns a verdict."""

from sluice.admission.acceptance import accept
from sluice.admission.gate import EmptyRulesWarning, Gate, judge
from sluice.admission.policy import HardenedPolicy, PaperPolicy, Policy, read_policy
from sluice.admission.verdict import Finding, Verdict, WorstRow

__all__ = [
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
    "read_policy",
]
