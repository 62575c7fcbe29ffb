"""Relations between channels; a relation with its tolerance and evidence is an invariant."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

__all__ = [
    "ActuatorState",
    "Balance",
    "Bound",
    "Constant",
    "Coupling",
    "Evidence",
    "Invariant",
    "Mean",
    "Rate",
    "Relation",
    "RelationKind",
    "Spectrum",
    "SwitchBand",
    "Term",
    "Tie",
    "Transition",
    "Window",
]


class RelationKind(StrEnum):
    """The kinds of relation, by their names in rules files."""

    COUPLING = "coupling"
    BALANCE = "balance"
    WINDOW = "window"
    BOUND = "bound"
    RATE = "rate"
    TIE = "tie"
    CONSTANT = "constant"
    SWITCH_BAND = "switch-band"
    SPECTRUM = "spectrum"
    MEAN = "mean"

    @property
    def physical(self) -> bool:
        """Whether it relates channels to each other; rules about one channel alone do not."""
        return self in (
            RelationKind.COUPLING,
            RelationKind.BALANCE,
            RelationKind.WINDOW,
            RelationKind.TIE,
            RelationKind.SWITCH_BAND,
        )

    @property
    def own_budget(self) -> bool:
        """Whether its violations count against a budget of the rule, not as violating rows."""
        return self in (
            RelationKind.WINDOW,
            RelationKind.SWITCH_BAND,
            RelationKind.SPECTRUM,
            RelationKind.MEAN,
        )

    @property
    def ties(self) -> bool:
        """Whether it says more about a channel than its range, steps, noise and mean."""
        return self not in (
            RelationKind.BOUND,
            RelationKind.RATE,
            RelationKind.SPECTRUM,
            RelationKind.MEAN,
        )


class Transition(StrEnum):
    """What a coupling checks while its actuator moves and for `settle` rows from a switch."""

    SILENT = "silent"  # nothing (as in the paper)
    ENVELOPE = "envelope"  # the flow lies between 0 and nominal, ± the tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class ActuatorState:
    """A steady on state of an actuator and its flow."""

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
    """An actuator's state determines the flow past it."""

    name: str
    actuator: str
    flow: str
    off: int
    states: tuple[ActuatorState, ...]
    settle: int  # rows from a switch that count as transition
    transition: Transition
    standby: tuple[tuple[str, int], ...] = ()  # (pump, its off code): not checked while one runs

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
    """The change of a reading from one row to the next is limited."""

    name: str
    channel: str

    kind: Literal[RelationKind.RATE] = RelationKind.RATE

    @property
    def channels(self) -> tuple[str, ...]:
        """The channel it reads."""
        return (self.channel,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """Other channels of the same row determine a reading."""

    name: str
    channel: str
    terms: tuple[Term, ...]
    constant: float

    kind: Literal[RelationKind.TIE] = RelationKind.TIE

    @property
    def channels(self) -> tuple[str, ...]:
        """Every channel it reads."""
        return (self.channel, *(term.channel for term in self.terms))


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A channel that never moved: a reading stays at its value, an actuator in its code."""

    name: str
    channel: str
    value: float  # a reading, or an actuator's code

    kind: Literal[RelationKind.CONSTANT] = RelationKind.CONSTANT

    @property
    def channels(self) -> tuple[str, ...]:
        """The channel it reads."""
        return (self.channel,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchBand:
    """An actuator switches on while a level or pressure is in one band, and off in another."""

    name: str
    actuator: str
    on: tuple[int, ...]  # codes that count as on
    level: str
    before: bool  # the reading of the row before the switch decides, not that of its row
    on_low: float
    on_high: float
    off_low: float
    off_high: float

    kind: Literal[RelationKind.SWITCH_BAND] = RelationKind.SWITCH_BAND

    @property
    def channels(self) -> tuple[str, ...]:
        """Every channel it reads."""
        return (self.actuator, self.level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectrum:
    """A channel's noise: sums of squared first and second differences over blocks of rows.

    Blocks lie side by side from row `offset` on. Differences are taken inside a block only.
    """

    name: str
    channel: str
    rows: int  # of a block
    first_low: float  # of the sum of squared first differences, in the channel's unit squared
    first_high: float
    second_low: float  # of the sum of squared second differences
    second_high: float
    offset: int = 0  # rows before the first block

    kind: Literal[RelationKind.SPECTRUM] = RelationKind.SPECTRUM

    @property
    def channels(self) -> tuple[str, ...]:
        """The channel it reads."""
        return (self.channel,)

    def blocks(self, rows: int) -> int:
        """Return how many whole blocks a batch of `rows` rows has."""
        return max(0, rows - self.offset) // self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A channel's mean over `rows` rows, judged at the anchor rows of a window."""

    name: str
    channel: str
    mean: float
    rows: int

    kind: Literal[RelationKind.MEAN] = RelationKind.MEAN

    @property
    def channels(self) -> tuple[str, ...]:
        """The channel it reads."""
        return (self.channel,)


Relation = Annotated[
    Coupling | Balance | Window | Bound | Rate | Tie | Constant | SwitchBand | Spectrum | Mean,
    Field(discriminator="kind"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a rule is trusted. Numbers that a profile does not measure are `None`, not zero."""

    r2: float | None = None  # on the rows used for the fit
    r2_held_out: float | None = None  # on held-out rows
    support: float | None = None  # share of rows in the rarer state
    variation: float | None = None  # spread over mean of the flow while on
    judged_rows: int | None = None  # clean hold-out rows that set the tolerance
    few_rows: bool = False  # too few of them for a 99.9th percentile
    smallest_offset: float | None = None  # power: smallest offset it detects, in its unit
    smallest_freeze_rows: int | None = None  # power: shortest freeze it detects
    sees_contradiction: bool | None = None  # power: detects on reported as off, and the reverse


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
        """The relation's kind."""
        return self.relation.kind
