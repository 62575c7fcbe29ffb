"""Plant files: what they correct, and what they are refused for."""

import math
from pathlib import Path

import pytest

from sluice.errors import PlantFileError
from sluice.telemetry import plantfile
from sluice.telemetry.channel import Channel, Codes, Role, Span
from sluice.telemetry.plantfile import (
    Declaration,
    Placement,
    PlantFile,
    read_plant_file,
    write_plant_file,
)
from sluice.telemetry.reading import read_record, read_rows

RECORD = "when,A,B,C\n2024-03-01 10:00:00,500,0,7\n2024-03-01 10:00:05,501.5,3,7.5\n"


@pytest.fixture
def record_path(tmp_path: Path) -> Path:
    path = tmp_path / "plant.csv"
    path.write_text(RECORD)
    return path


def plant(folder: Path, text: str) -> Path:
    path = folder / "plant.toml"
    path.write_text(text)
    return path


def test_a_plant_file_declares_clock_roles_units_codes_and_spans(
    tmp_path: Path, record_path: Path
) -> None:
    declared = read_plant_file(
        plant(
            tmp_path,
            """
            [record]
            time = "when"
            [channels.A]
            role = "level"
            unit = "mm"
            span = [0, 1200]
            [channels.B]
            codes = { off = 0, on = [3], moving = [1, 2] }
            [channels.C]
            ignore = true
            """,
        )
    )
    record = read_record(record_path, plant=declared)
    assert record.names == ("A", "B")
    level, valve = record.channels
    assert (level.role, level.unit, level.span) == (Role.LEVEL, "mm", Span(low=0, high=1200))
    assert level.why == "plant file"
    assert valve.role is Role.ACTUATOR
    assert valve.codes == Codes(off=0, on=(3,), moving=(1, 2))


def test_a_declared_actuator_without_codes_gets_them_from_its_values(
    tmp_path: Path, record_path: Path
) -> None:
    declared = read_plant_file(
        plant(tmp_path, '[record]\ntime = "when"\n[channels.B]\nrole = "actuator"')
    )
    assert read_record(record_path, plant=declared).channel("B").codes == Codes(off=0, on=(3,))


def test_a_record_without_a_clock_gets_a_stride(tmp_path: Path) -> None:
    path = tmp_path / "raw.csv"
    path.write_text("LIT101,FIT101\n1,2\n3,4\n")
    declared = read_plant_file(plant(tmp_path, "[record]\nstride_s = 5"))
    assert read_record(path, plant=declared).stride_s == 5


def test_what_was_inferred_can_be_written_corrected_and_read_back(
    tmp_path: Path, record_path: Path
) -> None:
    declared = read_plant_file(plant(tmp_path, '[record]\ntime = "when"'))
    record = read_record(record_path, plant=declared)
    write_plant_file(record, tmp_path / "inferred.toml")
    again = read_plant_file(tmp_path / "inferred.toml")
    assert set(again.channels) == {"A", "B", "C"}
    assert again.channels["B"].codes == record.channel("B").codes


BAD = {
    "not toml": ("[record", "is not TOML"),
    "unknown key": (
        "[chanels.A]\nrole = 'level'",
        "unknown key 'chanels'; did you mean 'channels'",
    ),
    "unknown channel key": (
        "[channels.A]\nroll = 'level'",
        "unknown key 'roll'; did you mean 'role'",
    ),
    "unknown role": ("[channels.A]\nrole = 'lvl'", "role is 'lvl'; it must be one of level, flow"),
    "bad span": ("[channels.A]\nspan = [3, 1]", "low < high"),
    "bad codes": ("[channels.A]\ncodes = { off = 0, on = ['x'] }", "codes are whole numbers"),
    "contradicting codes": ("[channels.A]\ncodes = { off = 1, on = [1] }", "no repeats"),
    "negative stride": ("[record]\nstride_s = -1", "stride_s must be a positive number"),
    "text wanted": ("[record]\ntime = 3", "time must be a string"),
    "list wanted": ("[record]\nattack_labels = 'x'", "attack_labels must be a list"),
    "table wanted": ("channels = 3", "channels must be a table"),
    "table of words wanted": ("[record]\nwords = 3", "words must be a table such as"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_plant_file_is_refused_with_where(tmp_path: Path, case: str) -> None:
    text, message = BAD[case]
    with pytest.raises(PlantFileError, match=message):
        read_plant_file(plant(tmp_path, text))


def test_a_missing_plant_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlantFileError, match="cannot be read"):
        read_plant_file(tmp_path / "none.toml")


def test_a_declared_channel_that_the_record_lacks_is_refused(
    tmp_path: Path, record_path: Path
) -> None:
    declared = read_plant_file(
        plant(tmp_path, '[record]\ntime = "when"\n[channels.D]\nrole = "flow"')
    )
    with pytest.raises(PlantFileError, match="declares 'D', which record 'plant' does not have"):
        read_record(record_path, plant=declared)


def test_codes_on_a_channel_declared_continuous_are_refused(
    tmp_path: Path, record_path: Path
) -> None:
    text = '[record]\ntime = "when"\n[channels.B]\nrole = "flow"\ncodes = { off = 0, on = [1] }'
    with pytest.raises(
        PlantFileError,
        match=r"\[channels.B\].*an actuator needs codes, and no other role may have them",
    ):
        read_record(record_path, plant=read_plant_file(plant(tmp_path, text)))


def _point_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "plant.toml"
    path.write_text(text)
    return path


def test_a_channel_that_is_a_point_is_read_as_the_point(tmp_path: Path) -> None:
    record = tmp_path / "north.csv"
    rows = "".join(f"2024-01-01 00:0{at}:00,{1000 + at},{at % 2}\n" for at in range(8))
    record.write_text("time,LT-7,XS-1\n" + rows)
    plant = read_plant_file(
        _point_file(
            tmp_path,
            '[channels.LT-7]\nrole = "level"\nunit = "mm"\nspan = [0, 2000]\n'
            '[channels.LT-7.point]\nname = "tank1.level"\nunit = "m"\nfactor = 0.001\n'
            "offset = 0.5\n"
            '[channels.XS-1]\nrole = "actuator"\ncodes = { off = 0, on = [1] }\n'
            '[channels.XS-1.point]\nname = "pump1.state"\noffset = 1\n',
        )
    )
    read = read_record(record, plant=plant)
    level, pump = read.channel("tank1.level"), read.channel("pump1.state")
    assert read.column("tank1.level")[:2] == pytest.approx([1.5, 1.501])
    assert (level.unit, level.span) == ("m", Span(low=0.5, high=2.5))
    assert "tag LT-7" in level.why
    assert pump.codes == Codes(off=1, on=(2,))
    assert read.column("pump1.state")[:2].tolist() == [1.0, 2.0]
    live = read_rows(record, plant=plant)
    assert live.names == read.names
    assert live.values.tolist() == read.values.tolist()
    assert plant.as_point("LT-7", 1000.0) == ("tank1.level", 1.5)
    assert plant.as_point("other", 3.0) == ("other", 3.0)


def test_points_survive_a_written_plant_file(tmp_path: Path) -> None:
    record = tmp_path / "north.csv"
    rows = "".join(f"2024-01-01 00:0{at}:00,{at}.5\n" for at in range(4))
    record.write_text("time,LT-7\n" + rows)
    point = Placement(name="tank1.level", unit="m", factor=0.25, offset=-1.0)
    plant = PlantFile(channels={"LT-7": Declaration(point=point)})
    write_plant_file(read_record(record), tmp_path / "plant.toml", plant=plant)
    assert read_plant_file(tmp_path / "plant.toml").points == {"LT-7": point}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[channels.A]\npoint = "p"\n', "point must be a table with a name"),
        ('[channels.A.point]\nname = "p"\nfactr = 1\n', "did you mean 'factor'"),
        ("[channels.A.point]\nfactor = 1\n", "a point needs a name"),
        ('[channels.A.point]\nname = "p"\nfactor = 0\n', "a factor above 0"),
        ('[channels.A.point]\nname = "p"\nfactor = inf\n', "a factor above 0"),
        ('[channels.A.point]\nname = "p"\nfactor = "2"\n', "factor must be a number"),
        ('[channels.A.point]\nname = "p"\noffset = inf\n', "a finite offset"),
        ('[channels.A.point]\nname = "p"\n[channels.B.point]\nname = "p"\n', "both point 'p'"),
        ('[channels."A*".point]\nname = "p"\n', "a point is one channel"),
    ],
)
def test_a_point_that_cannot_be_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PlantFileError, match=message):
        read_plant_file(_point_file(tmp_path, text))


def test_a_point_keeps_codes_whole() -> None:
    channel = Channel(name="XS-1", role=Role.ACTUATOR, codes=Codes(off=0, on=(1,)))
    with pytest.raises(PlantFileError, match="no whole number"):
        Placement(name="pump", factor=0.5).place(channel)


def test_a_code_may_miss_a_whole_number_by_rounding_and_by_no_more() -> None:
    channel = Channel(name="XS-1", role=Role.ACTUATOR, codes=Codes(off=0, on=(1,)))
    assert Placement(name="pump", offset=1e-9)._code(channel, 0) == 0
    with pytest.raises(PlantFileError, match="no whole number"):
        Placement(name="pump", offset=math.nextafter(1e-9, 1))._code(channel, 0)


def test_a_plant_file_has_as_many_words_as_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plantfile, "MOST_WORDS", 2)
    words = "Ein = 1, Aus = 0"
    read = read_plant_file(plant(tmp_path, f"[record]\nwords = {{ {words} }}"))
    assert read.words == {"Ein": 1.0, "Aus": 0.0}
    with pytest.raises(PlantFileError, match="words must be a table"):
        read_plant_file(plant(tmp_path, f"[record]\nwords = {{ {words}, Auto = 2 }}"))
