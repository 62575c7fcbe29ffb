"""The statement: every integer that a proof is about.

`sluice.attestation.systems.full.statement` derives it from rules and policy. Here it is read
strictly. `soundness` says which statements a circuit cannot state.
"""

import json
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from sluice.attestation.systems.full.reference.hashes import blake3
from sluice.errors import SettingError

__all__ = [
    "LARGEST_RESIDUAL",
    "REGISTER_TOP",
    "ActuatorSource",
    "BudgetList",
    "IndicatorTerm",
    "PackedValue",
    "RegisterSource",
    "RegisterTerm",
    "StatedActuator",
    "StatedBalance",
    "StatedBound",
    "StatedCoupling",
    "StatedFlows",
    "StatedIdle",
    "StatedLiveness",
    "StatedRate",
    "StatedRegister",
    "StatedResidual",
    "StatedSpectrum",
    "StatedStatistic",
    "StatedSwitchBand",
    "StatedTie",
    "StatedWindow",
    "StatementDocument",
    "SummedActuator",
    "SummedCodes",
    "SummedRegister",
    "read_budgets",
    "read_statement",
]

REGISTER_TOP = (1 << 16) - 1
FULL = 4
"""Registers of a full lane."""
LARGEST_RESIDUAL = 1 << 62
"""Half the order of the field or less, so that no residual wraps round into tolerance."""

Index = Annotated[int, Field(ge=0, lt=1 << 16)]
Number = Annotated[int, Field(ge=0, lt=1 << 64)]
Weight = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
Value = Annotated[int, Field(ge=0, le=REGISTER_TOP)]
Tolerance = Annotated[int, Field(ge=1, le=LARGEST_RESIDUAL)]
Length = Annotated[int, Field(ge=1, le=1 << 16)]
Interval = Annotated[list[Value], Field(min_length=2, max_length=2)]
Sums = Annotated[list[Number], Field(min_length=2, max_length=2)]  # may go beyond registers


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRegister:
    """A channel of readings: every row holds a register within these limits."""

    low: Value
    high: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedActuator:
    """A channel of codes; the index after the last code stands for any other code."""

    codes: Annotated[int, Field(ge=1, le=64)]
    legal: list[Index]
    read: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterSource:
    """A lane holds a register less its lower limit."""

    register: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class ActuatorSource:
    """A lane holds the index of an actuator's code."""

    actuator: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedValue:
    """A value in a lane, and its weight.

    "start" is one where a segment starts. "guard" is the sum of the last registers of all full
    lanes, each times two to the number of full lanes before it.
    """

    source: RegisterSource | ActuatorSource | Literal["start", "guard"]
    weight: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedBound:
    """A register within limits that a flagged row may break."""

    register: Index
    low: Value
    high: Value
    severe: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRate:
    """The largest step of a register: usual, and on a flagged row."""

    register: Index
    usual: Number
    severe: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFlows:
    """The flows that go with a state, usual and on a flagged row; none if no register does."""

    usual: Interval | None
    severe: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSteady:
    """A code in which an actuator is steady, and its flows."""

    code: Index
    flows: StatedFlows


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedCoupling:
    """An actuator's state fixes the flow past it, `settle` rows after a switch."""

    flow: Index
    actuator: Index
    settle: Annotated[int, Field(ge=0, le=1 << 16)]
    standby: list[Annotated[list[Index], Field(min_length=2, max_length=2)]]
    steady: list[StatedSteady]
    envelope: StatedFlows


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighted:
    """A register times a weight."""

    register: Index
    weight: Weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Indicator:
    """A weight where an actuator shows one of these codes."""

    actuator: Index
    codes: list[Index]
    weight: Weight


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterTerm:
    """A term that reads a register."""

    register: Weighted


@dataclass(frozen=True, slots=True, kw_only=True)
class IndicatorTerm:
    """A term that reads an actuator."""

    indicator: Indicator


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedResidual:
    """What a level moved times its weight, less the terms and the constant."""

    level: Index
    weight: Weight
    terms: list[RegisterTerm | IndicatorTerm]
    averaged: bool  # the terms of the row before count too
    constant: Weight


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedBalance:
    """A residual within tolerance: usual, and on a flagged row."""

    residual: StatedResidual
    usual: Tolerance
    severe: Tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedWindow:
    """A residual whose sum over so many rows is within tolerance."""

    residual: StatedResidual
    rows: Annotated[int, Field(ge=2, le=1 << 16)]
    usual: Tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedLiveness:
    """A level that moves by at least so much in every block of rows."""

    register: Index
    rows: Length
    least: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedIdle:
    """An actuator that shows one code; another one is violating."""

    actuator: Index
    code: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedTie:
    """A register times its weight, less the terms of the same row and the constant."""

    register: Index
    weight: Weight
    terms: list[RegisterTerm | IndicatorTerm]
    constant: Weight
    usual: Tolerance
    severe: Tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSwitchBand:
    """Where a register is when an actuator switches on, and when it switches off."""

    actuator: Index
    codes: list[Index]  # that count as on
    register: Index
    before: bool  # the register of the row before the switch decides
    on: Sums
    off: Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedSpectrum:
    """Sums of squared first and second differences of a register, over blocks side by side."""

    register: Index
    rows: Annotated[int, Field(ge=3, le=1 << 12)]
    offset: Index  # rows before the first block
    first: Sums
    second: Sums


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedRegister:
    """A channel of a statistic: a register."""

    register: Index


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedCodes:
    """An actuator and its codes, by index; a code that is not known counts as zero."""

    actuator: Index
    codes: list[Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedActuator:
    """A channel of a statistic: the code that an actuator shows."""

    actuator: SummedCodes


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedStatistic:
    """What is summed over the rows."""

    settings: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    lags: Annotated[int, Field(ge=1, le=64)]
    channels: Annotated[list[SummedRegister | SummedActuator], Field(min_length=1, max_length=256)]
    masked: bool = False  # whether the form begins at masks, and the sums stay hidden


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementDocument:
    """What a proof states about a batch of any length."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    version: Literal[2]
    encoding: Annotated[str, Field(pattern="^[0-9a-fA-F]{64}$")]
    registers: list[StatedRegister]
    actuators: list[StatedActuator]
    lanes: list[list[PackedValue]]
    jumps: bool
    severe: bool
    bounds: list[StatedBound]
    rates: list[StatedRate]
    couplings: list[StatedCoupling]
    balances: list[StatedBalance]
    windows: list[StatedWindow]
    liveness: list[StatedLiveness]
    idle: list[StatedIdle]
    ties: list[StatedTie]
    switches: list[StatedSwitchBand]
    spectra: list[StatedSpectrum]
    statistic: StatedStatistic | None = None

    def packing(self) -> bytes:
        """Hash which channels a commitment is to, how they are encoded and how packed."""
        numbers = list(self.encoding.encode())
        for lane in self.lanes:
            numbers.append(len(lane))
            for packed in lane:
                match packed.source:
                    case RegisterSource(register=at):
                        described = (0, at, self.registers[at].low)
                    case ActuatorSource(actuator=at):
                        described = (1, at, 0)
                    case "guard":
                        described = (3, 0, 0)
                    case _:
                        described = (2, 0, 0)
                numbers += [*described, self.radix(packed), packed.weight]
        data = b"".join(number.to_bytes(8, "little") for number in numbers)
        return blake3(data, context="sluice full packing 1")

    def radix(self, packed: PackedValue) -> int:
        """Return how many values a packed value may have."""
        match packed.source:
            case RegisterSource(register=at):
                return self.registers[at].high - self.registers[at].low + 1
            case ActuatorSource(actuator=at):
                return self.actuators[at].codes + 1
            case "guard":
                return REGISTER_TOP * ((1 << len(self.tops())) - 1) + 1
            case _:
                return 2

    def full(self, lane: list[PackedValue]) -> bool:
        """Whether a lane is four registers of 16 bits, which can exceed the order of the field."""
        return len(lane) == FULL and all(
            isinstance(packed.source, RegisterSource) and self.radix(packed) == REGISTER_TOP + 1
            for packed in lane
        )

    def tops(self) -> list[int]:
        """Return the last register of every full lane."""
        last = (lane[-1].source for lane in self.lanes if self.full(lane))
        return [source.register for source in last if isinstance(source, RegisterSource)]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetList:
    """How much of what a batch may show, in the order of the statement's rules."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    violating: Number
    severe: Number
    segments: Number
    unsteady: list[Number]
    windows: list[Number]
    switches: list[Number]
    blocks: list[Number]


_STATEMENTS = TypeAdapter(StatementDocument)
_BUDGETS = TypeAdapter(BudgetList)


def read_statement(content: bytes) -> StatementDocument:
    """Read a statement."""
    try:
        statement = _STATEMENTS.validate_json(content)
    except ValidationError as error:
        raise SettingError(f"the statement cannot be read: {_first(error)}") from None
    _demand_single_names(content)
    return statement


def read_budgets(content: bytes) -> BudgetList:
    """Read budgets."""
    try:
        return _BUDGETS.validate_json(content)
    except ValidationError as error:
        raise SettingError(f"the budgets cannot be read: {_first(error)}") from None


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False)[0]
    return f"{'.'.join(str(part) for part in found['loc'])}: {found['msg']}"


def _demand_single_names(content: bytes) -> None:
    """Refuse a name that stands twice in an object: readers would disagree about its value."""

    def single(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise SettingError("the statement cannot be read: a name stands twice in an object")
        return found

    json.loads(content, object_pairs_hook=single)
