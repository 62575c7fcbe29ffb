"""SWaT as its December 2015 files are."""

from datetime import datetime

import numpy as np
import pytest

from sluice.errors import RecordError
from sluice.telemetry.formats.swat import START_UP_S, STRIDE, SWAT
from sluice.telemetry.record import Label

from .conftest import Cell, Put, Workbook

TITLE = b",P1,,,P2,\n"
HEADER = b" Timestamp,FIT101,LIT101, MV101, AIT201,Normal/Attack\n"
ROWS = (
    b" 28/12/2015 10:00:00 AM,2.427057,522.8467,2,262.0161,Normal\n"
    b" 28/12/2015 10:00:01 AM,2.446274,522.886,2,262.0161,Attack\n"
    b" 28/12/2015 12:00:02 PM,2.489191,522.8467,0,262.0161,A ttack\n"
    b" 02/01/2016 1:59:59 PM,,522.9645,1,262.0161,Normal\n"
)
BOM = b"\xef\xbb\xbf"


def test_the_title_row_stray_blanks_and_the_split_label_are_read_and_noted(put: Put) -> None:
    table = SWAT.load(put("SWaT_Dataset_Attack_v0.csv", TITLE + HEADER + ROWS))
    assert table.frame.columns == ["FIT101", "LIT101", "MV101", "AIT201"]
    assert table.frame["MV101"].to_list() == [2.0, 2.0, 0.0, 1.0]
    assert table.frame["FIT101"].to_list() == [2.427057, 2.446274, 2.489191, None]
    assert table.labels.tolist() == [Label.NORMAL, Label.ATTACK, Label.ATTACK, Label.NORMAL]
    assert table.times.astype(str).tolist() == [
        "2015-12-28T10:00:00.000000",
        "2015-12-28T10:00:01.000000",
        "2015-12-28T12:00:02.000000",
        "2016-01-02T13:59:59.000000",
    ]
    split = next(note for note in table.notes if "'A ttack'" in note.what)
    assert (split.rows, split.first_row) == (1, 2)
    assert any("below a title row" in note.what for note in table.notes)
    assert any(note.what.endswith("Timestamp, MV101, AIT201") for note in table.notes)


@pytest.mark.parametrize(
    "content", [HEADER + ROWS, BOM + HEADER + ROWS, BOM + TITLE + HEADER + ROWS]
)
def test_a_lost_title_row_and_a_byte_order_mark_change_nothing(put: Put, content: bytes) -> None:
    expected = SWAT.load(put("with_title.csv", TITLE + HEADER + ROWS))
    source = put("export.csv", content)
    assert SWAT.recognises(source)
    table = SWAT.load(source)
    assert table.frame.equals(expected.frame)
    assert np.array_equal(table.times, expected.times)
    assert np.array_equal(table.labels, expected.labels)


def test_trailing_blanks_and_windows_line_ends_in_the_label_column_are_harmless(put: Put) -> None:
    content = HEADER.replace(b"Normal/Attack", b"Normal/Attack ") + ROWS
    table = SWAT.load(put("export.csv", content.replace(b"\n", b"\r\n")))
    assert table.frame.columns == ["FIT101", "LIT101", "MV101", "AIT201"]
    assert table.labels.tolist() == [0, 1, 1, 0]


def test_without_a_label_column_rows_are_unlabelled(put: Put) -> None:
    content = (
        b"Timestamp,FIT101,LIT301,FIT601\n"
        b"28/12/2015 10:00:00 AM,2.4,900,0\n"
        b"28/12/2015 10:00:01 AM,2.5,900,0\n"
    )
    source = put("cut.csv", content)
    assert SWAT.recognises(source)
    assert SWAT.load(source).labels.tolist() == [Label.UNLABELLED] * 2


def test_a_workbook_reads_as_its_export_does(put: Put, workbook: Workbook) -> None:
    rows: list[list[Cell]] = [
        [None, "P1", None, None, "P2"],
        [" Timestamp", "FIT101", "LIT101", " MV101", " AIT201", "Normal/Attack"],
        [" 28/12/2015 10:00:00 AM", 2.427057, 522.8467, 2, 262.0161, "Normal"],
        [" 28/12/2015 10:00:01 AM", 2.446274, 522.886, 2, 262.0161, "Attack"],
        [" 28/12/2015 12:00:02 PM", 2.489191, 522.8467, 0, 262.0161, "A ttack"],
        [" 02/01/2016 1:59:59 PM", None, 522.9645, 1, 262.0161, "Normal"],
    ]
    expected = SWAT.load(put("export.csv", TITLE + HEADER + ROWS))
    source = workbook("SWaT_Dataset_Attack_v0.xlsx", rows)
    assert SWAT.recognises(source)
    table = SWAT.load(source)
    assert table.frame.equals(expected.frame)
    assert np.array_equal(table.times, expected.times)
    assert np.array_equal(table.labels, expected.labels)


def test_a_workbook_with_real_dates_and_no_title_row_is_read(workbook: Workbook) -> None:
    rows: list[list[Cell]] = [
        ["Timestamp", "FIT101", "Normal/Attack"],
        [datetime.fromisoformat("2015-12-22 16:30:00"), 2.5, "Normal"],
        [datetime.fromisoformat("2015-12-22 16:30:01"), 2.6, "Normal"],
    ]
    table = SWAT.load(workbook("SWaT_Dataset_Normal_v1.xlsx", rows))
    assert str(table.times[1]) == "2015-12-22T16:30:01.000000"
    assert table.frame["FIT101"].to_list() == [2.5, 2.6]


def test_a_word_late_in_a_numeric_column_of_a_workbook_is_refused(workbook: Workbook) -> None:
    rows: list[list[Cell]] = [["Timestamp", "FIT101", "Normal/Attack"]]
    rows += [[f"28/12/2015 10:{at // 60:02}:{at % 60:02} AM", 2.5, "Normal"] for at in range(1500)]
    rows[1400][1] = "stuck"
    with pytest.raises(RecordError, match="channel 'FIT101' holds 'stuck' at row 1399"):
        SWAT.load(workbook("late.xlsx", rows))


def test_a_truncated_workbook_is_refused(put: Put, workbook: Workbook) -> None:
    whole = workbook("whole.xlsx", [["Timestamp", "FIT101"], ["28/12/2015 10:00:00 AM", 2.5]])
    cut = put("cut.xlsx", whole.data[: len(whole.data) // 2])
    with pytest.raises(RecordError, match=r"cut\.xlsx is not a workbook or is damaged"):
        SWAT.recognises(cut)
    with pytest.raises(RecordError, match=r"cut\.xlsx is not a workbook or is damaged"):
        SWAT.load(cut)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (b",A ttack", b",Maintenance", "label column 'Normal/Attack' holds 'Maintenance'"),
        (
            b" 28/12/2015 12:00:02 PM",
            b" 28.12.2015 12h",
            "row 2 has the time stamp ' 28.12.2015 12h'",
        ),
        (b"522.886", b"open", "channel 'LIT101' holds 'open' at row 1"),
        (b",262.0161,A ttack", b"", "line 5 has 4 cells, the header 6"),
        (b" Timestamp", b"Clock", "no Timestamp column"),
        (b" MV101", b"FIT101", "'FIT101' more than once"),
    ],
)
def test_a_damaged_file_is_refused(put: Put, old: bytes, new: bytes, complaint: str) -> None:
    content = (TITLE + HEADER + ROWS).replace(old, new, 1)
    with pytest.raises(RecordError, match=complaint):
        SWAT.load(put("damaged.csv", content))


@pytest.mark.parametrize(
    "content",
    [
        b"DATETIME,L_T1,ATT_FLAG\n06/01/14 00,1.2,0\n",
        b"{}\n",
        b"\x80\x81,\xfe\n",
        b'"' * 99,
        b"Timestamp\n",
    ],
)
def test_other_files_are_not_claimed(put: Put, content: bytes) -> None:
    assert not SWAT.recognises(put("other.csv", content))


def test_the_papers_preparation_leaves_its_row_counts() -> None:
    assert -(-(495_000 - START_UP_S) // STRIDE) == 94_680
    assert -(-449_919 // STRIDE) == 89_984
