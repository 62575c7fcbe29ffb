"""The integer evaluator: normative for the hardened policy, and the twin of the proof circuit.

Readings are quantised over each channel's instrument span with headroom, saturating as a
transmitter does; coefficients and tolerances become integers once. What this module computes *is*
the verdict's arithmetic: the circuit is handed the same integers and derives nothing.

Every residual is scaled so that its tolerance is exactly `TOLERANCE`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Bools, Floats, Ints
from sluice.errors import RulesFileError
from sluice.invariants.invariant import Invariant
from sluice.invariants.relations import Balance, Bound, Coupling, Rate, Window
from sluice.invariants.residuals import anchors, transition_rows
from sluice.invariants.ruleset import RuleSet
from sluice.telemetry import Channel, Record

__all__ = ["Encoding", "Judged", "Register", "encode", "evaluate"]

REGISTER_BITS = 16
REGISTER_TOP = (1 << REGISTER_BITS) - 1
HEADROOM = 1 / 16  # of the span, on either side, so that a reading beyond its span can be seen
TOLERANCE = 1 << 30
LARGEST_RESIDUAL = 1 << 62
"""Half the order of the Goldilocks field, less a margin: beyond it residuals could wrap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """How a channel's readings become integers: low + step x register."""

    channel: str
    low: float
    step: float

    def quantise(self, readings: Floats) -> Ints:
        """Return registers; where a reading is missing the last one is held."""
        scaled = (held(readings, empty=self.low) - self.low) / self.step
        return np.clip(np.rint(scaled), 0, REGISTER_TOP).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerTerm:
    """A weighted register, or with `on` codes a weighted on-indicator, summed over both rows."""

    channel: str
    weight: int
    on: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerCoupling:
    """weight x flow register + the offset of the actuator's state."""

    rule: Invariant
    relation: Coupling
    weight: int
    off_offset: int
    on_offsets: tuple[tuple[int, int], ...]  # (code, offset)
    envelope_offset: int  # of the largest nominal flow


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerBalance:
    """level weight x level step - terms over both rows - constant, over one or more rows."""

    rule: Invariant
    level: str
    level_weight: int
    terms: tuple[IntegerTerm, ...]
    constant: int  # per row
    rows: int  # 1 for a balance, more for a window
    averaged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerBound:
    """Registers between low and high, both allowed."""

    rule: Invariant
    channel: str
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerRate:
    """weight x register step within the tolerance."""

    rule: Invariant
    channel: str
    weight: int


IntegerRule = IntegerCoupling | IntegerBalance | IntegerBound | IntegerRate


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """A rule set as integers."""

    registers: tuple[Register, ...]
    actuators: tuple[Channel, ...]
    rules: tuple[IntegerRule, ...]

    def register(self, channel: str) -> Register:
        """Return a channel's register."""
        return next(found for found in self.registers if found.channel == channel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One rule on every row: beyond tolerance, how far in multiples of it, under the envelope."""

    rule: Invariant
    violating: Bools
    excess: Floats  # |residual| / tolerance, 0 where not judged
    envelope: Bools
    anchors: Ints  # rows at which a window rule is judged; empty otherwise


def held(readings: Floats, *, empty: float) -> Floats:
    """Hold the last reading where one is missing, the first before it; `empty` where there is none.

    The row counts as violating all the same; holding keeps one missing reading from looking like a
    jump to its neighbours.
    """
    missing = np.isnan(readings)
    if not missing.any():
        return readings
    if missing.all():
        return np.full(len(readings), empty)
    last = np.maximum.accumulate(np.where(missing, 0, np.arange(len(readings))))
    last[: int(np.argmin(missing))] = int(np.argmin(missing))
    return np.asarray(readings[last])


def encode(rules: RuleSet) -> Encoding:
    """Derive the integers of a rule set, once; refuse residuals that could wrap in a proof."""
    registers = {
        channel.name: _register(channel)
        for channel in rules.channels
        if channel.span is not None and not channel.role.discrete
    }
    encoded = tuple(_encode(rule, registers) for rule in rules.invariants)
    read = {name for rule in rules.invariants for name in rule.relation.channels}
    return Encoding(
        registers=tuple(registers.values()),
        actuators=tuple(c for c in rules.channels if c.role.discrete and c.name in read),
        rules=encoded,
    )


def evaluate(encoding: Encoding, record: Record) -> tuple[Judged, ...]:
    """Evaluate every rule on every row, in integers."""
    reader = _Reader(encoding, record)
    return tuple(_judge(rule, reader) for rule in encoding.rules)


def _register(channel: Channel) -> Register:
    assert channel.span is not None
    width = channel.span.high - channel.span.low
    low = channel.span.low - HEADROOM * width
    return Register(channel=channel.name, low=low, step=width * (1 + 2 * HEADROOM) / REGISTER_TOP)


def _encode(rule: Invariant, registers: dict[str, Register]) -> IntegerRule:
    relation = rule.relation
    needed = [name for name in relation.channels if name not in registers]
    quantum = rule.tolerance / TOLERANCE  # one integer unit of the residual

    def register(name: str) -> Register:
        if name in needed:
            raise RulesFileError(
                f"rule {rule.name!r} reads {name!r}, which has no instrument span; give it one in "
                "the plant file"
            )
        return registers[name]

    match relation:
        case Coupling():
            encoded: IntegerRule = _encode_coupling(
                rule, relation, register(relation.flow), quantum
            )
        case Balance() | Window():
            encoded = _encode_balance(rule, relation, register, quantum)
        case Bound():
            held = register(relation.channel)
            encoded = IntegerBound(
                rule=rule,
                channel=relation.channel,
                low=max(round((relation.low - held.low) / held.step), 1),
                high=min(round((relation.high - held.low) / held.step), REGISTER_TOP - 1),
            )
        case Rate():
            weight = round(register(relation.channel).step / quantum)
            encoded = IntegerRate(rule=rule, channel=relation.channel, weight=weight)
    reach = _reach(encoded)
    if reach >= LARGEST_RESIDUAL:
        raise RulesFileError(
            f"rule {rule.name!r} could reach a residual of {reach:.3g} units, beyond half the "
            f"proof field ({LARGEST_RESIDUAL:.3g}); widen its tolerance or narrow its spans"
        )
    return encoded


def _encode_coupling(
    rule: Invariant, relation: Coupling, flow: Register, quantum: float
) -> IntegerCoupling:
    return IntegerCoupling(
        rule=rule,
        relation=relation,
        weight=round(flow.step / quantum),
        off_offset=round(flow.low / quantum),
        on_offsets=tuple(
            (state.code, round((flow.low - state.nominal) / quantum)) for state in relation.states
        ),
        envelope_offset=round((flow.low - relation.nominal) / quantum),
    )


def _encode_balance(
    rule: Invariant,
    relation: Balance | Window,
    register: Callable[[str], Register],
    quantum: float,
) -> IntegerBalance:
    rows = relation.rows if isinstance(relation, Window) else 1
    share = 2 if relation.averaged else 1  # terms are summed over both rows, so each weighs half
    terms, constant = [], relation.constant
    for term in relation.terms:
        if term.on:
            weight = round(term.coefficient / share / quantum)
        else:
            held = register(term.channel)
            weight = round(term.coefficient * held.step / share / quantum)
            constant += term.coefficient * held.low
        terms.append(IntegerTerm(channel=term.channel, weight=weight, on=term.on))
    return IntegerBalance(
        rule=rule,
        level=relation.level,
        level_weight=round(register(relation.level).step / quantum),
        terms=tuple(terms),
        constant=round(constant / quantum),
        rows=rows,
        averaged=relation.averaged,
    )


def _reach(rule: IntegerRule) -> int:
    """Return the largest residual that any registers could give."""
    match rule:
        case IntegerCoupling():
            offsets = (rule.off_offset, rule.envelope_offset, *(at for _, at in rule.on_offsets))
            return rule.weight * REGISTER_TOP + max(abs(offset) for offset in offsets)
        case IntegerBalance():
            share = 2 if rule.averaged else 1
            flows = sum(
                abs(term.weight) * share * (1 if term.on else REGISTER_TOP) for term in rule.terms
            )
            return rule.level_weight * REGISTER_TOP + rule.rows * (flows + abs(rule.constant))
        case IntegerBound():
            return REGISTER_TOP
        case IntegerRate():
            return rule.weight * REGISTER_TOP


class _Reader:
    """A record's registers and states, each computed once."""

    def __init__(self, encoding: Encoding, record: Record) -> None:
        self.record = record
        self.rows = len(record)
        self.starts = record.segment_starts
        self._registers = {register.channel: register for register in encoding.registers}
        self._quantised: dict[str, Ints] = {}
        self._states: dict[str, Floats] = {}

    def registers(self, channel: str, rule: Invariant) -> Ints:
        if channel not in self._quantised:
            column = self.record.index(channel, needed_by=f"rule {rule.name!r}")
            readings = self.record.values[:, column]
            self._quantised[channel] = self._registers[channel].quantise(readings)
        return self._quantised[channel]

    def states(self, channel: str, rule: Invariant) -> Floats:
        if channel not in self._states:
            column = self.record.index(channel, needed_by=f"rule {rule.name!r}")
            self._states[channel] = np.rint(held(self.record.values[:, column], empty=-1.0))
        return self._states[channel]


def _judge(rule: IntegerRule, reader: _Reader) -> Judged:
    match rule:
        case IntegerCoupling():
            return _judge_coupling(rule, reader)
        case IntegerBalance():
            return _judge_balance(rule, reader)
        case IntegerBound():
            registers = reader.registers(rule.channel, rule.rule)
            outside = (registers < rule.low) | (registers > rule.high)
            return _judged(rule.rule, outside.astype(np.int64) * (TOLERANCE + 1))
        case IntegerRate():
            registers = reader.registers(rule.channel, rule.rule)
            step = np.zeros(reader.rows, np.int64)
            np.subtract(registers[1:], registers[:-1], out=step[1:])
            step[reader.starts] = 0
            return _judged(rule.rule, step * rule.weight)


def _judge_coupling(rule: IntegerCoupling, reader: _Reader) -> Judged:
    relation = rule.relation
    flow = reader.registers(relation.flow, rule.rule) * rule.weight
    states = reader.states(relation.actuator, rule.rule)
    residual = flow + rule.off_offset
    steady = states == relation.off
    for code, offset in rule.on_offsets:
        there = states == code
        residual[there] = flow[there] + offset
        steady |= there
    settling = transition_rows(states, relation.settle, reader.starts) | ~steady
    below = np.minimum(flow + rule.off_offset, 0)
    above = np.maximum(flow + rule.envelope_offset, 0)
    residual = np.where(settling, below + above, residual)
    fed = np.zeros(reader.rows, bool)
    for pump, off in relation.standby:
        fed |= reader.states(pump, rule.rule) != off
    residual[fed] = 0
    return _judged(rule.rule, residual, envelope=settling | fed)


def _judge_balance(rule: IntegerBalance, reader: _Reader) -> Judged:
    level = reader.registers(rule.level, rule.rule)
    flow = np.full(reader.rows, rule.constant, np.int64)
    for term in rule.terms:
        if term.on:
            moved = np.isin(reader.states(term.channel, rule.rule), term.on).astype(np.int64)
        else:
            moved = reader.registers(term.channel, rule.rule)
        flow += term.weight * moved
        if rule.averaged:
            flow[1:] += term.weight * moved[:-1]
    if rule.rows == 1:
        residual = np.zeros(reader.rows, np.int64)
        residual[1:] = (level[1:] - level[:-1]) * rule.level_weight - flow[1:]
        residual[reader.starts] = 0
        return _judged(rule.rule, residual)
    total = np.cumsum(flow)
    at = anchors(reader.rows, rule.rows)
    residual = np.zeros(reader.rows, np.int64)
    risen = (level[at] - level[at - rule.rows]) * rule.level_weight
    residual[at] = risen - (total[at] - total[at - rule.rows])
    # A window that reaches back over a segment start is violated: declaring jumps buys nothing.
    segment = np.searchsorted(reader.starts, np.arange(reader.rows), side="right")
    residual[at[segment[at] != segment[at - rule.rows]]] = TOLERANCE + 1
    return _judged(rule.rule, residual, anchors_=at)


def _judged(
    rule: Invariant,
    residual: NDArray[np.int64],
    *,
    envelope: Bools | None = None,
    anchors_: Ints | None = None,
) -> Judged:
    size = np.abs(residual)
    return Judged(
        rule=rule,
        violating=size > TOLERANCE,
        excess=size / TOLERANCE,
        envelope=np.zeros(len(residual), bool) if envelope is None else envelope,
        anchors=np.empty(0, np.int64) if anchors_ is None else anchors_,
    )
