"""How the instruments show the plant: noise, resolution and range."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from sluice.arrays import Floats, Ints
from sluice.errors import PlantFileError
from sluice.lab.plants.treatment.compiled import compiled
from sluice.lab.plants.treatment.design import Design
from sluice.lab.plants.treatment.hydraulics import level_mm
from sluice.lab.plants.treatment.state import TreatmentState
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
    ANALOG,
    CHANNELS,
    DPIT301,
    FIT101,
    FIT201,
    FIT301,
    FIT401,
    FIT501,
    FIT502,
    FIT503,
    FIT504,
    FIT601,
    LIT101,
    LIT301,
    LIT401,
    PIT501,
    PIT502,
    PIT503,
    TAGS,
)

__all__ = ["INSTRUMENTS", "Instrument", "as_table", "observe", "read"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """The noise and resolution of one transmitter, in its unit (a flow meter's noise: relative)."""

    column: int
    white: float  # standard deviation from second to second
    slow: float  # standard deviation of the slow noise
    memory: float  # share of the slow noise kept from one second to the next
    quantum: float
    cut_off: float = 0.0  # a flow meter shows zero below it
    relative: bool = False


def _level(column: int, white_mm: float) -> Instrument:
    return Instrument(column=column, white=white_mm, slow=0.18, memory=0.8, quantum=0.0393)


def _flow(column: int, slow: float = 0.0025) -> Instrument:
    return Instrument(
        column=column,
        white=0.0015,
        slow=slow,
        memory=0.95,
        quantum=1.28e-4,
        cut_off=0.01,
        relative=True,
    )


def _gauge(column: int, noise: float, quantum: float) -> Instrument:
    return Instrument(column=column, white=0.4 * noise, slow=noise, memory=0.97, quantum=quantum)


INSTRUMENTS: Final[tuple[Instrument, ...]] = (
    _flow(FIT101),
    _level(LIT101, 0.57),  # the inlet falls into this tank
    _gauge(AIT201, 0.15, 0.032),
    _gauge(AIT202, 0.004, 0.00032),
    _gauge(AIT203, 0.8, 0.0256),
    _flow(FIT201),
    _gauge(DPIT301, 0.08, 0.0128),
    _flow(FIT301, slow=0.004),
    _level(LIT301, 0.31),
    _gauge(AIT401, 0.05, 0.0128),
    _gauge(AIT402, 0.3, 0.0256),
    _flow(FIT401),
    _level(LIT401, 0.30),
    _gauge(AIT501, 0.003, 0.00032),
    _gauge(AIT502, 0.2, 0.0256),
    _gauge(AIT503, 0.1, 0.032),
    _gauge(AIT504, 0.015, 0.0128),
    _flow(FIT501),
    _flow(FIT502),
    _flow(FIT503),
    _flow(FIT504),
    _gauge(PIT501, 0.35, 0.016),
    _gauge(PIT502, 0.04, 0.016),
    _gauge(PIT503, 0.3, 0.016),
    _flow(FIT601, slow=0.01),
)

# Rows of the table of instruments that compiled code reads.
WHITE, SLOW, MEMORY, QUANTUM, CUT_OFF, RELATIVE, LOW, HIGH = range(8)


def as_table(noise: float) -> Floats:
    """Return one column per tag; actuators' columns stay zero and are never read."""
    if tuple(instrument.column for instrument in INSTRUMENTS) != ANALOG:
        raise PlantFileError("the instruments must be exactly the analog tags, in their order")
    table = np.zeros((8, len(TAGS)))
    for instrument in INSTRUMENTS:
        span = CHANNELS[instrument.column].span
        if span is None:
            raise PlantFileError(f"instrument {TAGS[instrument.column]!r} has no span")
        table[:, instrument.column] = (
            instrument.white * noise,
            # scaled so that the slow noise has this standard deviation in the long run
            instrument.slow * noise * np.sqrt(1.0 - instrument.memory**2),
            instrument.memory,
            instrument.quantum,
            instrument.cut_off,
            instrument.relative,
            span.low,
            span.high,
        )
    return table


@compiled
def observe(shown: Floats, s: TreatmentState, d: Design) -> None:
    """Write what perfect instruments would show."""
    shown[FIT101] = s.inlet_m3_h
    shown[LIT101] = level_mm(s.t101_m3, d.t101_area_m2)
    shown[AIT201] = s.mixer_us_cm
    shown[AIT202] = s.mixer_ph
    shown[AIT203] = s.mixer_mv
    shown[FIT201] = s.transfer_m3_h
    pressed = (s.filtration_m3_h / d.filtration_m3_h) ** 1.75
    shown[DPIT301] = 1.8 + 13.0 * s.fouling * pressed
    shown[FIT301] = s.filtration_m3_h
    shown[LIT301] = level_mm(s.t301_m3, d.t301_area_m2)
    shown[AIT401] = 148.5 + 0.15 * (s.t401_us_cm - 258.0)
    shown[AIT402] = s.dechlorinated_mv
    shown[FIT401] = s.osmosis_m3_h
    shown[LIT401] = level_mm(s.t401_m3, d.t401_area_m2)
    shown[AIT501] = s.t401_ph - 0.5
    shown[AIT502] = s.osmosis_feed_mv
    shown[AIT503] = s.t401_us_cm + 6.0
    shown[AIT504] = s.permeate_us_cm
    shown[FIT501] = s.osmosis_m3_h
    shown[FIT502] = s.permeate_m3_h
    shown[FIT503] = s.concentrate_m3_h
    shown[FIT504] = s.recirculation_m3_h
    feed = s.osmosis_m3_h / d.osmosis_m3_h
    drive = feed * feed * (0.12 + 0.88 * s.osmosis_pressure * s.osmosis_pressure)
    shown[PIT501] = 6.0 + (246.0 + 14.0 * s.compaction) * drive
    shown[PIT502] = 0.4 + 1.2 * s.permeate_m3_h
    shown[PIT503] = 3.0 + (186.0 + 11.0 * s.compaction) * drive
    shown[FIT601] = s.backwash_m3_h


@compiled
def read(shown: Floats, slow_noise: Floats, drawn: Floats, table: Floats, analog: Ints) -> None:
    """Add noise, range and resolution to what perfect instruments would show, in place."""
    for draw, column in enumerate(analog):
        slow_noise[column] *= table[MEMORY, column]
        slow_noise[column] += table[SLOW, column] * drawn[draw]
        noise = slow_noise[column] + table[WHITE, column] * drawn[draw]
        scale = shown[column] if table[RELATIVE, column] > 0.0 else 1.0
        value = shown[column] + scale * noise
        if value < table[CUT_OFF, column]:
            value = 0.0
        value = min(max(value, table[LOW, column]), table[HIGH, column])
        shown[column] = np.floor(value / table[QUANTUM, column] + 0.5) * table[QUANTUM, column]
