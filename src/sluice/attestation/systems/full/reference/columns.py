"""Columns of the trace, public columns, and how a range becomes digits."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from sluice.attestation.systems.full.reference.parameters import RADIX

__all__ = [
    "Column",
    "ColumnPlan",
    "Coming",
    "Digit",
    "Dual",
    "Ladder",
    "Last",
    "Real",
    "Schedule",
    "dual_shape",
    "spread_digits",
    "spread_weights",
]

Column = int
MOST_DIGITS = 21
"""No limit below 2^63 takes more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """A column with one of the values 0 to radix - 1, and what one of it is worth in a sum."""

    column: Column
    weight: int
    radix: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Digits whose sums are exactly the integers from 0 to a limit.

    The extra digits reach further. Only a flagged row may use them.
    """

    base: tuple[Digit, ...]
    extra: tuple[Digit, ...]

    @property
    def digits(self) -> tuple[Digit, ...]:
        """Every digit, the base first."""
        return self.base + self.extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Dual:
    """Digits with two sets of weights: a flag chooses between two limits that their sums reach."""

    plain: tuple[Digit, ...]
    flagged: tuple[Digit, ...]


class Schedule(Protocol):
    """A public column: both sides compute it from the number of rows."""

    def on(self, row: int, rows: int) -> bool:
        """Whether it is one on a row of the trace, for a batch of so many rows."""
        ...


@dataclass(frozen=True, slots=True)
class Real:
    """One on the rows of the batch, zero on the padding."""

    def on(self, row: int, rows: int) -> bool:
        """Whether the row belongs to the batch."""
        return row < rows


@dataclass(frozen=True, slots=True)
class Coming:
    """One where the next row belongs to the batch."""

    def on(self, row: int, rows: int) -> bool:
        """Whether the next row does."""
        return row + 1 < rows


@dataclass(frozen=True, slots=True)
class Last:
    """One on the batch's last row."""

    def on(self, row: int, rows: int) -> bool:
        """Whether it is the last."""
        return row + 1 == rows


@dataclass(slots=True, kw_only=True)
class ColumnPlan:
    """Gives out columns, one after the other."""

    width: int = 0
    digits: list[Digit] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)

    def cell(self) -> Column:
        """Give out a column for any element."""
        self.width += 1
        return self.width - 1

    def cells(self, count: int) -> list[Column]:
        """Give out several."""
        return [self.cell() for _ in range(count)]

    def digit(self, radix: int, weight: int = 1) -> Digit:
        """Give out a column for a digit."""
        self.digits.append(Digit(column=self.cell(), weight=weight, radix=radix))
        return self.digits[-1]

    def flag(self) -> Column:
        """Give out a column for zero or one."""
        return self.digit(2).column

    def ladder(self, reach: int, beyond: int = 0) -> Ladder:
        """Give out digits for 0 to `reach`, and for `beyond` more on a flagged row."""
        base = tuple(self.digit(radix, weight) for weight, radix in _shape(0, reach))
        extra = tuple(self.digit(radix, weight) for weight, radix in _shape(reach, beyond))
        return Ladder(base=base, extra=extra)

    def dual(self, plain: int, flagged: int) -> Dual | None:
        """Give out digits for 0 to `plain`, or to `flagged` with a flag; none if none can."""
        shape = dual_shape(plain, flagged)
        if shape is None:
            return None
        count, last = shape
        radices = [RADIX] * count + [last]
        given = [self.digit(radix) for radix in radices]
        sides = (_mixed_weights(reach, count, last) for reach in (plain, flagged))
        without, with_flag = (
            tuple(
                Digit(column=digit.column, weight=weight, radix=digit.radix)
                for digit, weight in zip(given, weights or (), strict=True)
            )
            for weights in sides
        )
        return Dual(plain=without, flagged=with_flag)

    def spread(self, count: int) -> list[Column]:
        """Give out digits of the largest radix whose weights differ from row to row."""
        return [self.digit(RADIX).column for _ in range(count)]

    def schedule(self, schedule: Schedule) -> int:
        """Return the place of a public column, which is named once."""
        if schedule not in self.schedules:
            self.schedules.append(schedule)
        return self.schedules.index(schedule)


def dual_shape(plain: int, flagged: int) -> tuple[int, int] | None:
    """Return how many digits of the largest radix, and the radix of the one after them.

    There are as few digits as have weights for both limits, and then the smallest last radix.
    """
    for count in range(1, MOST_DIGITS):
        for last in range(2, RADIX):
            if all(_mixed_weights(reach, count, last) for reach in (plain, flagged)):
                return count, last
    return None


def _mixed_weights(reach: int, count: int, last: int) -> list[int] | None:
    """Return weights of `count` digits of the largest radix and one of radix `last`.

    Their sums are exactly 0 to `reach`, and none of them is zero. The last one is as small as it
    can be.
    """
    top = RADIX - 1
    least = max(1, -((RADIX**count - 1 - reach) // (last - 1)))
    for weight in range(least, least + top):
        others = reach - weight * (last - 1)
        if others % top == 0:
            fits = others >= top * count and weight <= others + 1
            return [*spread_weights(others, count), weight] if fits else None
    return None


def spread_digits(reach: int) -> int:
    """Return how many digits of the largest radix reach so far."""
    count = 1
    while reach >= RADIX**count:
        count += 1
    return count


def spread_weights(reach: int, count: int) -> list[int]:
    """Return weights of so many digits of the largest radix that reach exactly so far.

    Each weight is as large as it can be without a gap, and leaves at least one for each digit
    after it.
    """
    left, below, weights = reach // (RADIX - 1), 0, []
    for after in reversed(range(count)):
        weights.append(min(below + 1, max(left - after, 0)))
        left -= weights[-1]
        below += weights[-1] * (RADIX - 1)
    return weights


def _shape(below: int, reach: int) -> Iterator[tuple[int, int]]:
    """Yield weight and radix of digits that reach exactly `reach` above what is reached below.

    No weight exceeds what the digits before it reach, plus one, so there is no gap. The last
    digit has the smallest radix that ends exactly at the limit; the others have the largest.
    """
    while reach:
        for radix in range(2, RADIX + 1):
            weight, rest = divmod(reach, radix - 1)
            if not rest and weight <= below + 1:
                break
        else:
            weight, radix = min(below + 1, reach // (RADIX - 1)), RADIX
        yield weight, radix
        below += weight * (radix - 1)
        reach -= weight * (radix - 1)
