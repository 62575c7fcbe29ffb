"""The hardened profile: plausible rules, with tolerances within which whole clean batches stay."""

from dataclasses import replace

import numpy as np

from sluice.invariants.mining.balances import mine_balances
from sluice.invariants.mining.candidates import Candidate
from sluice.invariants.mining.couplings import mine_couplings
from sluice.invariants.mining.folds import clean_record
from sluice.invariants.mining.joint import Calibrated, calibrate_jointly, structure_of
from sluice.invariants.mining.refit import refitted
from sluice.invariants.mining.spans import resolution, with_spans
from sluice.invariants.relations import (
    Balance,
    Coupling,
    Evidence,
    Invariant,
    Rate,
    Window,
)
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.telemetry import Record, Role

__all__ = ["calibrated_rules", "mine_hardened", "with_power"]


def with_power(rules: RuleSet, clean: Record) -> RuleSet:
    """Return the rules, each with the smallest offset, freeze and contradiction it detects."""
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
            detects_freeze = _moves(window.level, window.rows, clean) > rule.tolerance
            evidence = replace(
                rule.evidence,
                smallest_offset=rule.tolerance / window.rows,
                smallest_freeze_rows=window.rows if detects_freeze else None,
            )
        case Rate():
            evidence = replace(rule.evidence, smallest_offset=rule.tolerance)
        case _:
            return rule
    return replace(rule, evidence=evidence)


def _moves(level: str, rows: int, clean: Record) -> float:
    """Return the median change of the level over `rows` rows."""
    readings = clean.column(level)
    return float(np.nanmedian(np.abs(readings[rows:] - readings[:-rows])))


def mine_hardened(*records: Record) -> RuleSet:
    """Mine and calibrate on clean records of one plant."""
    return calibrated_rules(*records).rules


def calibrated_rules(*records: Record) -> Calibrated:
    """Find what the rules are about on all rows, then set every limit by cross-validation."""
    clean = clean_record(*records)
    channels = with_spans(clean.record)
    clean = replace(clean, record=replace(clean.record, channels=channels))
    record = clean.record
    couplings, no_couplings = mine_couplings(record)
    balances, no_balances = mine_balances(record, couplings)
    candidates = [
        Candidate(
            relation=find.relation,
            floor=resolution(record.column(find.relation.flow)),
            evidence=Evidence(support=find.support, variation=find.variation),
        )
        for find in couplings
    ]
    candidates += [
        Candidate(
            relation=refitted(find.relation, record),
            floor=resolution(record.column(find.relation.level)),
            evidence=Evidence(r2=find.r2, r2_held_out=find.r2_held_out),
        )
        for find in balances
    ]
    candidates += [
        Candidate(
            relation=Rate(name=f"{channel.name} rate", channel=channel.name),
            floor=resolution(record.column(channel.name)),
        )
        for channel in record.of_role(Role.LEVEL, Role.QUALITY)
        if channel.span
    ]
    rules = RuleSet(
        plant=record.name,
        profile=Profile.HARDENED,
        stride_s=record.stride_s,
        channels=channels,
        invariants=(),
        dropped=(*no_couplings, *no_balances),
        fit_rows=len(records[0]),
        calibration_rows=len(record) - len(records[0]),
    )
    calibrated = calibrate_jointly(structure_of(rules, tuple(candidates), clean))
    return replace(calibrated, rules=with_power(calibrated.rules, record))
