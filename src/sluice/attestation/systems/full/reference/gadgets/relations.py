"""Rules about one row and the row before it: bounds, ties, rates, balances."""

from collections.abc import Sequence

from sluice.attestation.systems.full.reference.columns import ColumnPlan, Dual, Ladder
from sluice.attestation.systems.full.reference.field import Ext
from sluice.attestation.systems.full.reference.gadgets.channels import Channels, own_bound
from sluice.attestation.systems.full.reference.rows import RowPair, negated, total
from sluice.attestation.systems.full.reference.statement import (
    REGISTER_TOP,
    IndicatorTerm,
    RegisterTerm,
    StatedBalance,
    StatedBound,
    StatedRate,
    StatedResidual,
    StatedTie,
    StatementDocument,
)

__all__ = ["Relations", "residual_of"]


class _Tolerance:
    """A value is within a usual limit either way, or within a severe one on a flagged row."""

    def __init__(self, usual: int, severe: int, columns: ColumnPlan) -> None:
        self._usual, self._further = usual, severe - usual
        either = columns.dual(2 * usual, 2 * severe) if usual < severe else None
        self._digits: Dual | Ladder = either or columns.ladder(2 * usual, 2 * self._further)

    def hold(self, rows: RowPair, value: Ext) -> None:
        flag = rows.here[rows.violating]
        above = value + flag * self._further + self._usual
        if isinstance(self._digits, Dual):
            rows.either(self._digits, flag, above)
        else:
            rows.within(self._digits, above)


class Relations:
    """Every bound, rate, balance and tie.

    A rate that no step can break has no columns, and neither has a bound that a register's own
    digits keep.
    """

    def __init__(self, statement: StatementDocument, columns: ColumnPlan) -> None:
        self._bounds: list[tuple[StatedBound, Ladder]] = [
            (each, columns.ladder(each.high - each.low))
            for at, each in enumerate(statement.bounds)
            if own_bound(statement, each.register) != at
        ]
        self._rates: list[tuple[StatedRate, _Tolerance]] = [
            (each, _Tolerance(each.usual, min(each.severe, REGISTER_TOP), columns))
            for each in statement.rates
            if each.usual < REGISTER_TOP
        ]
        self._balances: list[tuple[StatedBalance, _Tolerance]] = [
            (each, _Tolerance(each.usual, each.severe, columns)) for each in statement.balances
        ]
        self._ties: list[tuple[StatedTie, _Tolerance]] = [
            (each, _Tolerance(each.usual, each.severe, columns)) for each in statement.ties
        ]

    def every(self, channels: Channels, rows: RowPair) -> None:
        """A register is within its bounds, and near what ties predict, or the row is flagged."""
        for bound, ladder in self._bounds:
            if bound.severe:
                held = channels.judged(rows)
            else:
                held = channels.on_batch(rows) * negated(rows.here[channels.violating])
            above = channels.register(rows.here, bound.register) - bound.low
            rows.within(ladder, held * above)
        for tie, tolerance in self._ties:
            shown = channels.register(rows.here, tie.register) * tie.weight
            predicted = _sum(tie.terms, channels, rows.here) + tie.constant
            tolerance.hold(rows, channels.judged(rows) * (shown - predicted))

    def following(self, channels: Channels, rows: RowPair) -> None:
        """Where a row follows in the same segment, step and residual are within tolerance."""
        follows = channels.following(rows)
        for rate, tolerance in self._rates:
            step = channels.register(rows.here, rate.register) - channels.register(
                rows.before, rate.register
            )
            tolerance.hold(rows, follows * step)
        for balance, tolerance in self._balances:
            tolerance.hold(rows, follows * residual_of(balance.residual, channels, rows))


def residual_of(rule: StatedResidual, channels: Channels, rows: RowPair) -> Ext:
    """Return what a level moved, less what its terms and its constant say."""
    risen = channels.register(rows.here, rule.level) - channels.register(rows.before, rule.level)
    flow = _sum(rule.terms, channels, rows.here)
    if rule.averaged:
        flow = flow + _sum(rule.terms, channels, rows.before)
    return risen * rule.weight - flow - rule.constant


def _sum(
    terms: Sequence[RegisterTerm | IndicatorTerm], channels: Channels, cells: Sequence[Ext]
) -> Ext:
    """Return the weighted registers and indicators of a row."""
    flow = Ext(0)
    for term in terms:
        if isinstance(term, RegisterTerm):
            read = term.register
            flow = flow + channels.register(cells, read.register) * read.weight
        else:
            shown = term.indicator
            found = total(channels.shows(cells, shown.actuator, code) for code in shown.codes)
            flow = flow + found * shown.weight
    return flow
