"""Templates: derived from a record, written, read strictly."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

from sluice.errors import DocumentError, RecordError, SettingError
from sluice.telemetry import Codes, Record
from sluice.template import (
    Template,
    derive_template,
    parse_template,
    read_template,
    write_template,
)


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
        ({"schema": 2}, "schema"),
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


def test_a_point_with_a_damaged_course_is_refused(line_template: Template) -> None:
    point = line_template.points[0]
    with pytest.raises(SettingError, match="a resolution of at least 0"):
        replace(point, resolution=-0.1)
    with pytest.raises(SettingError, match="numbers of shape"):
        replace(point, shape=point.shape[1:])


def test_too_many_points_are_refused_before_they_are_compared(line_template: Template) -> None:
    with pytest.raises(SettingError, match="1 to 1,000 points"):
        replace(line_template, points=line_template.points * 91)


def test_a_stride_without_end_is_refused(line_template: Template) -> None:
    with pytest.raises(SettingError, match="a stride above 0 s"):
        replace(line_template, stride_s=float("inf"))


def test_matrices_of_another_size_are_refused(line_template: Template) -> None:
    first, *others = line_template.graphs
    for damaged in (first[1:], (first[0][1:], *first[1:])):
        with pytest.raises(SettingError, match="matrices of 11 x 11"):
            replace(line_template, graphs=(damaged, *others))


def test_a_channel_without_a_reading_is_refused(line_reference: Record) -> None:
    values = np.array(line_reference.values)
    values[:, 0] = np.nan
    with pytest.raises(RecordError, match="no reading of 'L_T1'; leave the channel out"):
        derive_template(line_reference.with_values(values))


def test_text_that_nests_too_deeply_is_refused() -> None:
    with pytest.raises(DocumentError, match="deep"):
        parse_template("[" * 100_000, where="template.json")


def test_codes_belong_to_actuators_only(line_template: Template) -> None:
    with pytest.raises(SettingError, match="an actuator has codes"):
        replace(line_template.points[-1], codes=None)
    with pytest.raises(SettingError, match="an actuator has codes"):
        replace(line_template.points[0], codes=Codes(off=0, on=(1,)))


def test_a_short_record_tells_nothing_apart(line_reference: Record) -> None:
    with pytest.raises(RecordError, match="200 and more"):
        derive_template(line_reference.rows(0, 199))
    assert derive_template(line_reference.rows(0, 200)).names == line_reference.names


def test_an_unknown_point_is_refused(line_template: Template) -> None:
    with pytest.raises(SettingError, match="no point 'tank9.level'"):
        line_template.point("tank9.level")


@pytest.mark.parametrize("count", [1, 1_000])
def test_a_template_has_one_to_a_thousand_points(line_template: Template, count: int) -> None:
    point = line_template.points[0]
    points = tuple(replace(point, name=f"tank{at}.level") for at in range(count))
    matrix = ((0.0,) * count,) * count
    wide = replace(line_template, stride_s=0.5, points=points, graphs=(matrix,) * 4)
    assert len(wide.names) == count


@pytest.mark.parametrize("length", [0, 201])
def test_a_point_has_a_name_of_1_to_200_letters(line_template: Template, length: int) -> None:
    text = TypeAdapter(Template).dump_json(line_template).decode()
    for fits in ("a", "a" * 200):
        assert parse_template(text.replace('"L_T1"', f'"{fits}"'), where="file").names[0] == fits
    with pytest.raises(DocumentError, match=r"points\.0\.name: String should have at"):
        parse_template(text.replace('"L_T1"', f'"{"a" * length}"'), where="file")


def test_a_file_above_16_mib_is_refused(line_template: Template, tmp_path: Path) -> None:
    path = tmp_path / "template.json"
    write_template(line_template, path)
    room = 16 * 1024 * 1024 - path.stat().st_size
    with path.open("a", encoding="utf-8") as out:
        out.write(" " * room)
    assert read_template(path) == line_template
    with path.open("a", encoding="utf-8") as out:
        out.write(" ")
    with pytest.raises(DocumentError, match="template.json"):
        read_template(path)
