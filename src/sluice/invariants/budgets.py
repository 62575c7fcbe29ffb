"""Budgets: the limits for a batch, computed from a policy's margins and from clean data.

Margins and clean facts are shares and plant units. Budgets are integers, so that the gate and the
proof circuit compare the same numbers.
"""

import math
from dataclasses import dataclass

from sluice.invariants.encoding import TOLERANCE, register_of
from sluice.invariants.relations import Window
from sluice.invariants.ruleset import CleanFacts, RuleSet

__all__ = ["Budgets", "Margins", "budgets_for"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """The numbers from which budgets are computed; the defaults are the hardened policy's."""

    alpha: float = 0.01  # share of rows that may violate
    severe_multiple: float = 1.0  # of the tolerance, where clean data stayed well within it
    severe_factor: float = 1.5  # times the largest clean excess, where that is larger
    severe_rows: int = 0  # rows that may be severe
    envelope_factor: float = 1.25  # times the largest clean share of rows in transition
    envelope_points: float = 0.01  # added to that share
    anchor_factor: float = 2.0  # times the largest clean share of violating anchors
    anchor_extra: int = 1  # violating anchors allowed beyond that share
    liveness_share: float = 0.5  # of the smallest clean range over a block
    repeat_factor: float = 2.0  # times the largest clean share of repeated rows
    repeat_rows: int = 0  # repeated rows allowed beyond that share
    segments_extra: int = 0  # time jumps allowed beyond those of clean data


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The margins applied to one rule set and one batch length."""

    violating_rows: int
    segments: int
    severe_rows: int
    severe: dict[str, int]  # per rule: the largest residual that is not severe
    envelope_rows: dict[str, int]  # per coupling
    anchors: dict[str, int]  # per window rule
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
            quietest={},
            repeated_rows={},
        )

    @property
    def severe_multiple(self) -> dict[str, float]:
        """The largest residual that is not severe, in multiples of the tolerance."""
        return {rule: size / TOLERANCE for rule, size in self.severe.items()}


def budgets_for(rules: RuleSet, facts: CleanFacts, margins: Margins, *, rows: int) -> Budgets:
    """Return the budgets of a batch of `rows` rows."""
    excess = {share.rule: share.share for share in facts.severe}
    windows = {
        rule.name: rule.relation.rows
        for rule in rules.invariants
        if isinstance(rule.relation, Window)
    }
    return Budgets(
        violating_rows=math.floor(margins.alpha * rows),
        segments=1 + math.ceil(facts.segments_per_row * rows) + margins.segments_extra,
        severe_rows=margins.severe_rows,
        severe={
            rule.name: math.floor(
                TOLERANCE
                * max(margins.severe_multiple, margins.severe_factor * excess.get(rule.name, 0))
            )
            for rule in rules.invariants
        },
        envelope_rows={
            share.rule: math.floor(
                (margins.envelope_factor * share.share + margins.envelope_points) * rows
            )
            for share in facts.envelope
        },
        anchors={
            share.rule: margins.anchor_extra
            + math.floor(margins.anchor_factor * share.share * 2 * rows / windows[share.rule])
            for share in facts.anchors
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
            share.rule: margins.repeat_rows + math.floor(margins.repeat_factor * share.share * rows)
            for share in facts.repeats
        },
    )
