"""A plant's rules as one document: what was mined, from which rows, and what clean data showed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from sluice.invariants.relations import (
    Balance,
    Bound,
    Invariant,
    Mean,
    RelationKind,
    Spectrum,
    Tie,
    Window,
)
from sluice.telemetry import Channel, Record

__all__ = [
    "CleanFacts",
    "CleanShare",
    "Dropped",
    "Liveness",
    "Profile",
    "RuleSet",
    "staggered",
    "tied_channels",
    "untied_channels",
]


NOTICED = 0.25
"""Of a channel's range: a rule that notices only larger changes does not tie the channel."""


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
    switches: tuple[CleanShare, ...] = ()  # per switch band: largest share of rows with a bad one
    blocks: tuple[CleanShare, ...] = ()  # per spectrum: largest share of violating blocks


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
    untied: tuple[str, ...] | None = None  # `untied_channels`; None where the file does not say
    provisional: Annotated[bool, Field(exclude_if=lambda provisional: not provisional)] = False
    """Whether these are limits of other plants, to watch by and never for the gate."""

    @property
    def empty(self) -> bool:
        """Whether no rule relates channels: bounds alone admit any fabrication in range."""
        return not any(invariant.kind.physical for invariant in self.invariants)

    @property
    def rows_needed(self) -> int:
        """The fewest rows in which every window and block of a rule is judged once.

        A window ends at an anchor row, so it needs one row more than it spans.
        """
        needed = [1]
        if self.clean:
            needed += [fact.rows for fact in self.clean.liveness]
        for rule in self.invariants:
            match rule.relation:
                case Window(rows=rows) | Mean(rows=rows):
                    needed.append(rows + 1)
                case Spectrum(rows=rows, offset=offset):
                    needed.append(offset + rows)
                case _:
                    pass
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


def tied_channels(rules: RuleSet) -> frozenset[str]:
    """Return the channels that a rule ties down.

    A rule ties a channel if it notices that the channel shows something else: its range, its steps,
    its noise and its mean alone do not. A term of a balance, a window or a tie counts only if the
    rule notices a change by a quarter of the channel's range, or a changed state.
    """
    ranges = {
        rule.relation.channel: rule.relation.high - rule.relation.low
        for rule in rules.invariants
        if isinstance(rule.relation, Bound)
    }
    for channel in rules.channels:
        if channel.span is not None:
            ranges.setdefault(channel.name, channel.span.width)
    return frozenset(name for rule in rules.invariants for name in _tied_by(rule, ranges))


def untied_channels(rules: RuleSet) -> tuple[str, ...]:
    """Return the channels that no rule ties down, in the file's order."""
    tied = tied_channels(rules)
    return tuple(channel.name for channel in rules.channels if channel.name not in tied)


def _tied_by(rule: Invariant, ranges: Mapping[str, float]) -> Iterator[str]:
    """Yield the channels that a rule ties down."""
    match rule.relation:
        case Tie(channel=own, terms=terms):
            rows = 1
        case Balance(level=own, terms=terms):
            rows = 1
        case Window(level=own, terms=terms, rows=rows):
            pass
        case relation if rule.kind.ties:
            yield from relation.channels
            return
        case _:
            return
    yield own
    for term in terms:
        change = 1.0 if term.on else NOTICED * ranges.get(term.channel, 0.0)
        if abs(term.coefficient) * change * rows > rule.tolerance:
            yield term.channel


def staggered(rules: RuleSet) -> RuleSet:
    """Return the rules with spectra whose blocks end on different rows, as far as they can.

    A proof has one range check for all spectra that never end a block on the same row.
    """
    seen: Counter[int] = Counter()
    made = []
    for rule in rules.invariants:
        if isinstance(rule.relation, Spectrum):
            rows = rule.relation.rows
            rule = replace(rule, relation=replace(rule.relation, offset=seen[rows] % rows))  # noqa: PLW2901
            seen[rows] += 1
        made.append(rule)
    return replace(rules, invariants=tuple(made))
