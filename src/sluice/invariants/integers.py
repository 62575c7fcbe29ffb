"""The integer evaluator: normative for the hardened policy, and mirrored by the proof circuit.

The verdict is defined by what this module computes. The circuit receives the same integers
(`encoding`) and derives none of its own.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Bools, Floats, Ints
from sluice.invariants.encoding import (
    TOLERANCE,
    Encoding,
    IntegerBalance,
    IntegerBound,
    IntegerConstant,
    IntegerCoupling,
    IntegerRate,
    IntegerRule,
    IntegerSpectrum,
    IntegerSwitchBand,
    IntegerTerm,
    IntegerTie,
    held,
)
from sluice.invariants.relations import Invariant
from sluice.invariants.residuals import anchors, block_ends, switch_rows, transition_rows
from sluice.telemetry import Record

__all__ = ["Judged", "block_sums", "evaluate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One rule on every row: size of its residual, whether it violates, whether in transition."""

    rule: Invariant
    size: Ints  # |residual|, scaled so that the tolerance is `TOLERANCE`; 0 where not judged
    violating: Bools
    envelope: Bools
    anchors: Ints  # rows on which a rule with a budget of its own is judged; empty otherwise

    @property
    def own_budget(self) -> bool:
        """Whether violations count against a budget of the rule, not as violating rows."""
        return self.rule.kind.own_budget

    @property
    def excess(self) -> Floats:
        """The residual's size in multiples of the tolerance."""
        return self.size / TOLERANCE


def evaluate(encoding: Encoding, record: Record) -> tuple[Judged, ...]:
    """Evaluate every rule on every row, in integers."""
    reader = _Reader(encoding, record)
    return tuple(_judge(rule, reader) for rule in encoding.rules)


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


def _judge(rule: IntegerRule, reader: _Reader) -> Judged:  # noqa: PLR0911 - one case a kind
    match rule:
        case IntegerCoupling():
            return _judge_coupling(rule, reader)
        case IntegerBalance():
            return _judge_balance(rule, reader)
        case IntegerBound():
            registers = reader.registers(rule.channel, rule.rule)
            outside = (registers < rule.low) | (registers > rule.high)
            return _judged(rule.rule, _broken(outside))
        case IntegerRate():
            registers = reader.registers(rule.channel, rule.rule)
            step = np.zeros(reader.rows, np.int64)
            np.subtract(registers[1:], registers[:-1], out=step[1:])
            step[reader.starts] = 0
            return _judged(rule.rule, step * rule.weight)
        case IntegerTie():
            predicted = _summed(rule.terms, rule.rule, reader, rule.constant)
            registers = reader.registers(rule.channel, rule.rule)
            return _judged(rule.rule, registers * rule.weight - predicted)
        case IntegerConstant():
            if rule.code:
                shown = reader.states(rule.channel, rule.rule).astype(np.int64)
            else:
                shown = reader.registers(rule.channel, rule.rule)
            return _judged(rule.rule, _broken(~rule.allowed.holds(shown)))
        case IntegerSwitchBand():
            return _judge_switches(rule, reader)
        case IntegerSpectrum():
            return _judge_blocks(rule, reader)


def _judge_coupling(rule: IntegerCoupling, reader: _Reader) -> Judged:
    relation = rule.relation
    flow = reader.registers(relation.flow, rule.rule)
    states = reader.states(relation.actuator, rule.rule)
    residual = rule.steady(flow, relation.off)
    steady = states == relation.off
    for code, _ in rule.on_offsets:
        there = states == code
        residual[there] = rule.steady(flow[there], code)
        steady |= there
    settling = transition_rows(states, relation.settle, reader.starts) | ~steady
    residual = np.where(settling, rule.envelope(flow), residual)
    standby_runs = np.zeros(reader.rows, bool)
    for pump, off in relation.standby:
        standby_runs |= reader.states(pump, rule.rule) != off
    residual[standby_runs] = 0
    return _judged(rule.rule, residual, envelope=settling | standby_runs)


def _judge_balance(rule: IntegerBalance, reader: _Reader) -> Judged:
    level = reader.registers(rule.level, rule.rule)
    flow = _summed(rule.terms, rule.rule, reader, rule.constant)
    if rule.averaged:
        flow[1:] += flow[:-1].copy() - rule.constant
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
    # A window across a segment start violates, so that declaring time jumps does not evade it.
    segment = np.searchsorted(reader.starts, np.arange(reader.rows), side="right")
    residual[at[segment[at] != segment[at - rule.rows]]] = TOLERANCE + 1
    return _judged(rule.rule, residual, anchors_=at)


def _summed(
    terms: tuple[IntegerTerm, ...], rule: Invariant, reader: _Reader, constant: int
) -> Ints:
    """Return the constant plus the weighted terms of each row."""
    total = np.full(reader.rows, constant, np.int64)
    for term in terms:
        if term.on:
            shown = np.isin(reader.states(term.channel, rule), term.on).astype(np.int64)
        else:
            shown = reader.registers(term.channel, rule)
        total += term.weight * shown
    return total


def _judge_switches(rule: IntegerSwitchBand, reader: _Reader) -> Judged:
    relation = rule.relation
    on = np.isin(reader.states(relation.actuator, rule.rule), relation.on)
    went_on, went_off = switch_rows(on, reader.starts)
    registers = reader.registers(relation.level, rule.rule)
    if relation.before:
        registers = np.concatenate((registers[:1], registers[:-1]))
    outside = (went_on & ~rule.on.holds(registers)) | (went_off & ~rule.off.holds(registers))
    return _judged(rule.rule, _broken(outside), anchors_=np.flatnonzero(went_on | went_off))


def _judge_blocks(rule: IntegerSpectrum, reader: _Reader) -> Judged:
    relation = rule.relation
    at = block_ends(reader.rows, relation.rows, relation.offset)
    registers = reader.registers(relation.channel, rule.rule)
    first, second = block_sums(registers, relation.rows, relation.offset)
    # A block with a time jump inside violates, so that declaring jumps does not evade the rule.
    segment = np.searchsorted(reader.starts, np.arange(reader.rows), side="right")
    jumps = segment[at] != segment[at - relation.rows + 1]
    outside = np.zeros(reader.rows, bool)
    outside[at] = jumps | ~rule.first.holds(first) | ~rule.second.holds(second)
    return _judged(rule.rule, _broken(outside), anchors_=at)


def block_sums(registers: Ints, rows: int, offset: int) -> tuple[Ints, Ints]:
    """Return the sums of squared first and second differences inside each whole block."""
    count = block_ends(len(registers), rows, offset).size
    blocks = registers[offset : offset + count * rows].reshape(count, rows)
    first, second = np.diff(blocks, axis=1), np.diff(blocks, n=2, axis=1)
    return np.square(first).sum(axis=1), np.square(second).sum(axis=1)


def _broken(rows: Bools) -> Ints:
    """Return residuals of rules that hold or do not: one unit beyond the tolerance, or zero."""
    return np.asarray(rows.astype(np.int64) * (TOLERANCE + 1))


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
        size=size,
        violating=size > TOLERANCE,
        envelope=np.zeros(len(residual), bool) if envelope is None else envelope,
        anchors=np.empty(0, np.int64) if anchors_ is None else anchors_,
    )
