"""What a row holds: registers, codes, where a segment starts, and the flags."""

from collections.abc import Sequence

from sluice.attestation.systems.full.reference.columns import (
    Column,
    ColumnPlan,
    Coming,
    Digit,
    Real,
    dual_shape,
)
from sluice.attestation.systems.full.reference.field import Ext
from sluice.attestation.systems.full.reference.parameters import RADIX
from sluice.attestation.systems.full.reference.rows import RowPair, negated, total
from sluice.attestation.systems.full.reference.statement import StatementDocument

__all__ = ["Channels", "own_bound"]


def own_bound(statement: StatementDocument, register: int) -> int | None:
    """Return the bound that a register's own digits keep on rows that are not severe.

    It is the register's first bound that only a severe row may break, if digits can keep it.
    """
    limits = statement.registers[register]
    for at, bound in enumerate(statement.bounds):
        if bound.register == register and bound.severe:
            inside = limits.low <= bound.low and bound.high <= limits.high
            if not statement.severe or not inside:
                return None
            shape = dual_shape(bound.high - bound.low, limits.high - limits.low)
            return None if shape is None else at
    return None


class Channels:
    """The channels and flags of a row.

    A register is its digits. If it has a bound that only a severe row may break, the digits have
    other weights on a row that is not severe, and reach no further than the bound. An actuator
    that a rule reads has a flag for each code; one that no rule reads has the index of its code,
    if the index fits a digit.
    """

    def __init__(self, statement: StatementDocument, columns: ColumnPlan) -> None:
        self._lows = [each.low for each in statement.registers]
        self._digits: list[tuple[Digit, ...]] = []
        self._bounded: dict[int, tuple[int, tuple[Digit, ...]]] = {}
        for at, limits in enumerate(statement.registers):
            reach, own = limits.high - limits.low, own_bound(statement, at)
            if own is None:
                self._digits.append(columns.ladder(reach).digits)
            else:
                bound = statement.bounds[own]
                dual = columns.dual(bound.high - bound.low, reach)
                assert dual is not None
                self._digits.append(dual.flagged)
                self._bounded[at] = bound.low, dual.plain
        self._codes: list[list[Column]] = []
        self._indices: dict[int, Column] = {}
        for at, each in enumerate(statement.actuators):
            if not each.read and each.codes < RADIX:
                self._indices[at] = columns.digit(each.codes + 1).column
                self._codes.append([])
            else:
                self._codes.append([columns.flag() for _ in range(each.codes)])
        self.start = columns.flag() if statement.jumps else None
        self.violating = columns.flag()
        self.severe = columns.flag() if statement.severe else None
        self._real, self._coming = columns.schedule(Real()), columns.schedule(Coming())
        self._idle = statement.idle
        self._illegal = [
            (at, code)
            for at, each in enumerate(statement.actuators)
            if each.read
            for code in range(each.codes + 1)
            if code not in each.legal
        ]

    def register(self, cells: Sequence[Ext], at: int) -> Ext:
        """Return a register on a row."""
        value = _sum(cells, self._digits[at]) + self._lows[at]
        if at not in self._bounded or self.severe is None:
            return value
        low, digits = self._bounded[at]
        bounded = _sum(cells, digits) + low
        return bounded + cells[self.severe] * (value - bounded)

    def above_low(self, cells: Sequence[Ext], at: int) -> Ext:
        """Return a register less its lower limit."""
        return self.register(cells, at) - self._lows[at]

    def shows(self, cells: Sequence[Ext], actuator: int, code: int) -> Ext:
        """Return one where an actuator shows a code; the last index is any other code."""
        flags = self._codes[actuator]
        if code < len(flags):
            return cells[flags[code]]
        return negated(total(cells[flag] for flag in flags))

    def index(self, cells: Sequence[Ext], actuator: int) -> Ext:
        """Return the index of the code that an actuator shows."""
        if actuator in self._indices:
            return cells[self._indices[actuator]]
        codes = range(len(self._codes[actuator]) + 1)
        return total(self.shows(cells, actuator, code) * code for code in codes)

    def on_batch(self, rows: RowPair) -> Ext:
        """Return one on the rows of the batch."""
        return rows.public[self._real]

    def judged(self, rows: RowPair) -> Ext:
        """Return one on a row of the batch that is not severe."""
        return self._unless_severe(rows, self.on_batch(rows))

    def following(self, rows: RowPair) -> Ext:
        """Return one on a row of the batch that follows in the same segment and is not severe."""
        value = rows.public[self._coming]
        if self.start is not None:
            value = value * negated(rows.here[self.start])
        return self._unless_severe(rows, value)

    def _unless_severe(self, rows: RowPair, value: Ext) -> Ext:
        return value if self.severe is None else value * negated(rows.here[self.severe])

    def first(self, rows: RowPair) -> None:
        """On the first row a segment starts, and so the row is violating."""
        rows.zero(negated(rows.here[self.violating if self.start is None else self.start]))

    def every(self, rows: RowPair) -> None:
        """At most one code shows; a start, a wrong code or a severe row is violating."""
        for at, flags in enumerate(self._codes):
            if at not in self._indices:
                known = total(rows.here[flag] for flag in flags)
                rows.zero(known * (known - 1))
        violating = rows.here[self.violating]
        silent = self.on_batch(rows) * negated(violating)
        rows.zero(silent * total(self.shows(rows.here, at, code) for at, code in self._illegal))
        for idle in self._idle:
            rows.zero(silent * (self.index(rows.here, idle.actuator) - idle.code))
        if self.start is not None:
            rows.zero(silent * rows.here[self.start])
        if self.severe is not None:
            rows.zero(rows.here[self.severe] * negated(violating))


def _sum(cells: Sequence[Ext], digits: Sequence[Digit]) -> Ext:
    return total(cells[digit.column] * digit.weight for digit in digits)
