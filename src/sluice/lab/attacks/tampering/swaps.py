"""Channels of the same kind that change places: two tanks, two pressures, two analysers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sluice.admission import Gate
from sluice.arrays import Floats
from sluice.errors import RecordError
from sluice.lab.attacks.tampering.bounds import bounds_of
from sluice.lab.attacks.tampering.search import strongest
from sluice.telemetry import Channel, Record, Role

__all__ = ["ChannelSwap", "TankSwap"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSwap:
    """Swap measured channels of one role and unit, as many pairs as are admitted.

    Pairs that differ most come first: a swap of equal readings changes nothing. Pairs that leave
    each other's bounds are not tried. No channel is swapped twice.
    """

    gate: Gate | None = None
    most_pairs: int = 100  # tried

    def __call__(self, record: Record, *, seed: int) -> Record:  # noqa: ARG002 - as every attack
        """Return the record with channels in each other's place; the seed is not used."""
        swappable = [channel for channel in record.channels if not channel.role.discrete]
        return _swapped(record, swappable, self.gate, most_pairs=self.most_pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class TankSwap:
    """Swap the levels of tanks, as many pairs as are admitted."""

    gate: Gate | None = None
    most_pairs: int = 100

    def __call__(self, record: Record, *, seed: int) -> Record:  # noqa: ARG002 - as every attack
        """Return the record with levels in each other's place; the seed is not used."""
        return _swapped(record, record.of_role(Role.LEVEL), self.gate, most_pairs=self.most_pairs)


def _swapped(
    record: Record,
    swappable: list[Channel] | tuple[Channel, ...],
    gate: Gate | None,
    *,
    most_pairs: int,
) -> Record:
    pairs = [pair for pair in sorted(_pairs(record, swappable), reverse=True) if pair[0] > 0]
    within = [pair for pair in pairs if _within_bounds(record, pair[1], pair[2], gate)]
    parts = [_Swap(one, other) for _, one, other in (within or pairs)[:most_pairs]]
    if not parts:
        raise RecordError(
            f"record {record.name!r} has no two channels of one role and unit that differ; there "
            "is nothing to swap"
        )
    if gate is None:
        return strongest(record, _disjoint(parts), None)
    alone = [part for part in parts if gate.judge(strongest(record, [part], None)).admitted]
    return strongest(record, _disjoint(alone) or parts[:1], gate)


@dataclass(frozen=True, slots=True)
class _Swap:
    one: int
    other: int
    variants: int = 1

    def apply(self, values: Floats, variant: int) -> None:  # noqa: ARG002 - there is only one
        values[:, [self.one, self.other]] = values[:, [self.other, self.one]]


def _disjoint(parts: list[_Swap]) -> list[_Swap]:
    chosen: list[_Swap] = []
    used: set[int] = set()
    for part in parts:
        if not used & {part.one, part.other}:
            chosen.append(part)
            used |= {part.one, part.other}
    return chosen


def _within_bounds(record: Record, one: int, other: int, gate: Gate | None) -> bool:
    """Whether each channel's readings lie in the other's bounds."""
    for shown, place in ((one, other), (other, one)):
        low, high = bounds_of(record, place, gate)
        readings = record.values[:, shown]
        if np.nanmin(readings) < low or np.nanmax(readings) > high:
            return False
    return True


def _pairs(
    record: Record, swappable: list[Channel] | tuple[Channel, ...]
) -> Iterator[tuple[float, int, int]]:
    """Yield pairs of one role and unit with their distance, in units of their joint spread."""
    for place, one in enumerate(swappable):
        for other in swappable[place + 1 :]:
            if (one.role, one.unit) != (other.role, other.unit):
                continue
            columns = record.index(one.name), record.index(other.name)
            readings = record.values[:, columns]
            spread = float(np.nanstd(readings))
            if spread > 0:
                apart = float(np.nanmean(np.abs(readings[:, 0] - readings[:, 1]))) / spread
                yield apart, *columns
