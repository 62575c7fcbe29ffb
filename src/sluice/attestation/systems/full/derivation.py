"""The integers of a statement, rule by rule: exactly those of the normative evaluator.

If a rule reads one register and an actuator's state, its tolerance becomes an interval of
registers. The interval comes from the evaluator's own arithmetic, applied to every register value.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from sluice.arrays import Ints
from sluice.attestation.packing import digest, packed
from sluice.attestation.systems.full.lanes import Actuator, pack
from sluice.detector import MomentSettings
from sluice.errors import RulesFileError
from sluice.invariants import (
    REGISTER_TOP,
    TIE_GRAIN,
    TOLERANCE,
    Budgets,
    Encoding,
    IntegerBalance,
    IntegerBound,
    IntegerConstant,
    IntegerCoupling,
    IntegerRate,
    IntegerSpectrum,
    IntegerSwitchBand,
    IntegerTerm,
    IntegerTie,
    RuleSet,
    largest_residual,
)

__all__ = ["Deriving", "Json", "couplings_of", "spectra_of", "switches_of", "windows_of"]

VERSION = 2

Json = dict[str, "Json"] | list["Json"] | str | int | bool | None
Rule = TypeVar(
    "Rule",
    IntegerBalance,
    IntegerBound,
    IntegerConstant,
    IntegerCoupling,
    IntegerRate,
    IntegerSpectrum,
    IntegerSwitchBand,
    IntegerTie,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deriving:
    """Everything that a statement is derived from."""

    rules: RuleSet
    encoding: Encoding
    actuators: tuple[Actuator, ...]
    budgets: Budgets  # only the parts that do not depend on the number of rows
    jumps: bool  # whether a batch may contain time jumps
    severe: bool  # whether a row may be severe
    statistic: MomentSettings | None = None  # what is summed
    masked: bool = False  # whether the sums stay hidden

    def document(self) -> Json:
        """Return the statement."""
        limits = [self._limits(register.channel) for register in self.encoding.registers]
        # A statement without a statistic does not name one, so its bytes stay as they were.
        summed = {"statistic": self._statistic(self.statistic)} if self.statistic else {}
        return {
            **summed,
            "version": VERSION,
            "encoding": self._encoding(),
            "registers": [{"low": low, "high": high} for low, high in limits],
            "actuators": [
                {
                    "codes": len(actuator.codes),
                    "legal": [actuator.index(code) for code in sorted(actuator.legal)],
                    "read": actuator.read,
                }
                for actuator in self.actuators
            ],
            "lanes": self._lanes(limits),
            "jumps": self.jumps,
            "severe": self.severe,
            "bounds": [
                *(
                    self._bound(rule)
                    for rule in _of(self.encoding, IntegerBound)
                    if not self._always(rule)
                ),
                *(
                    self._constant(rule)
                    for rule in _of(self.encoding, IntegerConstant)
                    if not rule.code
                ),
            ],
            "rates": [self._rate(rule) for rule in _of(self.encoding, IntegerRate)],
            "couplings": [self._coupling(rule) for rule in couplings_of(self.encoding)],
            "balances": [
                self._balance(rule) for rule in _of(self.encoding, IntegerBalance) if rule.rows == 1
            ],
            "windows": [
                {"residual": self._residual(rule), "rows": rule.rows, "usual": TOLERANCE}
                for rule in windows_of(self.encoding)
            ],
            "liveness": [
                {"register": self._register(level), "rows": rows, "least": least}
                for (level, rows), least in self.budgets.quietest.items()
            ],
            "idle": [self._idle(rule) for rule in _of(self.encoding, IntegerConstant) if rule.code],
            "ties": [self._tie(rule) for rule in _of(self.encoding, IntegerTie)],
            "switches": [self._switch_band(rule) for rule in switches_of(self.encoding)],
            "spectra": [
                {
                    "register": self._register(rule.relation.channel),
                    "rows": rule.relation.rows,
                    "offset": rule.relation.offset,
                    "first": [rule.first.low, rule.first.high],
                    "second": [rule.second.low, rule.second.high],
                }
                for rule in spectra_of(self.encoding)
            ],
        }

    def _statistic(self, settings: MomentSettings) -> Json:
        names = [actuator.channel.name for actuator in self.actuators]

        def channel(name: str) -> Json:
            if name not in names:
                return {"register": self._register(name)}
            at = names.index(name)
            codes: list[Json] = list(self.actuators[at].codes)
            return {"actuator": {"actuator": at, "codes": codes}}

        # A statement that shows its sums does not name masks, so its bytes stay as they were.
        masked: dict[str, Json] = {"masked": True} if self.masked else {}
        return {
            **masked,
            "settings": settings.digest,
            "lags": settings.lags,
            "channels": [channel(name) for name in settings.channels],
        }

    def _encoding(self) -> str:
        """Hash which channels are committed to, and how their readings become integers."""
        registers = [
            packed(each.channel.encode(), each.low.hex().encode(), each.step.hex().encode())
            for each in self.encoding.registers
        ]
        actuators = [
            packed(each.channel.name.encode(), *(str(code).encode() for code in each.codes))
            for each in self.actuators
        ]
        return digest("full encoding", packed(*registers), packed(*actuators)).hex()

    def _always(self, rule: IntegerBound) -> bool:
        """Whether no row may break a bound: breaking it is severe, and no row may be severe."""
        severe = self.budgets.severe[rule.rule.name] <= TOLERANCE
        return severe and not self.severe

    def _limits(self, channel: str) -> tuple[int, int]:
        low, high = 0, REGISTER_TOP
        for rule in _of(self.encoding, IntegerBound):
            if rule.channel == channel and self._always(rule):
                low, high = max(low, rule.low), min(high, rule.high)
        _refuse_empty(channel, low, high)
        return low, high

    def _lanes(self, limits: list[tuple[int, int]]) -> Json:
        values: list[tuple[Json, int]] = [
            ({"register": at}, high - low + 1) for at, (low, high) in enumerate(limits)
        ]
        values += [
            ({"actuator": at}, len(each.codes) + 1) for at, each in enumerate(self.actuators)
        ]
        if self.jumps:
            values.append(("start", 2))
        lanes = pack([radix for _, radix in values], registers=len(limits))
        sources = [*(source for source, _ in values), "guard"]
        return [
            [{"source": sources[each.value], "weight": each.weight} for each in lane]
            for lane in lanes
        ]

    def _bound(self, rule: IntegerBound) -> Json:
        _refuse_empty(rule.channel, rule.low, min(rule.high, REGISTER_TOP))
        return {
            "register": self._register(rule.channel),
            "low": rule.low,
            "high": rule.high,
            "severe": self.budgets.severe[rule.rule.name] <= TOLERANCE,
        }

    def _idle(self, rule: IntegerConstant) -> Json:
        at = self._actuator(rule.channel)
        return {"actuator": at, "code": self.actuators[at].index(rule.allowed.low)}

    def _constant(self, rule: IntegerConstant) -> Json:
        return {
            "register": self._register(rule.channel),
            "low": rule.allowed.low,
            "high": rule.allowed.high,
            "severe": False,
        }

    def _rate(self, rule: IntegerRate) -> Json:
        def step(largest: int) -> int:
            return min(largest // rule.weight, REGISTER_TOP) if rule.weight else REGISTER_TOP

        return {
            "register": self._register(rule.channel),
            "usual": step(TOLERANCE),
            "severe": step(self.budgets.severe[rule.rule.name]),
        }

    def _coupling(self, rule: IntegerCoupling) -> Json:
        every = np.arange(REGISTER_TOP + 1, dtype=np.int64)
        severe = self.budgets.severe[rule.rule.name]
        actuator = self._actuator(rule.relation.actuator)
        steady = dict.fromkeys((rule.relation.off, *(code for code, _ in rule.on_offsets)))
        return {
            "flow": self._register(rule.relation.flow),
            "actuator": actuator,
            "settle": rule.relation.settle,
            "standby": [
                [self._actuator(pump), self.actuators[self._actuator(pump)].index(off)]
                for pump, off in rule.relation.standby
            ],
            "steady": [
                {
                    "code": self.actuators[actuator].index(code),
                    "flows": _flows(rule.steady(every, code), severe),
                }
                for code in steady
            ],
            "envelope": _flows(rule.envelope(every), severe),
        }

    def _balance(self, rule: IntegerBalance) -> Json:
        largest = max(largest_residual(rule), TOLERANCE)
        return {
            "residual": self._residual(rule),
            "usual": TOLERANCE,
            "severe": min(self.budgets.severe[rule.rule.name], largest),
        }

    def _residual(self, rule: IntegerBalance) -> Json:
        return {
            "level": self._register(rule.level),
            "weight": rule.level_weight,
            "terms": [self._term(term) for term in rule.terms],
            "averaged": rule.averaged,
            "constant": rule.constant,
        }

    def _tie(self, rule: IntegerTie) -> Json:
        """Return a tie in units of the grain that all its integers are multiples of."""
        largest = max(largest_residual(rule), TOLERANCE)
        terms = [replace(term, weight=term.weight // TIE_GRAIN) for term in rule.terms]
        return {
            "register": self._register(rule.channel),
            "weight": rule.weight // TIE_GRAIN,
            "terms": [self._term(term) for term in terms],
            "constant": rule.constant // TIE_GRAIN,
            "usual": TOLERANCE // TIE_GRAIN,
            "severe": min(self.budgets.severe[rule.rule.name], largest) // TIE_GRAIN,
        }

    def _switch_band(self, rule: IntegerSwitchBand) -> Json:
        actuator = self._actuator(rule.relation.actuator)
        codes: list[Json] = [
            self.actuators[actuator].index(code) for code in dict.fromkeys(rule.relation.on)
        ]
        return {
            "actuator": actuator,
            "codes": codes,
            "register": self._register(rule.relation.level),
            "before": rule.relation.before,
            "on": [rule.on.low, rule.on.high],
            "off": [rule.off.low, rule.off.high],
        }

    def _term(self, term: IntegerTerm) -> Json:
        if not term.on:
            return {"register": {"register": self._register(term.channel), "weight": term.weight}}
        at = self._actuator(term.channel)
        codes: list[Json] = [self.actuators[at].index(code) for code in dict.fromkeys(term.on)]
        return {"indicator": {"actuator": at, "codes": codes, "weight": term.weight}}

    def _register(self, channel: str) -> int:
        return [each.channel for each in self.encoding.registers].index(channel)

    def _actuator(self, channel: str) -> int:
        return [each.channel.name for each in self.actuators].index(channel)


def _refuse_empty(channel: str, low: int, high: int) -> None:
    if low > high:
        raise RulesFileError(
            f"no reading of {channel!r} is within its bounds; widen them or correct its span"
        )


def couplings_of(encoding: Encoding) -> list[IntegerCoupling]:
    """Return the couplings, in the circuit's order."""
    return _of(encoding, IntegerCoupling)


def windows_of(encoding: Encoding) -> list[IntegerBalance]:
    """Return the window rules, in the circuit's order."""
    return [rule for rule in _of(encoding, IntegerBalance) if rule.rows > 1]


def switches_of(encoding: Encoding) -> list[IntegerSwitchBand]:
    """Return the switch bands, in the circuit's order."""
    return _of(encoding, IntegerSwitchBand)


def spectra_of(encoding: Encoding) -> list[IntegerSpectrum]:
    """Return the spectra, in the circuit's order."""
    return _of(encoding, IntegerSpectrum)


def _of(encoding: Encoding, kind: type[Rule]) -> list[Rule]:
    return [rule for rule in encoding.rules if isinstance(rule, kind)]


def _flows(residuals: Ints, severe: int) -> Json:
    return {"usual": _interval(residuals, TOLERANCE), "severe": _interval(residuals, severe)}


def _interval(residuals: Ints, largest: int) -> Json:
    """Return the registers whose residual is small enough; residuals rise with the register."""
    inside = np.flatnonzero(np.abs(residuals) <= largest)
    return [int(inside[0]), int(inside[-1])] if inside.size else None
