"""What a channel is, told by its name where the plant follows a convention, else by its values."""

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
"""States are written in one digit; a channel that alternates between 31 and 32 is a measurement."""

HISTORIAN_CODES = Codes(off=1, on=(2,))
HISTORIAN_VALVE_CODES = Codes(off=1, on=(2,), moving=(0,))
BINARY_CODES = Codes(off=0, on=(1,))


@dataclass(frozen=True, slots=True)
class Convention:
    """A naming habit: tags that match are of this role."""

    habit: str
    pattern: re.Pattern[str]
    role: Role
    valve: bool = False


def _habit(habit: str, pattern: str, role: Role, *, valve: bool = False) -> Convention:
    return Convention(habit, re.compile(pattern, re.IGNORECASE), role, valve)


CONVENTIONS = (
    # BATADAL and EPANET exports: L_T1, F_PU1, S_PU1, P_J280.
    _habit("EPANET name: L_ is a tank level", r"^L_\w+$", Role.LEVEL),
    _habit("EPANET name: F_ is a flow", r"^F_\w+$", Role.FLOW),
    _habit("EPANET name: S_ is a state", r"^S_\w+$", Role.ACTUATOR),
    _habit("EPANET name: P_ is a pressure", r"^P_\w+$", Role.PRESSURE),
    # Controllers' set-points and outputs carry the instrument's letters but are not instruments.
    _habit("tag ends in SP: a set-point", r"_SP$", Role.OTHER),
    _habit("tag ends in CO: a controller output", r"_CO$", Role.POSITION),
    _habit("tag: a speed", r"_SPEED$|(^|_)SIT_?\d+$", Role.SPEED),
    _habit("tag: a level alarm", r"(^|_)LS_?\d+_(AL|AH)$", Role.OTHER),
    _habit("tag: a totaliser or temperature", r"(^|_)(FQ|TIT|TT)_?\d+(_PV)?$", Role.OTHER),
    # SWaT (LIT101), WADI (1_LT_001_PV), HAI (P1_LIT01).
    _habit("ISA tag: LIT, LT is a level", r"(^|_)LI?T_?\d+(_PV)?$", Role.LEVEL),
    _habit("ISA tag: FIT, FT, FIC is a flow", r"(^|_)FI?(T|C)_?\d+Z?(_PV)?$", Role.FLOW),
    _habit("ISA tag: PIT, DPIT, PIC is a pressure", r"(^|_)D?PI?(T|C)_?\d+(_PV)?$", Role.PRESSURE),
    _habit("ISA tag: AIT is an analyser", r"(^|_)AIT_?\d+(_PV)?$", Role.QUALITY),
    _habit("ISA tag: FCV, LCV, PCV, MCV is a position", r"(^|_)[FLPM]CV_?\d+[DZ]?$", Role.POSITION),
    _habit("ISA tag: MV, SV is a valve", r"(^|_)[MS]V_?\d+(_STATUS)?$", Role.ACTUATOR, valve=True),
    _habit("ISA tag: P, UV is a pump or lamp", r"(^|_)(P|UV)_?\d{3}(_STATUS)?$", Role.ACTUATOR),
    # Plain words, as in WDT: Tank_1, Flow_sensor_1, Pump_1, Valv_1.
    _habit("name says level", r"level|tank|reservoir", Role.LEVEL),
    _habit("name says flow", r"flow", Role.FLOW),
    _habit("name says pressure", r"pressure|head", Role.PRESSURE),
    _habit("name says speed", r"speed|rpm", Role.SPEED),
    _habit("name says quality", r"(^|[^a-z])(ph|orp|cond|turb|chlor)", Role.QUALITY),
    _habit("name says position", r"position|opening", Role.POSITION),
    _habit("name says actuator", r"valv|pump|status|state", Role.ACTUATOR),
)


def infer_channels(
    names: tuple[str, ...], values: Floats, declared: Mapping[str, Declaration]
) -> tuple[Channel, ...]:
    """Return one channel per column: inferred, with why, then corrected by what was declared."""
    seen = {name: _states(values[:, column]) for column, name in enumerate(names)}
    style = _encoding_style(seen, declared)
    channels = []
    for column, name in enumerate(names):
        channel = _infer(name, values[:, column], seen[name], style)
        if name in declared:
            fallback = _codes(seen[name] or (0, 1), style, valve=False)
            channel = declared[name].correct(channel, fallback)
        channels.append(channel)
    return tuple(channels)


def _infer(name: str, readings: Floats, states: tuple[int, ...] | None, style: Codes) -> Channel:
    for convention in CONVENTIONS:
        if not convention.pattern.search(name):
            continue
        why = convention.habit
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
    """Return the distinct readings when they are a few whole numbers, else nothing."""
    low, high = np.fmin.reduce(readings), np.fmax.reduce(readings)
    if not 0 <= low <= high <= LARGEST_CODE:
        return None
    holed = np.isnan(readings.min())
    present = readings[~np.isnan(readings)] if holed else readings
    codes = present.astype(np.int8)
    if not np.array_equal(codes, present):
        return None
    found = np.flatnonzero(np.bincount(codes))
    return tuple(int(state) for state in found) if found.size <= MOST_STATES else None


def _encoding_style(
    seen: Mapping[str, tuple[int, ...] | None], declared: Mapping[str, Declaration]
) -> Codes:
    """Tell a plant that writes 1 off, 2 on from one that writes 0 off, 1 on.

    One actuator cannot tell (a pump that never ran shows only its off code), all together can: a
    2 anywhere among the actuators is the historian's on.
    """
    for name, states in seen.items():
        actuator = any(c.pattern.search(name) and c.role is Role.ACTUATOR for c in CONVENTIONS)
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
