"""Couplings: an actuator's state fixes the flow past it, once it has settled."""

from collections.abc import Sequence
from dataclasses import dataclass

from sluice.attestation.systems.full.reference.columns import Column, ColumnPlan, Ladder
from sluice.attestation.systems.full.reference.field import Ext
from sluice.attestation.systems.full.reference.gadgets.channels import Channels
from sluice.attestation.systems.full.reference.parameters import RADIX
from sluice.attestation.systems.full.reference.rows import RowPair, negated, total
from sluice.attestation.systems.full.reference.statement import (
    REGISTER_TOP,
    StatedCoupling,
    StatedFlows,
    StatementDocument,
)

__all__ = ["Couplings"]

Standby = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Countdown:
    """Rows until an actuator has settled: how many, whether any, and the inverse that shows it."""

    switched: Column
    settle: int
    left: Column
    any: Column
    inverse: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A coupling and where its parts are."""

    rule: StatedCoupling
    settling: Column | None
    standby: Standby
    above_low: Ladder
    below_high: Ladder


class Couplings:
    """Every coupling; couplings of one actuator or with the same pumps share columns."""

    def __init__(self, statement: StatementDocument, columns: ColumnPlan) -> None:
        self._codes = [each.codes for each in statement.actuators]
        self._switches: dict[int, Column] = {}  # by actuator: whether it switched on this row
        self._countdowns: list[_Countdown] = []
        self._quiet: dict[Standby, list[Column]] = {}  # products of "off" over standby pumps
        self._couplings: list[_Placed] = []
        for rule in statement.couplings:
            standby = tuple((pump, off) for pump, off in rule.standby)
            settling = self._settling(rule, columns)
            if standby not in self._quiet:
                products = -(-len(standby) // (RADIX - 1)) if len(standby) > 1 else 0
                self._quiet[standby] = columns.cells(products)
            widest = _widest(rule)
            self._couplings.append(
                _Placed(
                    rule=rule,
                    settling=settling,
                    standby=standby,
                    above_low=columns.ladder(widest),
                    below_high=columns.ladder(widest),
                )
            )

    def _settling(self, rule: StatedCoupling, columns: ColumnPlan) -> Column | None:
        if rule.settle == 0:
            return None
        if rule.actuator not in self._switches:
            self._switches[rule.actuator] = columns.cell()
        switched = self._switches[rule.actuator]
        if rule.settle == 1:
            return switched
        for known in self._countdowns:
            if (known.switched, known.settle) == (switched, rule.settle):
                return known.any
        left, any_left, inverse = columns.cells(3)
        self._countdowns.append(
            _Countdown(
                switched=switched, settle=rule.settle, left=left, any=any_left, inverse=inverse
            )
        )
        return any_left

    def first(self, rows: RowPair) -> None:
        """A batch begins with every actuator unsettled."""
        for switched in self._switches.values():
            rows.holds(switched, 1)
        for countdown in self._countdowns:
            rows.holds(countdown.left, countdown.settle)

    def following(self, channels: Channels, rows: RowPair) -> None:
        """An actuator switched unless its code is the same in the same segment."""
        for actuator, switched in self._switches.items():
            same = total(
                channels.shows(rows.before, actuator, code)
                * channels.shows(rows.here, actuator, code)
                for code in range(self._codes[actuator] + 1)
            )
            if channels.start is not None:
                same = same * negated(rows.here[channels.start])
            rows.holds(switched, negated(same))
        for count in self._countdowns:
            switch = rows.here[count.switched]
            one_less = rows.before[count.left] - rows.before[count.any]
            rows.holds(count.left, switch * count.settle + negated(switch) * one_less)

    def shared(self, channels: Channels, rows: RowPair) -> None:
        """Whether rows are left to settle, and whether every standby pump is off."""
        for count in self._countdowns:
            left, any_left = rows.here[count.left], rows.here[count.any]
            inverse = rows.here[count.inverse]
            rows.zero(left * inverse - any_left)
            rows.zero(left * negated(any_left))
            rows.zero(inverse * negated(any_left))
        for standby, products in self._quiet.items():
            so_far = Ext(1)
            for at, product in enumerate(products):
                for pump, off in standby[at * (RADIX - 1) : (at + 1) * (RADIX - 1)]:
                    so_far = so_far * channels.shows(rows.here, pump, off)
                rows.holds(product, so_far)
                so_far = rows.here[product]

    def every(self, channels: Channels, rows: RowPair) -> None:
        """The flow is between the limits of the case at hand; a flag widens them."""
        for placed in self._couplings:
            self._judge(placed, channels, rows)

    def _judge(self, placed: _Placed, channels: Channels, rows: RowPair) -> None:
        violating = rows.here[channels.violating]
        judged = channels.judged(rows) * self._off(placed.standby, channels, rows.here)
        low = high = Ext(0)
        cases = _cases(placed, channels, rows.here)
        for flows, here in cases:
            severe = flows.severe or [0, REGISTER_TOP]
            usual = flows.usual or severe
            low = low + (violating * (severe[0] - usual[0]) + usual[0]) * here
            high = high + (violating * (severe[1] - usual[1]) + usual[1]) * here
        flow = channels.register(rows.here, placed.rule.flow)
        rows.within(placed.above_low, judged * (flow - low))
        rows.within(placed.below_high, judged * (high - flow))
        flagged_only = [here for flows, here in cases if flows.severe and not flows.usual]
        if flagged_only:  # no flow goes with this case on a row without a flag
            rows.zero(judged * total(flagged_only) * negated(violating))
        never = [here for flows, here in cases if not flows.severe]
        if never:  # no flow goes with this case at all
            rows.zero(judged * total(never))

    def unsteady(self, channels: Channels, rows: RowPair) -> list[Ext]:
        """Return one for each coupling on a row in transition or beside a running pump."""
        return [
            negated(
                self._off(placed.standby, channels, rows.here)
                * _steady(placed, channels, rows.here)
            )
            for placed in self._couplings
        ]

    def _off(self, standby: Standby, channels: Channels, cells: Sequence[Ext]) -> Ext:
        """Return one where every standby pump is off."""
        if products := self._quiet[standby]:
            return cells[products[-1]]
        for pump, off in standby:
            return channels.shows(cells, pump, off)
        return Ext(1)


def _steady(placed: _Placed, channels: Channels, cells: Sequence[Ext]) -> Ext:
    """Return one where the actuator has settled in a steady code."""
    shown = total(
        channels.shows(cells, placed.rule.actuator, each.code) for each in placed.rule.steady
    )
    return shown if placed.settling is None else shown * negated(cells[placed.settling])


def _cases(
    placed: _Placed, channels: Channels, cells: Sequence[Ext]
) -> list[tuple[StatedFlows, Ext]]:
    """Return each case with one where it is the case: steady in a code, or in transition."""
    calm = Ext(1) if placed.settling is None else negated(cells[placed.settling])
    cases = [
        (each.flows, channels.shows(cells, placed.rule.actuator, each.code) * calm)
        for each in placed.rule.steady
    ]
    return [*cases, (placed.rule.envelope, negated(_steady(placed, channels, cells)))]


def _widest(rule: StatedCoupling) -> int:
    """Return how far apart the limits of any case are."""
    cases = [*(each.flows for each in rule.steady), rule.envelope]
    return max(
        flows.severe[1] - flows.severe[0] if flows.severe else REGISTER_TOP for flows in cases
    )
