"""Robust, floored scaling of channels, from clean rows.

A threshold is as good as its scales. A standby pump that ran for four hours of a year has a spread
of 0.02; divided by it, its next start would outweigh every attack. A pressure that reads 2.98 with
nine digits has a spread of 0.006; another record of it, rounded to 0.01, would look like an attack.
So a channel's unit is the spread of its usual readings, but at least

- for an actuator, a tenth of the step between two codes;
- for a measured channel, 1 % of its largest reading (or of the declared span, if that is more),
  and a tenth of its clean range.

Measured readings are rounded to a power of ten: at most 0.5 % of the largest reading, which is the
accuracy of instruments in water plants. For a channel that moves by more than that accuracy, it is
also at most a fifth of its usual change from row to row. Then a record with nine digits and the
same record with two decimals score the same.
"""

import math
from collections.abc import Sequence

import numpy as np

from sluice.arrays import Floats
from sluice.errors import RecordError
from sluice.telemetry import Channel, Record, Scaler

__all__ = ["robust_scaler"]

USUAL = (0.025, 0.975)  # quantiles; normal readings lie four spreads apart
CODE_SHARE = 0.1
READING_SHARE = 0.01
RANGE_SHARE = 0.1
ACCURACY = 0.005
STEP_SHARE = 0.2
CODE_GRID = 1e-3  # finer than any code, so that a code stays as it is


def robust_scaler(clean: Record, names: Sequence[str]) -> Scaler:
    """Return the unit, the centre and the resolution of each channel."""
    units = [_unit(clean.channel(name), clean.column(name), clean.name) for name in names]
    return Scaler(
        names=tuple(names),
        mean=np.array([unit[0] for unit in units]),
        spread=np.array([unit[1] for unit in units]),
        resolution=np.array([unit[2] for unit in units]),
    )


def _unit(channel: Channel, readings: Floats, record: str) -> tuple[float, float, float]:
    known = readings[~np.isnan(readings)]
    if not known.size:
        raise RecordError(
            f"record {record!r} has no reading of {channel.name!r}; leave the channel out"
        )
    least, low, middle, high, most = (
        float(value) for value in np.quantile(known, (0.0, USUAL[0], 0.5, USUAL[1], 1.0))
    )
    if channel.role.discrete:
        return middle, max((high - low) / 4, CODE_SHARE), CODE_GRID
    largest = max(abs(least), abs(most))
    if channel.span is not None:
        largest = max(largest, abs(channel.span.low), abs(channel.span.high))
    if largest == 0:  # a meter that has never shown anything: any flow is many units
        return middle, READING_SHARE, CODE_GRID
    floor = max(READING_SHARE * largest, RANGE_SHARE * (most - least))
    spread = (high - low) / 4
    grid = _power_of_ten(ACCURACY * largest)
    if spread > READING_SHARE * largest:  # it moves: do not round away what it does in one row
        steps = np.abs(np.diff(known))
        grid = min(grid, _power_of_ten(STEP_SHARE * float(np.median(steps[steps > 0]))))
    return middle, max(spread, floor), grid


def _power_of_ten(limit: float) -> float:
    return 10.0 ** math.floor(math.log10(limit))
