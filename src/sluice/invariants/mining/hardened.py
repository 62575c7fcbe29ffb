"""The hardened profile: plausible rules, with tolerances within which whole clean batches stay."""

from dataclasses import replace

import numpy as np

from sluice.arrays import Floats
from sluice.invariants.mining.balances import BalanceFind, mine_balances
from sluice.invariants.mining.calibration import QUANTILE, ROWS_FOR_PERCENTILE, SAFETY
from sluice.invariants.mining.couplings import mine_couplings
from sluice.invariants.mining.joint import VACUOUS, calibrate_jointly
from sluice.invariants.mining.spans import operating_range, resolution, with_spans
from sluice.invariants.mining.windows import sliding_residuals, window_lengths, window_of
from sluice.invariants.relations import (
    Balance,
    Bound,
    Coupling,
    Evidence,
    Invariant,
    Rate,
    Relation,
    Window,
)
from sluice.invariants.residuals import residuals
from sluice.invariants.ruleset import Dropped, Profile, RuleSet
from sluice.telemetry import Record, Role

__all__ = ["mine_hardened", "with_power"]


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


DRIFT_BLOCKS = 20
ROWS_FOR_MAXIMUM = 500  # enough to use the largest value as the percentile


def mine_hardened(fit: Record, calibration: Record) -> RuleSet:
    """Mine on the fit slice, set tolerances on the calibration slice, then calibrate jointly."""
    channels = with_spans(fit, calibration)
    fit, calibration = replace(fit, channels=channels), replace(calibration, channels=channels)
    couplings, no_couplings = mine_couplings(fit)
    balances, no_balances = mine_balances(fit, couplings)
    kept: list[Invariant] = []
    dropped = [*no_couplings, *no_balances]
    for find in couplings:
        rule = _coupling(
            find.relation, calibration, Evidence(support=find.support, variation=find.variation)
        )
        if rule.tolerance >= VACUOUS * find.relation.nominal:
            why = (
                f"vacuous: tolerance {rule.tolerance:.3g} reaches half of nominal "
                f"{find.relation.nominal:.3g}; it cannot tell on from off"
            )
            dropped.append(Dropped(name=rule.name, why=why))
        else:
            kept.append(rule)
    for balance in balances:
        kept += _balance(balance, calibration)
    kept += _bounds_and_rates(fit, calibration)
    rules = RuleSet(
        plant=fit.name,
        profile=Profile.HARDENED,
        stride_s=fit.stride_s,
        channels=channels,
        invariants=tuple(kept),
        dropped=tuple(dropped),
        fit_rows=len(fit),
        calibration_rows=len(calibration),
    )
    return with_power(calibrate_jointly(rules, calibration, fit=fit), calibration)


def _coupling(relation: Coupling, clean: Record, evidence: Evidence) -> Invariant:
    on_clean = residuals(relation, clean)
    steady = on_clean.values[on_clean.applies & ~on_clean.envelope]
    rule = _calibrated(relation, np.abs(steady), resolution(clean.column(relation.flow)), evidence)
    return replace(rule, tolerance=max(rule.tolerance, _drifting(steady)))


def _drifting(residual: Floats) -> float:
    """Return the tolerance for a flow whose steady value drifts from hour to hour.

    A percentile over one slice covers only the hours in it; the spread of block medians shows how
    far other hours may deviate.
    """
    if residual.size < DRIFT_BLOCKS * 8:
        return 0.0
    blocks = np.array_split(residual, DRIFT_BLOCKS)
    medians = np.array([np.median(block) for block in blocks])
    within = np.concatenate(
        [np.abs(block - median) for block, median in zip(blocks, medians, strict=True)]
    )
    drift = abs(float(medians.mean())) + 3 * float(medians.std(ddof=1))
    return drift + float(np.quantile(within, QUANTILE))


def _balance(find: BalanceFind, clean: Record) -> list[Invariant]:
    relation = find.relation
    evidence = Evidence(r2=find.r2, r2_held_out=find.r2_held_out)
    floor = resolution(clean.column(relation.level))
    lengths = window_lengths(relation, clean)
    by_row = _calibrated(relation, np.abs(sliding_residuals(relation, clean, 1)), floor, evidence)
    windows = [
        _calibrated(
            window_of(relation, rows),
            np.abs(sliding_residuals(relation, clean, rows)),
            floor,
            evidence,
        )
        for rows in lengths
    ]
    return [by_row, *windows]


def _bounds_and_rates(fit: Record, clean: Record) -> list[Invariant]:
    rules = []
    for channel in fit.channels:
        usual = None if channel.role.discrete else operating_range(channel, fit, clean)
        if usual is None:
            continue
        name = channel.name
        step = resolution(clean.column(name)) or resolution(fit.column(name))
        bound = Bound(name=f"{name} in range", channel=name, low=usual.low, high=usual.high)
        rules.append(Invariant(relation=bound, tolerance=step))
        if channel.role in (Role.LEVEL, Role.QUALITY):
            rate = Rate(name=f"{name} rate", channel=name)
            moved = residuals(rate, clean)
            rules.append(_calibrated(rate, np.abs(moved.values[moved.applies]), step, Evidence()))
    return rules


def _calibrated(relation: Relation, size: Floats, floor: float, evidence: Evidence) -> Invariant:
    """Apply equation 3 with a floor of one quantisation step; mark rules with few rows."""
    tolerance = SAFETY * _high(size) if size.size else floor
    known = replace(evidence, judged_rows=int(size.size), few_rows=size.size < ROWS_FOR_PERCENTILE)
    return Invariant(relation=relation, tolerance=max(tolerance, floor, 1e-12), evidence=known)


def _high(size: Floats) -> float:
    """Return the 99.9th percentile, extrapolated from the upper tenth where rows are too few.

    Over a few hundred rows the percentile is the largest value, which the next few hundred exceed.
    An exponential tail above the 90th percentile estimates where it would lie.
    """
    percentile = float(np.quantile(size, QUANTILE))
    if size.size >= ROWS_FOR_MAXIMUM:
        return percentile
    base = float(np.quantile(size, 0.9))
    tail = size[size > base] - base
    mean = float(tail.mean()) if tail.size else 0.0
    return max(percentile, base + mean * float(np.log(0.1 / (1 - QUANTILE))))
