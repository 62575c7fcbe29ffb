"""Rules as integers: derived once from a rule set and passed unchanged to the circuit.

Readings are quantised over each channel's instrument span with headroom, saturating as a
transmitter does. Every residual is scaled so that its tolerance is exactly `TOLERANCE`.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats, Ints
from sluice.errors import RulesFileError
from sluice.invariants.relations import Balance, Bound, Coupling, Invariant, Rate, Term, Window
from sluice.invariants.ruleset import RuleSet
from sluice.telemetry import Channel, Codes

__all__ = [
    "TOLERANCE",
    "Encoding",
    "IntegerBalance",
    "IntegerBound",
    "IntegerCoupling",
    "IntegerRate",
    "IntegerRule",
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
SHORTEST_WINDOW = 2
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
    _refuse_ambiguous(rules)
    registers = {
        channel.name: register_of(channel)
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


def register_of(channel: Channel) -> Register:
    """Return how a channel's readings become integers; a channel without a span has no register."""
    if channel.span is None:
        raise RulesFileError(
            f"channel {channel.name!r} has no instrument span, which the conversion of its "
            "readings to integers needs; state one in the plant file"
        )
    width = channel.span.high - channel.span.low
    low, step = channel.span.low - HEADROOM * width, width * (1 + 2 * HEADROOM) / REGISTER_TOP
    if not (math.isfinite(low) and 0 < step < math.inf and low + step * REGISTER_TOP > low):
        raise RulesFileError(
            f"channel {channel.name!r} has a span from {channel.span.low:g} to "
            f"{channel.span.high:g}, which cannot be divided into {REGISTER_TOP:,} steps; state "
            "the instrument's span in the plant file"
        )
    return Register(channel=channel.name, low=low, step=step)


def _refuse_ambiguous(rules: RuleSet) -> None:
    """Refuse names that stand for two things, and relations that judge no row."""
    for what, names in (
        ("rules", (rule.name for rule in rules.invariants)),
        ("channels", (channel.name for channel in rules.channels)),
    ):
        for name, count in Counter(names).items():
            if count > 1:
                raise RulesFileError(
                    f"the rules of {rules.plant!r} hold {count} {what} named {name!r}, so a budget "
                    "or a span could belong to either; mine the rules again"
                )
    if not 0 < rules.stride_s < math.inf:
        raise RulesFileError(
            f"the rules of {rules.plant!r} have one row every {rules.stride_s:g} s; mine the rules "
            "again"
        )
    codes = {channel.name: channel.codes for channel in rules.channels if channel.codes}
    for rule in rules.invariants:
        wrong = _meaningless(rule, codes)
        if wrong:
            raise RulesFileError(f"rule {rule.name!r} {wrong}; mine it again")


def _meaningless(rule: Invariant, codes: dict[str, Codes]) -> str:
    """Return why a rule cannot be judged as it is written; empty if it can."""
    if not 0 < rule.tolerance < math.inf:
        return f"has the tolerance {rule.tolerance:g}, which must be finite and above 0"
    match rule.relation:
        case Coupling() as coupling:
            return _meaningless_coupling(coupling, codes)
        case Window(rows=rows) if rows < SHORTEST_WINDOW:
            return f"is a window of {rows} rows, fewer than {SHORTEST_WINDOW}"
        case Balance(terms=terms) | Window(terms=terms):
            return _meaningless_terms(terms, codes)
        case _:
            return ""


def _meaningless_terms(terms: tuple[Term, ...], codes: dict[str, Codes]) -> str:
    for channel, count in Counter(term.channel for term in terms).items():
        if count > 1:
            return f"has {count} terms of {channel!r}, which could cancel"
    for term in terms:
        if term.on and term.channel not in codes:
            return f"reads the codes of {term.channel!r}, which is no actuator of the file"
        unknown = set(term.on) - set(codes[term.channel].on) if term.on else set()
        if unknown:
            return f"reads {term.channel!r} as on at {min(unknown)}, which is not its on code"
    return ""


def _meaningless_coupling(coupling: Coupling, codes: dict[str, Codes]) -> str:
    actuator = codes.get(coupling.actuator)
    states = [state.code for state in coupling.states]
    if actuator is None:
        return f"reads the codes of {coupling.actuator!r}, which is no actuator of the file"
    if coupling.off != actuator.off or not states or not set(states) <= set(actuator.on):
        return (
            f"takes {coupling.actuator!r} as off at {coupling.off} and on at {states}; the file "
            f"describes it as off at {actuator.off} and on at {list(actuator.on)}"
        )
    if len(set(states)) < len(states):
        return f"states two flows for one code of {coupling.actuator!r}"
    if coupling.settle < 0:
        return f"settles in {coupling.settle} rows"
    for pump, off in coupling.standby:
        if pump not in codes or codes[pump].off != off:
            return f"takes {pump!r} as off at {off}, which is not its off code in the file"
    return ""


def _encode(rule: Invariant, registers: dict[str, Register]) -> IntegerRule:
    try:
        encoded = _integers(rule, registers)
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


def _integers(rule: Invariant, registers: dict[str, Register]) -> IntegerRule:
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
    terms, constant = [], relation.constant
    for term in relation.terms:
        if term.on:
            weight = round(term.coefficient / share / quantum)
        else:
            register = register_for(term.channel)
            weight = round(term.coefficient * register.step / share / quantum)
            constant += term.coefficient * register.low
        terms.append(IntegerTerm(channel=term.channel, weight=weight, on=term.on))
    return IntegerBalance(
        rule=rule,
        level=relation.level,
        level_weight=round(register_for(relation.level).step / quantum),
        terms=tuple(terms),
        constant=round(constant / quantum),
        rows=rows,
        averaged=relation.averaged,
    )


def largest_residual(rule: IntegerRule) -> int:
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
