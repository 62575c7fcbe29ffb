"""Rules as integers: derived once from a rule set and passed unchanged to the circuit.

Readings are quantised over each channel's instrument span with headroom, saturating as a
transmitter does. Every residual is scaled so that its tolerance is exactly `TOLERANCE`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.errors import RulesFileError
from sluice.invariants.meaning import refuse_meaningless
from sluice.invariants.relations import (
    Balance,
    Bound,
    Constant,
    Coupling,
    Invariant,
    Mean,
    Rate,
    Spectrum,
    SwitchBand,
    Tie,
    Window,
)
from sluice.invariants.ruleset import RuleSet
from sluice.telemetry import Channel

__all__ = [
    "TIE_GRAIN",
    "TOLERANCE",
    "Encoding",
    "IntegerBalance",
    "IntegerBound",
    "IntegerConstant",
    "IntegerCoupling",
    "IntegerLimits",
    "IntegerRate",
    "IntegerRule",
    "IntegerSpectrum",
    "IntegerSwitchBand",
    "IntegerTie",
    "Register",
    "encode",
    "held",
    "largest_residual",
    "register_of",
]

REGISTER_BITS = 16
REGISTER_TOP = (1 << REGISTER_BITS) - 1
HEADROOM = 1 / 16  # of the span, on either side, so that a reading beyond its span is visible
TOLERANCE = 1 << 30
TIE_GRAIN = 1 << 8
"""Integers of a tie are multiples of this: its range check needs a quarter fewer columns."""
STEPS_OF_WIDTH = 7
"""Intervals that share digits in the circuit have a width that is a multiple of this."""
LEAST_BAND = 42  # registers: the narrowest switch band
LEAST_SUMS = 112  # squared registers: the narrowest interval of a spectrum
LARGEST_RESIDUAL = 1 << 62
"""Half the order of the Goldilocks field, less a margin: beyond it residuals could wrap."""
LARGEST_SHOWN = 10**300  # an integer beyond the floats cannot be printed as one


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """How a channel's readings become integers: low + step x register."""

    channel: str
    low: float
    step: float

    def quantise(self, readings: Floats) -> Ints:
        """Return registers; a missing reading takes the value of the last one."""
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

    def steady(self, flow: Ints, code: int) -> Ints:
        """Return the residuals of flow registers while the actuator rests in a code."""
        offset = dict(self.on_offsets).get(code, self.off_offset)
        return np.asarray(flow * self.weight + offset)

    def envelope(self, flow: Ints) -> Ints:
        """Return how far flow registers lie outside the range allowed in transition."""
        below = np.minimum(flow * self.weight + self.off_offset, 0)
        above = np.maximum(flow * self.weight + self.envelope_offset, 0)
        return np.asarray(below + above)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerBalance:
    """level weight x level step - terms over both rows - constant, over one or more rows.

    A mean is one of these whose level weighs nothing: only what is summed counts.
    """

    rule: Invariant
    level: str
    level_weight: int
    terms: tuple[IntegerTerm, ...]
    constant: int  # per row
    rows: int  # 1 for a balance, more for a window or a mean
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


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerTie:
    """weight x register - terms - constant, on one row."""

    rule: Invariant
    channel: str
    weight: int
    terms: tuple[IntegerTerm, ...]
    constant: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerLimits:
    """Integers between low and high, both allowed."""

    low: int
    high: int

    def holds(self, values: Ints) -> Bools:
        """Mark the values inside."""
        return np.asarray((values >= self.low) & (values <= self.high))


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerConstant:
    """Registers in an interval, or one code of an actuator."""

    rule: Invariant
    channel: str
    allowed: IntegerLimits
    code: bool  # the interval is about codes and holds one


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerSwitchBand:
    """Registers at which an actuator switches on, and at which it switches off."""

    rule: Invariant
    relation: SwitchBand
    on: IntegerLimits
    off: IntegerLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerSpectrum:
    """Sums of squared first and second differences of registers over a block."""

    rule: Invariant
    relation: Spectrum
    first: IntegerLimits
    second: IntegerLimits


IntegerRule = (
    IntegerCoupling
    | IntegerBalance
    | IntegerBound
    | IntegerRate
    | IntegerTie
    | IntegerConstant
    | IntegerSwitchBand
    | IntegerSpectrum
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """A rule set as integers."""

    registers: tuple[Register, ...]
    actuators: tuple[Channel, ...]
    rules: tuple[IntegerRule, ...]

    def register(self, channel: str) -> Register:
        """Return a channel's register."""
        return next(register for register in self.registers if register.channel == channel)


def held(readings: Floats, *, empty: float) -> Floats:
    """Fill a missing reading with the last one, at the start with the first, or with `empty`.

    The row still counts as violating; filling it avoids a false jump at the rows next to it.
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
    """Derive the integers of a rule set; refuse residuals that could wrap in a proof.

    Rules that could be read in two ways, or that judge nothing, are refused too: two rules or
    channels of one name, a code that an actuator does not have, a window without rows.
    """
    refuse_meaningless(rules)
    registers = {
        channel.name: register_of(channel)
        for channel in rules.channels
        if channel.span is not None and not channel.role.discrete
    }
    discrete = frozenset(channel.name for channel in rules.channels if channel.role.discrete)
    encoded = tuple(_encode(rule, registers, discrete) for rule in rules.invariants)
    read = {name for rule in rules.invariants for name in rule.relation.channels}
    return Encoding(
        registers=tuple(registers.values()),
        actuators=tuple(c for c in rules.channels if c.role.discrete and c.name in read),
        rules=encoded,
    )


def register_of(channel: Channel) -> Register:
    """Return how a channel's readings become integers; a channel without a span has no register."""
    if channel.span is None:
        raise RulesFileError(
            f"channel {channel.name!r} has no instrument span, which the conversion of its "
            "readings to integers needs; state one in the plant file"
        )
    width = channel.span.width
    low, step = channel.span.low - HEADROOM * width, width * (1 + 2 * HEADROOM) / REGISTER_TOP
    if not (step < math.inf and low + step * REGISTER_TOP > low):  # nor for a low of -inf
        raise RulesFileError(
            f"channel {channel.name!r} has a span from {channel.span.low:g} to "
            f"{channel.span.high:g}, which cannot be divided into {REGISTER_TOP:,} steps; state "
            "the instrument's span in the plant file"
        )
    return Register(channel=channel.name, low=low, step=step)


def _encode(
    rule: Invariant, registers: dict[str, Register], discrete: frozenset[str]
) -> IntegerRule:
    try:
        encoded = _integers(rule, registers, discrete)
    except (ArithmeticError, ValueError):  # an infinite number has no integer
        raise RulesFileError(
            f"rule {rule.name!r} holds a number that is too large beside its tolerance of "
            f"{rule.tolerance:g}; mine it again"
        ) from None
    reach = largest_residual(encoded)
    if reach >= LARGEST_RESIDUAL:
        shown = float(min(reach, LARGEST_SHOWN))
        raise RulesFileError(
            f"rule {rule.name!r} could reach a residual of {shown:.3g} units, beyond half the "
            f"proof field ({LARGEST_RESIDUAL:.3g}); widen its tolerance or narrow its spans"
        )
    return encoded


def _integers(  # noqa: C901, PLR0911 - one case a kind
    rule: Invariant, registers: dict[str, Register], discrete: frozenset[str]
) -> IntegerRule:
    relation = rule.relation
    needed = [name for name in relation.channels if name not in registers]
    quantum = rule.tolerance / TOLERANCE  # one integer unit of the residual

    def register_for(name: str) -> Register:
        if name in needed:
            raise RulesFileError(
                f"rule {rule.name!r} reads {name!r}, which has no instrument span; state one in "
                "the plant file"
            )
        return registers[name]

    match relation:
        case Coupling():
            return _encode_coupling(rule, relation, register_for(relation.flow), quantum)
        case Balance() | Window():
            return _encode_balance(rule, relation, register_for, quantum)
        case Bound():
            register = register_for(relation.channel)
            return IntegerBound(
                rule=rule,
                channel=relation.channel,
                low=max(round((relation.low - register.low) / register.step), 1),
                high=min(round((relation.high - register.low) / register.step), REGISTER_TOP - 1),
            )
        case Rate():
            weight = round(register_for(relation.channel).step / quantum)
            return IntegerRate(rule=rule, channel=relation.channel, weight=weight)
        case Tie():
            return _encode_tie(rule, relation, register_for, quantum)
        case Constant():
            if relation.channel in discrete:
                at = round(relation.value)
                code = IntegerLimits(low=at, high=at)
                return IntegerConstant(rule=rule, channel=relation.channel, allowed=code, code=True)
            return _encode_constant(rule, relation, register_for(relation.channel))
        case SwitchBand():
            return _encode_switch_band(rule, relation, register_for(relation.level))
        case Spectrum():
            return _encode_spectrum(rule, relation, register_for(relation.channel))
        case Mean():
            return _encode_mean(rule, relation, register_for(relation.channel), quantum)


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
    register_for: Callable[[str], Register],
    quantum: float,
) -> IntegerBalance:
    rows = relation.rows if isinstance(relation, Window) else 1
    share = 2 if relation.averaged else 1  # terms are summed over both rows, so each weighs half
    terms, constant = _encode_terms(relation, register_for, quantum, share=share)
    return IntegerBalance(
        rule=rule,
        level=relation.level,
        level_weight=round(register_for(relation.level).step / quantum),
        terms=terms,
        constant=round(constant / quantum),
        rows=rows,
        averaged=relation.averaged,
    )


def _encode_mean(
    rule: Invariant, relation: Mean, register: Register, quantum: float
) -> IntegerBalance:
    """Return the mean less the usual one, as a sum to which each row adds its part."""
    part = quantum * relation.rows
    weight = round(register.step / part)
    return IntegerBalance(
        rule=rule,
        level=relation.channel,
        level_weight=0,
        terms=(IntegerTerm(channel=relation.channel, weight=-weight, on=()),),
        constant=round((relation.mean - register.low) / register.step * weight),
        rows=relation.rows,
        averaged=False,
    )


def _encode_terms(
    relation: Balance | Window | Tie,
    register_for: Callable[[str], Register],
    quantum: float,
    *,
    share: int,
) -> tuple[tuple[IntegerTerm, ...], float]:
    """Return the terms on registers, and the constant with what the registers' zeros add to it."""
    encoded, constant = [], relation.constant
    for term in relation.terms:
        if term.on:
            weight = round(term.coefficient / share / quantum)
        else:
            register = register_for(term.channel)
            weight = round(term.coefficient * register.step / share / quantum)
            constant += term.coefficient * register.low
        encoded.append(IntegerTerm(channel=term.channel, weight=weight, on=term.on))
    return tuple(encoded), constant


def _encode_tie(
    rule: Invariant, relation: Tie, register_for: Callable[[str], Register], quantum: float
) -> IntegerTie:
    coarse = quantum * TIE_GRAIN
    terms, constant = _encode_terms(relation, register_for, coarse, share=1)
    register = register_for(relation.channel)
    return IntegerTie(
        rule=rule,
        channel=relation.channel,
        weight=round(register.step / coarse) * TIE_GRAIN,
        terms=tuple(replace(term, weight=term.weight * TIE_GRAIN) for term in terms),
        constant=round((constant - register.low) / coarse) * TIE_GRAIN,
    )


def _encode_constant(rule: Invariant, relation: Constant, register: Register) -> IntegerConstant:
    at = round((relation.value - register.low) / register.step)
    reach = round(rule.tolerance / register.step)
    low, high = max(at - reach, 0), min(at + reach, REGISTER_TOP)
    if low > high:
        raise RulesFileError(
            f"rule {rule.name!r} holds {relation.channel!r} at {relation.value:g}, outside its "
            "instrument span; correct the span in the plant file"
        )
    allowed = IntegerLimits(low=low, high=high)
    return IntegerConstant(rule=rule, channel=relation.channel, allowed=allowed, code=False)


def _encode_switch_band(
    rule: Invariant, relation: SwitchBand, register: Register
) -> IntegerSwitchBand:
    def band(low: float, high: float) -> IntegerLimits:
        ends = [(end - register.low) / register.step for end in (low, high)]
        return _widened(math.floor(ends[0]), math.ceil(ends[1]), LEAST_BAND, most=REGISTER_TOP)

    return IntegerSwitchBand(
        rule=rule,
        relation=relation,
        on=band(relation.on_low, relation.on_high),
        off=band(relation.off_low, relation.off_high),
    )


def _encode_spectrum(rule: Invariant, relation: Spectrum, register: Register) -> IntegerSpectrum:
    def sums(low: float, high: float, largest: int) -> IntegerLimits:
        ends = [end / register.step**2 for end in (low, high)]
        most = relation.rows * largest**2
        return _widened(math.floor(ends[0]), math.ceil(ends[1]), LEAST_SUMS, most=most)

    return IntegerSpectrum(
        rule=rule,
        relation=relation,
        first=sums(relation.first_low, relation.first_high, REGISTER_TOP),
        second=sums(relation.second_low, relation.second_high, 2 * REGISTER_TOP),
    )


def _widened(low: int, high: int, least: int, *, most: int) -> IntegerLimits:
    """Return limits from 0 to `most`, widened at the upper end to a width that digits can share."""
    low, high = min(max(low, 0), most), min(max(high, 0), most)
    width = -(-max(high - low, least) // STEPS_OF_WIDTH) * STEPS_OF_WIDTH
    return IntegerLimits(low=low, high=low + width)


def largest_residual(rule: IntegerRule) -> int:  # noqa: PLR0911 - one case a kind
    """Return the largest residual that any register values can give."""
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
        case IntegerTie():
            return (
                rule.weight * REGISTER_TOP
                + sum(abs(term.weight) * (1 if term.on else REGISTER_TOP) for term in rule.terms)
                + abs(rule.constant)
            )
        case IntegerConstant() | IntegerSwitchBand():
            return REGISTER_TOP
        case IntegerSpectrum(relation=relation):
            # A segment start in a block adds more than the upper limit to the first sum.
            jumps = relation.rows * (rule.first.high + 1)
            return 4 * relation.rows * REGISTER_TOP**2 + jumps
