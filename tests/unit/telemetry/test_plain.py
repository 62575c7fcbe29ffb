"""Plain tables: clocks, labels, quality columns, long form, and what is refused."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sluice.errors import InputError, RecordError, SettingError, UnknownFormatError
from sluice.telemetry import source
from sluice.telemetry.channel import Role
from sluice.telemetry.filling import Fill
from sluice.telemetry.formats.plain import _names
from sluice.telemetry.plantfile import Duplicates, PlantFile, Unsorted
from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Label
from sluice.telemetry.source import Source, find_record_file

HEADER = "time,LIT101,FIT101,MV101\n"
ROWS = (
    "2024-03-01 10:00:00,500,2.5,2\n2024-03-01 10:00:05,501.5,2.5,2\n2024-03-01 10:00:10,503,0,1\n"
)


def file(folder: Path, text: str | bytes, name: str = "plant.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_plain_table_needs_nothing_but_a_time_column(tmp_path: Path) -> None:
    record = read_record(file(tmp_path, HEADER + ROWS))
    assert record.names == ("LIT101", "FIT101", "MV101")
    assert record.stride_s == 5
    assert [c.role for c in record.channels] == [Role.LEVEL, Role.FLOW, Role.ACTUATOR]
    assert record.column("LIT101").tolist() == [500, 501.5, 503]
    assert set(record.labels) == {Label.UNLABELLED}


@pytest.mark.parametrize(
    ("stamps", "second_row"),
    [
        (("01.03.2024 10:00:00", "01.03.2024 10:00:05"), "2024-03-01T10:00:05"),
        (("13/02/2024 10:00:00", "13/02/2024 10:00:05"), "2024-02-13T10:00:05"),
        (("02/13/2024 10:00:00", "02/13/2024 10:00:05"), "2024-02-13T10:00:05"),
        (("1709287200", "1709287205"), "2024-03-01T10:00:05"),
        (("2024-03-01T10:00:00.5", "2024-03-01T10:00:05.5"), "2024-03-01T10:00:05.500000"),
    ],
)
def test_clocks_of_many_forms(tmp_path: Path, stamps: tuple[str, str], second_row: str) -> None:
    body = "".join(f"{stamp},1,2\n" for stamp in stamps)
    record = read_record(file(tmp_path, f"timestamp,LIT101,FIT101\n{body}"))
    assert record.times[1] == np.datetime64(second_row, "us")


def test_a_date_and_a_time_of_day_are_one_clock(tmp_path: Path) -> None:
    body = "2024-03-01,10:00:00,1\n2024-03-01,10:00:05,2\n"
    record = read_record(file(tmp_path, f"Date,Time,LIT101\n{body}"))
    assert record.stride_s == 5
    assert record.names == ("LIT101",)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_other_delimiters(tmp_path: Path, mark: str) -> None:
    assert len(read_record(file(tmp_path, (HEADER + ROWS).replace(",", mark)))) == 3


def test_labels_have_three_states(tmp_path: Path) -> None:
    lines = zip(ROWS.splitlines(), ("normal", "attack", "-999"), strict=True)
    text = HEADER.replace("\n", ",label\n") + "".join(f"{row},{label}\n" for row, label in lines)
    record = read_record(file(tmp_path, text))
    assert record.labels.tolist() == [Label.NORMAL, Label.ATTACK, Label.UNLABELLED]


def test_a_label_of_unknown_meaning_is_refused_and_a_plant_file_explains_it(tmp_path: Path) -> None:
    text = HEADER.replace("\n", ",label\n") + "".join(f"{row},quiet\n" for row in ROWS.splitlines())
    path = file(tmp_path, text)
    with pytest.raises(RecordError, match="holds 'quiet', which means neither normal nor attack"):
        read_record(path)
    record = read_record(path, plant=PlantFile(normal_labels=("quiet",)))
    assert set(record.labels) == {Label.NORMAL}


def test_bad_quality_masks_a_reading(tmp_path: Path) -> None:
    text = (
        "time,LIT101,LIT101.quality,FIT101,FIT101_Q\n"
        "2024-03-01 10:00:00,500,Good,2.5,192\n"
        "2024-03-01 10:00:05,0,Bad,2.5,24\n"
    )
    record = read_record(file(tmp_path, text))
    assert record.names == ("LIT101", "FIT101")
    assert record.missing.tolist() == [[False, False], [True, True]]
    assert {note.channel for note in record.notes if "quality" in note.what} == {"LIT101", "FIT101"}


def test_a_long_table_is_widened(tmp_path: Path) -> None:
    text = (
        "time,tag,value\n2024-03-01 10:00:00,LIT101,500\n2024-03-01 10:00:00,FIT101,2.5\n"
        "2024-03-01 10:00:05,LIT101,501\n"
    )
    record = read_record(file(tmp_path, text))
    assert record.names == ("LIT101", "FIT101")
    assert record.missing.tolist() == [[False, False], [False, True]]


def test_a_long_table_with_two_values_at_one_instant_is_refused(tmp_path: Path) -> None:
    row = "2024-03-01 10:00:00,LIT101,500\n"
    with pytest.raises(RecordError, match="'LIT101' has more than one value"):
        read_record(file(tmp_path, f"time,tag,value\n{row}{row}"))


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    record = read_record(file(tmp_path, HEADER + ROWS))
    frame = pl.DataFrame({"time": record.times, "LIT101": record.column("LIT101")})
    frame.write_parquet(tmp_path / "plant.parquet")
    again = read_record(tmp_path / "plant.parquet")
    assert np.array_equal(again.column("LIT101"), record.column("LIT101"))


def test_missing_and_infinite_readings_are_masked_and_reported(tmp_path: Path) -> None:
    text = HEADER + ROWS.replace("501.5", "").replace(
        ",2.5,2\n2024-03-01 10:00:05", ",inf,2\n2024-03-01 10:00:05"
    )
    record = read_record(file(tmp_path, text))
    assert record.missing.sum(axis=0).tolist() == [1, 1, 0]
    notes = {(note.channel, note.what, note.first_row) for note in record.notes}
    assert ("LIT101", "missing readings", 1) in notes
    assert ("FIT101", "infinite readings masked as missing", 0) in notes


@pytest.mark.parametrize(("fill", "level"), [(Fill.FFILL, 500.0), (Fill.LINEAR, 501.5)])
def test_readings_are_filled_only_on_request_and_noted(
    tmp_path: Path, fill: Fill, level: float
) -> None:
    path = file(tmp_path, HEADER + ROWS.replace("501.5", "NaN"))
    assert np.isnan(read_record(path).column("LIT101")[1])
    record = read_record(path, fill=fill)
    assert record.column("LIT101")[1] == level
    assert any(note.what == f"filled ({fill.value})" and note.rows == 1 for note in record.notes)


def test_a_column_without_readings_is_dropped_and_named(tmp_path: Path) -> None:
    body = "".join(f"{row},\n" for row in ROWS.splitlines())
    record = read_record(file(tmp_path, HEADER.replace("\n", ",PIT1\n") + body))
    assert "PIT1" not in record.names
    assert any(note.channel == "PIT1" and "no reading" in note.what for note in record.notes)


def test_named_files_that_make_no_record_are_not_called_a_folder(tmp_path: Path) -> None:
    local = file(tmp_path, HEADER + ROWS, "local.csv")
    rows = "".join(f"2024-03-01 11:00:{second}Z,500,2.5,2\n" for second in ("00", "05", "10"))
    utc = file(tmp_path, HEADER + rows, "utc.csv")
    with pytest.raises(RecordError, match=r"^record .*: some of its files have times in UTC"):
        read_record([local, utc])


def test_columns_without_a_name_and_readings_are_dropped_however_many(tmp_path: Path) -> None:
    body = "".join(f"{row},,\n" for row in ROWS.splitlines())
    record = read_record(file(tmp_path, HEADER.replace("\n", ",,\n") + body))
    assert record.names == ("LIT101", "FIT101", "MV101")


BAD = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\n ", "is empty"),
    "header only": (HEADER.encode(), "has a header but no rows"),
    "truncated": ((HEADER + ROWS)[:-8].encode(), "is truncated or ragged: line 4 has 2 cells"),
    "ragged": ((HEADER + ROWS.replace(",2\n", ",2,9\n", 1)).encode(), "line 2 has 5 cells"),
    "wrong delimiter": ((HEADER + ROWS).replace(",", ":").encode(), "one column at most"),
    "mixed types": (
        (HEADER + ROWS.replace("503", "high")).encode(),
        "'LIT101' holds 'high' at row 2",
    ),
    "duplicated tags": (
        HEADER.replace("FIT101", "LIT101").encode() + ROWS.encode(),
        "'LIT101' more than once",
    ),
    "backward clock": (
        (HEADER + ROWS.replace("10:00:10", "09:59:00")).encode(),
        "goes backward at row 2",
    ),
    "repeated clock": (
        (HEADER + ROWS.replace("10:00:10", "10:00:05")).encode(),
        "repeats at row 2",
    ),
    "1e34": ((HEADER + ROWS.replace("503", "1e34")).encode(), "reads 1e.34 at row 2"),
    "binary garbage": (bytes(range(256)) * 40, "neither text, .xlsx nor Parquet"),
    "no time column": (b"LIT101,FIT101\n1,2\n", "has no time column"),
    "unreadable time": (b"time,LIT101\nsoon,2\n", "cannot read the time stamp 'soon'"),
    "changing time": (
        b"time,LIT101\n2024-01-01 00:00:00,2\nlater,2\n",
        "row 1 has the time stamp 'later'",
    ),
    "one row": (b"time,LIT101\n2024-01-01 00:00:00,2\n", "so its stride is unknown"),
    "only a clock": (
        b"time,x\n2024-01-01 00:00:00,\n2024-01-01 00:00:01,\n",
        "no channel with a reading",
    ),
    "half a gzip": (b"\x1f\x8b\x08\x00\x00", "damaged gzip"),
    "half a parquet": (b"PAR1\x00\x01", "damaged Parquet"),
    "half a workbook": (b"PK\x03\x04\x00\x01", "workbook"),
    "odd utf-16": (b"\xff\xfet\x00i\x00m", "is truncated or damaged UTF-16 text"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_one_sentence(tmp_path: Path, case: str) -> None:
    data, message = BAD[case]
    with pytest.raises(InputError, match=message) as refused:
        read_record(file(tmp_path, data))
    assert "\n" not in str(refused.value)


def test_a_folder_is_read_when_it_holds_one_record(tmp_path: Path) -> None:
    file(tmp_path, "notes", "README.txt")
    file(tmp_path, "", ".hidden.csv")
    file(tmp_path, HEADER + ROWS)
    assert len(read_record(tmp_path)) == 3
    file(tmp_path, HEADER + ROWS, "other.csv")
    with pytest.raises(RecordError, match=r"holds 2 records \(other.csv, plant.csv\); name one"):
        read_record(tmp_path)


def test_the_only_record_of_a_folder_is_found(tmp_path: Path) -> None:
    first = file(tmp_path, HEADER + ROWS)
    assert find_record_file(tmp_path) == find_record_file(first) == first
    file(tmp_path, HEADER + ROWS, "other.csv")
    with pytest.raises(RecordError, match="holds 2 records"):
        find_record_file(tmp_path)


def test_a_folder_has_as_many_files_as_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(tmp_path, HEADER + ROWS.splitlines(keepends=True)[0], "a.csv")
    file(tmp_path, HEADER + "".join(ROWS.splitlines(keepends=True)[1:]), "b.csv")
    monkeypatch.setattr(source, "MOST_FILES", 2)
    assert len(read_record(tmp_path)) == 3
    monkeypatch.setattr(source, "MOST_FILES", 1)
    with pytest.raises(RecordError, match="holds 2 files; expected at most 1"):
        read_record(tmp_path)


def test_a_record_is_as_large_as_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file(tmp_path, HEADER + ROWS)
    size = path.stat().st_size
    monkeypatch.setattr(source, "LARGEST_RECORD", size)
    assert Source(path).limits.size == size
    monkeypatch.setattr(source, "LARGEST_RECORD", size - 1)
    with pytest.raises(RecordError, match=f"has {size} bytes; expected at most {size - 1}"):
        _ = Source(path).limits


def test_a_single_file_is_not_called_one_of_several(tmp_path: Path) -> None:
    path = file(tmp_path, "time,tag,value\n1950-01-01 00:00,A,1\n2050-01-01 00:00,A,2\n")
    with pytest.raises(RecordError, match="cells in a file of this size") as refused:
        read_record(path, plant=PlantFile(resample="last", stride_s=1e-6))
    assert "name one of them" not in str(refused.value)


@pytest.mark.parametrize("last", ["10:00:05", "10:00:00"], ids=["repeats", "goes backward"])
def test_a_file_with_the_tags_of_a_known_plant_and_no_rising_clock_is_refused_as_that_plant(
    tmp_path: Path, last: str
) -> None:
    rows = "".join(f"01.03.2024 {time};0,5;900;0,25\n" for time in ("10:00:00", "10:00:05", last))
    path = file(tmp_path, f"Timestamp;FIT101;LIT301;FIT601\n{rows}")
    with pytest.raises(RecordError, match="'FIT101' holds '0,5' at row 0"):
        read_record(path)


@pytest.mark.parametrize(
    ("last", "plant"),
    [
        ("10:00:10", PlantFile()),
        ("10:00:02", PlantFile(unsorted=Unsorted.SORT)),
        ("10:00:05", PlantFile(duplicates=Duplicates.LAST)),
    ],
    ids=["rising", "to be sorted", "repeating"],
)
def test_a_file_with_the_tags_of_a_known_plant_and_another_clock_is_read_as_it_is(
    tmp_path: Path, last: str, plant: PlantFile
) -> None:
    rows = "".join(f"01.03.2024 {time};0,5;900;0,25\n" for time in ("10:00:00", "10:00:05", last))
    record = read_record(file(tmp_path, f"Timestamp;FIT101;LIT301;FIT601\n{rows}"), plant=plant)
    assert "although its tags are" in record.notes[0].what


def test_a_delimiter_in_a_quoted_name_does_not_make_a_file_ragged(tmp_path: Path) -> None:
    path = file(tmp_path, '"time","LIT101, tank 1"\n1709287200,5\n\n1709287205,6\n')
    assert read_record(path).values[:, 0].tolist() == [5.0, 6.0]


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    file(tmp_path, "notes", "README.txt")
    with pytest.raises(UnknownFormatError, match="holds no plant record"):
        read_record(tmp_path)


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="does not exist"):
        read_record(tmp_path / "nowhere.csv")


def test_an_unknown_format_name_gets_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="did you mean 'batadal'"):
        read_record(file(tmp_path, HEADER + ROWS), format_name="batadel")


def test_tags_are_named_without_the_plants_prefix_if_they_differ_without_it() -> None:
    plant = PlantFile(prefix="A/")
    assert _names(["A/L1", "A/", "B/L1"], plant, "x.csv") == {
        "A/L1": "L1",
        "A/": "A/",
        "B/L1": "B/L1",
    }
    with pytest.raises(RecordError, match="the same name without the prefix 'A/'"):
        _names(["A/L1", "L1"], plant, "x.csv")
