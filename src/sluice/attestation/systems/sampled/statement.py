"""What `sampled` proves about the rows it opens, as integers: fixed point, 16 fractional bits.

    reading      round(2^16 x), within 32 bits with sign
    coefficient  round(2^16 J), J the derivative of the residual
    constant     round(2^32 c)
    tolerance    round(2^32 eps) + 2^16, because readings are rounded

Ties round to even. These integers are normative: if floats give another result within a rounding
step, the integers decide.
"""

import json
from dataclasses import dataclass, field
from fractions import Fraction

from sluice.attestation.packing import digest, packed
from sluice.errors import SettingError
from sluice.invariants import Balance, Coupling, Invariant, Relation, RuleSet, Transition
from sluice.telemetry import Channel

__all__ = ["SCALE", "Reads", "SampledStatement", "derive_sampled"]

SCALE = 1 << 16
VERSION = 1

Json = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """An actuator and the codes that a row may have for it."""

    channel: str
    codes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledStatement:
    """The statement of one rule set, for a number of samples and a tree depth."""

    rules: RuleSet
    readings: tuple[str, ...]  # continuous channels
    actuators: tuple[Reads, ...]
    couplings: tuple[Invariant, ...]
    samples: int
    depth: int
    content: bytes = field(repr=False)  # as the circuit reads it


def derive_sampled(rules: RuleSet, *, samples: int, rows_max: int) -> SampledStatement:
    """Derive the statement; rules that the circuit cannot state are refused."""
    for invariant in rules.invariants:
        _refuse_unstated(invariant.relation, rules)
    actuators = _actuators(rules)
    switched = {each.channel for each in actuators}
    readings = tuple(each.name for each in rules.channels if each.name not in switched)
    deriving = _Deriving(readings=readings, actuators=actuators)
    couplings = tuple(each for each in rules.invariants if isinstance(each.relation, Coupling))
    depth = max(rows_max - 1, 1).bit_length()
    document: Json = {
        "version": VERSION,
        "encoding": _encoding(readings, actuators),
        "samples": samples,
        "depth": depth,
        "readings": len(readings),
        "actuators": [list(each.codes) for each in actuators],
        "couplings": [deriving.coupling(each) for each in couplings],
        "balances": [
            deriving.balance(each)
            for each in rules.invariants
            if isinstance(each.relation, Balance)
        ],
    }
    return SampledStatement(
        rules=rules,
        readings=readings,
        actuators=actuators,
        couplings=couplings,
        samples=samples,
        depth=depth,
        content=json.dumps(document, sort_keys=True, separators=(",", ":")).encode(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deriving:
    readings: tuple[str, ...]
    actuators: tuple[Reads, ...]

    def coupling(self, rule: Invariant) -> Json:
        """`F - (S - off) / (on - off) * nominal`, whose derivatives are constants."""
        relation = rule.relation
        assert isinstance(relation, Coupling)
        (state,) = relation.states
        at = [each.channel for each in self.actuators].index(relation.actuator)
        codes = self.actuators[at].codes
        slope = Fraction(state.nominal) / (state.code - relation.off)
        return {
            "flow": self.readings.index(relation.flow),
            "flow_weight": SCALE,
            "actuator": at,
            "code_weight": -round(SCALE * slope),
            "constant": round(SCALE**2 * slope * relation.off),
            "states": [codes.index(relation.off), codes.index(state.code)],
            "steady": relation.settle == 1,
            "tolerance": _tolerance(rule),
        }

    def balance(self, rule: Invariant) -> Json:
        """`L[t] - L[t-1] - sum of w F[t] - c`."""
        relation = rule.relation
        assert isinstance(relation, Balance)
        level = self.readings.index(relation.level)
        now = [
            [self.readings.index(term.channel), -round(SCALE * Fraction(term.coefficient))]
            for term in relation.terms
        ]
        return {
            "before": [[level, -SCALE]],
            "now": [*now, [level, SCALE]],
            "constant": -round(SCALE**2 * Fraction(relation.constant)),
            "tolerance": _tolerance(rule),
        }


def _tolerance(rule: Invariant) -> int:
    return round(SCALE**2 * Fraction(rule.tolerance)) + SCALE


def _refuse_unstated(relation: Relation, rules: RuleSet) -> None:
    match relation:
        case Coupling(states=(_,), transition=Transition.SILENT, settle=0 | 1, standby=()):
            return
        case Balance(averaged=False, terms=terms) if not any(term.on for term in terms):
            return
        case _:
            raise SettingError(
                f"the system 'sampled' states the paper's couplings and balances; "
                f"{relation.name!r} of {rules.plant!r} (profile {rules.profile.value!r}) is "
                "neither; mine with a paper profile, or prove with --system full"
            )


def _actuators(rules: RuleSet) -> tuple[Reads, ...]:
    """Return the channels of codes, without those that a rule reads as a number."""
    used: dict[str, set[int]] = {}
    numbers: set[str] = set()
    for invariant in rules.invariants:
        match invariant.relation:
            case Coupling(actuator=actuator, flow=flow, off=off, states=(state,)):
                used.setdefault(actuator, set()).update((off, state.code))
                numbers.add(flow)
            case other:
                numbers.update(other.channels)
    actuators = []
    for channel in rules.channels:
        if channel.name in used:
            actuators.append(_reads(channel, used[channel.name], both=channel.name in numbers))
        elif channel.codes is not None and channel.name not in numbers:
            actuators.append(_reads(channel, set(), both=False))
    return tuple(actuators)


def _reads(channel: Channel, used: set[int], *, both: bool) -> Reads:
    if channel.codes is None or both:
        raise SettingError(
            f"{channel.name!r} is read as an actuator but "
            f"{'as a number too' if both else 'has no codes'}; give it codes in the plant file"
        )
    return Reads(channel=channel.name, codes=tuple(sorted(channel.codes.legal | used)))


def _encoding(readings: tuple[str, ...], actuators: tuple[Reads, ...]) -> str:
    """Hash the channels of a leaf, in order."""
    codes = [
        packed(each.channel.encode(), *(str(code).encode() for code in each.codes))
        for each in actuators
    ]
    names = [name.encode() for name in readings]
    return digest("sampled encoding", packed(*names), packed(*codes)).hex()
