"""The hardened policy as demands: the integer evaluator's arithmetic, and every budget it has.

Weights are those of the integer rules, so that only the rounding of readings to registers is left
between this arithmetic and the evaluator's; limits keep that far inside. What single blocks and
repeats must show (liveness) is not convex and not demanded here: the gate has the last word.
"""

import math

import numpy as np

from sluice.admission import HardenedPolicy
from sluice.arrays import Bools, Floats, Ints
from sluice.attacks.projection.demands import Chain, Demands, Limits, Part, Shown, Slab
from sluice.attacks.projection.shapes import flow_parts, level_part, on_time
from sluice.errors import SettingError
from sluice.invariants import Encoding, Judged, RuleSet, budgets_for, measure
from sluice.invariants.encoding import (
    REGISTER_TOP,
    TOLERANCE,
    IntegerBalance,
    IntegerBound,
    IntegerCoupling,
    IntegerRate,
    Register,
    held,
)
from sluice.invariants.residuals import transition_rows
from sluice.telemetry import Record

__all__ = ["hardened_demands"]

OFF_CENTRE = 0.1
"""Of a register step: no further beyond the outermost register that a rule allows.

A flow held there for a whole window would otherwise be rounded the same way on every row of it.
"""

DEVIATIONS = 6.0
"""Rounding errors of many registers cancel: their sum stays within so many deviations."""


def hardened_demands(
    rules: RuleSet,
    policy: HardenedPolicy,
    record: Record,
    encoding: Encoding,
    *,
    wary: bool = False,
) -> Demands:
    """Return what keeps each row within tolerance and each sacrificed row short of severe.

    What the evaluator finds within tolerance may stay where it is, margin or not; unless `wary`.
    """
    if rules.clean is None:
        raise SettingError(
            f"the rules of {rules.plant!r} say nothing of clean batches; project under the paper "
            "policy or mine with --profile hardened"
        )
    rows = len(record)
    measured = measure(rules, record, encoding=encoding)
    budgets = budgets_for(rules, rules.clean, policy.margins, rows=rows)
    reader = _Reader(encoding, record, wary=wary)
    slabs: list[Slab] = []
    chains: list[Chain] = []
    anchors: list[tuple[str, int]] = []
    for rule, judged in zip(encoding.rules, measured.judged, strict=True):
        severe = budgets.severe_multiple[rule.rule.name]
        match rule:
            case IntegerCoupling():
                slabs.append(reader.coupling(rule, judged, severe))
            case IntegerBound():
                slabs.append(reader.bound(rule, judged, severe))
            case IntegerBalance() | IntegerRate():
                chain = reader.chain(rule, judged, severe)
                chains.append(chain)
                if chain.anchored:
                    broken = judged.anchors.size - len(chain.at)  # by time jumps, whatever is read
                    anchors.append((chain.rule, budgets.anchors[chain.rule] - broken))
    counted = measured.missing | measured.illegal
    counted[record.segment_starts] = True
    return Demands(
        slabs=tuple(slabs),
        chains=tuple(chains),
        held=_last_known(record),
        shown=tuple(_shown(register) for register in encoding.registers),
        counted=counted,
        rows=budgets.violating_rows,
        severe=budgets.severe_rows,
        anchors=tuple(anchors),
    )


def _shown(register: Register) -> Shown:
    top = register.low + register.step * REGISTER_TOP
    return Shown(channel=register.channel, low=register.low, high=top)


def _last_known(record: Record) -> Ints:
    """Return the row whose reading each cell shows: its own, or the last known one."""
    numbers = np.arange(len(record), dtype=np.float64)
    columns = [held(np.where(missing, np.nan, numbers), empty=0.0) for missing in record.missing.T]
    return np.column_stack(columns).astype(np.int64)


class _Reader:
    """Turns integer rules into demands on one record."""

    def __init__(self, encoding: Encoding, record: Record, *, wary: bool) -> None:
        self._encoding = encoding
        self._record = record
        self._starts = record.segment_starts
        self._wary = wary

    def coupling(self, rule: IntegerCoupling, judged: Judged, severe: float) -> Slab:
        relation = rule.relation
        register = self._encoding.register(relation.flow)
        states = self._states(relation.actuator)
        steady = states == relation.off
        low = np.full(len(states), rule.off_offset)
        for code, offset in rule.on_offsets:
            low[states == code] = offset
            steady |= states == code
        high = low.copy()
        settling = transition_rows(states, relation.settle, self._starts) | ~steady
        low[settling], high[settling] = rule.off_offset, rule.envelope_offset
        fed = np.zeros(len(states), bool)
        for pump, off in relation.standby:
            fed |= self._states(pump) != off

        def limits(multiple: float) -> Limits:
            reach = math.floor(multiple * TOLERANCE)
            least = np.where(fed, 0, -((reach + low) // rule.weight))  # rounded up
            most = np.where(fed, REGISTER_TOP, (reach - high) // rule.weight)
            return self._readings(register, least, most)

        strict, relaxed = limits(min(1.0, severe)), limits(severe)
        return self._slab(relation.flow, strict, relaxed, judged, severe)

    def bound(self, rule: IntegerBound, judged: Judged, severe: float) -> Slab:
        register = self._encoding.register(rule.channel)
        rows = len(self._record)
        strict = self._readings(register, np.full(rows, rule.low), np.full(rows, rule.high))
        outside = (TOLERANCE + 1) / TOLERANCE  # how far, to the evaluator, anything outside is
        relaxed = strict if outside > severe else Limits.open(rows)
        return self._slab(rule.channel, strict, relaxed, judged, severe)

    def chain(self, rule: IntegerBalance | IntegerRate, judged: Judged, severe: float) -> Chain:
        quantum = rule.rule.tolerance / TOLERANCE
        if isinstance(rule, IntegerRate):
            at = self._apart(1, np.arange(1, len(self._record)))
            parts, weights = self._level(rule.channel, rule.weight, quantum, 1)
            constant = np.zeros(len(at))
        else:
            at = judged.anchors if rule.rows > 1 else np.arange(1, len(self._record))
            at = self._apart(rule.rows, at)
            parts, weights = self._level(rule.level, rule.level_weight, quantum, rule.rows)
            constant, flows, more = self._flows(rule, at, quantum)
            parts += flows
            weights += more
        margin = self._rounding(np.array(weights)) * quantum
        tolerance = rule.rule.tolerance
        anchored = isinstance(rule, IntegerBalance) and rule.rows > 1
        strict = tolerance * (1.0 if anchored else min(1.0, severe))
        margin = min(margin, strict / 2)
        limits = Limits.around(len(at), strict - margin)
        relaxed = Limits.around(len(at), (np.inf if anchored else severe * tolerance) - margin)
        if not self._wary:
            start, excess = self._sum(parts, at) + constant, judged.excess[at]
            limits = limits.around_also(start, excess <= strict / tolerance)
            relaxed = relaxed.around_also(start, excess <= severe)
        return Chain(
            rule=rule.rule.name,
            at=at,
            parts=parts,
            constant=constant,
            limits=limits,
            sacrificed=relaxed,
            anchored=anchored,
        )

    def _level(
        self, channel: str, weight: int, quantum: float, rows: int
    ) -> tuple[tuple[Part, ...], list[float]]:
        step = self._encoding.register(channel).step
        return (level_part(channel, weight * quantum / step, rows),), [weight, weight]

    def _flows(
        self, rule: IntegerBalance, at: Ints, quantum: float
    ) -> tuple[Floats, tuple[Part, ...], list[float]]:
        share = 2 if rule.averaged else 1
        constant = np.full(len(at), -rule.constant * quantum * rule.rows)
        parts: tuple[Part, ...] = ()
        weights: list[float] = []
        for term in rule.terms:
            weight = -term.weight * quantum
            if term.on:
                on = np.isin(self._states(term.channel), term.on)
                constant += on_time(on, at, weight, rows=rule.rows, averaged=rule.averaged)
                continue
            register = self._encoding.register(term.channel)
            parts += flow_parts(
                term.channel, weight / register.step, rows=rule.rows, averaged=rule.averaged
            )
            constant -= weight * register.low / register.step * share * rule.rows
            weights += [float(term.weight * share)] * (rule.rows + share - 1)
        return constant, parts, weights

    def _apart(self, rows: int, at: Ints) -> Ints:
        """Keep the rows whose span crosses no time jump: the others are judged without reading."""
        segment = np.searchsorted(self._starts, np.arange(len(self._record)), side="right")
        whole: Ints = at[segment[at] == segment[at - rows]]
        return whole

    def _sum(self, parts: tuple[Part, ...], at: Ints) -> Floats:
        total: Floats = np.zeros(len(at))
        for part in parts:
            readings = held(self._record.column(part.channel), empty=0.0)
            for back, weight in zip(part.back, part.weights, strict=True):
                total += weight * readings[at - back]
        return total

    def _rounding(self, weights: Floats) -> float:
        """Return how far rounding readings to registers may take a residual."""
        size = np.abs(weights)
        worst = float(size.sum()) / 2
        likely = DEVIATIONS * float(np.sqrt((size**2).sum() / 12))
        return worst if self._wary else min(worst, likely)

    def _readings(self, register: Register, least: Ints, most: Ints) -> Limits:
        """Return the readings that quantise to these registers; the outermost take all beyond."""
        low = register.low + register.step * (least - OFF_CENTRE)
        high = register.low + register.step * (most + OFF_CENTRE)
        return Limits(
            low=np.where(least <= 0, -np.inf, low),
            high=np.where(most >= REGISTER_TOP, np.inf, high),
        )

    def _slab(
        self, channel: str, limits: Limits, sacrificed: Limits, judged: Judged, severe: float
    ) -> Slab:
        if not self._wary:
            readings = self._record.column(channel)
            known: Bools = ~np.isnan(readings)
            limits = limits.around_also(readings, known & (judged.excess <= min(1.0, severe)))
            sacrificed = sacrificed.around_also(readings, known & (judged.excess <= severe))
        return Slab(rule=judged.rule.name, channel=channel, limits=limits, sacrificed=sacrificed)

    def _states(self, channel: str) -> Floats:
        return np.rint(held(self._record.column(channel), empty=-1.0))
