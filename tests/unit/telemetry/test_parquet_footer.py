"""The footer of a Parquet file, byte by byte: nothing outside the file is read."""

import pytest

from sluice.telemetry import parquet
from sluice.telemetry.parquet import _footer, _MalformedError, _number, _pages, _Thrift

MAGIC = b"PAR1"


def footer(body: bytes, *, length: int | None = None) -> bytes:
    length = len(body) if length is None else length
    return MAGIC + body + length.to_bytes(4, "little") + MAGIC


def test_bytes_and_lists_end_within_the_file() -> None:
    assert _Thrift(b"abc", 0)._bytes(3) == b"abc"
    with pytest.raises(_MalformedError, match="ends early"):
        _Thrift(b"abc", 0)._bytes(4)
    assert _Thrift(b"\x23ab", 0)._list(0) == [97, 98]
    assert _Thrift(b"\xf3\x02ab", 0)._list(0) == [97, 98]
    with pytest.raises(_MalformedError, match="longer than the file"):
        _Thrift(b"\x33ab", 0)._list(0)
    assert _Thrift(b"a", 0)._byte() == 97
    with pytest.raises(_MalformedError, match="ends early"):
        _Thrift(b"a", 1)._byte()


def test_structures_are_twelve_levels_deep_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _Thrift(b"\x00", 0).struct(12) == {}
    with pytest.raises(_MalformedError, match="nested too deeply"):
        _Thrift(b"\x00", 0).struct(13)
    monkeypatch.setattr(parquet, "MOST_FIELDS", 3)
    assert _Thrift(b"\x19\x23ab\x00", 0).struct() == {1: [97, 98]}
    with pytest.raises(_MalformedError, match="more than 3 fields"):
        _Thrift(b"\x19\x33abc\x00", 0).struct()


def test_a_number_has_ten_bytes_at_most() -> None:
    assert _Thrift(b"\x80" * 9 + b"\x01", 0)._unsigned() == 1 << 63
    with pytest.raises(_MalformedError, match="is too long"):
        _Thrift(b"\x80" * 10 + b"\x01", 0)._unsigned()


def test_a_field_that_counts_is_a_number_from_zero_on() -> None:
    assert (_number({1: 0}, 1), _number({1: 7}, 1), _number({}, 1)) == (0, 7, 0)
    wrong: tuple[object, ...] = ({1: -1}, {1: b"x"}, [], None)
    for value in wrong:
        with pytest.raises(_MalformedError, match="no number in field 1"):
            _number(value, 1)


def test_a_footer_lies_between_the_magic_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _footer(footer(b"\x00")) == {}
    assert _footer(footer(b"")) == {}  # twelve bytes, the shortest file
    for data in (footer(b"")[1:], footer(b"\x00")[:-1] + b"2", b""):
        with pytest.raises(_MalformedError, match="does not end with a footer"):
            _footer(data)
    with pytest.raises(_MalformedError, match="its footer has 2 bytes"):
        _footer(footer(b"\x00", length=2))
    monkeypatch.setattr(parquet, "LARGEST_FOOTER", 4)
    assert _footer(footer(b"\x00" * 4)) == {}
    with pytest.raises(_MalformedError, match="its footer has 5 bytes"):
        _footer(footer(b"\x00" * 5))


def test_a_column_lies_within_the_file() -> None:
    data = bytes(20)
    for column in ({9: 4}, {9: 20}, {9: 10, 11: 4}, {9: 4, 11: 10}):
        assert list(_pages(data, column)) == []
    for column in ({9: 3}, {9: 21}, {9: 4, 7: 17}, {9: 10, 11: 3}, {9: 3, 11: 10}):
        with pytest.raises(_MalformedError, match="lies outside the file"):
            list(_pages(data, column))
    assert len(list(_pages(data, {9: 4, 7: 16}))) == 16  # headers of one byte
