"""Mappings of a plant's tags to points, and readings in the template's terms."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.errors import RecordError, RefusedError, SettingError
from sluice.lab.plants import VariedSite, simulate, varied_site
from sluice.telemetry import Channel, Codes, Placement, PlantFile, Record, Role
from sluice.template import (
    CONFIDENT,
    Template,
    derive_template,
    mapped_plant_file,
    overlap_of,
    placements,
    propose,
)


@pytest.mark.parametrize("site", [1, 2, 3, 4, 5])
def test_varied_line_sites_are_mapped(line_template: Template, site: int) -> None:
    varied = varied_site("line", site, seed=4, days=7)
    proposal = propose(varied.record, line_template)
    wrong = [m for m in proposal.matches if m.point != varied.reference.get(m.tag)]
    assert len(wrong) <= 0.05 * len(proposal.matches)
    assert not [m for m in wrong if m.confident]


def test_an_extra_analyser_is_no_point(line_template: Template) -> None:
    varied = varied_site("line", 4, seed=4, days=7)
    (extra,) = set(varied.record.names) - set(varied.reference)
    match = next(m for m in propose(varied.record, line_template).matches if m.tag == extra)
    assert match.point is None
    assert not match.confident


def test_a_missing_meter_is_a_missing_point(line_template: Template) -> None:
    varied = varied_site("line", 3, seed=4, days=7)
    assert propose(varied.record, line_template).missing == ("F_PU2",)


def test_equal_channels_are_left_to_the_operator(
    line_reference: Record, line_template: Template
) -> None:
    """Two tags with the same readings cannot be told apart, whatever their names."""
    column = line_reference.index("F_PU1")
    values = np.array(line_reference.values)
    values[:, line_reference.index("F_PU2")] = values[:, column]
    proposal = propose(line_reference.with_values(values), line_template)
    equal = [m for m in proposal.matches if m.tag in ("F_PU1", "F_PU2")]
    assert len(equal) == 2
    assert all(m.confidence < CONFIDENT and not m.confident for m in equal)
    assert {m.tag for m in proposal.undecided} & {"F_PU1", "F_PU2"}


def test_twins_here_and_in_the_reference_are_named(line_reference: Record) -> None:
    values = np.array(line_reference.values)
    values[:, line_reference.index("F_PU2")] = values[:, line_reference.index("F_PU1")]
    twins = line_reference.with_values(values)
    template = derive_template(twins)
    assert template.point("F_PU1").twins == ("F_PU2",)
    named = {m.tag: m for m in propose(twins, template).matches}
    for one, other in (("F_PU1", "F_PU2"), ("F_PU2", "F_PU1")):
        match = named[one]
        assert {match.point, *match.twins} == {"F_PU1", "F_PU2"}
        assert not match.confident
        assert named[other].twins
    assert not [m for m in named.values() if m.twins and m.tag not in ("F_PU1", "F_PU2")]
    alone = {m.tag: m for m in propose(line_reference, template).matches}
    assert not alone["F_PU1"].twins  # the tags differ here, so it matters which is which
    assert not {m.tag: m for m in propose(twins, derive_template(line_reference)).matches}[
        "F_PU1"
    ].twins


@pytest.mark.parametrize("tags", [("FT-9", "FT-10"), ("FT-10", "FT-9")])
def test_twins_are_taken_in_the_order_of_their_tags(
    line_reference: Record, tags: tuple[str, str]
) -> None:
    """No span tells them apart; their tags have one digit and two, in both orders of columns."""
    pumps = dict(zip(("F_PU1", "F_PU2"), tags, strict=True))
    span = line_reference.channel("F_PU1").span
    values = np.array(line_reference.values)
    values[:, line_reference.index("F_PU2")] = values[:, line_reference.index("F_PU1")]
    twins = replace(
        line_reference.with_values(values),
        channels=tuple(
            replace(each, span=span) if each.name in pumps else each
            for each in line_reference.channels
        ),
    )
    site = replace(
        twins,
        channels=tuple(
            replace(each, name=pumps.get(each.name, each.name)) for each in twins.channels
        ),
    )
    for order in (site.names, tuple(reversed(site.names))):
        matches = propose(site.select(order), derive_template(twins)).matches
        named = {match.tag: match.point for match in matches}
        assert (named["FT-9"], named["FT-10"]) == ("F_PU1", "F_PU2")


def test_twins_name_each_other(line_template: Template) -> None:
    first, *others = line_template.points
    for twins, refused in (
        (("nothing",), "does not name"),
        ((others[0].name,), "name each other"),
        ((first.name,), "name each other"),
    ):
        with pytest.raises(SettingError, match=refused):
            replace(line_template, points=(replace(first, twins=twins), *others))


def test_ties_of_rules_tell_twins_apart(line_reference: Record) -> None:
    """Flows with equal readings differ by the tank that the plant's rules tie them to."""
    values = np.array(line_reference.values)
    values[:, line_reference.index("F_PU2")] = values[:, line_reference.index("F_PU1")]
    twins = line_reference.with_values(values)
    ties = [("L_T1", "F_PU1"), ("L_T2", "F_PU2")]
    template = derive_template(twins, ties=ties)
    order = ("F_PU2", "F_PU1", *(n for n in twins.names if n not in ("F_PU1", "F_PU2")))
    matches = propose(twins.select(order), template, ties=ties).matches
    assert {m.tag: m.point for m in matches}["F_PU1"] == "F_PU1"


def test_another_stride_is_refused(line_reference: Record, line_template: Template) -> None:
    with pytest.raises(RecordError, match="one every 60 s; export more rows"):
        propose(line_reference.every(2), line_template)


def test_another_kind_of_plant_is_refused(line_reference: Record, line_template: Template) -> None:
    channels = tuple(
        Channel(name=c.name, role=Role.QUALITY, unit="pH") for c in line_reference.channels
    )
    with pytest.raises(SettingError, match="another kind of plant"):
        propose(replace(line_reference, channels=channels), line_template)


def test_placed_readings_have_the_templates_unit_and_size(
    line_template: Template, line_site: VariedSite
) -> None:
    placed = placements(line_site.record, line_template, line_site.reference)
    for tag, placement in placed.items():
        point = line_template.point(placement.name)
        readings = placement.readings(line_site.record.column(tag))
        assert placement.unit == point.unit
        if point.role in (Role.LEVEL, Role.FLOW):
            high = np.quantile(readings, 0.975)
            assert high == pytest.approx(point.usual[2], rel=1e-6)
        if point.role is Role.FLOW:
            assert placement.offset == 0.0


@pytest.mark.parametrize("where", ["plant", "reference", "both"])
@pytest.mark.parametrize(("tag", "unit", "factor"), [("L_T1", "cm", 0.01), ("F_PU1", "l/s", 3.6)])
def test_a_reading_that_never_changes_has_no_size(
    line_reference: Record, where: str, tag: str, unit: str, factor: float
) -> None:
    """Only its unit is converted: one reading does not say how large a plant is."""
    values = np.array(line_reference.values)
    values[:, line_reference.index(tag)] = 2.0
    still = line_reference.with_values(values)
    template = derive_template(line_reference if where == "plant" else still)
    record = line_reference if where == "reference" else still
    channels = tuple(
        replace(each, unit=unit, span=None) if each.name == tag else each
        for each in record.channels
    )
    placed = placements(replace(record, channels=channels), template, {tag: tag})[tag]
    assert placed.factor == pytest.approx(factor)
    assert placed.offset == 0.0


def test_a_flow_that_runs_backwards_is_converted_only(
    line_reference: Record, line_template: Template
) -> None:
    values = np.array(line_reference.values)
    values[:, line_reference.index("F_PU1")] *= -1.0
    record = line_reference.with_values(values)
    placed = placements(record, line_template, {"F_PU1": "F_PU1"})["F_PU1"]
    assert (placed.factor, placed.offset) == (1.0, 0.0)


def test_codes_become_the_templates() -> None:
    treatment = simulate("treatment", seed=1, days=0.02)
    template = derive_template(treatment)
    record = replace(
        treatment.select(["P101"]),
        channels=(Channel(name="XS-1", role=Role.ACTUATOR, codes=Codes(off=0, on=(1,))),),
        values=treatment.select(["P101"]).values - 1,
    )
    placed = placements(record, template, {"XS-1": "P101"})["XS-1"]
    assert (placed.factor, placed.offset) == (1.0, 1.0)
    assert placed.place(record.channels[0]).codes == template.point("P101").codes


def test_codes_that_do_not_become_the_templates_are_refused(
    line_reference: Record, line_template: Template
) -> None:
    channels = [
        replace(c, codes=Codes(off=0, on=(1,), moving=(7,))) if c.name == "S_PU1" else c
        for c in line_reference.channels
    ]
    record = replace(line_reference, channels=tuple(channels))
    with pytest.raises(SettingError, match="do not become each other in order"):
        placements(record, line_template, {"S_PU1": "S_PU1"})


def test_an_actuator_is_no_measured_point(line_reference: Record, line_template: Template) -> None:
    with pytest.raises(SettingError, match="an actuator is no measured point"):
        placements(line_reference, line_template, {"S_PU1": "L_T1"})

    with pytest.raises(SettingError, match="an actuator is no measured point"):
        placements(line_reference, line_template, {"L_T1": "S_PU1"})


def test_codes_in_the_other_order_are_refused(
    line_reference: Record, line_template: Template
) -> None:
    """Each code becomes one of the template's, but on would become off."""
    codes = line_template.point("S_PU1").codes
    assert codes is not None
    turned = Codes(off=codes.on[0], on=(codes.off,))
    channels = [
        replace(c, codes=turned) if c.name == "S_PU1" else c for c in line_reference.channels
    ]
    record = replace(line_reference, channels=tuple(channels))
    with pytest.raises(SettingError, match="do not become each other in order"):
        placements(record, line_template, {"S_PU1": "S_PU1"})


def test_two_tags_cannot_be_one_point(line_reference: Record, line_template: Template) -> None:
    with pytest.raises(SettingError, match="both mapped to point 'L_T1'"):
        placements(line_reference, line_template, {"L_T1": "L_T1", "L_T2": "L_T1"})


def test_an_unknown_unit_is_refused(line_reference: Record, line_template: Template) -> None:
    channels = [replace(c, unit="cubit") for c in line_reference.channels]
    record = replace(line_reference, channels=tuple(channels))
    with pytest.raises(SettingError, match="of tag 'L_T1' is 'cubit' and that of point 'L_T1'"):
        placements(record, line_template, {"L_T1": "L_T1"})


def test_a_mapping_replaces_the_points_of_a_plant_file() -> None:
    first = mapped_plant_file(PlantFile(), {"A": Placement(name="a"), "B": Placement(name="b")})
    second = mapped_plant_file(first, {"A": Placement(name="b")})
    assert {tag: point.name for tag, point in second.points.items()} == {"A": "b"}


def test_overlap_counts_points() -> None:
    overlap = overlap_of({"a", "b", "x"}, ("a", "b", "c", "d"))
    assert (overlap.present, overlap.missing, overlap.share) == (("a", "b"), ("c", "d"), 0.5)
    overlap.demand(0.5, plant="north")


def test_too_little_overlap_is_refused_with_a_table() -> None:
    overlap = overlap_of({"a"}, ("a", "b", "c"))
    with pytest.raises(RefusedError, match=r"1 of the federation's 3 points .*\n  b\n  c$"):
        overlap.demand(0.5, plant="north")
    with pytest.raises(RefusedError, match="another kind of plant"):
        overlap_of({"x"}, ("a",)).demand(0.0, plant="north")


def _two_meters(
    record: Record, *, noise: float = 0.02, offset: float = 0.0, seed: int = 0
) -> Record:
    """Return the record with F_PU1 and F_PU2 as two meters of one flow."""
    rng = np.random.default_rng(seed)
    values = np.array(record.values)
    flow = values[:, record.index("F_PU1")]
    for name in ("F_PU1", "F_PU2"):
        values[:, record.index(name)] = flow + noise * flow.std() * rng.normal(size=len(flow))
    values[:, record.index("F_PU2")] += offset * noise * flow.std()
    span = record.channel("F_PU1").span
    channels = tuple(
        replace(each, span=span) if each.name == "F_PU2" else each for each in record.channels
    )
    return replace(record, channels=channels, values=values)


def test_two_meters_of_one_flow_are_twins(line_reference: Record) -> None:
    template = derive_template(_two_meters(line_reference))
    assert template.point("F_PU1").twins == ("F_PU2",)
    named = {m.tag: m for m in propose(_two_meters(line_reference, seed=1), template).matches}
    for one in ("F_PU1", "F_PU2"):
        assert {named[one].point, *named[one].twins} == {"F_PU1", "F_PU2"}
        assert not named[one].confident
    assert named["F_PU1"].point == "F_PU1"  # in the order of their tags


def test_one_of_two_meters_may_be_either(line_reference: Record) -> None:
    template = derive_template(_two_meters(line_reference))
    site = _two_meters(line_reference, seed=1).without("F_PU1")
    match = next(m for m in propose(site, template).matches if m.tag == "F_PU2")
    assert {match.point, *match.twins} == {"F_PU1", "F_PU2"}
    assert not match.confident


@pytest.mark.parametrize("what", ["offset", "memory", "noise", "unit", "larger", "actuator"])
def test_meters_that_readings_tell_apart_are_no_twins(line_reference: Record, what: str) -> None:
    record = _two_meters(line_reference, offset=1.0 if what == "offset" else 0.0)
    values, at = np.array(record.values), record.index("F_PU2")
    flow = values[:, record.index("F_PU1")]
    rng = np.random.default_rng(3)
    if what == "memory":  # one meter drifts
        slow = np.convolve(rng.normal(size=len(flow)), np.ones(100) / 10, mode="same")
        values[:, at] += 0.02 * flow.std() * slow
    elif what == "noise":  # one meter is noisier
        values[:, at] += 0.5 * flow.std() * rng.normal(size=len(flow))
    elif what == "larger":  # two flows that are as large and as noisy, and not the same
        values[:, at] = rng.permutation(flow)
        values[:, record.index("F_PU1")] = rng.permutation(flow)
    elif what == "actuator":
        own = record.index("S_PU1")
        values[:, record.index("S_PU2")] = values[:, own]
        values[rng.choice(len(values), 5, replace=False), record.index("S_PU2")] = 0
        values[rng.choice(len(values), 5, replace=False), own] = 0
    unit = "l/s" if what == "unit" else record.channels[at].unit
    channels = tuple(
        replace(each, unit=unit) if each.name == "F_PU2" else each for each in record.channels
    )
    changed = replace(record, channels=channels, values=values)
    named = {point.name: point.twins for point in derive_template(changed).points}
    assert named["S_PU1" if what == "actuator" else "F_PU1"] == ()


def _declared(record: Record, **change: object) -> Record:
    """Return the record with F_PU1 declared otherwise."""
    channels = tuple(
        replace(each, **change) if each.name == "F_PU1" else each  # type: ignore[arg-type]
        for each in record.channels
    )
    return replace(record, channels=channels)


@pytest.mark.parametrize(
    ("change", "role"),
    [
        ({"unit": "kPa"}, None),  # of another dimension
        ({"role": Role.PRESSURE}, None),
        ({"role": Role.OTHER}, Role.FLOW),  # nothing declares its role
        ({"unit": "cubit"}, Role.FLOW),  # an unknown unit is no evidence
        ({"unit": "l/s"}, Role.FLOW),
    ],
)
def test_a_tag_is_no_point_of_another_role_or_dimension(
    line_reference: Record, line_template: Template, change: dict[str, object], role: Role | None
) -> None:
    record = _declared(line_reference, **change)
    matches = {m.tag: m for m in propose(record, line_template).matches}
    point = matches["F_PU1"].point
    assert (line_template.point(point).role if point else None) is role


def test_a_tag_of_no_role_is_no_actuator(line_reference: Record) -> None:
    """It may be any measured point; an actuator shows codes, and these are declared."""
    actuators = line_reference.select([n for n in line_reference.names if n.startswith("S_")])
    template = derive_template(actuators)
    with pytest.raises(SettingError, match="another kind of plant"):
        propose(_declared(line_reference.select(["F_PU1"]), role=Role.OTHER), template)
