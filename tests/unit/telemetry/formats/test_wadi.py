"""WADI as releases A1 and A2 are."""

from datetime import date, time

import numpy as np
import pytest

from sluice.arrays import runs
from sluice.errors import RecordError
from sluice.telemetry.filling import Fill
from sluice.telemetry.formats.wadi import WADI
from sluice.telemetry.formats.wadi_attacks import PUBLISHED, WadiAttack, attacks_in
from sluice.telemetry.record import Label

from .conftest import Cell, Put, Workbook

PATH = rb"\\WIN-25J4RO10SBF\LOG_DATA\SUTD_WADI\LOG_DATA" + b"\\"
TAGS = (b"1_FIT_001_PV", b"2_LS_001_AL", b"LEAK_DIFF_PRESSURE", b"1_P_001_STATUS")
A1_HEADER = b"Row,Date,Time," + b",".join(PATH + tag for tag in TAGS) + b"\n"
PREAMBLE = b"Created: 9/25/2017\nNumber of rows: 3\nInterpolation interval: 1 seconds\n\n"
A1_NORMAL = (
    PREAMBLE + A1_HEADER + b"1,9/25/2017,6:00:00.000 PM,0.5,,66.1,1\n"
    b"2,9/25/2017,6:00:01.000 PM,1.#QNAN,,66.2,2\n"
    b"3,9/26/2017,12:00:02.000 AM,0.75,,66.3,0\n"
)
A2_ATTACK = (
    b"0,1,2,3,4,5,6,7\n"
    b"Row ,Date ,Time,1_FIT_001_PV,2_LS_001_AL,LEAK_DIFF_PRESSURE,1_P_001_STATUS,"
    b'"Attack LABLE (1:No Attack, -1:Attack)"\n'
    b"1,10/9/2017,6:00:00.000 PM,0.5,,66.1,1,1\n"
    b"2,10/9/2017,6:00:01.000 PM,0.6,,66.2,2,-1\n"
    b",,,,,,,\n"
    b",,,,,,,\n"
)


def test_the_preamble_paths_aggregates_and_empty_columns_of_a1_go(put: Put) -> None:
    source = put("WADI_14days.csv", A1_NORMAL)
    assert WADI.recognises(source)
    table = WADI.load(source)
    assert table.frame.columns == ["1_FIT_001_PV", "1_P_001_STATUS"]
    assert table.frame["1_FIT_001_PV"].to_list() == [0.5, None, 0.75]
    assert table.times.astype("datetime64[s]").astype(str).tolist() == [
        "2017-09-25T18:00:00",
        "2017-09-25T18:00:01",
        "2017-09-26T00:00:02",
    ]
    assert table.labels.tolist() == [Label.NORMAL] * 3
    said = [note.what for note in table.notes]
    assert "columns without a single reading dropped: 2_LS_001_AL" in said
    assert "aggregates dropped: LEAK_DIFF_PRESSURE" in said
    assert any("documentation (14 clean days)" in what for what in said)
    assert WADI.fill is Fill.LINEAR


@pytest.mark.parametrize("tail", [b"", b",,,,,,,\n,,,,,,,\n", b"\n\n", b"\r\n\r\n"])
def test_the_labelled_file_of_a2_ends_in_empty_lines(put: Put, tail: bytes) -> None:
    source = put("WADI_attackdataLABLE.csv", A2_ATTACK.removesuffix(b",,,,,,,\n" * 2) + tail)
    assert WADI.recognises(source)
    table = WADI.load(source)
    assert table.labels.tolist() == [Label.NORMAL, Label.ATTACK]
    assert table.frame.columns == ["1_FIT_001_PV", "1_P_001_STATUS"]
    noted = any("2 empty line(s)" in note.what for note in table.notes)
    assert noted == bool(tail)


def test_the_normal_file_of_a2_is_read_across_its_gap(put: Put) -> None:
    rows = b"1,9/25/2017,6:00:00.000 PM,1,2\n2,9/28/2017,7:00:00.000 PM,1,2\n"
    table = WADI.load(
        put("WADI_14days_new.csv", b"Row,Date,Time,1_FIT_001_PV,1_P_001_STATUS\n" + rows)
    )
    assert (table.times[1] - table.times[0]) == np.timedelta64(73, "h")


def test_hours_that_a_spreadsheet_lost_are_rebuilt_from_the_row_number(put: Put) -> None:
    header = b"Row,Date,Time,1_FIT_001_PV,1_P_001_STATUS\n"
    rows = b"1,10/9/17,00:00.0,1,2\n2,10/9/17,00:01.0,1,2\n3,10/9/17,00:02.0,1,2\n"
    table = WADI.load(put("hours.csv", header + rows))
    assert table.times.astype("datetime64[s]").astype(str).tolist() == [
        "2017-10-09T18:00:00",
        "2017-10-09T18:00:01",
        "2017-10-09T18:00:02",
    ]
    assert any("hours lost" in note.what for note in table.notes)
    with pytest.raises(RecordError, match="has lost its hours and row 2"):
        WADI.load(
            put("shifted.csv", header + rows.replace(b"3,10/9/17,00:02.0", b"3,10/9/17,00:09.0"))
        )


def campaign(hours: int = 48) -> bytes:
    """Return an unlabelled attack file of A1 at one row a minute."""
    lines = [b"Row,Date,Time," + PATH + b"1_FIT_001_PV\n"]
    start = np.datetime64("2017-10-09T18:00:00")
    for row in range(hours * 60):
        stamp = (start + np.timedelta64(row, "m")).item()
        lines.append(f"{row + 1},{stamp:%m/%d/%Y},{stamp:%I:%M:%S.000 %p},1\n".encode())
    return b"".join(lines)


def test_without_the_sheet_the_published_attacks_label_the_rows(put: Put) -> None:
    table = WADI.load(put("WADI_attackdata.csv", campaign()))
    attacked = table.times[table.labels == Label.ATTACK]
    assert str(attacked[0]) == "2017-10-09T19:25:00.000000"
    assert np.datetime64("2017-10-09T19:50:00", "us") in attacked
    assert np.datetime64("2017-10-09T19:51:00", "us") not in attacked
    assert any("no attack_description.xlsx beside" in note.what for note in table.notes)


def test_the_published_attacks_make_the_segments_and_rows_of_the_paper() -> None:
    seconds = np.zeros(172_801, bool)
    start = np.datetime64("2017-10-09T18:00:00")
    for attack in PUBLISHED:
        first, last = (
            int((np.datetime64(at) - start).astype(int) // 1_000_000)
            for at in (attack.start, attack.end)
        )
        seconds[first:last] = True
    assert (len(runs(seconds)), int(seconds.sum()), int(seconds[::5].sum())) == (14, 9_971, 1_996)


SHEET_HEAD: list[list[Cell]] = [
    ["WadiAttack description"],
    [],
    ["S.No", "Date", "Start Time", "End Time", "Attack Point (s)"],
]


def days(attacks: tuple[WadiAttack, ...]) -> list[tuple[str, str]]:
    return [(f"{at.start:%d %H:%M:%S}", f"{at.end:%d %H:%M:%S}") for at in attacks]


def test_typing_errors_of_the_attack_sheet_are_repaired_and_noted(workbook: Workbook) -> None:
    rows: list[list[Cell]] = [
        [1, date(2017, 10, 9), time(19, 25), time(19, 50, 16), "1_MV_001"],
        [5, date(1947, 10, 10), "11.30:40", "11:44.50", "2_MCV_101"],  # a year and two dots
        [7, date(2017, 10, 10), time(14, 48, 17), time(14, 59, 55), "1_AIT_002"],
        [None, None, time(14, 53, 44), time(15, 0, 32), "2_MV_003"],  # its second phase
        [8, date(2017, 10, 10), "23:59:00", "00:01:00", "2_MCV_007"],  # past midnight
        [9, date(2017, 10, 10), "10:55:00", "10:56:27", "1_P_006"],  # a day early
        [10, date(2017, 7, 11), "11:17:54", "11:31:20", "1_MV_001"],  # July
    ]
    attacks, notes = attacks_in(workbook("attack_description.xlsx", [*SHEET_HEAD, *rows]))
    assert days(attacks) == [
        ("09 19:25:00", "09 19:50:16"),
        ("10 11:30:40", "10 11:44:50"),
        ("10 14:48:17", "10 14:59:55"),
        ("10 14:53:44", "10 15:00:32"),
        ("10 23:59:00", "11 00:01:00"),
        ("11 10:55:00", "11 10:56:27"),
        ("11 11:17:54", "11 11:31:20"),
    ]
    assert {attack.start.year for attack in attacks} == {2017}
    assert {attack.start.month for attack in attacks} == {10}
    assert len(notes) == 4


def test_a_sheet_beside_the_record_labels_it(put: Put, workbook: Workbook) -> None:
    workbook("attack_description.xlsx", [*SHEET_HEAD, [1, "09/10/2017", "18:01:00", "18:03:00"]])
    table = WADI.load(put("WADI_attackdata.csv", campaign(1)))
    assert np.flatnonzero(table.labels == Label.ATTACK).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([["No", "Date"]], "no row that starts with 'S.No'"),
        ([["S.No", "Date", "Start Time"]], "no column 'End Time'"),
        ([*SHEET_HEAD], "lists no attack"),
        ([*SHEET_HEAD, [1, "31/12/2017", "1:00:00", "2:00:00"]], "dated '31/12/2017'"),
        ([*SHEET_HEAD, [1, "9/10/2017", "1:00:00", "25:00:00"]], "has the time '25:00:00'"),
        ([*SHEET_HEAD, [1, None, "1:00:00", "2:00:00"]], "no date above it"),
    ],
)
def test_a_sheet_that_cannot_be_read_is_refused(
    workbook: Workbook, rows: list[list[Cell]], complaint: str
) -> None:
    with pytest.raises(RecordError, match=complaint):
        attacks_in(workbook("attack_description.xlsx", rows))


def test_a_look_alike_of_another_year_is_unlabelled(put: Put) -> None:
    rows = b"Row,Date,Time,1_FIT_001_PV,1_P_001_STATUS\n1,3/1/2024,6:00:00.000 PM,1,2\n"
    assert WADI.load(put("other.csv", rows)).labels.tolist() == [Label.UNLABELLED]


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (b"2,-1\n", b"2,7\n", "holds 7.0, which means neither normal nor attack"),
        (b"6:00:01.000 PM", b"later", "row 1 has the time stamp '10/9/2017 later'"),
        (b"0.6,,66.2,2,-1\n", b"0.6", "line 4 has"),
    ],
)
def test_a_damaged_file_is_refused(put: Put, old: bytes, new: bytes, complaint: str) -> None:
    with pytest.raises(RecordError, match=complaint):
        WADI.load(put("damaged.csv", A2_ATTACK.replace(old, new, 1)))


@pytest.mark.parametrize(
    "content",
    [b"Row,Date,Time,value\n1,2,3,4\n", b"time,P1_B2004,P1_B2016\n", b"\\\\\\,\\\n", b'"",,"\n"'],
)
def test_other_files_are_not_claimed(put: Put, content: bytes) -> None:
    assert not WADI.recognises(put("other.csv", content))
