"""Window rules: residuals summed over several rows.

Windows begin on public rows, half a window apart. Two sums are carried: since the last such row
and since the one before it. Where a window ends, the second is its sum.
"""

from dataclasses import dataclass

from sluice.attestation.systems.full.reference.columns import Column, ColumnPlan, Ladder
from sluice.attestation.systems.full.reference.field import Ext
from sluice.attestation.systems.full.reference.gadgets.channels import Channels
from sluice.attestation.systems.full.reference.gadgets.relations import residual_of
from sluice.attestation.systems.full.reference.rows import RowPair, negated
from sluice.attestation.systems.full.reference.statement import (
    StatedResidual,
    StatedWindow,
    StatementDocument,
)

__all__ = ["Anchor", "WindowChecks"]


@dataclass(frozen=True, slots=True)
class Boundary:
    """One where a window of so many rows begins."""

    window: int

    def on(self, row: int, rows: int) -> bool:
        """Every half window; it does not depend on the batch."""
        del rows
        return row % self.window in (0, self.window // 2)


@dataclass(frozen=True, slots=True)
class Anchor:
    """One where a window of so many rows ends and is judged."""

    window: int

    def on(self, row: int, rows: int) -> bool:
        """Whether a whole window lies behind the row."""
        return self.window <= row < rows and row % self.window in (0, self.window // 2)


@dataclass(frozen=True, slots=True)
class AnchorComing:
    """One where a window ends on the next row."""

    window: int

    def on(self, row: int, rows: int) -> bool:
        """Whether it does."""
        return Anchor(self.window).on(row + 1, rows)


class _Sums:
    """Something summed since the last boundary and since the one before."""

    def __init__(self, window: int, columns: ColumnPlan) -> None:
        self._boundary = columns.schedule(Boundary(window))
        self._since_last, self.since_before = columns.cells(2)

    def first(self, rows: RowPair) -> None:
        rows.holds(self._since_last, 0)
        rows.holds(self.since_before, 0)

    def following(self, rows: RowPair, added: Ext) -> None:
        boundary = rows.public[self._boundary]
        last, before = rows.before[self._since_last], rows.before[self.since_before]
        rows.holds(self._since_last, negated(boundary) * last + added)
        rows.holds(self.since_before, boundary * last + negated(boundary) * before + added)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A window rule and where its parts are."""

    residual: StatedResidual
    anchor: int
    sums: _Sums
    jumps: _Sums | None
    violating: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """A ladder for the sums of one rule, or of two rules in turn.

    Two rules of one tolerance whose windows all end on even rows share a ladder: the sums of the
    first are on it on their own rows, those of the second a row later.
    """

    own: _Placed
    later: _Placed | None
    coming: int
    usual: int
    ladder: Ladder


class WindowChecks:
    """Every window rule, and how many segments started in the windows of each length."""

    def __init__(self, statement: StatementDocument, columns: ColumnPlan) -> None:
        self._jumps: dict[int, _Sums] = {}
        self._windows: list[_Placed] = []
        for rule in statement.windows:
            self._windows.append(self._placed(rule, statement, columns))
        self._judged: list[_Judged] = []
        for own, later in _pairs(statement.windows):
            rule = statement.windows[own]
            coming = -1 if later is None else columns.schedule(AnchorComing(rule.rows))
            self._judged.append(
                _Judged(
                    own=self._windows[own],
                    later=None if later is None else self._windows[later],
                    coming=coming,
                    usual=rule.usual,
                    ladder=columns.ladder(2 * rule.usual),
                )
            )

    def _placed(
        self, rule: StatedWindow, statement: StatementDocument, columns: ColumnPlan
    ) -> _Placed:
        anchor, sums = columns.schedule(Anchor(rule.rows)), _Sums(rule.rows, columns)
        if statement.jumps and rule.rows not in self._jumps:
            self._jumps[rule.rows] = _Sums(rule.rows, columns)
        return _Placed(
            residual=rule.residual,
            anchor=anchor,
            sums=sums,
            jumps=self._jumps.get(rule.rows),
            violating=columns.flag(),
        )

    @property
    def violating(self) -> list[Column]:
        """The flags of windows that count as violating, rule by rule."""
        return [each.violating for each in self._windows]

    def first(self, rows: RowPair) -> None:
        """Nothing is summed yet."""
        for sums in (*(each.sums for each in self._windows), *self._jumps.values()):
            sums.first(rows)

    def following(self, channels: Channels, rows: RowPair) -> None:
        """The row's residual is added to both sums, and so is a start."""
        for window in self._windows:
            window.sums.following(rows, residual_of(window.residual, channels, rows))
        for sums in self._jumps.values():
            assert channels.start is not None
            sums.following(rows, rows.here[channels.start])

    def every(self, rows: RowPair) -> None:
        """A window counts as violating, or no segment started in it and its sum is small."""
        for window in self._windows:
            anchor, violating = rows.public[window.anchor], rows.here[window.violating]
            rows.zero(violating * negated(anchor))  # only a window that ends counts
            if window.jumps is not None:
                rows.zero(anchor * negated(violating) * rows.here[window.jumps.since_before])
        for judged in self._judged:
            if judged.later is None:
                own = judged.own
                flag, sum_ = rows.here[own.violating], rows.here[own.sums.since_before]
                value = rows.public[own.anchor] * negated(flag) * sum_
                rows.within(judged.ladder, value + judged.usual)

    def in_turn(self, rows: RowPair) -> None:
        """The same for rules that share a ladder."""
        for judged in self._judged:
            if (later := judged.later) is not None:
                own = judged.own
                flag, sum_ = rows.here[own.violating], rows.here[own.sums.since_before]
                value = rows.public[judged.coming] * negated(flag) * sum_
                flag, sum_ = rows.before[later.violating], rows.before[later.sums.since_before]
                value = value + rows.public[later.anchor] * negated(flag) * sum_
                rows.within(judged.ladder, value + judged.usual)


def _pairs(rules: list[StatedWindow]) -> list[tuple[int, int | None]]:
    """Return which rules share a ladder, each with the first that fits it."""
    pairs: list[tuple[int, int | None]] = []
    for at, rule in enumerate(rules):
        for place, (first, second) in enumerate(pairs):
            fits = second is None and rules[first].rows % 4 == 0
            if fits and rules[first].usual == rule.usual and rule.rows % 4 == 0:
                pairs[place] = (first, at)
                break
        else:
            pairs.append((at, None))
    return pairs
