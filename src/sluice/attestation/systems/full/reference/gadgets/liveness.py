"""Liveness: in every block of rows a level moves far enough.

Blocks begin every quarter of their length. For each block under way the prover keeps two readings
that were shown in it: a kept reading stays, or gives way to the row's own. Blocks move one place
on whenever a new one begins, so a block always ends in the last place.
"""

from dataclasses import dataclass

from sluice.attestation.systems.full.reference.columns import Column, ColumnPlan, Ladder
from sluice.attestation.systems.full.reference.gadgets.channels import Channels
from sluice.attestation.systems.full.reference.rows import RowPair, negated
from sluice.attestation.systems.full.reference.statement import (
    REGISTER_TOP,
    StatedLiveness,
    StatementDocument,
)

__all__ = ["Levels"]


def _stride(block: int) -> int:
    return max(block // 4, 1)


@dataclass(frozen=True, slots=True)
class BlockComing:
    """One where a block begins on the next row."""

    block: int

    def on(self, row: int, rows: int) -> bool:
        """Whether it does; it does not depend on the batch."""
        del rows
        return (row + 1) % _stride(self.block) == 0


@dataclass(frozen=True, slots=True)
class BlockEnd:
    """One on the last row of a block."""

    block: int

    def on(self, row: int, rows: int) -> bool:
        """Whether a whole block lies behind the row."""
        begun = row + 1 - self.block
        return begun >= 0 and row < rows and begun % _stride(self.block) == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A level and where its parts are."""

    rule: StatedLiveness
    largest: list[Column]
    least: list[Column]
    fresh: int
    end: int
    ladder: Ladder


class Levels:
    """Every level that must move."""

    def __init__(self, statement: StatementDocument, columns: ColumnPlan) -> None:
        self._levels: list[_Placed] = []
        for rule in statement.liveness:
            if rule.least > 0:
                places = (rule.rows - 1) // _stride(rule.rows) + 1
                largest, least = columns.cells(places), columns.cells(places)
                fresh, end = (
                    columns.schedule(BlockComing(rule.rows)),
                    columns.schedule(BlockEnd(rule.rows)),
                )
                self._levels.append(
                    _Placed(
                        rule=rule,
                        largest=largest,
                        least=least,
                        fresh=fresh,
                        end=end,
                        ladder=columns.ladder(REGISTER_TOP),
                    )
                )

    def first(self, channels: Channels, rows: RowPair) -> None:
        """The first row's reading is kept."""
        for level in self._levels:
            for column in (*level.largest, *level.least):
                rows.holds(column, channels.register(rows.here, level.rule.register))

    def following(self, channels: Channels, rows: RowPair) -> None:
        """A place keeps what it had, or what the place before it had, or the row's reading."""
        for level in self._levels:
            fresh = rows.public[level.fresh]
            shown = channels.register(rows.here, level.rule.register)
            for places in (level.largest, level.least):
                moving_in = shown
                for column in places:
                    stayed = rows.before[column]
                    kept = fresh * moving_in + negated(fresh) * stayed
                    rows.zero((rows.here[column] - shown) * (rows.here[column] - kept))
                    moving_in = stayed

    def every(self, rows: RowPair) -> None:
        """Where a block ends, its kept readings are far enough apart; no flag helps."""
        for level in self._levels:
            apart = rows.here[level.largest[-1]] - rows.here[level.least[-1]] - level.rule.least
            rows.within(level.ladder, rows.public[level.end] * apart)
