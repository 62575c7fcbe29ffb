"""Counts against budgets: every count ends exactly at its budget.

Where a flag may be set without a reason (violating and severe rows, violating windows, switches
and blocks) the prover sets flags until the budget is spent. Where flags are exact (rows in
transition, segments) it adds slack in powers of two on scheduled rows. Up to three counts share a
column, in digits of a base that none can reach.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sluice.attestation.systems.full.reference.columns import Column, ColumnPlan, Last
from sluice.attestation.systems.full.reference.field import Ext
from sluice.attestation.systems.full.reference.parameters import BASE
from sluice.attestation.systems.full.reference.rows import RowPair
from sluice.attestation.systems.full.reference.statement import StatementDocument

__all__ = ["Count", "CountColumns", "Counted", "SlackWeights"]

SHARING = 3


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted: a kind, and for rules the place of the rule."""

    kind: str
    rule: int = 0

    @property
    def exact(self) -> bool:
        """Whether its flags are exact, so that slack fills it up to its budget."""
        return self.kind in ("segments", "unsteady")


@dataclass(frozen=True, slots=True)
class SlackWeights:
    """The public column with the powers of two that fill the counts of one column."""

    count: int

    def on(self, row: int, rows: int) -> bool:
        """Its values are powers of two; they follow from the budgets."""
        raise AssertionError((self, row, rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The counts that share a column: the sum over the rows before this one."""

    counted: tuple[Counted, ...]
    so_far: Column
    slack: int | None


class CountColumns:
    """Every count."""

    def __init__(self, statement: StatementDocument, columns: ColumnPlan) -> None:
        claimed = [Counted("violating")]
        claimed += [Counted("severe")] if statement.severe else []
        claimed += [Counted("window", at) for at in range(len(statement.windows))]
        claimed += [Counted("switch", at) for at in range(len(statement.switches))]
        claimed += [Counted("block", at) for at in range(len(statement.spectra))]
        exact = [Counted("unsteady", at) for at in range(len(statement.couplings))]
        exact += [Counted("segments")] if statement.jumps else []
        self._slack = columns.flag() if exact else None
        self.shared: list[Count] = []
        for counted in (*_threes(claimed), *_threes(exact)):
            so_far = columns.cell()
            filled = counted[0].exact
            slack = columns.schedule(SlackWeights(len(self.shared))) if filled else None
            self.shared.append(Count(counted=counted, so_far=so_far, slack=slack))
        self._last = columns.schedule(Last())

    def first(self, rows: RowPair) -> None:
        """Nothing is counted before the first row."""
        for count in self.shared:
            rows.holds(count.so_far, 0)

    def every(self, flags: Callable[[Counted], Ext], rows: RowPair, totals: Sequence[int]) -> None:
        """A row is counted; on the batch's last row each count is its total."""
        for count, expected in zip(self.shared, totals, strict=True):
            sum_ = rows.here[count.so_far]
            for at, counted in enumerate(count.counted):
                sum_ = sum_ + flags(counted) * BASE**at
            if count.slack is not None:
                assert self._slack is not None
                sum_ = sum_ + rows.public[count.slack] * rows.here[self._slack]
            rows.leads_to(count.so_far, sum_)
            rows.zero(rows.public[self._last] * (sum_ - expected))


def _threes(counted: list[Counted]) -> list[tuple[Counted, ...]]:
    return [tuple(counted[at : at + SHARING]) for at in range(0, len(counted), SHARING)]
