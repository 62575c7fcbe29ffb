"""A relation with the tolerance calibrated for it, and why it is believed."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

__all__ = [
    "ActuatorState",
    "Balance",
    "Bound",
    "Coupling",
    "Evidence",
    "Invariant",
    "Rate",
    "Relation",
    "RelationKind",
    "Term",
    "Transition",
    "Window",
]


class RelationKind(StrEnum):
    """The families, as rules files name them."""

    COUPLING = "coupling"
    BALANCE = "balance"
    WINDOW = "window"
    BOUND = "bound"
    RATE = "rate"

    @property
    def physical(self) -> bool:
        """Whether it ties channels together; bounds and rates alone are no physics."""
        return self in (RelationKind.COUPLING, RelationKind.BALANCE, RelationKind.WINDOW)


class Transition(StrEnum):
    """What holds while an actuator moves and for `settle` rows after it switched."""

    SILENT = "silent"  # nothing (the paper)
    ENVELOPE = "envelope"  # the flow lies between none and nominal, give or take the tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class ActuatorState:
    """A steady on state of an actuator and the flow that goes with it."""

    code: int
    nominal: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A weighted channel; with `on` codes, the share of time its actuator shows one of them."""

    channel: str
    coefficient: float
    on: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Coupling:
    """An actuator's state fixes the flow past it."""

    name: str
    actuator: str
    flow: str
    off: int
    states: tuple[ActuatorState, ...]
    settle: int  # rows after a switch that count as transition
    transition: Transition
    standby: tuple[
        tuple[str, int], ...
    ] = ()  # (pump, its off code): silent while one feeds the meter

    kind: Literal[RelationKind.COUPLING] = RelationKind.COUPLING

    @property
    def channels(self) -> tuple[str, ...]:
        """Every channel it reads."""
        return (self.flow, self.actuator, *(pump for pump, _ in self.standby))

    @property
    def nominal(self) -> float:
        """The largest steady flow."""
        return max(state.nominal for state in self.states)


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """A tank's level changes as water flows in and out, from one row to the next."""

    name: str
    level: str
    terms: tuple[Term, ...]
    constant: float
    averaged: bool  # flows averaged over both rows, instead of taken at the later row

    kind: Literal[RelationKind.BALANCE] = RelationKind.BALANCE

    @property
    def channels(self) -> tuple[str, ...]:
        """Every channel it reads."""
        return (self.level, *(term.channel for term in self.terms))


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A balance over `rows` rows, judged at anchor rows: two chains, half a window apart."""

    name: str
    level: str
    terms: tuple[Term, ...]
    constant: float  # per row
    rows: int
    averaged: bool

    kind: Literal[RelationKind.WINDOW] = RelationKind.WINDOW

    @property
    def channels(self) -> tuple[str, ...]:
        """Every channel it reads."""
        return (self.level, *(term.channel for term in self.terms))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A reading stays inside its range."""

    name: str
    channel: str
    low: float
    high: float

    kind: Literal[RelationKind.BOUND] = RelationKind.BOUND

    @property
    def channels(self) -> tuple[str, ...]:
        """The channel it reads."""
        return (self.channel,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A reading moves only so far from one row to the next."""

    name: str
    channel: str

    kind: Literal[RelationKind.RATE] = RelationKind.RATE

    @property
    def channels(self) -> tuple[str, ...]:
        """The channel it reads."""
        return (self.channel,)


Relation = Annotated[Coupling | Balance | Window | Bound | Rate, Field(discriminator="kind")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a rule rests on. Numbers that a profile does not measure are absent, not zero."""

    r2: float | None = None  # on the rows it was fitted to
    r2_held_out: float | None = None  # on rows it never saw
    support: float | None = None  # share of rows in the rarer state
    variation: float | None = None  # spread over mean of the flow while on
    judged_rows: int | None = None  # clean hold-out rows that set the tolerance
    few_rows: bool = False  # too few of them for a 99.9th percentile
    smallest_offset: float | None = None  # power: constant offset it would catch, in its unit
    smallest_freeze_rows: int | None = None  # power: shortest freeze it would catch
    sees_contradiction: bool | None = None  # power: on read as off, and the reverse


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """A row violates it when the residual lies strictly beyond the tolerance (equation 3)."""

    relation: Relation
    tolerance: float
    evidence: Evidence = Evidence()

    @property
    def name(self) -> str:
        """The relation's name."""
        return self.relation.name

    @property
    def kind(self) -> RelationKind:
        """The relation's family."""
        return self.relation.kind
