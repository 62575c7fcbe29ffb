"""The verdict on a batch, with evidence for the operator."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sluice.admission.measured import MeasuredBatch
from sluice.admission.reasons import Reason
from sluice.arrays import Bools
from sluice.invariants import RelationKind, RuleSet
from sluice.telemetry import Record

if TYPE_CHECKING:
    from sluice.admission.policy import Policy

__all__ = ["Finding", "Verdict", "WorstRow"]


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
    sentence: str = ""  # what an operator reads; empty where the rule holds
    worst: tuple[WorstRow, ...] = ()
    violating: Bools = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Verdict:
    """Admitted or not, and why. A verdict is evidence about telemetry, not about intent."""

    reasons: tuple[Reason, ...]  # the budget exceeded furthest comes first
    findings: tuple[Finding, ...]
    violating: Bools = field(repr=False)  # rows that count against alpha
    suspect: Bools = field(repr=False)  # these, broken windows, and still or repeated levels
    measured: MeasuredBatch = field(repr=False)
    policy: "Policy" = field(repr=False)

    @property
    def admitted(self) -> bool:
        """Whether no budget is exceeded."""
        return not self.reasons

    def is_about(self, batch: Record, rules: RuleSet, policy: "Policy") -> bool:
        """Whether the verdict is about exactly this batch, these rules and this policy."""
        measured = self.measured
        return measured.record is batch and (measured.rules, self.policy) == (rules, policy)

    @property
    def rows(self) -> int:
        """Rows of the batch."""
        return len(self.measured.record)

    @property
    def violating_rows(self) -> int:
        """How many rows count against alpha."""
        return int(np.count_nonzero(self.violating))

    @property
    def violating_share(self) -> float:
        """Violating rows over all rows."""
        return self.violating_rows / self.rows

    @property
    def sentences(self) -> tuple[str, ...]:
        """The reasons in words."""
        return tuple(reason.sentence for reason in self.reasons)

    @property
    def trainable(self) -> Bools:
        """The rows for training: violating rows are left out even if alpha allows them."""
        return np.asarray(~self.violating)
