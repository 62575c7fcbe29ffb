"""Integer rules as slabs and chains on one record.

Weights are those of the integer rules, so this arithmetic differs from the evaluator's only by the
rounding of readings to registers; limits are tightened by that rounding.
"""

import math
from dataclasses import replace

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.invariants import (
    REGISTER_TOP,
    TOLERANCE,
    Encoding,
    IntegerBalance,
    IntegerBound,
    IntegerConstant,
    IntegerCoupling,
    IntegerRate,
    IntegerSwitchBand,
    IntegerTerm,
    IntegerTie,
    Judged,
    Register,
    held,
    switch_rows,
    transition_rows,
)
from sluice.lab.attacks.projection.demands import Chain, DemandPart, Limits, Slab
from sluice.lab.attacks.projection.shapes import flow_parts, level_part, on_time
from sluice.telemetry import Record

__all__ = ["RegisterReader"]

OFF_CENTRE = 0.1
"""Share of a register step: the reach of limits beyond the outermost register that a rule allows.

With a larger share, a flow that stays there for a whole window is rounded the same way on each row.
"""

BROKEN = (TOLERANCE + 1) / TOLERANCE
"""The evaluator's excess for a reading outside a range, by any amount."""

DEVIATIONS = 6.0
"""Rounding errors of many registers cancel: their sum stays within this many deviations."""


class RegisterReader:
    """Turns integer rules into demands on one record."""

    def __init__(self, encoding: Encoding, record: Record, *, wide_margins: bool) -> None:
        self.encoding = encoding
        self._record = record
        self._starts = record.segment_starts
        self._wide_margins = wide_margins

    def coupling(self, rule: IntegerCoupling, judged: Judged, severe: float) -> Slab:
        """Return the flows that fit the actuator's state, or its settle envelope."""
        relation = rule.relation
        register = self.encoding.register(relation.flow)
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
        """Return the readings in range; one outside is severe unless the policy says otherwise."""
        register = self.encoding.register(rule.channel)
        rows = len(self._record)
        strict = self._readings(register, np.full(rows, rule.low), np.full(rows, rule.high))
        relaxed = strict if severe < BROKEN else Limits.open(rows)
        return self._slab(rule.channel, strict, relaxed, judged, severe)

    def constant(self, rule: IntegerConstant, judged: Judged, severe: float) -> Slab:
        """Return the value, or the code, that an idle channel keeps; a code cannot be moved."""
        rows = len(self._record)
        least, most = np.full(rows, rule.allowed.low), np.full(rows, rule.allowed.high)
        if rule.code:
            strict = Limits(low=least - 0.5, high=most + 0.5)
        else:
            strict = self._readings(self.encoding.register(rule.channel), least, most)
        relaxed = strict if severe < BROKEN else Limits.open(rows)
        return self._slab(rule.channel, strict, relaxed, judged, severe)

    def switches(self, rule: IntegerSwitchBand, judged: Judged) -> Chain:
        """Return the bands in which a level lies where its actuator switches."""
        relation, at = rule.relation, judged.anchors
        on = np.isin(self._states(relation.actuator), relation.on)
        went_on = switch_rows(on, self._starts)[0][at]
        limits = self._readings(
            self.encoding.register(relation.level),
            np.where(went_on, rule.on.low, rule.off.low),
            np.where(went_on, rule.on.high, rule.off.high),
        )
        back = np.array([1 if relation.before else 0])
        parts = (DemandPart(channel=relation.level, back=back, weights=np.ones(1)),)
        if not self._wide_margins:
            limits = limits.around_also(self._sum(parts, at), ~judged.violating[at])
        return Chain(
            rule=rule.rule.name,
            at=at,
            parts=parts,
            constant=np.zeros(len(at)),
            limits=limits,
            sacrificed=Limits.open(len(at)),
            anchored=True,
        )

    def tie(self, rule: IntegerTie, judged: Judged, severe: float) -> Chain:
        """Return the tie on every row, in the channel's unit."""
        quantum = rule.rule.tolerance / TOLERANCE
        at = np.arange(len(self._record))
        constant = np.full(len(at), -rule.constant * quantum)
        own = IntegerTerm(channel=rule.channel, weight=-rule.weight, on=())
        parts, weights = [], []
        for term in (own, *rule.terms):
            weight = -term.weight * quantum
            if term.on:
                constant += weight * np.isin(self._states(term.channel), term.on)
                continue
            register = self.encoding.register(term.channel)
            each = np.array([weight / register.step])
            parts.append(DemandPart(channel=term.channel, back=np.zeros(1, np.int64), weights=each))
            constant -= weight * register.low / register.step
            weights.append(float(term.weight))
        return self._limited(
            Chain(
                rule=rule.rule.name,
                at=at,
                parts=tuple(parts),
                constant=constant,
                limits=Limits.open(len(at)),
                sacrificed=Limits.open(len(at)),
            ),
            judged,
            severe,
            margin=self._rounding(np.array(weights)) * quantum,
        )

    def chain(self, rule: IntegerBalance | IntegerRate, judged: Judged, severe: float) -> Chain:
        """Return the balance, window or rate, in the channel's unit."""
        quantum = rule.rule.tolerance / TOLERANCE
        if isinstance(rule, IntegerRate):
            at = self._within_segments(1, np.arange(1, len(self._record)))
            parts, weights = self._level(rule.channel, rule.weight, quantum, 1)
            constant = np.zeros(len(at))
        else:
            at = judged.anchors if rule.rows > 1 else np.arange(1, len(self._record))
            at = self._within_segments(rule.rows, at)
            parts, weights = self._level(rule.level, rule.level_weight, quantum, rule.rows)
            constant, flows, more = self._flows(rule, at, quantum)
            parts += flows
            weights += more
        return self._limited(
            Chain(
                rule=rule.rule.name,
                at=at,
                parts=parts,
                constant=constant,
                limits=Limits.open(len(at)),
                sacrificed=Limits.open(len(at)),
                anchored=isinstance(rule, IntegerBalance) and rule.rows > 1,
            ),
            judged,
            severe,
            margin=self._rounding(np.array(weights)) * quantum,
        )

    def _limited(self, chain: Chain, judged: Judged, severe: float, *, margin: float) -> Chain:
        """Return the chain with the limits of its tolerance, tightened by a margin."""
        tolerance, at = judged.rule.tolerance, chain.at
        strict = tolerance * (1.0 if chain.anchored else min(1.0, severe))
        margin = min(margin, strict / 2)
        most = np.inf if chain.anchored else severe * tolerance
        limits = Limits.around(len(at), strict - margin)
        relaxed = Limits.around(len(at), most - margin)
        if not self._wide_margins:
            start, excess = self._sum(chain.parts, at) + chain.constant, judged.excess[at]
            limits = limits.around_also(start, excess <= strict / tolerance)
            relaxed = relaxed.around_also(start, excess <= severe)
        return replace(chain, limits=limits, sacrificed=relaxed)

    def _level(
        self, channel: str, weight: int, quantum: float, rows: int
    ) -> tuple[tuple[DemandPart, ...], list[float]]:
        step = self.encoding.register(channel).step
        return (level_part(channel, weight * quantum / step, rows),), [weight, weight]

    def _flows(
        self, rule: IntegerBalance, at: Ints, quantum: float
    ) -> tuple[Floats, tuple[DemandPart, ...], list[float]]:
        share = 2 if rule.averaged else 1
        constant = np.full(len(at), -rule.constant * quantum * rule.rows)
        parts: tuple[DemandPart, ...] = ()
        weights: list[float] = []
        for term in rule.terms:
            weight = -term.weight * quantum
            if term.on:
                on = np.isin(self._states(term.channel), term.on)
                constant += on_time(on, at, weight, rows=rule.rows, averaged=rule.averaged)
                continue
            register = self.encoding.register(term.channel)
            parts += flow_parts(
                term.channel, weight / register.step, rows=rule.rows, averaged=rule.averaged
            )
            constant -= weight * register.low / register.step * share * rule.rows
            weights += [float(term.weight * share)] * (rule.rows + share - 1)
        return constant, parts, weights

    def _within_segments(self, rows: int, at: Ints) -> Ints:
        """Return rows whose span crosses no time jump; the others are judged without readings."""
        segment = np.searchsorted(self._starts, np.arange(len(self._record)), side="right")
        whole: Ints = at[segment[at] == segment[at - rows]]
        return whole

    def _sum(self, parts: tuple[DemandPart, ...], at: Ints) -> Floats:
        total: Floats = np.zeros(len(at))
        for part in parts:
            readings = held(self._record.column(part.channel), empty=0.0)
            for back, weight in zip(part.back, part.weights, strict=True):
                total += weight * readings[at - back]
        return total

    def _rounding(self, weights: Floats) -> float:
        """Return how far the rounding of readings to registers may move a residual."""
        size = np.abs(weights)
        worst = float(size.sum()) / 2
        likely = DEVIATIONS * float(np.sqrt((size**2).sum() / 12))
        return worst if self._wide_margins else min(worst, likely)

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
        if not self._wide_margins:
            readings = self._record.column(channel)
            known: Bools = ~np.isnan(readings)
            limits = limits.around_also(readings, known & (judged.excess <= min(1.0, severe)))
            sacrificed = sacrificed.around_also(readings, known & (judged.excess <= severe))
        return Slab(rule=judged.rule.name, channel=channel, limits=limits, sacrificed=sacrificed)

    def _states(self, channel: str) -> Floats:
        return np.rint(held(self._record.column(channel), empty=-1.0))
