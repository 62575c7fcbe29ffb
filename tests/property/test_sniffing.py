"""Whatever bytes a file holds, reading it gives a record or one clear sentence."""

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.errors import InputError
from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Record

HEADERS = (
    "time,LIT101,FIT101",
    "DATETIME,L_T1,F_PU1,S_PU1,ATT_FLAG",
    " Timestamp,FIT101, MV101,Normal/Attack",
    "Row,Date,Time,1_FIT_001_PV,1_LT_001_PV",
    "Time\tTank_1\tPump_1\tLable_n\tLabel",
    "time,P1_B2004,P1_B2016,attack,attack_P1",
    '{"timestamp": 0, "state": {"LIT101": 1}, "malicious": false}',
    "time,tag,value",
)
CELLS = st.one_of(
    st.sampled_from(
        ["", " ", "1", "2.5", "-999", "1e34", "inf", "NaN", "true", "A ttack", "Normal"]
    ),
    st.sampled_from(["06/01/14 00", " 28/12/2015 10:00:00 AM", "2024-01-01 00:00:00", "9/25/2017"]),
    st.text(max_size=6),
)
MARKS = st.sampled_from([",", "\t", ";", "|", ":"])


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """Something like a record, with cells, delimiters, encodings and endings of all sorts."""
    lines = [draw(st.sampled_from(HEADERS)).replace(",", draw(MARKS))]
    mark = draw(MARKS)
    lines += [mark.join(row) for row in draw(st.lists(st.lists(CELLS, max_size=6), max_size=5))]
    text = draw(st.sampled_from(["\n", "\r\n"])).join(lines)
    encoded = text.encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])), "surrogatepass")
    cut = encoded[: draw(st.integers(0, len(encoded)))] if draw(st.booleans()) else encoded
    return gzip.compress(cut) if draw(st.booleans()) else cut


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")


def outcome(path: Path) -> str:
    try:
        record = read_record(path)
    except InputError as refused:
        return str(refused)
    assert isinstance(record, Record)
    assert len(record) > 0
    return "read"


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.one_of(st.binary(max_size=400), tables()), suffix=st.sampled_from(["csv", "xlsx"]))
def test_any_bytes_give_a_record_or_one_sentence(folder: Path, data: bytes, suffix: str) -> None:
    path = folder / f"record.{suffix}"
    path.write_bytes(data)
    assert "\n" not in outcome(path).strip()


@settings(max_examples=60, deadline=None)
@given(magic=st.sampled_from([b"PK\x03\x04", b"PAR1", b"\x1f\x8b", b"\xff\xfe"]), tail=st.binary())
def test_a_damaged_container_is_refused(
    tmp_path_factory: pytest.TempPathFactory, magic: bytes, tail: bytes
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "record.bin"
    path.write_bytes(magic + tail)
    assert outcome(path) != "read"
