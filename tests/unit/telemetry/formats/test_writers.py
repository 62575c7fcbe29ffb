"""Records written in each layout come back to the last digit, whole or not at all."""

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sluice.errors import InputError, SettingError
from sluice.telemetry.channel import Channel, Codes, Role
from sluice.telemetry.formats.batadal import BATADAL
from sluice.telemetry.formats.format import Format
from sluice.telemetry.formats.ipal import IPAL
from sluice.telemetry.formats.swat import SWAT
from sluice.telemetry.formats.wadi import WADI
from sluice.telemetry.record import Label, Record
from sluice.telemetry.source import Source
from sluice.telemetry.table import Table
from sluice.telemetry.writers.layout import FileLayout, layout_for
from sluice.telemetry.writers.write import write

from .conftest import Recorded

SWAT_TAGS = ("FIT101", "AIT201", "FIT201", "MV101")
WADI_TAGS = ("1_FIT_001_PV", "2_LT_002_PV", "1_P_001_STATUS")
MANY_TAGS = tuple(f"TAG{(at * 37) % 101}" for at in range(101))
BATADAL_TAGS = ("L_T1", "F_PU1", "S_PU1")


def same(table: Table, record: Record) -> None:
    """Assert that nothing was lost or rounded on the way."""
    assert tuple(table.frame.columns) == record.names
    assert np.array_equal(table.frame.to_numpy(), record.values, equal_nan=True)
    assert np.array_equal(table.times, record.times)
    assert np.array_equal(table.labels, record.labels)


@pytest.mark.parametrize(
    ("layout", "form", "names", "stride_s", "start"),
    [
        (FileLayout.SWAT, SWAT, SWAT_TAGS, 1.0, "2015-12-28T11:59:55"),
        (FileLayout.SWAT, SWAT, ("A", "B"), 5.0, "2016-01-01T23:59:55"),
        (FileLayout.WADI, WADI, WADI_TAGS, 1.0, "2017-10-09T23:59:55"),
        (FileLayout.WADI, WADI, ("LIT1", "MV1"), 0.25, "2024-02-29T11:59:59"),
        (FileLayout.BATADAL, BATADAL, BATADAL_TAGS, 3600.0, "2016-12-31T20:00:00"),
        (FileLayout.IPAL, IPAL, ("any: tag", "MV 1"), 1.0, "2015-12-28T11:59:55"),
        (FileLayout.IPAL, IPAL, ("a,b", "c"), 0.1, "2015-12-28T11:59:55"),
        (FileLayout.IPAL, IPAL, MANY_TAGS, 1.0, "2015-12-28T11:59:55"),
        (FileLayout.SWAT, SWAT, MANY_TAGS, 1.0, "2015-12-28T11:59:55"),
    ],
)
def test_what_is_written_is_read_back(  # noqa: PLR0917
    tmp_path: Path,
    recorded: Recorded,
    layout: FileLayout,
    form: Format,
    names: tuple[str, ...],
    stride_s: float,
    start: str,
) -> None:
    record = recorded(names, stride_s=stride_s, start=start)
    path = tmp_path / "look_alike.csv"
    write(record, path, layout)
    source = Source(path)
    assert form.recognises(source)
    same(form.load(source), record)
    assert [found.name for found in tmp_path.iterdir()] == ["look_alike.csv"]


def test_swat_is_written_with_its_quirks(tmp_path: Path, recorded: Recorded) -> None:
    path = tmp_path / "swat.csv"
    write(recorded(SWAT_TAGS, start="2015-12-28T09:59:55"), path, FileLayout.SWAT)
    title, header, first, *rest = path.read_bytes().split(b"\n")
    assert title == b",P1,P2,,P1,"
    assert header == b" Timestamp,FIT101, AIT201,FIT201, MV101,Normal/Attack"
    assert first.startswith(b" 28/12/2015 9:59:55 AM,")
    assert first.split(b",")[4] in (b"0", b"1", b"2")
    words = [line.rsplit(b",", 1)[1] for line in [first, *rest] if line]
    assert words == [
        b"Normal", b"Normal", b"Normal", b"Normal", b"Attack", b"Attack",
        b"", b"Normal", b"Attack", b"A ttack", b"A ttack", b"Normal",
    ]  # fmt: skip


def test_wadi_is_written_with_its_quirks(tmp_path: Path, recorded: Recorded) -> None:
    path = tmp_path / "wadi.csv"
    write(recorded(WADI_TAGS, start="2017-10-09T18:00:00"), path, FileLayout.WADI)
    lines = path.read_text().split("\n")
    assert lines[0] == "0,1,2,3,4,5,6"
    assert lines[1] == (
        "Row ,Date ,Time,1_FIT_001_PV,2_LT_002_PV,1_P_001_STATUS,"
        '"Attack LABLE (1:No Attack, -1:Attack)"'
    )
    assert lines[2].startswith("1,10/9/2017,6:00:00.000 PM,")
    assert (lines[2][-2:], lines[6][-3:]) == (",1", ",-1")
    assert lines[-3:] == [",,,,,,", ",,,,,,", ""]


def test_batadal_is_written_in_the_competition_form(tmp_path: Path, recorded: Recorded) -> None:
    path = tmp_path / "batadal.csv"
    write(
        recorded(BATADAL_TAGS, stride_s=3600, start="2016-07-04T00:00:00"), path, FileLayout.BATADAL
    )
    lines = path.read_text().split("\n")
    assert lines[0] == "DATETIME, L_T1, F_PU1, S_PU1, ATT_FLAG"
    assert lines[1].startswith("04/07/16 00, ")
    assert [line.rsplit(", ", 1)[1] for line in lines[4:8]] == ["0", "1", "1", "-999"]


def test_plain_tables_hold_time_channels_and_label(tmp_path: Path, recorded: Recorded) -> None:
    record = recorded(("level", "valve"))
    for layout, name in ((FileLayout.CSV, "plain.csv"), (FileLayout.PARQUET, "plain.parquet")):
        write(record, tmp_path / name, layout)
    table = pl.read_parquet(tmp_path / "plain.parquet")
    assert table.schema == {
        "time": pl.Datetime("us"),
        "level": pl.Float64,
        "valve": pl.Float64,
        "label": pl.String,
    }
    assert np.array_equal(table["time"].to_numpy(), record.times)
    values = table.select("level", "valve").to_numpy()
    assert np.array_equal(values, record.values, equal_nan=True)
    assert table["label"].to_list()[4:8] == ["attack", "attack", "unlabelled", "normal"]
    text = pl.read_csv(tmp_path / "plain.csv")
    assert text["time"][0] == "2015-12-28T11:59:55"
    assert text["valve"].dtype == pl.Int64
    assert np.array_equal(text["level"].to_numpy(), record.column("level"), equal_nan=True)
    assert text["label"].to_list() == table["label"].to_list()


def test_a_packed_file_is_the_same_whenever_it_is_written(
    tmp_path: Path, recorded: Recorded
) -> None:
    record = recorded(("level", "valve"))
    for name in ("one.state.gz", "two.state.gz"):
        write(record, tmp_path / name, layout_for(tmp_path / name))
    assert (tmp_path / "one.state.gz").read_bytes() == (tmp_path / "two.state.gz").read_bytes()
    same(IPAL.load(Source(tmp_path / "one.state.gz")), record)
    assert gzip.decompress((tmp_path / "one.state.gz").read_bytes()).startswith(b'{"timestamp":')


@pytest.mark.parametrize(
    ("layout", "names", "stride_s", "complaint"),
    [
        (
            FileLayout.BATADAL,
            BATADAL_TAGS,
            60.0,
            "stride of 60 s .* batadal writes multiples of 1 hours",
        ),
        (FileLayout.SWAT, SWAT_TAGS, 0.5, "swat writes multiples of 1 seconds"),
        (FileLayout.WADI, WADI_TAGS, 0.0005, "wadi writes multiples of 1 milliseconds"),
        (FileLayout.SWAT, ("Timestamp", "MV101"), 1.0, "swat has its own column 'Timestamp'"),
        (FileLayout.CSV, ("a,b", "MV101"), 1.0, "csv cannot write the channel name 'a,b'"),
    ],
)
def test_what_a_layout_cannot_express_is_refused(  # noqa: PLR0917
    tmp_path: Path,
    recorded: Recorded,
    layout: FileLayout,
    names: tuple[str, ...],
    stride_s: float,
    complaint: str,
) -> None:
    with pytest.raises(InputError, match=complaint):
        write(recorded(names, stride_s=stride_s), tmp_path / "out.csv", layout)
    assert list(tmp_path.iterdir()) == []


def test_a_year_that_two_digits_cannot_hold_is_refused(tmp_path: Path, recorded: Recorded) -> None:
    record = recorded(BATADAL_TAGS, stride_s=3600, start="2070-01-01T00:00:00")
    with pytest.raises(InputError, match="two-digit years"):
        write(record, tmp_path / "out.csv", FileLayout.BATADAL)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, recorded: Recorded) -> None:
    with pytest.raises(InputError, match=r"cannot write .*nowhere/out\.csv"):
        write(recorded(("level", "valve")), tmp_path / "nowhere" / "out.csv", FileLayout.CSV)


def test_actuator_codes_that_are_no_integers_are_not_rounded(tmp_path: Path) -> None:
    codes = Codes(off=1, on=(2,))
    record = Record(
        name="between states",
        channels=(Channel(name="MV101", role=Role.ACTUATOR, codes=codes),),
        values=np.array([[1.0], [4 / 3]]),
        times=np.array(["2020-01-01T00:00:00", "2020-01-01T00:00:01"], "datetime64[us]"),
        stride_s=1,
        labels=np.full(2, Label.UNLABELLED, np.int8),
    )
    write(record, tmp_path / "between.csv", FileLayout.SWAT)
    same(SWAT.load(Source(tmp_path / "between.csv")), record)


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("a.csv", FileLayout.CSV),
        ("A.CSV.GZ", FileLayout.CSV),
        ("a.parquet", FileLayout.PARQUET),
        ("a.state.gz", FileLayout.IPAL),
        ("a.jsonl", FileLayout.IPAL),
    ],
)
def test_the_suffix_tells_the_layout(name: str, layout: FileLayout) -> None:
    assert layout_for(Path(name)) is layout


@pytest.mark.parametrize("name", ["a.xlsx", "a", "a.parquet.gz"])
def test_an_unknown_suffix_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="does not imply a layout"):
        layout_for(Path(name))
