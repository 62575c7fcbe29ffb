"""What the plant does not control: raw-water pressure, demand, fouling, and analysers that drift.

Slow signals are drawn on a grid of five minutes that starts with the clean record and continues
through the attacked one, so that both records belong to one continuous run of the plant.
"""

from typing import Final

import numpy as np

from sluice.arrays import Floats
from sluice.lab.plants.treatment.tags import (
    AIT201,
    AIT202,
    AIT203,
    AIT401,
    AIT402,
    AIT501,
    AIT502,
    AIT503,
    AIT504,
)
from sluice.seeding import stream

__all__ = ["DRIFTING", "GRID_S", "slow_signals"]

GRID_S: Final = 300
PER_DAY: Final = 86_400 // GRID_S

# Columns of the slow signals; the analysers' drifts follow from DRIFT_0 on.
RAW_PRESSURE, OSMOSIS, FOULING_RATE, FOULING_FLOOR, DRIFT_0 = range(5)

DRIFTING: Final = (
    AIT201,
    AIT202,
    AIT203,
    AIT401,
    AIT402,
    AIT501,
    AIT502,
    AIT503,
    AIT504,
)

# How far each analyser wanders over a few hours, and how far a recalibration moves it, in its
# unit. Between the published records the means of most analysers shift by many of the clean
# record's standard deviations, which no relation between water and pumps explains.
WANDER: Final = (1.2, 0.02, 6.0, 0.35, 2.5, 0.015, 1.5, 0.9, 0.06)
RECALIBRATION: Final = (14.0, 0.22, 30.0, 4.0, 16.0, 0.16, 18.0, 11.0, 0.7)


def _wandering(rng: np.random.Generator, *, rows: int, columns: int, hours: float) -> Floats:
    """Draw stationary signals of unit variance, correlated over the given hours."""
    keep = float(np.exp(-GRID_S / (3600.0 * hours)))
    drawn = rng.standard_normal((rows, columns))
    drawn[1:] *= np.sqrt(1.0 - keep**2)
    for row in range(1, rows):
        drawn[row] += keep * drawn[row - 1]
    return drawn


def slow_signals(seed: int, *, begin_s: int, seconds: int, recalibrated: bool) -> Floats:
    """Return one row per grid point, the first at or before `begin_s` on the plant's clock.

    The clock starts at 16:00 with the clean record. A shorter run is the start of a longer one.
    """
    rows = (begin_s + seconds) // GRID_S + 2
    clock = np.arange(rows) / PER_DAY + 16 / 24
    plant = _wandering(stream(seed, "treatment", "plant"), rows=rows, columns=4, hours=3.0)
    drift = _wandering(
        stream(seed, "treatment", "drift"), rows=rows, columns=len(DRIFTING), hours=8.0
    )
    signals = np.empty((rows, DRIFT_0 + len(DRIFTING)))
    # Neighbours draw from the same main by day: pressure is lowest in the early evening.
    signals[:, RAW_PRESSURE] = 1 - 0.02 * np.sin(2 * np.pi * (clock - 0.5)) + 0.012 * plant[:, 0]
    # Warmer water passes the osmosis membranes more easily.
    signals[:, OSMOSIS] = 1 + 0.012 * np.sin(2 * np.pi * (clock - 0.4)) + 0.006 * plant[:, 1]
    signals[:, FOULING_RATE] = np.exp(0.2 * plant[:, 2])
    signals[:, FOULING_FLOOR] = 1.0 + 0.06 * np.tanh(plant[:, 3])
    signals[:, DRIFT_0:] = np.tanh(drift / 2.0) * 2.0 * np.array(WANDER)
    if recalibrated:
        rng = stream(seed, "treatment", "recalibration")
        size = rng.uniform(0.75, 1.0, len(DRIFTING)) * rng.choice((-1.0, 1.0), len(DRIFTING))
        signals[:, DRIFT_0:] += size * np.array(RECALIBRATION)
    return signals[begin_s // GRID_S :]
