"""The 51 tags of the plant, in the order of the SWaT record, and what each one is."""

from typing import Final

from sluice.telemetry import Channel, Codes, Role, Span

__all__ = ["ANALOG", "CHANNELS", "CLOSED", "MOVING", "OFF", "ON", "OPEN", "TAGS", "VALVES"]

OFF: Final = 1
ON: Final = 2
CLOSED: Final = OFF
OPEN: Final = ON
MOVING: Final = 0

# The column of every tag. The compiled stages index readings and commands by these names.
FIT101, LIT101, MV101, P101, P102 = range(5)
AIT201, AIT202, AIT203, FIT201, MV201 = range(5, 10)
P201, P202, P203, P204, P205, P206 = range(10, 16)
DPIT301, FIT301, LIT301, MV301, MV302, MV303, MV304, P301, P302 = range(16, 25)
AIT401, AIT402, FIT401, LIT401, P401, P402, P403, P404, UV401 = range(25, 34)
AIT501, AIT502, AIT503, AIT504, FIT501, FIT502, FIT503, FIT504 = range(34, 42)
P501, P502, PIT501, PIT502, PIT503 = range(42, 47)
FIT601, P601, P602, P603 = range(47, 51)

_PUMP = Codes(off=OFF, on=(ON,))
_VALVE = Codes(off=CLOSED, on=(OPEN,), moving=(MOVING,))
_WHY = "the tag's place in the published process"


def _level(name: str) -> Channel:
    return Channel(name=name, role=Role.LEVEL, unit="mm", span=Span(low=0, high=1500), why=_WHY)


def _flow(name: str) -> Channel:
    return Channel(name=name, role=Role.FLOW, unit="m3/h", span=Span(low=0, high=5), why=_WHY)


def _pressure(name: str, high: float) -> Channel:
    return Channel(name=name, role=Role.PRESSURE, unit="kPa", span=Span(low=0, high=high), why=_WHY)


def _analyser(name: str, unit: str, high: float) -> Channel:
    return Channel(name=name, role=Role.QUALITY, unit=unit, span=Span(low=0, high=high), why=_WHY)


def _valve(name: str) -> Channel:
    return Channel(name=name, role=Role.ACTUATOR, codes=_VALVE, why=_WHY)


def _pump(name: str) -> Channel:
    return Channel(name=name, role=Role.ACTUATOR, codes=_PUMP, why=_WHY)


CHANNELS: Final[tuple[Channel, ...]] = (
    # stage 1: raw water
    _flow("FIT101"),
    _level("LIT101"),
    *(_valve("MV101"), _pump("P101"), _pump("P102")),
    # stage 2: dosing of salt, acid and hypochlorite
    _analyser("AIT201", "uS/cm", 1000),
    _analyser("AIT202", "pH", 14),
    _analyser("AIT203", "mV", 1000),
    _flow("FIT201"),
    _valve("MV201"),
    *(_pump(f"P20{number}") for number in range(1, 7)),
    # stage 3: ultrafiltration
    _pressure("DPIT301", 100),
    _flow("FIT301"),
    _level("LIT301"),
    *(_valve(f"MV30{number}") for number in range(1, 5)),
    *(_pump("P301"), _pump("P302")),
    # stage 4: dechlorination
    _analyser("AIT401", "ppm", 500),
    _analyser("AIT402", "mV", 1000),
    _flow("FIT401"),
    _level("LIT401"),
    *(_pump(f"P40{number}") for number in range(1, 5)),
    _pump("UV401"),
    # stage 5: reverse osmosis
    _analyser("AIT501", "pH", 14),
    _analyser("AIT502", "mV", 1000),
    _analyser("AIT503", "uS/cm", 1000),
    _analyser("AIT504", "uS/cm", 300),
    *(_flow(f"FIT50{number}") for number in range(1, 5)),
    *(_pump("P501"), _pump("P502")),
    *(_pressure("PIT501", 500), _pressure("PIT502", 50), _pressure("PIT503", 500)),
    # stage 6: permeate and backwash
    _flow("FIT601"),
    *(_pump("P601"), _pump("P602"), _pump("P603")),
)

TAGS: Final[tuple[str, ...]] = tuple(channel.name for channel in CHANNELS)

ANALOG: Final[tuple[int, ...]] = tuple(
    column for column, channel in enumerate(CHANNELS) if channel.codes is None
)
"""Columns of the instruments; the other 26 are actuators."""

VALVES: Final[tuple[int, ...]] = tuple(
    column for column, channel in enumerate(CHANNELS) if channel.codes is _VALVE
)
