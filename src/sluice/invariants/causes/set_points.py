"""Actuators that switch at another level than before."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats, Ints
from sluice.invariants.causes.blocks import sigmas
from sluice.telemetry import Channel, Record, Role

__all__ = ["MovedSetPoint", "set_points"]

FEWEST = 6  # switches before the change, and after it
DAY_S, CLOCK_S = 86_400, 600
CLOCKED = 0.8  # of the switches: at one time of the day
DECIDING = 0.15  # of a level's range: how closely a level decides a switch
LEAST = 0.15  # of a level's range: the smallest change of a set-point that is claimed
PLACES = 100  # tried for the change
SCATTERS = 2.0  # by which the set-point moves, in scatters of the readings at the switches


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedSetPoint:
    """An actuator switches (on or off) at another reading of a level, from a row on."""

    actuator: str
    level: str
    on: bool
    before: float
    after: float
    row: int


def set_points(record: Record) -> Iterator[MovedSetPoint]:
    """Yield the set-points that change within the record.

    A level decides a switch if its readings at the switches lie close together: all of them, or
    those before and those after a change. Where a level decides without a change, nothing is
    claimed about other levels. An actuator that a clock switches has no set-point.
    """
    levels = record.of_role(Role.LEVEL)
    for actuator in record.of_role(Role.ACTUATOR):
        for on in (True, False):
            rows = _switches(record, actuator, on=on)
            if len(rows) < 2 * FEWEST or _by_the_clock(record, rows):
                continue
            found = [_decided(record, actuator, level, rows, on=on) for level in levels]
            close = [one for one in found if one is not None and one.scatter <= DECIDING]
            if close and all(one.moved is not None for one in close):
                moved = min(close, key=lambda one: one.scatter).moved
                assert moved is not None
                yield moved


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decided:
    """How closely a level decides a switch, in shares of its range, and whether that changed."""

    scatter: float
    moved: MovedSetPoint | None


def _by_the_clock(record: Record, rows: Ints) -> bool:
    """Whether nearly all switches fall on one time of the day."""
    day = np.timedelta64(1, "D")
    of_day = (record.times[rows] - record.times[rows].astype("datetime64[D]")) / day
    _, counts = np.unique(
        np.round(of_day * DAY_S / max(record.stride_s, CLOCK_S)), return_counts=True
    )
    return bool(counts.max() >= CLOCKED * len(rows))


def _switches(record: Record, actuator: Channel, *, on: bool) -> Ints:
    assert actuator.codes is not None
    running = np.isin(np.rint(record.column(actuator.name)), actuator.codes.on)
    goes = running[1:] & ~running[:-1] if on else ~running[1:] & running[:-1]
    rows = np.flatnonzero(goes) + 1
    return np.setdiff1d(rows, record.segment_starts)


def _decided(
    record: Record, actuator: Channel, level: Channel, rows: Ints, *, on: bool
) -> _Decided | None:
    """Return how closely a level decides the switches, and the change of its set-point, if any."""
    readings = record.column(level.name)
    known = ~np.isnan(readings[rows - 1] + readings[rows])
    rows = rows[known]
    if len(rows) < 2 * FEWEST:
        return None
    shown, split = _at_switches(readings, rows)
    before, after = shown[:split], shown[split:]
    extent = min(_extent(readings[: rows[split]]), _extent(readings[rows[split] :]))
    if extent <= 0:
        return None
    scatter = max(_scatter(before), _scatter(after))
    moved = float(np.median(after) - np.median(before))
    fewer = min(len(before), len(after))
    error = sigmas(fewer) * scatter * np.sqrt(1 / len(before) + 1 / len(after))
    if abs(moved) < max(LEAST * extent, SCATTERS * scatter, error):
        return _Decided(scatter=_scatter(shown) / extent, moved=None)
    change = MovedSetPoint(
        actuator=actuator.name,
        level=level.name,
        on=on,
        before=float(np.median(before)),
        after=float(np.median(after)),
        row=int(rows[split]),
    )
    return _Decided(scatter=scatter / extent, moved=change)


def _at_switches(readings: Floats, rows: Ints) -> tuple[Floats, int]:
    """Return the readings that say best where a level switches, and the place of the change.

    The row before the switch says it where rows follow each other quickly. Where a level moves far
    from row to row, its turning point says it: the lower or the higher reading around the switch.
    """
    around = np.stack([readings[rows - 1], readings[rows]])
    turning = around.min(axis=0) if _rises(readings, rows) else around.max(axis=0)
    variants = [(shown, _split(shown)) for shown in (around[0], turning)]
    return min(
        variants, key=lambda one: max(_scatter(one[0][: one[1]]), _scatter(one[0][one[1] :]))
    )


def _rises(readings: Floats, rows: Ints) -> bool:
    """Whether the level rises after these switches: then it switches near a lowest reading."""
    steps = readings[np.minimum(rows + 2, len(readings) - 1)] - readings[rows]
    known = steps[~np.isnan(steps)]
    return bool(len(known) and np.median(known) > 0)


def _extent(readings: Floats) -> float:
    """Return the range in which a level usually is."""
    return float(np.nanquantile(readings, 0.995) - np.nanquantile(readings, 0.005))


def _split(shown: Floats) -> int:
    """Return where two constants explain the readings best, with enough switches on either side."""
    last = len(shown) - FEWEST
    places = np.unique(np.linspace(FEWEST, last, min(PLACES, last - FEWEST + 1)).astype(int))

    def left(place: int) -> float:
        return sum(
            float(np.abs(part - np.median(part)).sum()) for part in (shown[:place], shown[place:])
        )

    return int(min(places, key=left))


def _scatter(shown: Floats) -> float:
    """Return a robust standard deviation: 1.48 times the median distance from the median."""
    return 1.48 * float(np.median(np.abs(shown - np.median(shown))))
