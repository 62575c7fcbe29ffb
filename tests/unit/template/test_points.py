"""Templates: derived from a record, written, read strictly."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sluice.errors import DocumentError, RecordError, SettingError
from sluice.telemetry import Record
from sluice.template import Template, derive_template, read_template, write_template


def test_a_template_survives_its_file(line_template: Template, tmp_path: Path) -> None:
    write_template(line_template, tmp_path / "template.json")
    assert read_template(tmp_path / "template.json") == line_template
    assert read_template(tmp_path / "template.json").digest == line_template.digest


def test_points_have_the_channels_role_unit_and_span(
    line_reference: Record, line_template: Template
) -> None:
    for channel, point in zip(line_reference.channels, line_template.points, strict=True):
        assert (point.name, point.role, point.unit) == (channel.name, channel.role, channel.unit)
        assert (point.span, point.codes) == (channel.span, channel.codes)
    assert [point.name for point in line_template.points if point.still] == ["S_PU4"]


def test_rules_give_the_topology(line_reference: Record) -> None:
    template = derive_template(line_reference, ties=[("L_T1", "F_PU1", "elsewhere")])
    assert template.point("L_T1").connects == ("F_PU1",)
    assert template.point("F_PU2").connects == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "extra: Unexpected keyword argument"),
        ({"stride_s": "60"}, "stride_s"),
        ({"stride_s": 0.0}, "a stride above 0 s"),
        ({"graphs": []}, "matrices of"),
        ({"points": []}, "1 to 1,000 points"),
    ],
)
def test_a_damaged_file_is_refused(
    line_template: Template, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "template.json"
    write_template(line_template, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DocumentError, match=message):
        read_template(path)


def test_a_correlation_above_one_is_refused(line_template: Template) -> None:
    graphs = [[[*row] for row in matrix] for matrix in line_template.graphs]
    graphs[0][0][1] = 1.5
    shaped = tuple(tuple(tuple(row) for row in matrix) for matrix in graphs)
    with pytest.raises(SettingError, match="between -1 and 1"):
        replace(line_template, graphs=shaped)


def test_a_point_named_twice_is_refused(line_template: Template) -> None:
    points = (*line_template.points[:-1], line_template.points[0])
    with pytest.raises(SettingError, match="'L_T1' twice"):
        replace(line_template, points=points)


def test_a_connection_to_no_point_is_refused(line_template: Template) -> None:
    first = replace(line_template.points[0], connects=("nowhere",))
    with pytest.raises(SettingError, match="'nowhere', which the template does not name"):
        replace(line_template, points=(first, *line_template.points[1:]))


def test_a_point_with_readings_out_of_order_is_refused(line_template: Template) -> None:
    with pytest.raises(SettingError, match="ascending order"):
        replace(line_template.points[0], usual=(2.0, 1.0, 3.0))


def test_codes_belong_to_actuators_only(line_template: Template) -> None:
    with pytest.raises(SettingError, match="an actuator has codes"):
        replace(line_template.points[-1], codes=None)


def test_a_short_record_tells_nothing_apart(line_reference: Record) -> None:
    with pytest.raises(RecordError, match="200 and more"):
        derive_template(line_reference.rows(0, 150))


def test_an_unknown_point_is_refused(line_template: Template) -> None:
    with pytest.raises(SettingError, match="no point 'tank9.level'"):
        line_template.point("tank9.level")
