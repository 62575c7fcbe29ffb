"""What a record may become in memory, compared with its file."""

import gzip
import io
import re
import struct
import xml.etree.ElementTree as ET
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sluice.errors import RecordError
from sluice.telemetry import spreadsheet, workbook
from sluice.telemetry.limits import ReadLimits
from sluice.telemetry.parquet import read_parquet
from sluice.telemetry.reading import read_record
from sluice.telemetry.source import Source
from sluice.telemetry.table import delimited, from_epoch
from tests.contract import bombs

CORNER = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'


def source(folder: Path, content: bytes, name: str = "record.xlsx") -> Source:
    path = folder / name
    path.write_bytes(content)
    return Source(path)


def rewritten(content: bytes, **changes: object) -> bytes:
    """Write a workbook again, with a change to its archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for part in old.infolist():
            method = changes.get("method", zipfile.ZIP_DEFLATED)
            new.writestr(part.filename, old.read(part), compress_type=method)  # type: ignore[arg-type]
        new.comment = changes.get("comment", b"")  # type: ignore[assignment]
    return out.getvalue()


def test_a_record_may_grow_as_far_as_telemetry_does() -> None:
    limits = ReadLimits(name="march.csv.gz", size=1_000_000)
    limits.demand_bytes(limits.most_bytes)
    limits.demand_cells(limits.most_cells // 10, 10)
    limits.demand_cells(1, 8_192)
    with pytest.raises(RecordError, match=r"march.csv.gz grows from 1,000,000 bytes to more than"):
        limits.demand_bytes(limits.most_bytes + 1)
    with pytest.raises(RecordError, match="but 9,000,001 rows of 1 columns; expected at most"):
        limits.demand_cells(limits.most_cells + 1, 1)
    with pytest.raises(RecordError, match="8,193 columns; expected at most 8,192"):
        limits.demand_cells(1, 8_193)


def test_the_spreadsheet_of_751_bytes_that_ran_for_minutes_is_refused_at_once(
    tmp_path: Path,
) -> None:
    for bomb in (bombs.a_column_without_end, bombs.one_row_again_and_again):
        found = source(tmp_path, bomb())
        with pytest.raises(RecordError, match="record.xlsx"):
            read_record(found.path)


def test_a_good_workbook_is_read_in_every_spelling_of_its_sheet(tmp_path: Path) -> None:
    spellings = {
        "plain": bombs.workbook(),
        "stored": rewritten(bombs.workbook(), method=zipfile.ZIP_STORED),
        "without references": bombs.workbook(
            bombs.READINGS.replace("<row r=", "<row s=").replace("<c r=", "<c s=")
        ),
        "in apostrophes": bombs.workbook(bombs.READINGS.replace('"', "'")),
    }
    expected = read_record(source(tmp_path, spellings.pop("plain"), "plain.xlsx").path)
    assert expected.values[:, 0].tolist() == [2.5] * 10
    for name, content in spellings.items():
        record = read_record(source(tmp_path, content, f"{name}.xlsx").path)
        assert np.array_equal(record.values, expected.values), name
        assert np.array_equal(record.times, expected.times), name


@pytest.mark.parametrize(
    "rows",
    [
        CORNER,
        CORNER.replace('"', "'"),
        CORNER.replace("<c r=", '<c s="1"r='),
        CORNER.replace("<c ", "<c\n"),
        CORNER.replace("<c r=", '<c s=">" r='),
        CORNER.replace("<c r=", f'<c s="{" " * 100_000}" r='),
        CORNER.replace("XFD", "xfd"),
        CORNER.replace("<c r=", "<x:c r=").replace("</c>", "</x:c>"),
        '<row r="1048570"/>' + "<row/>" * 5 + '<row><c r="XFD1"><v>1</v></c><c><v>1</v></c></row>',
        "<row/>" * 200_000 + '<row><c r="XFD1"/></row>',
        '<row r="12">' + "<c/>" * 400_000 + "</row>" + '<row r="500000"><c/></row>',
    ],
    ids=[
        "plain", "apostrophes", "no blank", "line feed", "bracket in a value", "long tag",
        "small letters", "prefix", "after the last reference", "many rows", "many columns",
    ],
)  # fmt: skip
def test_a_far_cell_is_found_however_it_is_written(rows: str, tmp_path: Path) -> None:
    found = source(tmp_path, bombs.workbook(bombs.READINGS + rows))
    with pytest.raises(RecordError, match="record.xlsx has .* bytes but a sheet with"):
        workbook.demand_limits(found)


@pytest.mark.parametrize(
    "row",
    [
        '<row r="12"><c r = "XFD1048576"/></row>',
        '<row r="12"><c r= "XFD1048576"/></row>',
        '<row r="12"><c r="XFD0000001048576"/></row>',
        '<row r="12"><c r="ZZZZ1"/></row>',
        '<row r="12"><c r="&#88;FD1048576"/></row>',
        '<row r="2000000"><c/></row>',
        f'<row r="12"><c s="{"x" * 3_000_000}"/></row>',
    ],
    ids=["blanks", "blank", "zeros", "letters", "entity", "row", "tag"],
)
def test_a_reference_that_readers_may_understand_differently_is_refused(
    row: str, tmp_path: Path
) -> None:
    found = source(tmp_path, bombs.workbook(bombs.READINGS + row))
    with pytest.raises(workbook.DamagedBookError):
        workbook.demand_limits(found)


def test_a_workbook_has_exactly_as_many_other_tags_as_the_limit_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = source(tmp_path, bombs.workbook(bombs.READINGS))
    monkeypatch.setattr(workbook, "MOST_OTHER_TAGS", 0)
    with pytest.raises(workbook.DamagedBookError, match="styles and other parts") as refused:
        workbook.demand_limits(found)
    tags = int(re.findall(r"have ([0-9,]+) tags", str(refused.value))[0].replace(",", ""))
    monkeypatch.setattr(workbook, "MOST_OTHER_TAGS", tags - 1)
    with pytest.raises(workbook.DamagedBookError):
        workbook.demand_limits(found)
    monkeypatch.setattr(workbook, "MOST_OTHER_TAGS", tags)
    workbook.demand_limits(found)


def test_a_sheet_is_measured_alike_in_pieces_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = bombs.BEGIN + bombs.HEADER + bombs.READINGS + CORNER + bombs.END
    texts = f'<sst xmlns="{bombs.MAIN}"><si><t>abc</t></si><si><t>{"x" * 200}</t></si><si/></sst>'

    def measured(content: bytes, size: int) -> dict[str, object]:
        measure = workbook._Measure()
        for at in range(0, len(content), size):
            measure.add(content[at : at + size])
        measure.finish()
        return {name: value for name, value in vars(measure).items() if not name.startswith("_")}

    for content in (sheet.encode(), texts.encode()):
        whole = measured(content, len(content))
        for size in (1, 2, 7, 64, 1_000):
            assert measured(content, size) == whole
    whole = measured(sheet.encode(), len(sheet))
    assert (whole["rows"], whole["cells"], whole["last_row"]) == (12, 34, 1_048_576)
    assert (whole["last_column"], whole["widest"]) == (16_384, 3)
    whole = measured(texts.encode(), len(texts))
    assert (whole["texts"], whole["longest"]) == (3, 216)


@pytest.mark.parametrize(
    "content",
    [
        rewritten(bombs.workbook(), comment=b"x"),
        bombs.workbook() + b"x",
        b"PK\x03\x04 before" + bombs.workbook(),
        rewritten(bombs.workbook(), method=zipfile.ZIP_BZIP2),
        bombs.workbook()[:-30],
    ],
    ids=["comment", "behind", "before", "bzip2", "cut off"],
)
def test_an_archive_that_readers_may_understand_differently_is_refused(
    content: bytes, tmp_path: Path
) -> None:
    with pytest.raises(RecordError, match="record.xlsx is not a workbook or is damaged"):
        read_record(source(tmp_path, content).path)


def test_a_workbook_has_a_limited_number_of_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = source(tmp_path, bombs.workbook()).path
    with zipfile.ZipFile(path) as book:
        parts = len(book.infolist())
    monkeypatch.setattr(workbook, "MOST_PARTS", parts)
    assert len(read_record(path))
    monkeypatch.setattr(workbook, "MOST_PARTS", parts - 1)
    with pytest.raises(RecordError, match=f"its archive has {parts} parts"):
        read_record(path)


def test_an_archive_is_as_long_as_its_directory_at_least(tmp_path: Path) -> None:
    out = io.BytesIO()
    zipfile.ZipFile(out, "w").close()
    with workbook.open_book(source(tmp_path, out.getvalue())) as book:
        assert book.namelist() == []
    with pytest.raises(workbook.DamagedBookError, match="does not end with a directory"):
        workbook.open_book(source(tmp_path, out.getvalue()[1:]))


def test_a_small_part_has_exactly_as_many_bytes_as_the_limit(tmp_path: Path) -> None:
    with workbook.open_book(source(tmp_path, bombs.archive({"a.xml": "<x/>"}))) as book:
        assert workbook.read_part(book, "a.xml", most=4) == b"<x/>"
        with pytest.raises(workbook.DamagedBookError, match="more than 3 bytes"):
            workbook.read_part(book, "a.xml", most=3)


def test_a_sheet_has_exactly_as_many_cells_as_the_limit() -> None:
    limits = ReadLimits(name="march.xlsx", size=1_000)
    workbook._demand(limits, 7, "cells", 7)
    with pytest.raises(RecordError, match="a sheet with 8 cells; expected at most 7"):
        workbook._demand(limits, 8, "cells", 7)


def test_the_opening_of_a_part_ends_at_its_limit() -> None:
    opening = spreadsheet._Opening(io.BytesIO(b"abcd"), 3)
    assert (opening.read(2), opening.read(2)) == (b"ab", b"c")
    with pytest.raises(workbook.DamagedBookError, match="what should stand at the start"):
        opening.read(1)


def test_delimited_text_has_two_columns_or_more(tmp_path: Path) -> None:
    two = source(tmp_path, b"time,LIT101\n1,2\n", "two.csv")
    assert delimited(two, header_line=0, text=()).columns == ["time", "LIT101"]
    one = source(tmp_path, b"time:LIT101\n1:2\n", "one.csv")
    with pytest.raises(RecordError, match=r"one.csv has one column at most \('time:LIT101'\)"):
        delimited(one, header_line=0, text=())


@pytest.mark.parametrize("begin", [b"PK\x01\x02", b"PK\x03\x04"], ids=["elsewhere", "at the end"])
def test_a_part_that_is_not_where_the_directory_says_is_missing(
    begin: bytes, tmp_path: Path
) -> None:
    named = bombs.archive({"xl/PK\x03\x04": "<x/>"})
    content = bytearray(rewritten(named, method=zipfile.ZIP_STORED))
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 42 : entry + 46] = struct.pack("<I", content.rindex(begin))
    with pytest.raises(workbook.DamagedBookError, match="its part 'xl/PK.*' is missing"):
        workbook.demand_limits(source(tmp_path, bytes(content)))


@pytest.mark.parametrize("name", ["FIT101", " FIT101"])
def test_two_columns_of_a_sheet_with_the_same_name_are_refused(name: str, tmp_path: Path) -> None:
    again = bombs.text_cell("D1", name).replace("<t>", '<t xml:space="preserve">')
    header = bombs.HEADER.replace("</row>", f"{again}</row>")
    found = source(tmp_path, bombs.workbook(header=header))
    with pytest.raises(RecordError, match="names a column more than once in row 1"):
        spreadsheet.sheet(found, header_row=0, text=("Timestamp",))


def test_two_parts_of_the_same_name_are_refused(tmp_path: Path) -> None:
    content = bombs.archive({"xl/s.xml": bombs.BEGIN + bombs.END, "XL/S.XML": "<x/>"})
    with pytest.raises(RecordError, match="two parts of the same name"):
        read_record(source(tmp_path, content).path)


def test_a_time_stamp_that_is_a_number_is_bad_input(tmp_path: Path) -> None:
    rows = re.sub(r'<c r="(A\d+)".*?</c>', r'<c r="\1"><v>4</v></c>', bombs.READINGS)
    with pytest.raises(RecordError, match=r"record.xlsx: cannot read the time stamp '4.0'"):
        read_record(source(tmp_path, bombs.workbook(rows)).path)


@pytest.mark.parametrize("compression", ["zstd", "snappy", "lz4", "gzip", "brotli", "uncompressed"])
def test_parquet_of_every_compression_is_read(compression: str, tmp_path: Path) -> None:
    rows = 20_000
    frame = pl.DataFrame(
        {
            "time": pl.int_range(0, rows, eager=True),
            "FIT101": np.random.default_rng(0).random(rows),
            "P101": [1.0] * rows,
            "label": ["normal", "attack"] * (rows // 2),
            "V101": [True, False] * (rows // 2),
        }
    )
    out = io.BytesIO()
    frame.write_parquet(out, compression=compression)  # type: ignore[arg-type]
    assert read_parquet(source(tmp_path, out.getvalue(), "r.parquet")).equals(frame)


def test_a_damaged_parquet_file_never_ends_the_program(tmp_path: Path) -> None:
    out = io.BytesIO()
    pl.DataFrame({"time": [1, 2, 3], "FIT101": [1.0, 2.0, 3.0]}).write_parquet(out)
    content = bytearray(out.getvalue())
    for at in range(4, len(content)):
        for byte in (0x00, 0x7F, 0xFF):
            damaged = bytes(content[:at]) + bytes([byte]) + bytes(content[at + 1 :])
            path = source(tmp_path, damaged, "r.parquet").path
            with suppress(RecordError):
                assert len(read_record(path)) > 0


def test_a_column_of_lists_is_refused_by_name(tmp_path: Path) -> None:
    out = io.BytesIO()
    pl.DataFrame({"time": [1, 2], "FIT101": [[1.0], [2.0]]}).write_parquet(out)
    with pytest.raises(RecordError, match="r.parquet has nested columns; expected one number"):
        read_parquet(source(tmp_path, out.getvalue(), "r.parquet"))
    out = io.BytesIO()
    pl.DataFrame({"time": [1, 2], "FIT101": [b"1", b"2"]}).write_parquet(out)
    with pytest.raises(RecordError, match="column 'FIT101' holds Binary; expected numbers"):
        read_parquet(source(tmp_path, out.getvalue(), "r.parquet"))


def test_a_gzip_file_of_many_parts_is_read_whole(tmp_path: Path) -> None:
    parts = (b"time,FIT101\n", b"0,1\n", b"1,1\n2,2\n")
    path = source(tmp_path, b"".join(map(gzip.compress, parts)), "r.csv.gz").path
    assert read_record(path).values[:, 0].tolist() == [1.0, 1.0, 2.0]


def test_a_list_of_a_hundred_thousand_attacks_does_not_slow_reading(tmp_path: Path) -> None:
    attacks = ",".join(f'{{"start": {at}, "end": {at}.5}}' for at in range(0, 200_000, 2))
    (tmp_path / "attacks.json").write_text(f"[{attacks}]")
    lines = [f'{{"timestamp": {at}, "state": {{"FIT101": {at % 3}}}}}' for at in range(10_000)]
    path = source(tmp_path, "\n".join(lines).encode(), "r.jsonl").path
    assert read_record(path).labels.tolist() == [1, 0] * 5_000


def test_a_huge_companion_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "attacks.json").open("wb") as sparse:
        sparse.truncate(1 << 40)
    path = source(tmp_path, b'{"timestamp": 0, "state": {"FIT101": 1}}\n' * 3, "r.jsonl")
    with pytest.raises(RecordError, match="attack list .*attacks.json is too large"):
        _ = path.companions_digest


def test_a_record_larger_than_any_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    with path.open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(RecordError, match="r.csv has 1,099,511,627,776 bytes; expected at most"):
        read_record(path)


def test_a_footer_that_points_outside_the_file_is_damage(tmp_path: Path) -> None:
    content = bombs.parquet(bombs.DOUBLE, [bombs.page(bombs.number() * 4, 4, bombs.PLAIN)], 4)
    length = struct.unpack("<I", content[-8:-4])[0]
    for wrong in (length + 1_000, 0, 2**32 - 1):
        changed = content[:-8] + struct.pack("<I", wrong) + b"PAR1"
        with pytest.raises(RecordError, match="r.parquet is a damaged Parquet file"):
            read_parquet(source(tmp_path, changed, "r.parquet"))


def test_times_reach_as_far_as_the_limit_and_no_further() -> None:
    for furthest in (1e12, -1e12):
        assert len(from_epoch(pl.Series([furthest]), pl.Series(["t"]), name="x.csv")) == 1
        with pytest.raises(RecordError, match="expected seconds since 1970"):
            from_epoch(pl.Series([furthest * 1.000_001]), pl.Series(["t"]), name="x.csv")


def cell_at(reference: str, position: int = 0) -> int:
    return spreadsheet._cell(ET.fromstring(f'<c r="{reference}"/>'), position)[0]


def test_a_cell_stands_in_a_column_that_sheets_have() -> None:
    assert cell_at("XFD1") == cell_at("", 16_383) == 16_383
    for reference, position in (("XFE1", 0), ("", 16_384)):
        with pytest.raises(workbook.DamagedBookError, match="a cell stands in column"):
            cell_at(reference, position)


def shared(texts: str, wanted: list[int]) -> list[str]:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as book:
        book.writestr("xl/sharedStrings.xml", f'<sst xmlns="{bombs.MAIN}">{texts}</sst>')
    with zipfile.ZipFile(content) as book:
        return spreadsheet._shared_strings(book, wanted, most_bytes=10_000)


def test_cells_refer_to_texts_that_a_workbook_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = "<si><t>a</t></si><si><t>b</t></si><si><t>c</t></si>"
    assert shared(texts, []) == []
    assert shared(texts, [0]) == ["a"]
    monkeypatch.setattr(spreadsheet, "MOST_STRINGS", 2)
    assert shared(texts, [1, 0]) == ["a", "b"]
    for wanted in ([2], [-1, 0], [-2]):
        with pytest.raises(workbook.DamagedBookError, match="a text that no workbook has"):
            shared(texts, wanted)


def test_a_shared_text_has_exactly_as_many_parts_as_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spreadsheet, "MOST_INSIDE", 4)
    assert shared("<si><r><t>a</t></r><t>b</t></si>" * 2, [1]) == ["ab", "ab"]
    with pytest.raises(workbook.DamagedBookError, match="a shared text has too many parts"):
        shared("<si><r><t>a</t></r><t>b</t><t>c</t></si>", [0])


@pytest.mark.parametrize("reference", ["XFE12", "A1048577"])
def test_a_cell_outside_of_any_sheet_is_refused(reference: str, tmp_path: Path) -> None:
    row = f'<row r="12"><c r="{reference}"><v>1</v></c></row>'
    found = source(tmp_path, bombs.workbook(bombs.READINGS + row))
    with pytest.raises(workbook.DamagedBookError, match="outside of any sheet"):
        workbook.demand_limits(found)
