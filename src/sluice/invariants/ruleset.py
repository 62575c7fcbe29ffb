"""A plant's rules as one document: what was mined, from which rows, and what clean data showed."""

from dataclasses import dataclass
from enum import StrEnum

from sluice.invariants.relations import Invariant, RelationKind, Window
from sluice.telemetry import Channel, Record

__all__ = ["CleanFacts", "CleanShare", "Dropped", "Liveness", "Profile", "RuleSet"]


class Profile(StrEnum):
    """How rules are mined."""

    PAPER_NARROW = "paper-narrow"
    PAPER_WIDE = "paper-wide"
    PAPER_GENERIC = "paper-generic"
    PAPER_EXPERT = "paper-expert"
    HARDENED = "hardened"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A candidate that did not become a rule, and why."""

    name: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Liveness:
    """The smallest range a level showed over any block of clean rows."""

    level: str
    rows: int
    smallest_range: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanShare:
    """The largest share of one rule or level in clean data; `CleanFacts` says of what."""

    rule: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanFacts:
    """What clean hold-out rows showed; the hardened policy derives its budgets from it."""

    batch_rows: int
    batches: int  # bootstrap draws
    effective_batches: float  # number of disjoint batches in the hold-out rows
    refused_share: float  # estimated share of honest batches that would be refused
    refused_upper: float  # its upper bound: at least 3/n with n effective batches
    violating_share: float  # mean share of violating rows
    segments_per_row: float
    severe: tuple[CleanShare, ...]  # per rule: largest residual over tolerance
    envelope: tuple[CleanShare, ...]  # per coupling: largest share of rows in transition
    anchors: tuple[CleanShare, ...]  # per window rule: largest share of violating anchors
    liveness: tuple[Liveness, ...]
    repeats: tuple[CleanShare, ...]  # per level: largest share of repeated rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """The rules of one plant, as gate, projection, reports and circuit use them."""

    plant: str
    profile: Profile
    stride_s: float
    channels: tuple[Channel, ...]
    invariants: tuple[Invariant, ...]
    dropped: tuple[Dropped, ...] = ()
    fit_rows: int = 0
    calibration_rows: int = 0
    clean: CleanFacts | None = None  # hardened profiles only

    @property
    def empty(self) -> bool:
        """Whether no rule relates channels: bounds alone admit any fabrication in range."""
        return not any(invariant.kind.physical for invariant in self.invariants)

    @property
    def rows_needed(self) -> int:
        """The fewest rows in which every window is judged once and every block fits.

        A window ends at an anchor row, so it needs one row more than it spans.
        """
        needed = [1]
        if self.clean:
            needed += [fact.rows for fact in self.clean.liveness]
        for rule in self.invariants:
            if isinstance(rule.relation, Window):
                needed.append(rule.relation.rows + 1)
        return max(needed)

    def of_kind(self, *kinds: RelationKind) -> tuple[Invariant, ...]:
        """Return the rules of the given kinds."""
        return tuple(invariant for invariant in self.invariants if invariant.kind in kinds)

    def channel(self, name: str) -> Channel:
        """Return a channel by its name, which must be in the set."""
        return next(channel for channel in self.channels if channel.name == name)

    def demand(self, record: Record) -> None:
        """Refuse a record that lacks a channel which a rule reads."""
        for invariant in self.invariants:
            for channel in invariant.relation.channels:
                record.index(channel, needed_by=f"rule {invariant.name!r}")
