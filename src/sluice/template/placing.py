"""How a plant's readings become readings of a template's points: units, then the plant's own size.

A flow, a pressure, a speed or a position is multiplied, so that zero stays zero: its usual high
reading becomes that of the template. A level is also shifted: plants switch at other levels. An
analyser is converted only: chemistry does not grow with a plant. Codes become the template's.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sluice.errors import SettingError
from sluice.telemetry import Channel, Codes, Declaration, Placement, PlantFile, Record, Role
from sluice.template.points import Point, Template
from sluice.template.units import Conversion, conversion, same_dimension

__all__ = ["mapped_plant_file", "placements"]

MULTIPLIED = (Role.FLOW, Role.PRESSURE, Role.SPEED, Role.POSITION)
USUAL = (0.025, 0.5, 0.975)


def placements(
    record: Record, template: Template, points: Mapping[str, str]
) -> dict[str, Placement]:
    """Return how each mapped tag becomes its point; `points` maps tags to names of points."""
    taken: dict[str, str] = {}
    for tag, point in points.items():
        if point in taken:
            raise SettingError(
                f"tags {taken[point]!r} and {tag!r} are both mapped to point {point!r}; a point is "
                "one tag"
            )
        taken[point] = tag
    return {
        tag: _placed(record, record.channel(tag), template.point(point))
        for tag, point in points.items()
    }


def mapped_plant_file(plant: PlantFile, placed: Mapping[str, Placement]) -> PlantFile:
    """Return the plant file with these points in place of those that it had."""
    channels = {name: replace(each, point=None) for name, each in plant.channels.items()}
    for tag, point in placed.items():
        declared = channels.get(tag) or plant.declaration(tag) or Declaration()
        channels[tag] = replace(declared, point=point)
    return replace(plant, channels=channels)


def _placed(record: Record, channel: Channel, point: Point) -> Placement:
    discrete = (channel.role.discrete, point.role.discrete)
    if discrete[0] != discrete[1]:
        raise SettingError(
            f"tag {channel.name!r} is {channel.role.value!r} and point {point.name!r} is "
            f"{point.role.value!r}; an actuator is no measured point: map another tag"
        )
    if channel.codes is not None and point.codes is not None:
        return _coded(channel, channel.codes, point, point.codes)
    units = _units(channel, point)
    readings = record.column(channel.name)
    own = units.factor * np.nanquantile(readings, USUAL) + units.offset
    factor, offset = _sized(point, tuple(float(each) for each in own))
    return Placement(
        name=point.name,
        unit=point.unit,
        factor=_rounded(units.factor * factor),
        offset=_rounded(units.offset * factor + offset),
    )


def _units(channel: Channel, point: Point) -> Conversion:
    if channel.unit == point.unit or same_dimension(channel.unit, point.unit) is not None:
        return conversion(channel.unit, point.unit)
    raise SettingError(
        f"the unit of tag {channel.name!r} is {channel.unit!r} and that of point {point.name!r} is "
        f"{point.unit!r}, and at least one of them is not known; declare the unit in the plant file"
    )


def _sized(point: Point, own: tuple[float, ...]) -> tuple[float, float]:
    """Return factor and offset from the plant's own usual readings to the template's."""
    low, _, high = own
    wanted_low, _, wanted_high = point.usual
    if point.still or high <= low:
        return 1.0, 0.0
    if point.role in MULTIPLIED and high > 0 and wanted_high > 0:
        return wanted_high / high, 0.0
    if point.role is Role.LEVEL and wanted_high > wanted_low:
        factor = (wanted_high - wanted_low) / (high - low)
        return factor, wanted_low - factor * low
    return 1.0, 0.0


def _coded(channel: Channel, own: Codes, point: Point, wanted: Codes) -> Placement:
    factor = (wanted.on[0] - wanted.off) / (own.on[0] - own.off)
    offset = wanted.off - factor * own.off
    strange = {round(factor * code + offset, 6) for code in own.legal} - set(wanted.legal)
    if factor <= 0 or strange:
        raise SettingError(
            f"the codes of tag {channel.name!r} are {sorted(own.legal)} and those of point "
            f"{point.name!r} {sorted(wanted.legal)}; they do not become each other in order: "
            "declare other codes in the plant file, or map another tag"
        )
    return Placement(name=point.name, unit=point.unit, factor=factor, offset=offset)


def _rounded(number: float) -> float:
    """Return the number with nine digits, as an engineer reads it in the plant file."""
    return float(f"{number:.9g}")
