"""Switch bands: where a register is when an actuator switches on, and when it switches off.

On a row with a switch, the register's distance from the lower end of its band is spread over
digits with the weights of that band. A switch out of band is counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sluice.attestation.systems.full.reference.columns import (
    Column,
    ColumnPlan,
    spread_digits,
    spread_weights,
)
from sluice.attestation.systems.full.reference.field import Ext
from sluice.attestation.systems.full.reference.gadgets.channels import Channels
from sluice.attestation.systems.full.reference.rows import RowPair, negated, total
from sluice.attestation.systems.full.reference.statement import (
    StatedSwitchBand,
    StatementDocument,
)

__all__ = ["SwitchBands"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A switch band and where its parts are."""

    rule: StatedSwitchBand
    violating: Column
    digits: list[Column]

    def weights(self, band: Sequence[int]) -> list[int]:
        """Return the weights of the digits for one of the bands."""
        return spread_weights(band[1] - band[0], len(self.digits))


class SwitchBands:
    """Every switch band."""

    def __init__(self, statement: StatementDocument, columns: ColumnPlan) -> None:
        self._bands: list[_Placed] = []
        for rule in statement.switches:
            widest = max(rule.on[1] - rule.on[0], rule.off[1] - rule.off[0])
            violating = columns.flag()
            digits = columns.spread(spread_digits(widest))
            self._bands.append(_Placed(rule=rule, violating=violating, digits=digits))

    @property
    def violating(self) -> list[Column]:
        """The flags of switches out of band, rule by rule."""
        return [each.violating for each in self._bands]

    def following(self, channels: Channels, rows: RowPair) -> None:
        """A switch is in its band, or counted, or on a row that starts a segment."""
        for band in self._bands:
            before, here = (_runs(band.rule, channels, row) for row in (rows.before, rows.here))
            judged = negated(rows.here[band.violating])
            if channels.start is not None:
                judged = judged * negated(rows.here[channels.start])
            went_on = judged * negated(before) * here
            went_off = judged * before * negated(here)
            deciding = rows.before if band.rule.before else rows.here
            reading = channels.register(deciding, band.rule.register)
            low_on, low_off = band.rule.on[0], band.rule.off[0]
            value = went_on * (reading - low_on) + went_off * (reading - low_off)
            on, off = band.weights(band.rule.on), band.weights(band.rule.off)
            weights = [went_off * (b - a) + a for a, b in zip(on, off, strict=True)]
            rows.spread(band.digits, weights, value)


def _runs(rule: StatedSwitchBand, channels: Channels, cells: Sequence[Ext]) -> Ext:
    """Return one where the actuator shows a code that counts as on."""
    return total(channels.shows(cells, rule.actuator, code) for code in rule.codes)
