"""Open a file as one table of cells: text of any dialect, a sheet of a workbook, or Parquet."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from sluice.errors import RecordError, SettingChoice, UnclearRecordError, UnknownFormatError
from sluice.telemetry.exports.dialect import (
    PROBED_LINES,
    Layout,
    find_layout,
    quality_of_left,
)
from sluice.telemetry.exports.numbers import decimal_is_clear
from sluice.telemetry.exports.words import (
    KEY_NAMES,
    LABEL_NAMES,
    META_NAMES,
    MISSING_MARKS,
    QUALITY_NAMES,
    TAG_NAMES,
    TIME_NAMES,
    TIME_OF_DAY_NAMES,
    UNIT_NAMES,
    VALUE_NAMES,
    is_unit,
    plain_word,
    spelt_unit,
)
from sluice.telemetry.parquet import read_parquet
from sluice.telemetry.plantfile import PlantFile
from sluice.telemetry.record import Note
from sluice.telemetry.source import Container, Source, cut
from sluice.telemetry.spreadsheet import read_rows, sheet_heads
from sluice.telemetry.table import CellLayout, parse_cells

__all__ = ["PAIR_TIME", "CellTable", "open_table"]

ANNOTATIONS = re.compile(rb"^#[^\n]*\n", re.MULTILINE)
ANNOTATED = (b"#datatype", b"#group", b"#default")
PLAIN_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
UNIT_IN_NAME = re.compile(r"[\[(]([^\[\]()]{1,12})[\])]\s*$")
LONGEST_NAME = 1_000
LONGEST_NUMBER = 64
"""Characters; a pattern would search a longer cell for long."""
UNNAMED = "unnamed "
PAIR_TIME = "\x1ftime of "
"""Begins the name of a time column that belongs to the one tag at its right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellTable:
    """A table of cells, some of them texts, and what was noticed on the way."""

    frame: pl.DataFrame
    dot: bool = False  # a point in a number can only be a decimal point
    dates: bool = False  # dates are written 31.12.2024
    units: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    settings: tuple[SettingChoice, ...] = ()

    def without(self, columns: Sequence[str]) -> "CellTable":
        """Return the table without some columns."""
        return replace(self, frame=self.frame.drop(columns)) if columns else self


def open_table(source: Source, plant: PlantFile) -> CellTable:
    """Open a file; cells stay texts where they are not all plain numbers."""
    if source.container is Container.PARQUET:
        return _from_parquet(source)
    if source.container is Container.EXCEL:
        return _from_workbook(source, plant)
    return _from_text(source, plant)


def _from_parquet(source: Source) -> CellTable:
    frame = read_parquet(source)
    if frame.is_empty():
        raise RecordError(f"{source.path.name} has columns but no rows")
    texts = [
        pl.col(name).cast(pl.String)
        for name, kind in frame.schema.items()
        if isinstance(kind, pl.Categorical | pl.Enum)
    ]
    return CellTable(frame=frame.with_columns(texts), units=_units_in(frame.columns))


# -- text -------------------------------------------------------------------------------------


def _from_text(source: Source, plant: PlantFile) -> CellTable:
    body, lines = source.text, list(source.lines)
    annotated = any(mark in source.opening for mark in ANNOTATED)
    if annotated:
        body = ANNOTATIONS.sub(b"", body)
        lines = [line for line in lines if not line.startswith("#")]
    delimiter = plant.delimiter or source.delimiter
    rows = [cut(line, delimiter) for line in lines]
    source.limits.demand_cells(len(rows), max(map(len, rows), default=0))
    layout = find_layout(
        rows, name=source.path.name, time=plant.time, header_line=plant.header_line
    )
    names = _names(layout, source.path.name)
    below = [row for row in rows[layout.first :] if len(row) == len(names)]
    text = _text_columns(names, layout, plant)
    quick = _is_quick(names, below, text, delimiter, plant)
    frame, typed = parse_cells(
        source,
        body,
        CellLayout(
            names=tuple(names),
            delimiter=delimiter,
            first_line=layout.first,
            text=frozenset(text),
            missing=MISSING_MARKS,
        ),
        numbers=quick,
    )
    notes = list(_layout_notes(layout))
    if not typed:
        frame, repeated = _without_repeated_headers(frame, layout)
        if repeated:
            notes.append(Note(what="repeated header lines dropped", rows=repeated))
        if frame.is_empty():
            raise RecordError(f"{source.path.name} has a header but no rows")
    encoding = source.text_encoding
    if not encoding.startswith("utf") and not plant.encoding:
        notes.append(Note(what=f"text is not UTF-8: read as {encoding}"))
    settings = []
    if delimiter != ",":
        settings.append(_setting("delimiter", delimiter))
    if not encoding.startswith("utf"):
        settings.append(_setting("encoding", encoding))
    if layout.header and not annotated:
        settings.append(_setting("header_line", layout.header + 1))
    return CellTable(
        frame=frame,
        dot=delimiter == ",",
        dates=layout.dotted_dates,
        units=_units(names, layout),
        notes=tuple(notes),
        settings=tuple(settings),
    )


def _setting(name: str, value: str | float) -> SettingChoice:
    return SettingChoice(setting=name, value=value, meaning="")


def _names(layout: Layout, file: str) -> list[str]:
    if len(layout.names) < 2:
        first = layout.names[0][:40] if layout.names else ""
        raise RecordError(
            f"{file} has one column at most ({first!r}); expected cells separated by a comma, "
            "tab, semicolon or bar"
        )
    names = list(_paired(layout) or quality_of_left(layout.names))
    longest = max(names, key=len)
    if len(longest) > LONGEST_NAME:
        raise RecordError(
            f"{file} has a name of {len(longest):,} characters in its header; expected at most "
            f"{LONGEST_NAME:,}: check that it is the right file"
        )
    # A trailing delimiter makes one unnamed last column.
    repeated = sorted(name for name, count in Counter(names).items() if name and count > 1)
    if repeated:
        raise RecordError(
            f"{file} names {', '.join(map(repr, repeated[:4]))} more than once in its header; "
            "every channel needs its own name"
        )
    return [name or f"{UNNAMED}{position}" for position, name in enumerate(names)]


def _paired(layout: Layout) -> list[str] | None:
    """Name the columns of a table in which each tag has its own time column at its left."""
    times, width = layout.times, len(layout.names)
    if len(times) < 2 or times != tuple(range(0, 2 * len(times), 2)) or width < 2 * len(times):
        return None
    names: list[str] = []
    for at in times:
        candidates = [
            cell
            for row in (layout.names, layout.above)
            for cell in row[at : at + 2]
            if cell and plain_word(cell) not in TIME_NAMES | VALUE_NAMES
        ]
        if not candidates:
            return None
        names += [f"{PAIR_TIME}{candidates[0]}", candidates[0]]
    return [*names, *layout.names[2 * len(times) :]]


def _text_columns(names: Sequence[str], layout: Layout, plant: PlantFile) -> set[str]:
    """Return the columns that are never plain numbers."""
    named = TIME_NAMES | TIME_OF_DAY_NAMES | TAG_NAMES | QUALITY_NAMES | UNIT_NAMES | META_NAMES
    declared = {plant.time, plant.time_of_day, plant.tag, plant.quality, plant.label}
    text = {names[at] for at in layout.times if at < len(names)}
    for name in names:
        last = plain_word(re.split(r"[._ \-/:|]", name)[-1])
        if (
            name in declared
            or name.lower() in LABEL_NAMES
            or name in KEY_NAMES
            or plain_word(name) in named
            or last in QUALITY_NAMES
            or plant.ignores(name)
        ):
            text.add(name)
    return text


def _is_plain(cell: str) -> bool:
    return len(cell) <= LONGEST_NUMBER and PLAIN_NUMBER.fullmatch(cell) is not None


def _is_quick(
    names: Sequence[str],
    rows: Sequence[tuple[str, ...]],
    text: set[str],
    delimiter: str,
    plant: PlantFile,
) -> bool:
    """Return whether all cells of the first rows are plain numbers with a certain decimal point."""
    cells = [
        cell
        for row in rows
        for name, cell in zip(names, row, strict=True)
        if name not in text and cell not in MISSING_MARKS
    ]
    if plant.decimal == "," or not all(map(_is_plain, cells)):
        return False
    return delimiter == "," or plant.decimal == "." or decimal_is_clear(cells)


def _without_repeated_headers(frame: pl.DataFrame, layout: Layout) -> tuple[pl.DataFrame, int]:
    """Drop lines that repeat the header, and the line of units below it."""
    written = dict(zip(frame.columns, layout.names, strict=False))
    header = pl.all_horizontal(
        pl.col(name).str.strip_chars().fill_null("") == written.get(name, "")
        for name in frame.columns
    )
    is_header = frame.select(header.alias("is header")).to_series()
    drop = is_header
    if layout.units and is_header.any():
        units = dict(zip(frame.columns, layout.units, strict=False))
        below = pl.all_horizontal(
            pl.col(name).str.strip_chars("[]() ").fill_null("") == units.get(name, "")
            for name in frame.columns
            if units.get(name)
        )
        drop = drop | frame.select(below.alias("is units")).to_series().fill_null(value=False)
    return frame.filter(~drop), int(is_header.sum())


def _layout_notes(layout: Layout) -> list[Note]:
    notes = []
    if layout.header:
        notes.append(Note(what=f"{layout.header} line(s) above the header skipped"))
    if layout.units:
        notes.append(Note(what="units read from the line below the header"))
    if layout.described:
        notes.append(Note(what=f"{layout.described} line(s) below the header skipped"))
    return notes


def _units(names: Sequence[str], layout: Layout) -> dict[str, str]:
    units = _units_in(names)
    for name, unit in zip(names, layout.units, strict=False):
        if unit:
            units[name] = spelt_unit(unit)
    return units


def _units_in(names: Sequence[str]) -> dict[str, str]:
    """Return the units that stand in brackets behind names, such as `Level [m]`."""
    units = {}
    for name in names:
        match = UNIT_IN_NAME.search(name)
        if match and is_unit(match[1]):
            units[name] = spelt_unit(match[1].strip())
    return units


# -- workbooks --------------------------------------------------------------------------------


def _from_workbook(source: Source, plant: PlantFile) -> CellTable:
    heads = sheet_heads(source, PROBED_LINES)
    chosen = _sheet(heads, source.path.name, plant)
    layout = find_layout(
        heads[chosen], name=source.path.name, time=plant.time, header_line=plant.header_line
    )
    names = _names(layout, source.path.name)
    frame = read_rows(source, sheet=chosen, first=layout.first)
    width = frame.width
    names = [*names[:width], *(f"{UNNAMED}{at}" for at in range(len(names), width))]
    frame.columns = names
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    frame = frame.filter(~blank)
    if frame.is_empty():
        raise RecordError(f"{source.path.name} has a header but no rows")
    notes = _layout_notes(layout)
    settings = []
    if len(heads) > 1:
        notes.append(Note(what=f"sheet {chosen!r} read"))
        settings.append(_setting("sheet", chosen))
    if layout.header:
        settings.append(_setting("header_line", layout.header + 1))
    return CellTable(
        frame=frame,
        dot=not any(
            _is_written_numbers(frame[name])
            for at, name in enumerate(names)
            if at not in layout.times
        ),
        dates=layout.dotted_dates,
        units=_units(names, layout),
        notes=tuple(notes),
        settings=tuple(settings),
    )


def _is_written_numbers(column: pl.Series) -> bool:
    """Return whether a sheet holds numbers as texts, whose decimal mark only the texts show.

    In a column with words, the other cells can be real numbers, which the library writes with a
    point.
    """
    if column.dtype != pl.String:
        return False
    texts = column.str.strip_chars().drop_nulls()
    return bool(len(texts)) and bool(texts.str.contains(r"^[+-]?[\d.,' ]*$").all())


def _sheet(heads: Mapping[str, Sequence[tuple[str, ...]]], file: str, plant: PlantFile) -> str:
    """Return the only sheet with a clock, or the sheet that the plant file names."""
    if plant.sheet:
        if plant.sheet not in heads:
            raise RecordError(
                f"{file} has no sheet {plant.sheet!r}, which the plant file names; it has "
                f"{', '.join(map(repr, list(heads)[:8]))}"
            )
        return plant.sheet
    found = [name for name, rows in heads.items() if _has_clock(rows, plant)]
    if not found:
        raise UnknownFormatError(
            f"{file} is a workbook of an unknown format: no sheet has a time column; name one in "
            "the plant file, [record] sheet = ... and time = ..., or save the sheet as CSV with "
            "one header line and a time column"
        )
    if len(found) > 1:
        raise UnclearRecordError(
            f"{len(found)} sheets hold readings ({', '.join(map(repr, found[:6]))})",
            file=file,
            cure=f'[record] sheet = "{found[0]}"',
            choices=tuple(
                SettingChoice(setting="sheet", value=name, meaning=f"sheet {name!r}")
                for name in found[:9]
            ),
        )
    return found[0]


def _has_clock(rows: Sequence[tuple[str, ...]], plant: PlantFile) -> bool:
    if len(rows) < 2 or max(map(len, rows), default=0) < 2:
        return False
    try:
        layout = find_layout(rows, name="", time=plant.time, header_line=plant.header_line)
    except RecordError:
        return True  # it is refused with a reason when it is read
    named = any(plain_word(cell) in TIME_NAMES or cell == plant.time for cell in layout.names)
    return bool(layout.times) or (named and layout.first < len(rows))
