"""The water distribution testbed as its five files are."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sluice.errors import RecordError
from sluice.telemetry.formats.wdt import WDT
from sluice.telemetry.record import Label
from sluice.telemetry.source import Source

from .conftest import Put

FIRST = (
    "Time\tTank_1\tPump_1\tFlow_sensor_1\tValv_1\tLabel_n\tLabel\r\n"
    "09/04/2021 18:23:28\t0\tfalse\t0\ttrue\t0\tnormal\r\n"
    "09/04/2021 18:23:29\t12\tTRUE\t4000\tFalse\t1\tMITM\r\n"
    "09/04/2021 18:23:30\t13\ttrue\t4000\tfalse\t1\tphysical fault\r\n"
)
FOURTH = FIRST.replace("\t", ",").replace("2021", "2022")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(FIRST, "utf-16"), (FOURTH, "utf-8"), (FOURTH.replace("\r", ""), "utf-8")],
)
def test_both_encodings_read_alike(put: Put, text: str, encoding: str) -> None:
    source = put("phy_att.csv", text.encode(encoding))
    assert WDT.recognises(source)
    table = WDT.load(source)
    assert table.frame.columns == ["Tank_1", "Pump_1", "Flow_sensor_1", "Valv_1"]
    assert table.frame["Pump_1"].to_list() == [0.0, 1.0, 1.0]
    assert table.frame["Valv_1"].to_list() == [1.0, 0.0, 0.0]
    assert table.labels.tolist() == [Label.NORMAL, Label.ATTACK, Label.ATTACK]
    assert str(table.times[0])[4:19] == "-04-09T18:23:28"


def test_the_misspelt_column_and_word_are_read_and_noted(put: Put) -> None:
    text = FIRST.replace("Label_n", "Lable_n").replace("\tnormal", "\tnomal")
    table = WDT.load(put("phy_att_2.csv", text.encode("utf-16")))
    assert table.labels.tolist() == [0, 1, 1]
    said = [note.what for note in table.notes]
    assert "label column spelt 'Lable_n', read as 'Label_n'" in said
    assert "label 'nomal' read as 'normal'" in said


def test_the_number_decides_where_word_and_number_differ(put: Put) -> None:
    table = WDT.load(put("phy.csv", FOURTH.replace("1,MITM", "0,MITM").encode()))
    assert table.labels.tolist() == [0, 0, 1]
    note = next(note for note in table.notes if "the number decides" in note.what)
    assert (note.rows, note.first_row) == (1, 1)


def test_the_normal_file_is_read(plant_data: Callable[..., Path]) -> None:
    table = WDT.load(Source(plant_data("wdt", "phy_norm.csv")))
    assert table.frame.shape == (3_428, 40)
    assert set(table.labels) == {Label.NORMAL}
    assert set(np.diff(table.times)) == {np.timedelta64(1_000_000, "us")}
    assert str(table.times[0]) == "2021-04-09T11:30:50.000000"
    assert str(table.times[-1]) == "2021-04-09T12:27:57.000000"


def test_the_first_attack_file_is_read(plant_data: Callable[..., Path]) -> None:
    source = Source(plant_data("wdt", "phy_att_1.csv"))
    assert WDT.recognises(source)
    table = WDT.load(source)
    assert len(table.frame) == 2_420
    assert int((table.labels == Label.ATTACK).sum()) == 810
    by_kind = {note.what: note.rows for note in table.notes}
    assert by_kind["rows under attack by mitm"] == 533
    assert by_kind["rows under attack by physical fault"] == 277


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("1,MITM", "3,MITM", "label column 'Label_n' holds 3.0"),
        ("18:23:29", "at night", "row 1 has the time stamp '09/04/2022 at night'"),
        ("4000,False", "4000,ajar", "channel 'Valv_1' holds 'ajar' at row 1"),
        (",false,1,physical fault", "", "line 4 has 4 cells"),
    ],
)
def test_a_damaged_file_is_refused(put: Put, old: str, new: str, complaint: str) -> None:
    with pytest.raises(RecordError, match=complaint):
        WDT.load(put("damaged.csv", FOURTH.replace(old, new, 1).encode()))


def test_utf_16_that_ends_inside_a_character_is_refused(put: Put) -> None:
    with pytest.raises(RecordError, match="is truncated or damaged UTF-16 text"):
        WDT.load(put("cut.csv", FIRST.encode("utf-16")[:-1]))


@pytest.mark.parametrize(
    "content", [b"Time,Tank_1\n", b"Timestamp,FIT101,Normal/Attack\n", b"\xfe\n"]
)
def test_other_files_are_not_claimed(put: Put, content: bytes) -> None:
    assert not WDT.recognises(put("other.csv", content))
