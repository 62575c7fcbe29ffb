"""Small files that become very large, or take very long, in a reader without limits.

Each function returns the bytes of one file. Nothing here is stored; tests write it where they run.
"""

import gzip
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping

MEGABYTE = 1 << 20
NAMESPACE = "http://schemas.openxmlformats.org"
MAIN = f"{NAMESPACE}/spreadsheetml/2006/main"

# -- workbooks --------------------------------------------------------------------------------

PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{NAMESPACE}/package/2006/content-types"/>',
    "_rels/.rels": f'<Relationships xmlns="{NAMESPACE}/package/2006/relationships">'
    f'<Relationship Id="r1" Type="{NAMESPACE}/officeDocument/2006/relationships/officeDocument" '
    'Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{NAMESPACE}/officeDocument/2006/'
    'relationships"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{NAMESPACE}/package/2006/relationships">'
    f'<Relationship Id="r1" Type="{NAMESPACE}/officeDocument/2006/relationships/worksheet" '
    'Target="s.xml"/></Relationships>',
}
BEGIN = f'<worksheet xmlns="{MAIN}"><sheetData>'
END = "</sheetData></worksheet>"


def text_cell(at: str, text: str) -> str:
    return f'<c r="{at}" t="inlineStr"><is><t>{text}</t></is></c>'


HEADER = (
    '<row r="1">'
    + text_cell("A1", "Timestamp")
    + text_cell("B1", "FIT101")
    + text_cell("C1", "Normal/Attack")
    + "</row>"
)
READINGS = "".join(
    f'<row r="{row}">'
    + text_cell(f"A{row}", f"28/12/2015 10:00:{row:02d} AM")
    + f'<c r="B{row}"><v>2.5</v></c>'
    + text_cell(f"C{row}", "Normal")
    + "</row>"
    for row in range(2, 12)
)


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as book:
        for name, content in {**PARTS, **parts}.items():
            book.writestr(name, content)
    return out.getvalue()


def workbook(rows: str = READINGS, *, header: str = HEADER, **more: str | bytes) -> bytes:
    """Return a workbook whose first sheet has these rows."""
    parts = {f"xl/{name}.xml": content for name, content in more.items()}
    return archive({"xl/s.xml": BEGIN + header + rows + END, **parts})


def repeated(start: bytes, block: bytes, times: int, end: bytes = b"") -> bytes:
    """Return the raw deflate stream of a block that is repeated, without compressing it again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    first = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    one = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + one * times + packer.compress(end) + packer.flush()


def spliced(part: str, stream: bytes, size: int, **more: str) -> bytes:
    """Return a workbook in which one part is a deflate stream, said to have `size` bytes."""
    whole = archive({**{f"xl/{n}.xml": c for n, c in more.items()}, part: b"?" * 64})
    at = whole.index(b"PK\x03\x04", whole.rindex(part.encode(), 0, whole.index(b"PK\x01\x02")) - 30)
    with zipfile.ZipFile(io.BytesIO(whole)) as book:
        info = book.getinfo(part)
    begin = info.header_offset + 30 + len(part)
    moved = len(stream) - info.compress_size
    sizes = struct.pack("<III", info.CRC, len(stream), size)
    data = bytearray(whole[:begin] + stream + whole[begin + info.compress_size :])
    data[at + 14 : at + 26] = sizes
    directory = at
    while (directory := data.index(b"PK\x01\x02", directory + 1)) >= 0:
        if data[directory + 46 : directory + 46 + len(part)] == part.encode():
            break
    data[directory + 16 : directory + 28] = sizes
    end = len(data) - 22
    offset = struct.unpack("<I", data[end + 16 : end + 20])[0]
    data[end + 16 : end + 20] = struct.pack("<I", offset + moved)
    return bytes(data)


def a_cell_in_the_last_corner() -> bytes:
    return workbook(READINGS + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')


def a_cell_far_below() -> bytes:
    return workbook(READINGS + '<row r="100000"><c r="ZZ100000"><v>1</v></c></row>')


def a_column_without_end() -> bytes:
    return workbook("", header='<row r="1"><c r="ZZZZZZZ1"><v>1</v></c></row>')


def one_row_again_and_again() -> bytes:
    return workbook("", header='<row r="1"><c r="XFD1"><v>1</v></c></row>' * 40_000)


def a_gigabyte_of_blanks() -> bytes:
    start = (BEGIN + HEADER + READINGS).encode()
    stream = repeated(start, b" " * MEGABYTE, 1_024, END.encode())
    return spliced("xl/s.xml", stream, len(start) + 1_024 * MEGABYTE + len(END))


def a_gigabyte_that_is_said_to_be_short() -> bytes:
    start = (BEGIN + HEADER + READINGS).encode()
    stream = repeated(start, b"<c/>" * (MEGABYTE // 4), 1_024, END.encode())
    return spliced("xl/s.xml", stream, len(start))


def sixteen_million_cells() -> bytes:
    start = (BEGIN + HEADER + READINGS + '<row r="12">').encode()
    stream = repeated(start, b"<c/>" * (MEGABYTE // 4), 64, f"</row>{END}".encode())
    return spliced("xl/s.xml", stream, len(start) + 64 * MEGABYTE + len(END) + 6)


def rows_and_cells_without_references() -> bytes:
    """Two thousand rows, and two thousand cells in the last."""
    return workbook("<row/>" * 4_000 + "<row>" + "<c><v>1</v></c>" * 4_000 + "</row>")


def twelve_million_shared_texts() -> bytes:
    start = f'<sst xmlns="{MAIN}">'.encode()
    stream = repeated(start, b"<si/>" * (MEGABYTE // 5), 60, b"</sst>")
    sheet = BEGIN + HEADER + READINGS + '<row r="12"><c r="B12" t="s"><v>0</v></c></row>' + END
    size = len(start) + 60 * len(b"<si/>" * (MEGABYTE // 5)) + 6
    return spliced("xl/sharedStrings.xml", stream, size, s=sheet)


def a_shared_text_of_a_megabyte_in_every_cell() -> bytes:
    texts = f'<sst xmlns="{MAIN}"><si><t>{"x" * MEGABYTE}</t></si></sst>'
    rows = "".join(f'<row r="{r}"><c r="D{r}" t="s"><v>0</v></c></row>' for r in range(12, 5_012))
    return workbook(READINGS + rows, sharedStrings=texts)


def deep_tags() -> bytes:
    return workbook("", header="<row>" * 300_000)


def a_billion_laughs() -> bytes:
    entities = '<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {name} "{f"&{before};" * 10}">'
        for before, name in zip("abcdefghi", "bcdefghij", strict=True)
    )
    sheet = f"<!DOCTYPE x [{entities}]>{BEGIN}<row r='1'><c r='A1'><v>&j;</v></c></row>{END}"
    return archive({"xl/s.xml": sheet})


def a_million_sheets() -> bytes:
    sheet = '<sheet name="S" sheetId="1" r:id="r1"/>'
    index = PARTS["xl/workbook.xml"].replace("</sheets>", sheet * 1_000_000 + "</sheets>")
    return archive({"xl/s.xml": BEGIN + HEADER + READINGS + END, "xl/workbook.xml": index})


# -- text -------------------------------------------------------------------------------------


def gzip_of_a_gigabyte() -> bytes:
    return gzip.compress(b"time,FIT101\n") + gzip.compress(b"0,1\n" * (MEGABYTE // 4)) * 1_024


def gzip_of_empty_cells() -> bytes:
    names = ",".join(f"c{at}" for at in range(500)).encode()
    return gzip.compress(b"time," + names + b"\n" + (b"0" + b"," * 500 + b"\n") * 60_000)


def gzip_of_empty_lines() -> bytes:
    return gzip.compress(b"time,FIT101\n0,1\n1,1\n" + b"\n" * 30_000_000)


def a_header_of_a_quarter_million_names() -> bytes:
    names = ",".join(f"c{at}" for at in range(150_000))
    return f"time,{names}\n0{',1' * 150_000}\n1{',1' * 150_000}\n".encode()


def utf_16_of_a_gigabyte() -> bytes:
    start = gzip.compress("time,FIT101\n".encode("utf-16"))
    return start + gzip.compress("0,1\n".encode("utf-16-le") * (MEGABYTE // 8)) * 1_024


def a_state_line_of_deep_lists() -> bytes:
    line = b'{"timestamp": 0, "state": {"FIT101": 1.5}}\n'
    deep = b'{"timestamp": 1, "state": {"FIT101": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}\n"
    return line * 3 + deep


def state_lines_with_other_tags_each() -> bytes:
    def line(at: int) -> str:
        state = {f"T{at}_{tag}": 1 for tag in range(200)}
        return json.dumps({"timestamp": at, "state": state})

    return "\n".join(map(line, range(2_000))).encode()


# -- Parquet ----------------------------------------------------------------------------------

DOUBLE, LONG, BYTES = 5, 2, 6
PLAIN, DELTA, DELTA_BYTES, DICTIONARY = 0, 5, 7, 8


class Long(int):
    """A number of 64 bits."""


def unsigned(number: int) -> bytes:
    out = bytearray()
    while True:
        out.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(out)


def signed(number: int) -> bytes:
    return unsigned((number << 1) ^ (number >> 63))


def thrift(value: object) -> tuple[int, bytes]:
    """Return the type and the bytes of a value in Thrift's compact encoding."""
    match value:
        case Long():
            return 6, signed(value)
        case int():
            return 5, signed(value)
        case str():
            return 8, unsigned(len(value)) + value.encode()
        case list():
            items = [thrift(item) for item in value]
            kind = items[0][0]
            return 9, bytes([0xF0 | kind]) + unsigned(len(items)) + b"".join(i[1] for i in items)
        case dict():
            return 12, fields(value)
    raise AssertionError(value)


def fields(structure: Mapping[int, object]) -> bytes:
    out, last = b"", 0
    for number, value in sorted(structure.items()):
        kind, content = thrift(value)
        out += bytes([(number - last) << 4 | kind]) + content
        last = number
    return out + b"\x00"


def page(body: bytes, values: int, encoding: int, *, size: int = 0, packed: bytes = b"") -> bytes:
    """Return a data page; `size` is what it says to become."""
    packed = packed or body
    header = {
        1: 0,
        2: size or len(body),
        3: len(packed),
        5: {1: values, 2: encoding, 3: 3, 4: 3},
    }
    return fields(header) + packed


def dictionary(body: bytes, values: int) -> bytes:
    return fields({1: 2, 2: len(body), 3: len(body), 7: {1: values, 2: PLAIN}}) + body


def parquet(kind: int, pages: Iterable[bytes], rows: int, *, codec: int = 0) -> bytes:
    """Return a file with one column `x`."""
    pages = tuple(pages)
    data = b"PAR1" + b"".join(pages)
    column = {
        1: kind,
        2: [0, 3, 8],
        3: ["x"],
        4: codec,
        5: Long(rows),
        6: Long(100),
        7: Long(len(data) - 4),
        9: Long(4 + (len(pages[0]) if len(pages) > 1 else 0)),
        **({11: Long(4)} if len(pages) > 1 else {}),
    }
    group = {1: [{2: Long(4), 3: column}], 2: Long(1), 3: Long(rows)}
    schema = [{4: "root", 5: 1}, {1: kind, 3: 0, 4: "x"}]
    footer = fields({1: 1, 2: schema, 3: Long(rows), 4: [group]})
    return data + footer + struct.pack("<I", len(footer)) + b"PAR1"


def number(value: float = 1.5) -> bytes:
    return struct.pack("<d", value)


def a_page_that_says_two_gigabytes() -> bytes:
    packed = gzip.compress(number() * 4)
    return parquet(DOUBLE, [page(b"", 4, PLAIN, size=2**31 - 1, packed=packed)], 4, codec=2)


def a_page_of_half_a_gigabyte() -> bytes:
    packed = gzip.compress(bytes(MEGABYTE)) * 512
    return parquet(DOUBLE, [page(b"", 4, PLAIN, size=512 * MEGABYTE, packed=packed)], 4, codec=2)


def half_a_billion_values_in_a_hundred_bytes() -> bytes:
    many = 1 << 29
    body = unsigned(many) + unsigned(4) + unsigned(many) + signed(5) + signed(0) + bytes(4)
    return parquet(LONG, [page(body, 4, DELTA)], 4)


def a_hundred_million_equal_rows() -> bytes:
    rows = 100_000_000
    indices = bytes([1]) + unsigned(rows << 1) + b"\x00"
    return parquet(DOUBLE, [dictionary(number(), 1), page(indices, rows, DICTIONARY)], rows)


def a_text_of_a_megabyte_in_every_row() -> bytes:
    rows = 1_000_000
    text = struct.pack("<I", MEGABYTE) + b"x" * MEGABYTE
    indices = bytes([1]) + unsigned(rows << 1) + b"\x00"
    pages = [dictionary(text, 1), page(indices, rows, DICTIONARY)]
    return parquet(BYTES, pages, rows)


def texts_that_repeat_the_one_before() -> bytes:
    return parquet(BYTES, [page(b"\x00" * 64, 1_000, DELTA_BYTES)], 1_000)


def a_footer_of_nested_structures() -> bytes:
    footer = b"\x1c" * 1_000_000
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


def a_footer_with_a_list_without_end() -> bytes:
    footer = b"\x19\xf5" + unsigned(1 << 60)
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


RECORDS: dict[str, tuple[Callable[[], bytes], ...]] = {
    "xlsx": (
        a_cell_in_the_last_corner,
        a_cell_far_below,
        a_column_without_end,
        one_row_again_and_again,
        a_gigabyte_of_blanks,
        a_gigabyte_that_is_said_to_be_short,
        sixteen_million_cells,
        rows_and_cells_without_references,
        twelve_million_shared_texts,
        a_shared_text_of_a_megabyte_in_every_cell,
        deep_tags,
        a_billion_laughs,
        a_million_sheets,
    ),
    "csv.gz": (
        gzip_of_a_gigabyte,
        gzip_of_empty_cells,
        gzip_of_empty_lines,
        utf_16_of_a_gigabyte,
    ),
    "csv": (a_header_of_a_quarter_million_names,),
    "jsonl": (a_state_line_of_deep_lists, state_lines_with_other_tags_each),
    "parquet": (
        a_page_that_says_two_gigabytes,
        a_page_of_half_a_gigabyte,
        half_a_billion_values_in_a_hundred_bytes,
        a_hundred_million_equal_rows,
        a_text_of_a_megabyte_in_every_row,
        texts_that_repeat_the_one_before,
        a_footer_of_nested_structures,
        a_footer_with_a_list_without_end,
    ),
}
"""The bombs by the suffix of their file."""

# -- JSON and TOML ----------------------------------------------------------------------------

DEEP = 100_000


def deep_lists() -> bytes:
    return b"[" * DEEP + b"]" * DEEP


def deep_objects() -> bytes:
    return b'{"a":' * DEEP + b"1" + b"}" * DEEP


def deep_lists_in_toml() -> bytes:
    return b"kind = " + deep_lists()


def deep_tables_in_toml() -> bytes:
    return b"kind = " + b"{a=" * DEEP + b"1" + b"}" * DEEP


def a_key_of_a_hundred_thousand_parts() -> bytes:
    return b"a." * DEEP + b"a = 1"


def a_number_of_a_hundred_thousand_digits() -> bytes:
    return b"[record]\nstride_s = 0x" + b"F" * DEEP


def a_million_empty_lists() -> bytes:
    return b'{"schema": 1, "x": [' + b"[]," * 1_000_000 + b"1]}"


def a_million_numbers() -> bytes:
    return b'{"schema": 1, "x": [' + b"1.5," * 1_000_000 + b"1]}"


JSON_BOMBS = (deep_lists, deep_objects)
RULES_BOMBS = (*JSON_BOMBS, a_million_empty_lists, a_million_numbers)
TOML_BOMBS = (
    deep_lists_in_toml,
    deep_tables_in_toml,
    a_key_of_a_hundred_thousand_parts,
    a_number_of_a_hundred_thousand_digits,
)


def model(card: bytes) -> bytes:
    """Return a model file with this card."""
    header = json.dumps({"__metadata__": {"sluice": card.decode()}}).encode()
    return struct.pack("<Q", len(header)) + header


def a_card_of_deep_lists() -> bytes:
    return model(deep_lists())


def a_header_of_deep_lists() -> bytes:
    header = b'{"__metadata__":' + deep_lists() + b"}"
    return struct.pack("<Q", len(header)) + header


def a_header_of_many_tensors() -> bytes:
    tensor = '"{}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'
    header = ("{" + ",".join(tensor.format(at) for at in range(400_000)) + "}").encode()
    return struct.pack("<Q", len(header)) + header


MODEL_BOMBS = (a_card_of_deep_lists, a_header_of_deep_lists, a_header_of_many_tensors)


def a_log_line_of_deep_lists() -> bytes:
    return b'{"body":' + deep_lists() + b"}\n"


def a_log_line_without_end() -> bytes:
    return b'{"body":"' + b"x" * (64 * MEGABYTE)


LOG_BOMBS = (a_log_line_of_deep_lists, a_log_line_without_end)
