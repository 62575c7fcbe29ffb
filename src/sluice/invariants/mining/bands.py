"""Switch bands: the readings at which an actuator is switched on, and off."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sluice.arrays import Floats
from sluice.invariants.relations import SwitchBand
from sluice.invariants.residuals import switch_rows
from sluice.invariants.ruleset import Dropped
from sluice.telemetry import Channel, Record, Role

__all__ = ["band_of", "mine_bands"]

LEAST_SWITCHES = 8  # in either direction
OFFSET = 0.1  # of the reading's range: a band must notice readings that are wrong by this
NOTICED = 0.08  # of the switches, out of band with such an offset, at least
NARROW = 0.4  # of a pressure's range: either band, with its room
FOLLOWS = 0.5  # of the rows of each state, with a pressure as at a switch: the actuator makes it
LEAST_ROOM = 0.04  # of the reading's range, on either side, for as many switches as
ROOMY = 32  # these; more switches show the edges better
ROOM = 8.0  # of a band's width over the number of switches: few switches show little of a band
MOST_ROOM = 1.0  # of a band's width
WIDE = 0.8  # of the reading's range: a wider band says little but where it ends
OUTERMOST = 8  # switches at an end: how far apart they are is the room of a wide band's end
CROWDED = 2.0  # times as many switches near the ends of a wide band as other rows


@dataclass(frozen=True, slots=True)
class _Readings:
    """The readings at switches in one direction, then in the other."""

    on: Floats
    off: Floats

    @property
    def enough(self) -> bool:
        return min(self.on.size, self.off.size) >= LEAST_SWITCHES

    @property
    def widest(self) -> float:
        return max(float(np.ptp(self.on)), float(np.ptp(self.off)))


def mine_bands(record: Record) -> tuple[tuple[SwitchBand, ...], tuple[Dropped, ...]]:
    """Find for each actuator the level, else the pressure, that best tells when it switches."""
    found, dropped = [], []
    for actuator in record.of_role(Role.ACTUATOR):
        band = _best(record, actuator, Role.LEVEL) or _best(record, actuator, Role.PRESSURE)
        if band:
            found.append(band)
        elif np.nanstd(record.column(actuator.name)) > 0:
            why = "it switches at no particular level or pressure, or too rarely to tell"
            dropped.append(Dropped(name=f"{actuator.name} switches", why=why))
    return tuple(found), tuple(dropped)


def _best(record: Record, actuator: Channel, role: Role) -> SwitchBand | None:
    """Return the band that notices an offset of its reading best, if it does so both ways.

    A band may be wide and still have a sharp edge: between hourly rows a level passes the reading
    at which its pump starts by much, but the row before was never below it. A pressure also follows
    the actuator, so a wide band of pressures says little about when it switches, and neither does
    one in which the pressure is on most other rows too.
    """
    best: tuple[float, SwitchBand] | None = None
    for channel in record.of_role(role):
        shown = record.column(channel.name)
        span = float(np.fmax.reduce(shown) - np.fmin.reduce(shown))
        for before in (True, False):
            band = band_of(_empty(actuator, channel, before=before), [record])
            if band is None or not span > 0:
                continue
            widest = max(band.on_high - band.on_low, band.off_high - band.off_low)
            if role is Role.PRESSURE and (widest > NARROW * span or _follows(band, record)):
                continue
            readings, offsets = _readings(band, [record]), (OFFSET * span, -OFFSET * span)
            if readings.widest > WIDE * span and not _crowded(band, record, readings, offsets):
                continue
            noticed = min(_outside(band, readings, by) for by in offsets)
            if noticed >= NOTICED and (best is None or noticed > best[0]):
                best = (noticed, band)
    return best[1] if best else None


def _crowded(
    band: SwitchBand, record: Record, readings: _Readings, offsets: tuple[float, ...]
) -> bool:
    """Whether switches lie near the ends of the band more often than other rows do.

    A pump that also stops for other reasons switches at any level, and most often where its level
    stops it. One that this level does not control switches at any level alike: its band shows only
    the range of the level.
    """
    on = np.isin(np.rint(record.column(band.actuator)), band.on)
    shown = record.column(band.level)
    others = _Readings(shown[~on], shown[on])
    return all(
        _outside(band, readings, by) >= CROWDED * _outside(band, others, by) for by in offsets
    )


def _follows(band: SwitchBand, record: Record) -> bool:
    """Whether the reading, on most rows of either state, is as it is at a switch.

    The row before a switch belongs to the state that ends, the row of it to the one that begins.
    """
    on = np.isin(np.rint(record.column(band.actuator)), band.on)
    shown = record.column(band.level)
    at_off = on if band.before else ~on
    states = (at_off, (band.off_low, band.off_high)), (~at_off, (band.on_low, band.on_high))
    return all(
        float(np.mean((shown[there] >= low) & (shown[there] <= high))) > FOLLOWS
        for there, (low, high) in states
    )


def _outside(band: SwitchBand, readings: _Readings, offset: float) -> float:
    """Return the share of switches out of band if every reading were wrong by an offset."""
    on, off = readings.on + offset, readings.off + offset
    outside = np.count_nonzero((on < band.on_low) | (on > band.on_high))
    outside += np.count_nonzero((off < band.off_low) | (off > band.off_high))
    return outside / (on.size + off.size)


def band_of(band: SwitchBand, blocks: Sequence[Record]) -> SwitchBand | None:
    """Return the band with limits from these rows; `None` if they hold too few switches."""
    readings = _readings(band, blocks)
    if not readings.enough:
        return None
    shown = np.concatenate([block.column(band.level) for block in blocks])
    least = LEAST_ROOM * float(np.fmax.reduce(shown) - np.fmin.reduce(shown))
    (on_low, on_high), (off_low, off_high) = (
        _ends(part, least, wide=WIDE * least / LEAST_ROOM) for part in (readings.on, readings.off)
    )
    return replace(band, on_low=on_low, on_high=on_high, off_low=off_low, off_high=off_high)


def _ends(readings: Floats, least: float, *, wide: float) -> tuple[float, float]:
    """Return the readings between which later switches are expected.

    A wide band with room in proportion would end nowhere. Its ends get the room that the outermost
    switches show: little, where a level stops a pump that mostly stops for other reasons.
    """
    ordered = np.sort(readings)
    width = float(np.ptp(readings))
    below = above = min(ROOM / readings.size, MOST_ROOM) * width
    if width > wide:
        outermost = min(OUTERMOST, readings.size - 1)
        below = min(below, float(ordered[outermost] - ordered[0]))
        above = min(above, float(ordered[-1] - ordered[-1 - outermost]))
    always = least * min(1.0, float(np.sqrt(ROOMY / readings.size)))
    return float(ordered[0]) - (below + always), float(ordered[-1]) + (above + always)


def _empty(actuator: Channel, channel: Channel, *, before: bool) -> SwitchBand:
    assert actuator.codes is not None
    return SwitchBand(
        name=f"{actuator.name} by {channel.name}",
        actuator=actuator.name,
        on=actuator.codes.on,
        level=channel.name,
        before=before,
        on_low=0.0,
        on_high=0.0,
        off_low=0.0,
        off_high=0.0,
    )


def _readings(band: SwitchBand, blocks: Sequence[Record]) -> _Readings:
    ons, offs = [], []
    for block in blocks:
        on = np.isin(np.rint(block.column(band.actuator)), band.on)
        went_on, went_off = switch_rows(on, block.segment_starts)
        readings = block.column(band.level)
        if band.before:
            readings = np.concatenate((readings[:1], readings[:-1]))
        ons.append(readings[went_on])
        offs.append(readings[went_off])
    at_on, at_off = np.concatenate(ons), np.concatenate(offs)
    return _Readings(at_on[~np.isnan(at_on)], at_off[~np.isnan(at_off)])
