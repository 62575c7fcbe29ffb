"""Relations: what clean plants keep near zero. Every one is affine; coefficients are data.

    Coupling   flow - nominal flow of the actuator's state            (equation 1 of the paper)
    Balance    level step - weighted flows - constant, row to row     (equation 2)
    Window     the same balance over several rows, at anchor rows
    Bound      a reading inside its range
    Rate       a reading's step from row to row

A relation says nothing of how far from zero is too far: that is its `Invariant`'s tolerance.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

__all__ = [
    "Balance",
    "Bound",
    "Coupling",
    "Kind",
    "Rate",
    "Relation",
    "State",
    "Term",
    "Transition",
    "Window",
]


class Kind(StrEnum):
    """The families, as rules files name them."""

    COUPLING = "coupling"
    BALANCE = "balance"
    WINDOW = "window"
    BOUND = "bound"
    RATE = "rate"

    @property
    def physical(self) -> bool:
        """Whether it ties channels together; bounds and rates alone are no physics."""
        return self in (Kind.COUPLING, Kind.BALANCE, Kind.WINDOW)


class Transition(StrEnum):
    """What holds while an actuator moves and for `settle` rows after it switched."""

    SILENT = "silent"  # nothing (the paper)
    ENVELOPE = "envelope"  # the flow lies between none and nominal, give or take the tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
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
    states: tuple[State, ...]
    settle: int  # rows after a switch that count as transition
    transition: Transition
    standby: tuple[
        tuple[str, int], ...
    ] = ()  # (pump, its off code): silent while one feeds the meter

    kind: Literal[Kind.COUPLING] = Kind.COUPLING

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

    kind: Literal[Kind.BALANCE] = Kind.BALANCE

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

    kind: Literal[Kind.WINDOW] = Kind.WINDOW

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

    kind: Literal[Kind.BOUND] = Kind.BOUND

    @property
    def channels(self) -> tuple[str, ...]:
        """The channel it reads."""
        return (self.channel,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A reading moves only so far from one row to the next."""

    name: str
    channel: str

    kind: Literal[Kind.RATE] = Kind.RATE

    @property
    def channels(self) -> tuple[str, ...]:
        """The channel it reads."""
        return (self.channel,)


Relation = Annotated[Coupling | Balance | Window | Bound | Rate, Field(discriminator="kind")]
