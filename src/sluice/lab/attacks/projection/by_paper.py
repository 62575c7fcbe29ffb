"""The paper's policy as demands: float residuals, a share of rows that may break anything."""

import math

import numpy as np

from sluice.admission import PaperPolicy
from sluice.arrays import Floats
from sluice.invariants import (
    Balance,
    Bound,
    Coupling,
    Invariant,
    Rate,
    Residuals,
    RuleSet,
    Window,
    residuals,
)
from sluice.lab.attacks.projection.demands import Chain, DemandPart, Demands, Limits, Slab
from sluice.lab.attacks.projection.shapes import flow_parts, level_part, on_time
from sluice.telemetry import Record

__all__ = ["paper_demands"]

MARGIN = 1e-6
"""Of the tolerance: a reading on the boundary must not be rounded to a hair beyond it."""

ROUNDING = 1e-13
"""Of the numbers a residual is made of."""


def paper_demands(
    rules: RuleSet, policy: PaperPolicy, record: Record, *, wary: bool = False
) -> Demands:
    """Return what keeps each row within tolerance; where a reading is missing, nothing does.

    A residual already within tolerance may stay where it is, margin or not; unless `wary`.
    """
    slabs: list[Slab] = []
    chains: list[Chain] = []
    for rule in rules.invariants:
        found = residuals(rule.relation, record)
        match rule.relation:
            case Coupling() | Bound():
                slabs.append(_slab(rule, found, record, wary=wary))
            case Balance() | Window() | Rate():
                chains.append(_chain(rule, found, record, wary=wary))
    rows = len(record)
    return Demands(
        slabs=tuple(slabs),
        chains=tuple(chains),
        held=np.broadcast_to(np.arange(rows)[:, None], record.values.shape),
        shown=(),
        counted=np.zeros(rows, bool),
        rows=_budget(policy.alpha, rows),
        severe=0,
    )


def _budget(alpha: float, rows: int) -> int:
    """Return the largest number of rows whose share, in floats, is not above alpha."""
    most = math.floor(alpha * rows) + 1
    return most if most / rows <= alpha else most - 1


def _slab(rule: Invariant, found: Residuals, record: Record, *, wary: bool) -> Slab:
    relation = rule.relation
    assert isinstance(relation, Coupling | Bound)
    channel = relation.flow if isinstance(relation, Coupling) else relation.channel
    readings = record.column(channel)
    if isinstance(relation, Bound):
        low, high = (np.full(len(record), float(end)) for end in (relation.low, relation.high))
    else:
        expected = readings - found.values
        low = np.where(found.envelope, 0.0, expected)
        high = np.where(found.envelope, relation.nominal, expected)
    low[~found.applies], high[~found.applies] = -np.inf, np.inf
    margin = _margin(rule, np.fmax.reduce(np.abs(readings), initial=0.0), wary=wary)
    reach = rule.tolerance - margin
    limits = Limits(low=low - reach, high=high + reach)
    fine = found.applies & (np.abs(found.values) <= rule.tolerance)
    return Slab(
        rule=rule.name,
        channel=channel,
        limits=limits if wary else limits.around_also(readings, fine),
        sacrificed=Limits.open(len(record)),
    )


def _chain(rule: Invariant, found: Residuals, record: Record, *, wary: bool) -> Chain:
    relation = rule.relation
    at = np.flatnonzero(found.applies)
    constant = np.zeros(len(at))
    if isinstance(relation, Rate):
        parts: tuple[DemandPart, ...] = (level_part(relation.channel, 1.0, 1),)
    else:
        assert isinstance(relation, Balance | Window)
        rows = relation.rows if isinstance(relation, Window) else 1
        share = 0.5 if relation.averaged else 1.0
        parts = (level_part(relation.level, 1.0, rows),)
        constant -= relation.constant * rows
        for term in relation.terms:
            weight = -term.coefficient * share
            if term.on:
                on = np.isin(np.rint(record.column(term.channel)), term.on)
                constant += on_time(on, at, weight, rows=rows, averaged=relation.averaged)
            else:
                parts += flow_parts(term.channel, weight, rows=rows, averaged=relation.averaged)
    margin = _margin(rule, _size(parts, record), wary=wary)
    limits = Limits.around(len(at), rule.tolerance - margin)
    fine = np.abs(found.values[at]) <= rule.tolerance
    return Chain(
        rule=rule.name,
        at=at,
        parts=parts,
        constant=constant,
        limits=limits if wary else limits.around_also(found.values[at], fine),
        sacrificed=Limits.open(len(at)),
    )


def _size(parts: tuple[DemandPart, ...], record: Record) -> float:
    """Return how large the numbers are whose difference a residual is."""
    return sum(
        float(np.abs(part.weights).sum())
        * float(np.fmax.reduce(np.abs(record.column(part.channel)), initial=0.0))
        for part in parts
    )


def _margin(rule: Invariant, size: float | Floats, *, wary: bool) -> float:
    wanted = MARGIN * rule.tolerance + ROUNDING * float(size)
    return min(wanted * (16 if wary else 1), rule.tolerance / 2)
