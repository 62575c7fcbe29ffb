"""Two neighbouring rows at one point, and the constraints that gadgets state about them.

A constraint is a polynomial in the cells of two rows that must be zero. At a point outside the
trace the cells are what the prover opened there, and every constraint has some value. All values
are folded into one with powers of a challenge.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sluice.attestation.systems.full.reference.columns import Column, Digit, Dual, Ladder
from sluice.attestation.systems.full.reference.field import Ext

__all__ = ["Frame", "RowPair", "negated", "total"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPair:
    """A row and the one before or after it, as a gadget sees them."""

    here: Sequence[Ext]
    before: Sequence[Ext] = ()
    after: Sequence[Ext] = ()
    public: Sequence[Ext]  # on this row; where the row before is seen, on the row before
    only: Ext | None = None  # selects the rows on which the constraints hold; none: all
    transition: Ext
    violating: Column
    stated: list[Ext] = field(repr=False)

    def zero(self, value: Ext) -> None:
        """State that a value is zero on the selected rows."""
        self.stated.append(value if self.only is None else self.only * value)

    def holds(self, column: Column, value: Ext | int) -> None:
        """State that a cell of this row holds a value."""
        self.zero(value - self.here[column])

    def leads_to(self, column: Column, value: Ext) -> None:
        """State that the next row's cell holds a value, if there is a next row."""
        self.stated.append(self.transition * (value - self.after[column]))

    def within(self, ladder: Ladder, value: Ext) -> None:
        """State that a value is the sum of a ladder's digits, the extra ones on a flagged row."""
        reached = _sum(ladder.base, self.here)
        if ladder.extra:
            extra = _sum(ladder.extra, self.here)
            reached = reached + extra
            self.zero(extra * negated(self.here[self.violating]))
        self.zero(value - reached)

    def either(self, dual: Dual, flag: Ext, value: Ext) -> None:
        """State that a value is the sum of digits at the weights that a flag chooses."""
        plain, flagged = (_sum(digits, self.here) for digits in (dual.plain, dual.flagged))
        self.zero(value - plain - flag * (flagged - plain))

    def spread(self, digits: Sequence[Column], weights: Sequence[Ext], value: Ext) -> None:
        """State that a value is the sum of digits at weights that differ from row to row."""
        parts = zip(digits, weights, strict=True)
        self.zero(value - total(self.here[digit] * weight for digit, weight in parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What constraints are evaluated on: two rows, the public columns, and two selectors."""

    here: Sequence[Ext]
    next: Sequence[Ext]
    public: Sequence[Ext]
    first: Ext  # not zero on the first row only
    transition: Ext  # zero on the last row only
    last: Ext  # not zero on the last row only
    violating: Column
    stated: list[Ext] = field(default_factory=list, repr=False)

    def member(self, digit: Digit) -> None:
        """State that a cell holds one of the values of its digit."""
        value, top = self.here[digit.column], digit.radix - 1
        pair = value * (value - top)
        product = pair
        for low in range(1, digit.radix // 2):
            product = product * (pair + low * (top - low))  # (value - low) (value - (top - low))
        if digit.radix % 2:
            product = product * (value - top // 2)
        self.stated.append(product)

    def every_row(self) -> RowPair:
        """Every row, with the one after it."""
        return RowPair(
            here=self.here,
            after=self.next,
            public=self.public,
            transition=self.transition,
            violating=self.violating,
            stated=self.stated,
        )

    def first_row(self) -> RowPair:
        """The first row."""
        return replace(self.every_row(), only=self.first)

    def last_row(self) -> RowPair:
        """The last row."""
        return replace(self.every_row(), only=self.last)

    def following_row(self) -> RowPair:
        """Every row but the first, with the one before it."""
        return replace(
            self.every_row(),
            here=self.next,
            before=self.here,
            after=(),
            only=self.transition,
        )

    def folded(self, challenge: Ext) -> Ext:
        """Fold the values of all constraints into one, the first with the highest power."""
        value = Ext(0)
        for constraint in self.stated:
            value = value * challenge + constraint
        return value


def negated(value: Ext) -> Ext:
    """Return one less a value."""
    return 1 - value


def total(values: Iterable[Ext]) -> Ext:
    """Return a sum."""
    return sum(values, Ext(0))


def _sum(digits: Iterable[Digit], cells: Sequence[Ext]) -> Ext:
    return total(cells[digit.column] * digit.weight for digit in digits)
