"""Spectra: the noise of a register, as sums of squared differences over blocks of rows.

A rule carries the last step and two sums, which begin again where a block begins. Rules whose
blocks never end on the same row share digits and the flag of a violating block. A start inside a
block adds more than the upper limit, so such a block can only be counted. So do rows before the
first block: they end like one, and the budget is one larger for it.
"""

from dataclasses import dataclass
from math import gcd

from sluice.attestation.systems.full.reference.columns import (
    Column,
    ColumnPlan,
    spread_digits,
    spread_weights,
)
from sluice.attestation.systems.full.reference.field import Ext
from sluice.attestation.systems.full.reference.gadgets.channels import Channels
from sluice.attestation.systems.full.reference.rows import RowPair, negated, total
from sluice.attestation.systems.full.reference.statement import StatedSpectrum, StatementDocument

__all__ = ["Spectra"]


@dataclass(frozen=True, slots=True)
class SpectrumEnd:
    """One on the last row of a block of so many rows; a block ends before the row `offset`."""

    block: int
    offset: int

    def on(self, row: int, rows: int) -> bool:
        """Whether a block ends on the row."""
        return row < rows and (row + 1) % self.block == self.offset


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A spectrum and where its parts are."""

    rule: StatedSpectrum
    end: int
    begun: int  # one where the next row is the second of a block
    step: Column
    sums: list[Column]

    @property
    def beyond(self) -> int:
        """What no first sum within the limits reaches."""
        return self.rule.first[1] + 1

    def limits(self, side: int) -> list[int]:
        """Return the limits of the first or the second sum."""
        return self.rule.second if side else self.rule.first

    def width(self, side: int) -> int:
        """Return how far apart they are."""
        return self.limits(side)[1] - self.limits(side)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Rules whose blocks never end on the same row."""

    members: list[_Placed]
    violating: Column
    digits: list[list[Column]]


class Spectra:
    """Every spectrum."""

    def __init__(self, statement: StatementDocument, columns: ColumnPlan) -> None:
        self._spectra = [_place(rule, columns) for rule in statement.spectra]
        groups: list[list[_Placed]] = []
        for placed in self._spectra:
            free = (each for each in groups if all(_apart(placed, other) for other in each))
            group = next(free, None)
            if group is None:
                groups.append([placed])
            else:
                group.append(placed)
        self._groups: list[_Group] = []
        for members in groups:
            violating = columns.flag()
            digits = [
                columns.spread(spread_digits(max(each.width(side) for each in members)))
                for side in (0, 1)
            ]
            self._groups.append(_Group(members=members, violating=violating, digits=digits))

    def violating(self, rows: RowPair) -> list[Ext]:
        """Return one for each rule on a row where a block of it ends and counts as violating."""
        found = []
        for placed in self._spectra:
            group = next(each for each in self._groups if placed in each.members)
            found.append(rows.here[group.violating] * rows.public[placed.end])
        return found

    def first(self, rows: RowPair) -> None:
        """Nothing is summed yet; rows before the first block are beyond the limit."""
        for placed in self._spectra:
            rows.holds(placed.step, 0)
            rows.holds(placed.sums[0], placed.beyond if placed.rule.offset else 0)
            rows.holds(placed.sums[1], 0)

    def following(self, channels: Channels, rows: RowPair) -> None:
        """The squares of the row's first and second difference are added, or a block begins."""
        for placed in self._spectra:
            kept = negated(rows.public[placed.end])
            bends = negated(rows.public[placed.begun])
            register = placed.rule.register
            moved = channels.register(rows.here, register) - channels.register(
                rows.before, register
            )
            bent = moved - rows.before[placed.step]
            first, second = (rows.before[column] for column in placed.sums)
            added = moved * moved
            if channels.start is not None:
                added = added + rows.here[channels.start] * placed.beyond
            rows.holds(placed.sums[0], kept * (first + added))
            rows.holds(placed.sums[1], kept * (second + bends * bent * bent))
            rows.holds(placed.step, moved)

    def every(self, rows: RowPair) -> None:
        """Where a block ends, both sums are within their limits, or the block is counted."""
        for group in self._groups:
            violating = rows.here[group.violating]
            ends = [rows.public[each.end] for each in group.members]
            rows.zero(violating * negated(total(ends)))  # only a block that ends counts
            for side, digits in enumerate(group.digits):
                usual = spread_weights(group.members[0].width(side), len(digits))
                weights = [Ext(weight) for weight in usual]
                value = Ext(0)
                for placed, end in zip(group.members, ends, strict=True):
                    value = value + end * (rows.here[placed.sums[side]] - placed.limits(side)[0])
                    own = spread_weights(placed.width(side), len(digits))
                    weights = [
                        weight + end * (mine - first)
                        for weight, mine, first in zip(weights, own, usual, strict=True)
                    ]
                rows.spread(digits, weights, value * negated(violating))


def _place(rule: StatedSpectrum, columns: ColumnPlan) -> _Placed:
    end = columns.schedule(SpectrumEnd(rule.rows, rule.offset))
    begun = columns.schedule(SpectrumEnd(rule.rows, (rule.offset + 1) % rule.rows))
    step, *sums = columns.cells(3)
    return _Placed(rule=rule, end=end, begun=begun, step=step, sums=sums)


def _apart(one: _Placed, other: _Placed) -> bool:
    """Whether blocks of two rules never end on the same row."""
    distance = one.rule.offset - other.rule.offset
    return distance % gcd(one.rule.rows, other.rule.rows) != 0
