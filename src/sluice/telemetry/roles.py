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
    for convention in CONVENTIONS:
        if not convention.pattern.search(name):
            continue
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
