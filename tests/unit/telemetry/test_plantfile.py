"""Plant files: what they correct, and what they are refused for."""

from pathlib import Path

import pytest

from sluice.errors import PlantFileError
from sluice.telemetry.channel import Codes, Role, Span
from sluice.telemetry.plantfile import read_plant_file, write_plant_file
from sluice.telemetry.reading import read_record

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
