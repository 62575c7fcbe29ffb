"""The verdict on a batch, with the evidence an operator can act on."""

from dataclasses import dataclass, field

import numpy as np

from sluice.arrays import Bools
from sluice.invariants import RelationKind

__all__ = ["Finding", "LyingLevel", "Verdict", "WorstRow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstRow:
    """A row far beyond tolerance: when, by how much, and what the tolerance was, in plant units."""

    row: int
    time: str
    residual: float
    tolerance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One rule on one batch."""

    name: str
    kind: RelationKind
    violating_rows: int
    violating_share: float
    inapplicable_share: float
    envelope_share: float
    limit: float  # the share that this rule alone may reach
    sentence: str = ""  # what an operator reads; empty where nothing was found
    worst: tuple[WorstRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LyingLevel:
    """A level that stands still or repeats itself as no live one does, and on which rows."""

    level: str
    sentence: str
    rows: Bools = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Admitted or not, why, and which rows speak against it. It is evidence about telemetry."""

    admitted: bool
    rows: int
    violating_rows: int
    reasons: tuple[str, ...]
    findings: tuple[Finding, ...]
    violating: Bools = field(repr=False)  # rows that count against alpha
    suspect: Bools = field(repr=False)  # these, and the rows of broken windows and lying levels
    lying: tuple[LyingLevel, ...] = ()

    @property
    def violating_share(self) -> float:
        """Violating rows over all rows."""
        return self.violating_rows / self.rows

    @property
    def trainable(self) -> Bools:
        """The rows that may be trained on: alpha is room for noise, not for poison."""
        return np.asarray(~self.violating)
