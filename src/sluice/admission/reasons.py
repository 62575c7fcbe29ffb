"""Why a batch is refused: one typed reason for each budget it exceeds, and its sentence.

This module is the only place that turns a reason into words.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from sluice.arrays import Bools

__all__ = ["Reason", "ReasonKind", "ranked"]


class ReasonKind(StrEnum):
    """Which budget a batch exceeds."""

    BROKEN_ROWS = "broken-rows"  # the paper's only budget
    TIME_JUMPS = "time-jumps"
    VIOLATING_ROWS = "violating-rows"
    WINDOWS = "windows"
    SWITCHES = "switches"
    BLOCKS = "blocks"
    MEANS = "means"
    TRANSITION = "transition"
    SEVERE_ROWS = "severe-rows"
    STILL_LEVEL = "still-level"
    REPEATED_READINGS = "repeated-readings"

    @property
    def about_a_level(self) -> bool:
        """Whether the reason is about one level's readings and not about a rule of the file."""
        return self in (ReasonKind.STILL_LEVEL, ReasonKind.REPEATED_READINGS)


_WORDS = {
    ReasonKind.BROKEN_ROWS: (
        "{found:,.0f} of {total:,} rows ({share:.2%}) break a rule; the limit is {allowed:,.0f}"
    ),
    ReasonKind.TIME_JUMPS: (
        "{found:,.0f} time jumps in {total:,} rows; the limit is {allowed:,.0f}"
    ),
    ReasonKind.VIOLATING_ROWS: (
        "{found:,.0f} of {total:,} rows ({share:.2%}) break a rule, miss a reading or show an "
        "unknown code; the limit is {allowed:,.0f}"
    ),
    ReasonKind.WINDOWS: (
        "{rule}: {found:,.0f} of {total:,} windows do not balance; the limit is {allowed:,.0f}"
    ),
    ReasonKind.SWITCHES: (
        "{rule}: {found:,.0f} of {total:,} switches happen outside the band (first at {first}); "
        "the limit is {allowed:,.0f}"
    ),
    ReasonKind.BLOCKS: (
        "{rule}: the noise of {found:,.0f} of {total:,} blocks is outside its limits (first at "
        "{first}); the limit is {allowed:,.0f}: the readings are smoother or rougher than in clean "
        "rows"
    ),
    ReasonKind.MEANS: (
        "{rule}: the mean of {found:,.0f} of {total:,} windows is outside its limits (first at "
        "{first}); the limit is {allowed:,.0f}: the channel reads higher or lower than in clean "
        "rows"
    ),
    ReasonKind.TRANSITION: (
        "{rule}: {found:,.0f} of {total:,} rows are in transition; the limit is {allowed:,.0f}: "
        "the actuator switches, or a standby pump runs, more often than in clean rows"
    ),
    ReasonKind.SEVERE_ROWS: (
        "{found:,.0f} rows are further from a rule than any clean row (first at {first}); the "
        "limit is {allowed:,.0f}"
    ),
    ReasonKind.STILL_LEVEL: (
        "{rule} moves by only {found:.3g} over {total:,} rows (first at {first}); clean rows move "
        "by at least {allowed:.3g}"
    ),
    ReasonKind.REPEATED_READINGS: (
        "{rule} repeats earlier readings on {found:,.0f} rows (first at {first}); "
        "the limit is {allowed:,.0f}"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reason:
    """One exceeded budget: what the batch shows and what the policy allows.

    Counts are of rows, windows, switches, time jumps or blocks. For a level that stands still,
    `found` and `allowed` are ranges in the level's unit, and `allowed` is the smallest one that
    passes.
    """

    kind: ReasonKind
    rule: str  # the rule's name, or the level's; empty where the reason is about the whole batch
    found: float
    allowed: float
    total: int  # of how many rows, windows, switches or blocks; for a still level, rows of a block
    first: str = ""  # time of the first such row
    rows: Bools = field(repr=False)  # the rows that show it

    @property
    def excess(self) -> float:
        """How many times the budget is exceeded; a budget below 1 counts as 1."""
        if self.kind is ReasonKind.STILL_LEVEL:
            return self.allowed / self.found if self.found > 0 else np.inf
        return self.found / max(1.0, self.allowed)

    @property
    def sentence(self) -> str:
        """The reason in words."""
        return _WORDS[self.kind].format(
            rule=self.rule,
            found=self.found,
            share=self.found / self.total,
            allowed=self.allowed,
            total=self.total,
            first=self.first,
        )


def ranked(reasons: list[Reason]) -> tuple[Reason, ...]:
    """Order reasons by how far the budget is exceeded, furthest first."""
    return tuple(sorted(reasons, key=lambda reason: -reason.excess))
