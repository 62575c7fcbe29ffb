"""Infer a channel's role from its name if that follows a convention, else from its values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats
from sluice.telemetry.channel import Channel, Codes, Role
from sluice.telemetry.plantfile import Declaration

__all__ = ["infer_channels"]

MOST_STATES = 6
"""A channel that shows more distinct values than this is not a set of states."""

LARGEST_CODE = 9
"""State codes have one digit; a channel that alternates between 31 and 32 is a measurement."""

HISTORIAN_CODES = Codes(off=1, on=(2,))
HISTORIAN_VALVE_CODES = Codes(off=1, on=(2,), moving=(0,))
BINARY_CODES = Codes(off=0, on=(1,))


@dataclass(frozen=True, slots=True)
class Convention:
    """A naming convention: tags that match the pattern have this role."""

    description: str
    pattern: re.Pattern[str]
    role: Role
    valve: bool = False


def _convention(description: str, pattern: str, role: Role, *, valve: bool = False) -> Convention:
    return Convention(description, re.compile(pattern, re.IGNORECASE), role, valve)


CONVENTIONS = (
    # BATADAL and EPANET exports: L_T1, F_PU1, S_PU1, P_J280.
    _convention("EPANET name: L_ is a tank level", r"^L_\w+$", Role.LEVEL),
    _convention("EPANET name: F_ is a flow", r"^F_\w+$", Role.FLOW),
    _convention("EPANET name: S_ is a state", r"^S_\w+$", Role.ACTUATOR),
    _convention("EPANET name: P_ is a pressure", r"^P_\w+$", Role.PRESSURE),
    # Set-points and outputs of controllers have instrument letters but are not instruments.
    _convention("tag ends in SP: a set-point", r"_SP$", Role.OTHER),
    _convention("tag ends in CO: a controller output", r"_CO$", Role.POSITION),
    _convention("tag: a speed", r"_SPEED$|(^|_)SIT_?\d+$", Role.SPEED),
    _convention("tag: a level alarm", r"(^|_)LS_?\d+_(AL|AH)$", Role.OTHER),
    _convention("tag: a totaliser or temperature", r"(^|_)(FQ|TIT|TT)_?\d+(_PV)?$", Role.OTHER),
    # SWaT (LIT101), WADI (1_LT_001_PV), HAI (P1_LIT01).
    _convention("ISA tag: LIT, LT is a level", r"(^|_)LI?T_?\d+(_PV)?$", Role.LEVEL),
    _convention("ISA tag: FIT, FT, FIC is a flow", r"(^|_)FI?(T|C)_?\d+Z?(_PV)?$", Role.FLOW),
    _convention(
        "ISA tag: PIT, DPIT, PIC is a pressure", r"(^|_)D?PI?(T|C)_?\d+(_PV)?$", Role.PRESSURE
    ),
    _convention("ISA tag: AIT is an analyser", r"(^|_)AIT_?\d+(_PV)?$", Role.QUALITY),
    _convention(
        "ISA tag: FCV, LCV, PCV, MCV is a position", r"(^|_)[FLPM]CV_?\d+[DZ]?$", Role.POSITION
    ),
    _convention(
        "ISA tag: MV, SV is a valve", r"(^|_)[MS]V_?\d+(_STATUS)?$", Role.ACTUATOR, valve=True
    ),
    _convention(
        "ISA tag: P, UV is a pump or lamp", r"(^|_)(P|UV)_?\d{3}(_STATUS)?$", Role.ACTUATOR
    ),
    # Plain words, as in WDT: Tank_1, Flow_sensor_1, Pump_1, Valv_1.
    _convention("name says level", r"level|tank|reservoir", Role.LEVEL),
    _convention("name says flow", r"flow", Role.FLOW),
    _convention("name says pressure", r"pressure|head", Role.PRESSURE),
    _convention("name says speed", r"speed|rpm", Role.SPEED),
    _convention("name says quality", r"(^|[^a-z])(ph|orp|cond|turb|chlor)", Role.QUALITY),
    _convention("name says position", r"position|opening", Role.POSITION),
    _convention("name says actuator", r"valv|pump|status|state", Role.ACTUATOR),
)


PATH_MARKS = re.compile(r"[^\w%]+")
UNIT_BEHIND = re.compile(r"[\[(][^\[\]()]{1,12}[\])]\s*$")
ISA_TAG = re.compile(r"(?:\d+[A-Z]?)?([A-Z]{1,5})_?(\d{1,6})([A-Z]?)", re.IGNORECASE)
MEASURED_PARTS = ("pv", "meas", "value", "val", "measurement", "ist", "istwert", "mw")
SET_PARTS = ("sp", "setpoint", "soll", "sollwert", "consigne", "consigna", "hh", "ll", "hi", "lo")
OUTPUT_PARTS = ("co", "op", "out", "output", "mv", "y", "stellwert", "pos", "position")
STATE_PARTS = ("run", "running", "status", "state", "cmd", "on", "zso", "zsc", "fb", "xs")
ISA_ROLES = {
    "L": Role.LEVEL,
    "F": Role.FLOW,
    "P": Role.PRESSURE,
    "A": Role.QUALITY,
    "S": Role.SPEED,
    "Z": Role.POSITION,
    "T": Role.OTHER,
    "W": Role.OTHER,
    "D": Role.OTHER,
}
"""The first letter of ISA-5.1: what an instrument measures. Temperature has no role of its own."""
ISA_VALVES = (
    "V",
    "MV",
    "SV",
    "XV",
    "HV",
    "UV",
    "MOV",
    "SOV",
    "AOV",
    "BV",
    "GV",
    "XCV",
    "ZV",
    "HCV",
)
ISA_POSITIONS = re.compile(r"[FLPTAM]C?V")
ISA_MEASURES = re.compile(r"([LFPASZTWD])([DQF]?)(?:[ITECRXYGK]+|[HL]{1,2})")
ISA_MACHINES = ("P", "PU", "PMP", "M", "B", "BL", "C", "K", "MX", "AG", "UV")


def _isa(name: str) -> Convention | None:
    """Return the convention of an ISA-5.1 tag inside a path, such as `WW00/FT-000/PV`."""
    parts = [part for part in re.split(r"[/\\.|:\]]|\s+", UNIT_BEHIND.sub("", name)) if part]
    for at in reversed(range(len(parts))):
        tag = ISA_TAG.fullmatch(PATH_MARKS.sub("_", parts[at].strip("[]()_")))
        tag = tag or ISA_TAG.fullmatch(re.sub(r"^\d+\W|\W", "", parts[at]))
        if tag is None:
            continue
        letters = tag[1].upper()
        rest = [part.lower() for part in parts[at + 1 :]]
        return _isa_role(letters, rest[0] if rest else "", parts[at])
    return None


def _isa_role(letters: str, behind: str, tag: str) -> Convention | None:
    role: Role | None = None
    valve = False
    measures = ISA_MEASURES.fullmatch(letters)
    if behind in SET_PARTS:
        role = Role.OTHER
    elif behind in OUTPUT_PARTS:
        role = Role.POSITION
    elif behind in STATE_PARTS:
        role, valve = Role.ACTUATOR, letters.endswith("V")
    elif behind and behind not in MEASURED_PARTS:
        return None
    elif letters in ISA_VALVES:
        role, valve = Role.ACTUATOR, True
    elif ISA_POSITIONS.fullmatch(letters):
        role = Role.POSITION
    elif measures:
        totals = measures[2] == "Q" and measures[1] == "F"
        role = Role.OTHER if totals else ISA_ROLES[measures[1]]
    elif letters in ISA_MACHINES:
        role = Role.ACTUATOR
    if role is None:
        return None
    what = f", {behind.upper()}" if behind else ""
    return _convention(f"ISA-5.1 tag {tag}{what}: {role.value}", re.escape(tag), role, valve=valve)


FOREIGN = {
    Role.LEVEL: "füllstand|fuellstand|niveau|pegel|wasserstand|füllhöhe|nivel|peil|waterstand|"
    "waterpeil|液位|水位|料位",
    Role.FLOW: "durchfluss|durchfluß|durchflussmenge|volumenstrom|zufluss|abfluss|débit|debit|"
    "caudal|flujo|debiet|doorstroming|stroming|流量|流速",
    Role.PRESSURE: "druck|pression|presión|presion|druk|压力|水压|压强",
    Role.QUALITY: "leitfähigkeit|leitfaehigkeit|trübung|truebung|chlorgehalt|conductivité|"
    "turbidité|chlore|conductividad|turbidez|cloro|geleidbaarheid|troebelheid|chloor|浊度|余氯|"
    "电导|酸碱度|溶解氧",
    Role.SPEED: "drehzahl|vitesse|velocidad|toerental|snelheid|转速|频率|速度",
    Role.POSITION: "stellung|öffnungsgrad|oeffnung|ouverture|posición|posicion|apertura|"
    "klepstand|stand|开度|阀位",
    Role.OTHER: "temperatur|température|temperatura|temperatuur|温度|sollwert|consigne|consigna|"
    "zähler|compteur|contador|teller|累计",
    Role.ACTUATOR: "pumpe|ventil|schieber|klappe|gebläse|rührwerk|betrieb|zustand|antrieb|pompe|"
    "vanne|état|etat|surpresseur|bomba|válvula|valvula|compuerta|soplante|pomp|klep|afsluiter|"
    "schuif|toestand|泵|阀|闸|启停|状态|开关|风机",
}
"""Words of German, French, Spanish, Dutch and Chinese names."""
FOREIGN_WORDS = {role: re.compile(words, re.IGNORECASE) for role, words in FOREIGN.items()}
VESSELS = re.compile(
    r"behälter|becken|bâche|reservorio|tanque|depósito|réservoir|水池|水箱", re.IGNORECASE
)


def _foreign(name: str) -> Convention | None:
    """Return the convention of a name in another language.

    In a compound, its last word counts: a `Druckpumpe` is a pump. Among words, a quantity counts
    more than a machine: `débit pompe 1` is a flow.
    """
    found: list[tuple[Role, str]] = []
    for word in re.split(r"[\W_\d]+", name):
        ends = [
            (match.end(), len(match[0]), role, match[0])
            for role, pattern in FOREIGN_WORDS.items()
            for match in pattern.finditer(word)
        ]
        if ends:
            _, _, role, text = max(ends, key=lambda each: each[:2])
            found.append((role, text))
    quantities = [each for each in found if each[0] is not Role.ACTUATOR]
    for role, text in (*quantities, *found):
        return _convention(f"name says {text!r}: {role.value}", re.escape(text), role)
    vessel = VESSELS.search(name)
    if vessel:
        return _convention(f"name says {vessel[0]!r}: level", re.escape(vessel[0]), Role.LEVEL)
    return None


def _convention_of(name: str) -> Convention | None:
    """Return the first convention that a name follows: as it is, then as a path, then by words."""
    plain = UNIT_BEHIND.sub("", name).rstrip()
    tags = [each for each in CONVENTIONS if not each.description.startswith("name says")]
    words = [each for each in CONVENTIONS if each.description.startswith("name says")]
    for convention in tags:
        if convention.pattern.search(plain):
            return convention
    last = re.split(r"[/\\.|:]", plain)[-1]  # the end of a path says more than its start
    spelt = _foreign(plain) or next(
        (each for text in (last, plain) for each in words if each.pattern.search(text)), None
    )
    tag = _isa(name)
    if tag is None or (spelt and tag.role is Role.ACTUATOR and spelt.role is not Role.ACTUATOR):
        return spelt  # `Drehzahl P1` is the speed of a pump
    return tag


def infer_channels(
    names: tuple[str, ...], values: Floats, declared: Mapping[str, Declaration]
) -> tuple[Channel, ...]:
    """Return one channel per column: inferred, with the reason, then corrected by `declared`."""
    states = {name: _states(values[:, column]) for column, name in enumerate(names)}
    style = _encoding_style(states, declared)
    channels = []
    for column, name in enumerate(names):
        channel = _infer(name, values[:, column], states[name], style)
        if name in declared:
            fallback = _codes(states[name] or (0, 1), style, valve=False)
            channel = declared[name].correct(channel, fallback)
        channels.append(channel)
    return tuple(channels)


def _infer(name: str, readings: Floats, states: tuple[int, ...] | None, style: Codes) -> Channel:
    convention = _convention_of(name)
    if convention is not None:
        why = convention.description
        if convention.role is not Role.ACTUATOR:
            return Channel(name=name, role=convention.role, why=why)
        if states is None:  # named like an actuator, but moves continuously
            return Channel(name=name, role=Role.POSITION, why=f"{why}, but it shows no states")
        return Channel(
            name=name,
            role=Role.ACTUATOR,
            codes=_codes(states, style, valve=convention.valve),
            why=why,
        )
    if states is not None and len(states) > 1:
        why = f"values: only {', '.join(map(str, states))}"
        return Channel(
            name=name, role=Role.ACTUATOR, codes=_codes(states, style, valve=False), why=why
        )
    distinct = "constant" if np.nanmin(readings) == np.nanmax(readings) else "continuous"
    return Channel(name=name, role=Role.OTHER, why=f"values: {distinct}")


def _states(readings: Floats) -> tuple[int, ...] | None:
    """Return the distinct readings if they are a few whole numbers, else None."""
    low, high = np.fmin.reduce(readings), np.fmax.reduce(readings)
    if not 0 <= low <= high <= LARGEST_CODE:
        return None
    has_missing = np.isnan(readings.min())
    present = readings[~np.isnan(readings)] if has_missing else readings
    codes = present.astype(np.int8)
    if not np.array_equal(codes, present):
        return None
    distinct = np.flatnonzero(np.bincount(codes))
    return tuple(int(state) for state in distinct) if distinct.size <= MOST_STATES else None


def _encoding_style(
    states_of: Mapping[str, tuple[int, ...] | None], declared: Mapping[str, Declaration]
) -> Codes:
    """Return the codes that the plant uses: 1 off and 2 on, or 0 off and 1 on.

    One actuator is not enough to decide: a pump that never ran shows only its off code. So the
    whole plant decides: if any actuator shows a 2, then 2 means on.
    """
    for name, states in states_of.items():
        convention = _convention_of(name)
        actuator = convention is not None and convention.role is Role.ACTUATOR
        if name not in declared and actuator and states is not None and 2 in states:
            return HISTORIAN_CODES
    return BINARY_CODES


def _codes(states: tuple[int, ...], style: Codes, *, valve: bool) -> Codes:
    usual = HISTORIAN_VALVE_CODES if valve and style == HISTORIAN_CODES else style
    if set(states) <= usual.legal:
        return usual
    if set(states) <= HISTORIAN_VALVE_CODES.legal:
        return HISTORIAN_VALVE_CODES
    off, *on = states
    return Codes(off=off, on=tuple(on) or (off + 1,))
