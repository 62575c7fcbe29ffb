"""Rows for the digest: the codes that the circuit distinguishes, and channels packed into lanes.

A lane is one element of the proof field. It holds channels in mixed radix, so that no two rows have
the same lanes. A full lane holds four registers of 16 bits, which can exceed the field's order: two
rows may then have the same lane, one with the largest value in the last register, the other with
zero. The guard, a value in another lane, differs on such rows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sluice.invariants import (
    REGISTER_TOP,
    Encoding,
    IntegerBalance,
    IntegerConstant,
    IntegerCoupling,
    IntegerSwitchBand,
    IntegerTie,
    RuleSet,
)
from sluice.telemetry import Channel

__all__ = ["Actuator", "Packed", "actuators_of", "pack"]

FIELD = (1 << 64) - (1 << 32) + 1
"""The order of the proof field; lanes stay below it."""
WHOLE = REGISTER_TOP + 1
FULL = 4
"""Registers of a full lane."""
MOST_FULL = 40
"""Full lanes of a row, so that the guard fits a lane; further registers are packed by threes."""
RATE = 8
"""Lanes that a step of the digest takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actuator:
    """A channel of codes, and the codes that the circuit distinguishes; all others are one more."""

    channel: Channel
    codes: tuple[int, ...]
    read: bool  # by a rule that distinguishes codes

    def index(self, code: int) -> int:
        """Return the circuit's index of a code."""
        return self.codes.index(code)

    @property
    def legal(self) -> frozenset[int]:
        """The codes that do not make a row violate."""
        assert self.channel.codes is not None
        return self.channel.codes.legal


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A channel's place in a lane: its index among the values to pack, and its weight."""

    value: int
    weight: int


def actuators_of(rules: RuleSet, encoding: Encoding) -> tuple[Actuator, ...]:
    """Return every channel of codes, with its legal codes and the codes that rules use."""
    # A constant compares the code as a whole and needs no flag for each one.
    read = {
        name
        for rule in encoding.rules
        if not isinstance(rule, IntegerConstant)
        for name in rule.rule.relation.channels
    }
    actuators = []
    for channel in rules.channels:
        if channel.codes is not None:
            codes = channel.codes.legal | set(_used(channel.name, encoding))
            actuators.append(
                Actuator(channel=channel, codes=tuple(sorted(codes)), read=channel.name in read)
            )
    return tuple(actuators)


def _used(actuator: str, encoding: Encoding) -> Iterator[int]:
    for rule in encoding.rules:
        match rule:
            case IntegerCoupling(relation=relation):
                if relation.actuator == actuator:
                    yield from (relation.off, *(state.code for state in relation.states))
                yield from (off for pump, off in relation.standby if pump == actuator)
            case IntegerBalance(terms=terms) | IntegerTie(terms=terms):
                for term in terms:
                    if term.channel == actuator:
                        yield from term.on
            case IntegerSwitchBand(relation=band):
                if band.actuator == actuator:
                    yield from band.on
            case _:
                pass


def pack(radices: Sequence[int], registers: int) -> list[list[Packed]]:
    """Pack values of these radices, of which the first are registers, into few lanes.

    The value after the last one is the guard. Full lanes are used if rows then take fewer steps of
    the digest.
    """
    plain = _packed(radices, range(len(radices)))
    whole = [value for value in range(registers) if radices[value] == WHOLE]
    full = [whole[at : at + FULL] for at in range(0, len(whole) - FULL + 1, FULL)][:MOST_FULL]
    if not full:
        return plain
    lanes = [
        [Packed(value=value, weight=WHOLE**place) for place, value in enumerate(lane)]
        for lane in full
    ]
    guard = (WHOLE - 1) * ((1 << len(full)) - 1) + 1
    held = {value for lane in full for value in lane}
    rest = [value for value in range(len(radices) + 1) if value not in held]
    lanes += _packed([*radices, guard], rest)
    return lanes if _steps(lanes) < _steps(plain) else plain


def _steps(lanes: list[list[Packed]]) -> int:
    return -(-len(lanes) // RATE)


def _packed(radices: Sequence[int], values: Iterable[int]) -> list[list[Packed]]:
    """Pack some of the values, the largest radix first; no lane reaches the field's order."""
    lanes: list[list[Packed]] = []
    left = sorted(values, key=lambda value: -radices[value])
    while left:
        lane: list[Packed] = []
        weight, rest = 1, []
        for value in left:
            if weight * radices[value] < FIELD:
                lane.append(Packed(value=value, weight=weight))
                weight *= radices[value]
            else:
                rest.append(value)
        lanes.append(lane)
        left = rest
    return lanes
