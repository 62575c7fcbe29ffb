"""Power: what a rule would catch, in plant units. A rule without power is an ornament."""

from dataclasses import replace

import numpy as np

from sluice.invariants.invariant import Invariant
from sluice.invariants.relations import Balance, Coupling, Rate, Window
from sluice.invariants.ruleset import RuleSet
from sluice.telemetry import Record

__all__ = ["with_power"]


def with_power(rules: RuleSet, clean: Record) -> RuleSet:
    """Return the rules, each with the smallest offset, freeze and contradiction it would catch."""
    return replace(rules, invariants=tuple(_powered(rule, clean) for rule in rules.invariants))


def _powered(rule: Invariant, clean: Record) -> Invariant:
    match rule.relation:
        case Coupling() as coupling:
            evidence = replace(
                rule.evidence,
                smallest_offset=rule.tolerance,
                sees_contradiction=rule.tolerance < min(state.nominal for state in coupling.states),
            )
        case Balance() as balance:
            evidence = replace(
                rule.evidence,
                smallest_offset=rule.tolerance,
                smallest_freeze_rows=1
                if _moves(balance.level, 1, clean) > rule.tolerance
                else None,
            )
        case Window() as window:
            seen = _moves(window.level, window.rows, clean) > rule.tolerance
            evidence = replace(
                rule.evidence,
                smallest_offset=rule.tolerance / window.rows,
                smallest_freeze_rows=window.rows if seen else None,
            )
        case Rate():
            evidence = replace(rule.evidence, smallest_offset=rule.tolerance)
        case _:
            return rule
    return replace(rule, evidence=evidence)


def _moves(level: str, rows: int, clean: Record) -> float:
    """Return how far the level usually moves over so many rows (the median)."""
    readings = clean.column(level)
    return float(np.nanmedian(np.abs(readings[rows:] - readings[:-rows])))
