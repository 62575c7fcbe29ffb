"""How much of a federation a plant has: too few points, and points that measure something else."""

from dataclasses import replace

import pytest

from sluice.errors import RefusedError
from sluice.telemetry import Channel, Codes, Record, Role
from sluice.template import Template, demand_kinds, overlap_of

FLOW = Channel(name="F_PU1", role=Role.FLOW, unit="m3/h")
PUMP = Channel(name="S_PU1", role=Role.ACTUATOR, codes=Codes(off=0, on=(1,)))


def test_the_reference_measures_what_its_points_do(
    line_reference: Record, line_template: Template
) -> None:
    demand_kinds(line_reference.channels, line_template, plant="north")
    demand_kinds((), line_template, plant="north")


@pytest.mark.parametrize(
    "channel",
    [
        replace(FLOW, unit="m³/h"),  # the same unit, written otherwise
        replace(FLOW, role=Role.OTHER),  # nothing declares its role
        replace(FLOW, name="FT-1", unit="l/s"),  # no point has this name
    ],
)
def test_a_channel_that_measures_the_same_is_a_point(
    channel: Channel, line_template: Template
) -> None:
    demand_kinds([channel], line_template, plant="north")


@pytest.mark.parametrize(
    ("channel", "told"),
    [
        (replace(FLOW, unit="l/s"), "F_PU1: flow in l/s; the point is flow in m3/h"),
        (replace(FLOW, unit=""), "F_PU1: flow in no unit; the point is flow in m3/h"),
        (replace(FLOW, unit="kPa"), "F_PU1: flow in kPa; the point is flow in m3/h"),
        (
            replace(FLOW, role=Role.PRESSURE),
            "F_PU1: pressure in m3/h; the point is flow in m3/h",
        ),
        (
            Channel(name="S_PU1", role=Role.OTHER),
            "S_PU1: other in no unit; the point is actuator with codes 0, 1",
        ),
        (
            replace(PUMP, codes=Codes(off=1, on=(2,))),
            "S_PU1: actuator with codes 1, 2; the point is actuator with codes 0, 1",
        ),
        (
            replace(PUMP, codes=Codes(off=0, on=(1,), moving=(2,))),
            "S_PU1: actuator with codes 0, 1, 2; the point is actuator with codes 0, 1",
        ),
        (
            replace(PUMP, codes=Codes(off=1, on=(0,))),
            "the point is actuator with codes 0, 1",
        ),
    ],
)
def test_a_channel_that_measures_something_else_is_refused(
    channel: Channel, told: str, line_template: Template
) -> None:
    with pytest.raises(RefusedError, match="1 channels .*template 'line'") as refused:
        demand_kinds([channel], line_template, plant="north")
    assert str(refused.value).endswith(told)


def test_a_point_of_more_codes_takes_a_plant_of_fewer(line_template: Template) -> None:
    """A valve whose travel is not recorded shows two codes of three."""
    codes = Codes(off=0, on=(1,), moving=(2,))
    points = [replace(p, codes=codes) if p.name == "S_PU1" else p for p in line_template.points]
    demand_kinds([PUMP], replace(line_template, points=tuple(points)), plant="north")


@pytest.mark.parametrize("count", [40, 41])
def test_long_tables_are_cut(count: int, line_template: Template) -> None:
    names = tuple(f"tank{at:02}.level" for at in range(count))
    with pytest.raises(RefusedError, match="has 0 of the federation's") as refused:
        overlap_of({"x"}, names).demand(0.5, plant="north")
    lines = str(refused.value).splitlines()[1:]
    assert lines[:40] == [f"  {name}" for name in names[:40]]
    assert lines[40:] == ["  and 1 more"] * (count - 40)
    point = line_template.points[0]
    matrix = ((0.0,) * count,) * count
    wide = replace(
        line_template,
        points=tuple(replace(point, name=name) for name in names),
        graphs=(matrix,) * 4,
    )
    channels = [Channel(name=name, role=Role.LEVEL, unit="bar") for name in names]
    with pytest.raises(RefusedError, match=f"{count} channels") as refused:
        demand_kinds(channels, wide, plant="north")
    lines = str(refused.value).splitlines()[1:]
    assert len(lines[:40]) == 40
    assert lines[40:] == ["  and 1 more"] * (count - 40)
