"""Invariants are relations mined from clean records, with the tolerances calibrated for them."""

from sluice.invariants.budgets import Budgets, Margins, budgets_for
from sluice.invariants.encoding import Encoding, encode
from sluice.invariants.integers import Judged, evaluate
from sluice.invariants.invariant import Evidence, Invariant
from sluice.invariants.measure import Measurement, measure
from sluice.invariants.profiles import mine
from sluice.invariants.relations import (
    Balance,
    Bound,
    Coupling,
    Kind,
    Rate,
    Relation,
    State,
    Term,
    Transition,
    Window,
)
from sluice.invariants.residuals import Residuals, residuals
from sluice.invariants.ruleset import CleanFacts, Dropped, Liveness, Profile, RuleSet, Share
from sluice.invariants.rulesfile import load_rules, rules_hash, save_rules, seal_rules

__all__ = [
    "Balance",
    "Bound",
    "Budgets",
    "CleanFacts",
    "Coupling",
    "Dropped",
    "Encoding",
    "Evidence",
    "Invariant",
    "Judged",
    "Kind",
    "Liveness",
    "Margins",
    "Measurement",
    "Profile",
    "Rate",
    "Relation",
    "Residuals",
    "RuleSet",
    "Share",
    "State",
    "Term",
    "Transition",
    "Window",
    "budgets_for",
    "encode",
    "evaluate",
    "load_rules",
    "measure",
    "mine",
    "residuals",
    "rules_hash",
    "save_rules",
    "seal_rules",
]
