"""The paper's policy as demands: float residuals, and a share of rows that may break any rule."""

from typing import assert_never

import numpy as np

from sluice.admission import PaperPolicy
from sluice.arrays import Floats
from sluice.invariants import (
    Balance,
    Bound,
    Constant,
    Coupling,
    Invariant,
    Mean,
    Rate,
    Residuals,
    RuleSet,
    Spectrum,
    SwitchBand,
    Tie,
    Window,
    residuals,
)
from sluice.lab.attacks.projection.demands import Chain, DemandPart, Demands, Limits, Slab
from sluice.lab.attacks.projection.shapes import flow_parts, level_part, now_part, on_time
from sluice.telemetry import Record

__all__ = ["paper_demands"]

MARGIN = 1e-6
"""Share of the tolerance: rounding must not move a reading on the boundary beyond it."""

ROUNDING = 1e-13
"""Share of the numbers that are subtracted in a residual."""


def paper_demands(
    rules: RuleSet,
    policy: PaperPolicy,
    record: Record,
    *,
    wide_margins: bool = False,
    tangents: tuple[Chain, ...] = (),
) -> Demands:
    """Return the demands that keep each row within tolerance; none where a reading is missing.

    A residual that is already within tolerance may stay inside the margin, unless `wide_margins`.
    """
    slabs: list[Slab] = []
    chains: list[Chain] = []
    for rule in rules.invariants:
        computed = residuals(rule.relation, record)
        match rule.relation:
            case Coupling() | Bound() | Constant():
                slabs.append(_slab(rule, computed, record, wide_margins=wide_margins))
            case Balance() | Window() | Rate() | Tie() | SwitchBand() | Mean():
                chains.append(_chain(rule, computed, record, wide_margins=wide_margins))
            case Spectrum():
                pass  # its demands depend on the point at which they are taken: the tangents
            case _:
                assert_never(rule.relation)
    rows = len(record)
    return Demands(
        slabs=tuple(slabs),
        chains=(*chains, *tangents),
        source_rows=np.broadcast_to(np.arange(rows)[:, None], record.values.shape),
        shown=(),
        counted=np.zeros(rows, bool),
        rows=policy.budgets(rules, rows=rows).violating_rows,
        severe=0,
    )


def _slab(rule: Invariant, computed: Residuals, record: Record, *, wide_margins: bool) -> Slab:
    relation = rule.relation
    assert isinstance(relation, Coupling | Bound | Constant)
    channel = relation.flow if isinstance(relation, Coupling) else relation.channel
    readings = record.column(channel)
    if isinstance(relation, Bound):
        low, high = (np.full(len(record), float(end)) for end in (relation.low, relation.high))
    elif isinstance(relation, Constant):
        low, high = (np.full(len(record), relation.value) for _ in range(2))
    else:
        expected = readings - computed.values
        low = np.where(computed.envelope, 0.0, expected)
        high = np.where(computed.envelope, relation.nominal, expected)
    low[~computed.applies], high[~computed.applies] = -np.inf, np.inf
    margin = _margin(rule, np.fmax.reduce(np.abs(readings), initial=0.0), wide_margins=wide_margins)
    reach = rule.tolerance - margin
    limits = Limits(low=low - reach, high=high + reach)
    within = computed.applies & (np.abs(computed.values) <= rule.tolerance)
    return Slab(
        rule=rule.name,
        channel=channel,
        limits=limits if wide_margins else limits.around_also(readings, within),
        sacrificed=Limits.open(len(record)),
    )


def _chain(rule: Invariant, computed: Residuals, record: Record, *, wide_margins: bool) -> Chain:
    relation = rule.relation
    at = np.flatnonzero(computed.applies)
    constant = np.zeros(len(at))
    low = high = np.zeros(len(at))
    if isinstance(relation, Rate):
        parts: tuple[DemandPart, ...] = (level_part(relation.channel, 1.0, 1),)
    elif isinstance(relation, SwitchBand):
        parts = (now_part(relation.level, 1.0, back=1 if relation.before else 0),)
        on = np.isin(np.rint(record.column(relation.actuator)), relation.on)[at]
        low = np.where(on, relation.on_low, relation.off_low)
        high = np.where(on, relation.on_high, relation.off_high)
    elif isinstance(relation, Mean):
        parts = flow_parts(relation.channel, 1 / relation.rows, rows=relation.rows, averaged=False)
        constant -= relation.mean
    elif isinstance(relation, Tie):
        parts = (now_part(relation.channel, 1.0),)
        constant -= relation.constant
        for term in relation.terms:
            if term.on:
                on = np.isin(np.rint(record.column(term.channel)), term.on)[at]
                constant -= term.coefficient * on
            else:
                parts += (now_part(term.channel, -term.coefficient),)
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
    margin = _margin(rule, _size(parts, record), wide_margins=wide_margins)
    reach = rule.tolerance - margin
    limits = Limits(low=low - reach, high=high + reach)
    within = np.abs(computed.values[at]) <= rule.tolerance
    start = computed.values[at]
    if isinstance(relation, SwitchBand):
        start = record.column(relation.level)[at - int(parts[0].back[0])]
    return Chain(
        rule=rule.name,
        at=at,
        parts=parts,
        constant=constant,
        limits=limits if wide_margins else limits.around_also(start, within),
        sacrificed=Limits.open(len(at)),
    )


def _size(parts: tuple[DemandPart, ...], record: Record) -> float:
    """Return the size of the numbers that are subtracted in a residual."""
    return sum(
        float(np.abs(part.weights).sum())
        * float(np.fmax.reduce(np.abs(record.column(part.channel)), initial=0.0))
        for part in parts
    )


def _margin(rule: Invariant, size: float | Floats, *, wide_margins: bool) -> float:
    wanted = MARGIN * rule.tolerance + ROUNDING * float(size)
    return min(wanted * (16 if wide_margins else 1), rule.tolerance / 2)
