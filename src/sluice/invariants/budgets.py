"""Budgets: the limits for a batch, computed from a policy's margins and from clean data.

Margins and clean facts are shares and plant units. Budgets are integers, so that the gate and the
proof circuit compare the same numbers. No budget has a default: a rules file states exactly one
fact for each, and every margin is a share, so that a short batch gets no allowance of its own.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sluice.errors import RulesFileError
from sluice.invariants.encoding import TOLERANCE, register_of
from sluice.invariants.relations import (
    Bound,
    Constant,
    Invariant,
    Mean,
    RelationKind,
    Spectrum,
    Window,
)
from sluice.invariants.ruleset import CleanFacts, RuleSet
from sluice.telemetry import Role

__all__ = ["Budgets", "FactFault", "Margins", "budgets_for", "fact_faults"]

SEVERE_KINDS = (
    RelationKind.COUPLING,
    RelationKind.BALANCE,
    RelationKind.RATE,
    RelationKind.TIE,
)
"""The rules with a fact about their largest residual."""
SUMMED_KINDS = (RelationKind.WINDOW, RelationKind.MEAN)
"""The rules with a fact about their windows."""
NEVER_SEVERE = 2 * TOLERANCE
"""Beyond the residual of any row that breaks a constant or a range."""
SLOW_ROLES = (Role.LEVEL, Role.QUALITY)
"""What no pump moves out of its range at once; a pump that starts for the first time wakes an idle
channel, and moves flows and pressures further than they were in clean rows."""
SHORTEST_BLOCK = 2
"""Rows: over a single row no level moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """The numbers from which budgets are computed; the defaults are the hardened policy's."""

    alpha: float = 0.01  # share of rows that may violate
    severe_multiple: float = 1.0  # of the tolerance, where clean data stayed well within it
    severe_factor: float = 1.5  # times the largest clean excess, where that is larger
    severe_share: float = 0.0005  # of rows that may be severe
    envelope_factor: float = 1.25  # times the largest clean share of rows in transition
    envelope_points: float = 0.01  # added to that share
    anchor_factor: float = 2.0  # times the largest clean share of violating anchors
    anchor_points: float = 0.001  # added to that share
    liveness_share: float = 0.5  # of the smallest clean range over a block
    repeat_factor: float = 2.0  # times the largest clean share of repeated rows
    repeat_points: float = 0.0  # added to that share
    segment_factor: float = 2.0  # times the share of clean rows that follow a time jump
    segment_points: float = 0.0  # added to that share
    switch_factor: float = 2.0  # times the largest clean share of rows with a switch out of band
    switch_points: float = 0.001  # added to that share
    block_factor: float = 2.0  # times the largest clean share of violating blocks of a spectrum
    block_points: float = 0.01  # added to that share


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The margins applied to one rule set and one batch length."""

    violating_rows: int
    segments: int
    severe_rows: int
    severe: dict[str, int]  # per rule: the largest residual that is not severe
    envelope_rows: dict[str, int]  # per coupling
    anchors: dict[str, int]  # per window rule and mean
    switches: dict[str, int]  # per switch band: switches out of band
    blocks: dict[str, int]  # per spectrum
    quietest: dict[tuple[str, int], int]  # per level and block length: smallest range, in registers
    repeated_rows: dict[str, int]  # per level

    @classmethod
    def of_rows(cls, violating_rows: int, *, rows: int) -> "Budgets":
        """Return budgets that limit violating rows alone, for a batch of `rows` rows."""
        return cls(
            violating_rows=violating_rows,
            segments=rows,
            severe_rows=rows,
            severe={},
            envelope_rows={},
            anchors={},
            switches={},
            blocks={},
            quietest={},
            repeated_rows={},
        )

    @property
    def own(self) -> dict[str, int]:
        """The budgets of the rules that have one of their own: windows, switches, blocks."""
        return self.anchors | self.switches | self.blocks

    @property
    def severe_multiple(self) -> dict[str, float]:
        """The largest residual that is not severe, in multiples of the tolerance."""
        return {rule: size / TOLERANCE for rule, size in self.severe.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class FactFault:
    """A fact about clean rows that a rules file lacks, repeats, invents or misstates."""

    subject: str  # the rule or level; empty where the whole file is meant
    found: str
    allowed: str

    @property
    def sentence(self) -> str:
        """The fault in words."""
        about = f"{self.subject} has" if self.subject else "the file states"
        return f"{about} {self.found}; it must be {self.allowed}"


def fact_faults(rules: RuleSet, facts: CleanFacts) -> tuple[FactFault, ...]:
    """Return what is wrong with the facts: each budget follows from exactly one of them."""
    return (*_miscounted(rules, facts), *_misstated(facts), *_impossible_blocks(rules, facts))


def _miscounted(rules: RuleSet, facts: CleanFacts) -> Iterator[FactFault]:
    """Demand one fact for each rule and level that needs one, and none about anything else."""
    levels = [channel.name for channel in rules.channels if channel.role is Role.LEVEL]
    for what, stated, needing in (
        ("largest residual", facts.severe, _named(rules, *SEVERE_KINDS)),
        ("rows in transition", facts.envelope, _named(rules, RelationKind.COUPLING)),
        ("windows out of balance", facts.anchors, _named(rules, *SUMMED_KINDS)),
        ("switches out of band", facts.switches, _named(rules, RelationKind.SWITCH_BAND)),
        ("blocks out of their limits", facts.blocks, _named(rules, RelationKind.SPECTRUM)),
        ("repeated rows", facts.repeats, levels),
    ):
        counts = Counter(fact.rule for fact in stated)
        for subject in dict.fromkeys((*needing, *counts)):
            count, needed = counts[subject], int(subject in needing)
            if count != needed:
                yield FactFault(
                    subject=subject,
                    found=f"{count} facts about clean rows on {what}",
                    allowed=f"exactly {needed}",
                )
    for (level, rows), count in Counter((fact.level, fact.rows) for fact in facts.liveness).items():
        if count > 1:
            yield FactFault(
                subject=level,
                found=f"{count} facts about its smallest range over {rows} rows",
                allowed="at most 1",
            )


def _named(rules: RuleSet, *kinds: RelationKind) -> list[str]:
    return [rule.name for rule in rules.of_kind(*kinds)]


def _misstated(facts: CleanFacts) -> Iterator[FactFault]:
    """Demand numbers that are finite and not negative."""
    shares = (
        *facts.severe,
        *facts.envelope,
        *facts.anchors,
        *facts.switches,
        *facts.blocks,
        *facts.repeats,
    )
    numbers = [
        ("", "time jumps per clean row", facts.segments_per_row),
        ("", "refused clean batches", facts.refused_share),
        *((fact.rule, "clean rows", fact.share) for fact in shares),
        *((fact.level, "its smallest range", fact.smallest_range) for fact in facts.liveness),
    ]
    for subject, what, value in numbers:
        if not (math.isfinite(value) and value >= 0):
            yield FactFault(
                subject=subject,
                found=f"a fact of {value:g} about {what}",
                allowed="finite and not negative",
            )


def _impossible_blocks(rules: RuleSet, facts: CleanFacts) -> Iterator[FactFault]:
    """Demand blocks of at least two rows, of levels with an instrument span."""
    levels = {channel.name for channel in rules.channels if channel.role is Role.LEVEL}
    measured = {channel.name for channel in rules.channels if channel.span is not None}
    for fact in facts.liveness:
        if fact.level not in levels & measured:
            yield FactFault(
                subject=fact.level,
                found="a fact about its smallest range",
                allowed="a level of the file, with an instrument span",
            )
        if fact.rows < SHORTEST_BLOCK:
            yield FactFault(
                subject=fact.level,
                found=f"a smallest range over {fact.rows} rows",
                allowed=f"over {SHORTEST_BLOCK} rows or more",
            )


def budgets_for(rules: RuleSet, facts: CleanFacts, margins: Margins, *, rows: int) -> Budgets:
    """Return the budgets of a batch of `rows` rows; refuse facts from which none follow."""
    faults = fact_faults(rules, facts)
    if faults:
        raise RulesFileError(
            f"the rules of {rules.plant!r} give no budgets: {faults[0].sentence}; mine them again"
        )
    excess = {fact.rule: fact.share for fact in facts.severe}
    windows = {
        rule.name: rule.relation.rows
        for rule in rules.invariants
        if isinstance(rule.relation, Window | Mean)
    }
    spectra = {
        rule.name: rule.relation for rule in rules.invariants if isinstance(rule.relation, Spectrum)
    }
    return Budgets(
        violating_rows=math.floor(margins.alpha * rows),
        segments=1
        + math.floor(
            (margins.segment_factor * facts.segments_per_row + margins.segment_points) * rows
        ),
        severe_rows=math.floor(margins.severe_share * rows),
        severe={rule.name: _severe(rule, rules, excess, margins) for rule in rules.invariants},
        envelope_rows={
            fact.rule: math.floor(
                (margins.envelope_factor * fact.share + margins.envelope_points) * rows
            )
            for fact in facts.envelope
        },
        anchors={
            fact.rule: math.floor(
                (margins.anchor_factor * fact.share + margins.anchor_points)
                * (2 * rows / windows[fact.rule])
            )
            for fact in facts.anchors
        },
        switches={
            fact.rule: math.floor(
                (margins.switch_factor * fact.share + margins.switch_points) * rows
            )
            for fact in facts.switches
        },
        blocks={
            fact.rule: math.floor(
                (margins.block_factor * fact.share + margins.block_points)
                * spectra[fact.rule].blocks(rows)
            )
            for fact in facts.blocks
        },
        quietest={
            (fact.level, fact.rows): math.floor(
                margins.liveness_share
                * fact.smallest_range
                / register_of(rules.channel(fact.level)).step
            )
            for fact in facts.liveness
        },
        repeated_rows={
            fact.rule: math.floor(
                (margins.repeat_factor * fact.share + margins.repeat_points) * rows
            )
            for fact in facts.repeats
        },
    )


def _severe(rule: Invariant, rules: RuleSet, excess: dict[str, float], margins: Margins) -> int:
    """Return the largest residual of a rule that is not severe."""
    multiple = margins.severe_multiple
    if rule.kind in SEVERE_KINDS:
        multiple = max(multiple, margins.severe_factor * excess[rule.name])
    largest = math.floor(TOLERANCE * multiple)
    match rule.relation:
        case Constant():
            return max(largest, NEVER_SEVERE)
        case Bound(channel=name) if rules.channel(name).role not in SLOW_ROLES:
            return max(largest, NEVER_SEVERE)
        case _:
            return largest
