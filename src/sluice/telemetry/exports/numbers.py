"""Cells to numbers: decimal marks, thousands marks, states, status words and units.

A table has one decimal mark. It is decided from all its cells together: `0,5` and `1,25` can only
have a decimal comma, `1,234` can be two numbers. If no cell decides, the table is refused.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import polars as pl

from sluice.errors import RecordError, SettingChoice, UnclearRecordError
from sluice.telemetry.channel import Codes, Role
from sluice.telemetry.exports.words import (
    MISSING_MARKS,
    STATES,
    TRUTH,
    UNITS,
    is_status,
    plain_word,
    spelt_unit,
)
from sluice.telemetry.plantfile import Declaration, PlantFile
from sluice.telemetry.record import Note

__all__ = ["BAD_CELL", "Readings", "decimal_is_clear", "readings"]

BAD_CELL = "\x1fbad"
"""Written over a cell whose quality is bad, so that it stays an event without a reading."""

HEAD_ROWS = 1_000
"""Rows that are searched first, because most files decide early."""

LONGEST_SHOWN = 80
MOST_WORDS = 200
"""Distinct words of one column; a column with more is not a column of states."""

BLANKS = " \t\r\n\u00a0\u202f\ufeff"
GROUPS = "['\u2019\u00a0\u202f ]"
UNIT = r"(?:\s*[^\d\s.,+\-][^\s]{0,11})?"


def _proofs(mark: str, other: str) -> tuple[str, str, str]:
    """Return patterns: `mark` is certainly the decimal mark, certainly not, or it can be both."""
    m, o = re.escape(mark), re.escape(other)
    sure = (
        rf"^[+-]?(?:\d*{m}\d{{1,2}}|\d*{m}\d{{4,}}|0\d*{m}\d+|\d{{4,}}{m}\d*|{m}\d+|\d+{m}"
        rf"|\d{{1,3}}(?:{o}\d{{3}})+{m}\d*|\d{{1,3}}(?:{GROUPS}\d{{3}})+{m}\d*"
        rf"|\d+{m}\d+[eE][+-]?\d+){UNIT}$"
    )
    never = rf"^[+-]?\d{{1,3}}(?:{m}\d{{3}}){{2,}}{UNIT}$"
    either = rf"^[+-]?[1-9]\d{{0,2}}{m}\d{{3}}{UNIT}$"
    return sure, never, either


COMMA_SURE, COMMA_NEVER, COMMA_EITHER = _proofs(",", ".")
DOT_SURE, DOT_NEVER, DOT_EITHER = _proofs(".", ",")
DOT_PROOF = re.compile(DOT_SURE)


def decimal_is_clear(cells: Collection[str]) -> bool:
    """Return whether one of the cells proves a decimal point, so that all can be read at once."""
    return any(DOT_PROOF.match(cell) for cell in cells)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Columns as numbers: null where there is no cell, NaN where a cell has no reading."""

    frame: pl.DataFrame
    notes: tuple[Note, ...]
    declared: Mapping[str, Declaration]  # states and units, as the cells show them
    decimal: str  # empty if no cell needs it
    status: tuple[str, ...]  # status words that were read as missing
    words: Mapping[str, float]  # states that were read as numbers


def readings(
    frame: pl.DataFrame, *, name: str, plant: PlantFile, dot: bool, dates: bool
) -> Readings:
    """Convert all columns to Float64.

    `dot` says that a point in a number can only be the decimal mark, because commas separate the
    cells; `dates` says that dates are written 31.12.2024, which no country does that separates
    thousands by commas.
    """
    texts = {
        column: _stripped(frame[column])
        for column in frame.columns
        if frame[column].dtype == pl.String
    }
    decimal = _decimal(texts, name=name, plant=plant, dot=dot, dates=dates)
    notes: list[Note] = []
    declared: dict[str, Declaration] = {}
    status: dict[str, None] = {}
    words: dict[str, float] = {}
    columns = []
    for column in frame.columns:
        if frame[column].dtype.is_temporal():
            raise _not_readings(column, name)
        if column not in texts:
            columns.append(frame[column].cast(pl.Float64))
            continue
        read = _Column(texts[column], name=name, plant=plant, decimal=decimal or ".")
        columns.append(read.numbers)
        notes.extend(read.notes)
        status.update(dict.fromkeys(read.status))
        words.update(read.states)
        if read.declared is not None:
            declared[column] = read.declared
    return Readings(
        frame=pl.DataFrame(columns) if columns else frame,
        notes=tuple(notes),
        declared=declared,
        decimal=decimal,
        status=tuple(status),
        words=words,
    )


def _not_readings(column: str, name: str) -> UnclearRecordError:
    return UnclearRecordError(
        f"column {_shown(column)} holds times, which are no readings",
        file=name,
        cure=f"[channels.{_toml(column)}] ignore = true (or [record] time to the clock)",
        choices=(
            SettingChoice(setting="ignored", value=(column,), meaning="ignore the column"),
            SettingChoice(setting="time", value=column, meaning="it is the clock"),
        ),
    )


def _stripped(column: pl.Series) -> pl.Series:
    stripped = column.str.strip_chars(BLANKS)
    return stripped.set(stripped.is_in(MISSING_MARKS), None)


# -- the decimal mark -------------------------------------------------------------------------


def _decimal(
    texts: Mapping[str, pl.Series], *, name: str, plant: PlantFile, dot: bool, dates: bool
) -> str:
    """Return the decimal mark that all cells together prove; empty if there is no mark."""
    if plant.decimal:
        return plant.decimal
    pointed = {column: cells for column, cells in texts.items() if _has(cells, ".")}
    with_commas = {column: cells for column, cells in texts.items() if _has(cells, ",")}
    comma = _first(with_commas, COMMA_SURE) or _first(pointed, DOT_NEVER)
    # A cell with several commas is no number with a decimal comma.
    doubled = {c: cells for c, cells in with_commas.items() if _swapped(cells) is None}
    point = _first(pointed, DOT_SURE) or _first(doubled, COMMA_NEVER)
    if comma and point:
        raise RecordError(
            f"{name} has cells with a decimal comma ({comma[1]!r} in {comma[0]!r}) and cells with "
            f"a decimal point ({point[1]!r} in {point[0]!r}); export it with one decimal mark"
        )
    if comma or point:
        return "," if comma else "."
    with_comma, with_point = _first(with_commas, COMMA_EITHER), _first(pointed, DOT_EITHER)
    if with_comma and not with_point and dates:
        return ","
    if with_point and not with_comma and dot:
        return "."
    unclear = with_comma or with_point
    if unclear is None:
        return ""
    column, cell = unclear[0], unclear[1][:LONGEST_SHOWN]
    mark = "," if with_comma else "."
    other = "." if with_comma else ","
    proposals = (mark, other) if with_comma else (".", ",")
    number = re.sub(r"[^\d.,+-]", "", cell)
    raise UnclearRecordError(
        f"{_shown(cell)} in column {_shown(column)} can be {number.replace(mark, '.')} or "
        f"{number.replace(mark, '')}",
        file=name,
        cure='[record] decimal = "," or decimal = "."',
        choices=tuple(
            SettingChoice(
                setting="decimal",
                value=each,
                meaning=f"{_shown(cell)} is {number.replace(mark, '.' if each == mark else '')}",
            )
            for each in proposals
        ),
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}...")


def _has(cells: pl.Series, mark: str) -> bool:
    return bool(cells.str.contains(mark, literal=True).any())


def _swapped(texts: pl.Series) -> pl.Series | None:
    """Return texts as numbers with a decimal comma, if all of them are; else None."""
    numbers = texts.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    return numbers if numbers.null_count() == texts.null_count() else None


def _first(texts: Mapping[str, pl.Series], pattern: str) -> tuple[str, str] | None:
    """Return the first cell that matches, with its column."""
    for column, cells in texts.items():
        start = cells.head(HEAD_ROWS)
        found = start.str.contains(pattern).fill_null(value=False)
        if not found.any() and len(cells) > HEAD_ROWS:
            found = cells.str.contains(pattern).fill_null(value=False)
        if found.any():
            return column, str(cells[int(found.arg_max() or 0)])
    return None


# -- one column -------------------------------------------------------------------------------


def _is_unknown(word: str) -> bool:
    return plain_word(word) not in STATES and not is_status(word, among_numbers=True)


class _Column:
    """One column of texts, converted."""

    def __init__(self, texts: pl.Series, *, name: str, plant: PlantFile, decimal: str) -> None:
        self._texts = texts
        self._name = name
        self._plant = plant
        self._decimal = decimal
        self.notes: list[Note] = []
        self.status: list[str] = []
        self.states: dict[str, float] = {}
        self.declared: Declaration | None = None
        self.numbers = _numbers(texts, decimal)
        left = self.numbers.is_null() & texts.is_not_null()
        if left.any():
            self._read_words(texts.filter(left).unique(maintain_order=True).to_list())

    def _read_words(self, words: list[str]) -> None:
        if len(words) > MOST_WORDS:
            words = self._read_units(words)
        if len(words) > MOST_WORDS:
            raise self._unreadable(next(filter(_is_unknown, words), words[0]))
        values, rest = self._declared_words(words)
        states = {word: STATES[plain_word(word)] for word in rest if plain_word(word) in STATES}
        for word in rest:
            if word not in states and is_status(word, among_numbers=not states):
                self._note_status(word)
                values[word] = float("nan")
        rest = [word for word in rest if word not in states and word not in values]
        if rest and not states:
            rest = self._read_units(rest)
        if rest:
            raise self._unreadable(rest[0])
        if states:
            values.update(self._read_states(states))
        if values:
            read = self._texts.replace_strict(
                list(values), list(values.values()), default=None, return_dtype=pl.Float64
            )
            self.numbers = self.numbers.zip_with(self.numbers.is_not_null(), read)

    def _declared_words(self, words: list[str]) -> tuple[dict[str, float], list[str]]:
        """Return the words that the plant file or everyone knows, and the rest."""
        numbers = {plain_word(word): value for word, value in self._plant.words.items()}
        missing = {plain_word(word) for word in self._plant.missing}
        values: dict[str, float] = {}
        rest = []
        for word in words:
            plain = plain_word(word)
            if plain in missing:
                self._note_status(word)
            if word == BAD_CELL or plain in missing:
                values[word] = float("nan")
            elif plain in numbers:
                values[word] = numbers[plain]
            elif word.lower() in TRUTH:
                values[word] = TRUTH[word.lower()]
            else:
                rest.append(word)
        return values, rest

    def _note_status(self, word: str) -> None:
        found = self._texts == word
        self.status.append(word)
        self.notes.append(
            Note(
                what=f"status {word!r} read as missing",
                channel=self._texts.name,
                rows=int(found.sum()),
                first_row=int(found.arg_max() or 0),
            )
        )

    def _read_states(self, states: dict[str, int]) -> dict[str, float]:
        present = self.numbers.drop_nulls().drop_nans()
        if len(present):
            first = next(iter(states))
            codes = {word: float(code) for word, code in states.items()}
            shown = ", ".join(f"{_toml(word)} = {code:g}" for word, code in codes.items())
            raise UnclearRecordError(
                f"channel {_shown(self._texts.name)} holds both {_shown(first)} and numbers "
                f"({present[0]:g})",
                file=self._name,
                cure=f"[record.words] {shown}",
                choices=(
                    SettingChoice(setting="words", value=codes, meaning="words are these numbers"),
                    SettingChoice(setting="missing", value=tuple(codes), meaning="no readings"),
                ),
            )
        moving = (2,) if 2 in states.values() else ()
        self.declared = Declaration(
            role=Role.ACTUATOR,
            codes=Codes(off=0, on=(1,), moving=moving),
            why=f"values: {', '.join(states)}",
        )
        self.states = {word: float(code) for word, code in states.items()}
        return self.states

    def _read_units(self, words: list[str]) -> list[str]:
        """Read cells such as `0.5 m`; return the words that are none."""
        cells = self._texts.filter(self._texts.is_in(words) & self.numbers.is_null())
        parts = cells.str.extract_groups(
            r"^([+-]?[\d.,'\u2019\u00a0\u202f ]*\d)\s*([^\d\s.,+\-].{0,11})$"
        )
        split = parts.struct.unnest()
        split.columns = ["number", "unit"]
        numbers = _numbers(split["number"].str.strip_chars(BLANKS), self._decimal)
        spelt = {
            unit: spelt_unit(unit)
            for unit in split["unit"].drop_nulls().unique(maintain_order=True).to_list()
        }
        known = {unit: UNITS[ours] for unit, ours in spelt.items() if ours in UNITS}
        if not known:
            return words
        readable = numbers.is_not_null() & split["unit"].is_in(list(known))
        target = self._target_unit({spelt[unit] for unit in known})
        base, size = UNITS[target]
        for unit in known:
            if known[unit][0] != base:
                raise RecordError(
                    f"{self._name}: channel {self._texts.name!r} holds readings in {target!r} and "
                    f"in {unit!r}, which is no multiple of it; export it in one unit"
                )
        factor = split["unit"].replace_strict(
            list(known),
            [known[unit][1] / size for unit in known],
            default=None,
            return_dtype=pl.Float64,
        )
        scaled = numbers * factor
        exact = factor == 1.0
        scaled = numbers.zip_with(exact.fill_null(value=False), scaled)
        where = (self._texts.is_in(words) & self.numbers.is_null()).fill_null(value=False)
        if len(self.numbers.drop_nulls()) and any(known[unit][1] != size for unit in known):
            raise RecordError(
                f"{self._name}: channel {self._texts.name!r} holds readings with and without a "
                f"unit; export it in {target!r} alone"
            )
        positions = where.arg_true().filter(readable)
        self.numbers = self.numbers.clone().scatter(positions, scaled.filter(readable))
        self.declared = Declaration(unit=target)
        if len(known) > 1:
            self.notes.append(
                Note(
                    what=f"units {', '.join(known)} converted to {target}",
                    channel=self._texts.name,
                    rows=int(readable.sum()),
                )
            )
        return cells.filter(~readable).unique(maintain_order=True).to_list()

    def _target_unit(self, units: set[str]) -> str:
        declared = self._plant.declaration(self._texts.name)
        if declared is not None and declared.unit and spelt_unit(declared.unit) in UNITS:
            return spelt_unit(declared.unit)
        if len(units) == 1:
            return next(iter(units))
        raise UnclearRecordError(
            f"channel {_shown(self._texts.name)} holds readings in {', '.join(sorted(units))}",
            file=self._name,
            cure=f"[channels.{_toml(self._texts.name)}] unit = ... to the unit to convert to",
            choices=tuple(
                SettingChoice(
                    setting="unit", value={self._texts.name: unit}, meaning=f"convert to {unit}"
                )
                for unit in sorted(units, key=lambda each: -UNITS[each][1])
            ),
        )

    def _unreadable(self, word: str) -> UnclearRecordError:
        found = self._texts == word
        row = int(found.arg_max() or 0)
        unreadable = self.numbers.is_null() & self._texts.is_not_null()
        cell = f"{_shown(word)} at row {row} ({int(unreadable.sum())} such cells)"
        tag = _toml(self._texts.name)
        return UnclearRecordError(
            f"channel {_shown(self._texts.name)} holds {cell}; expected a number or nothing",
            file=self._name,
            cure=f"[record] missing = [{_toml(word)}] or [record.words] {_toml(word)} = 0 or "
            f"[channels.{tag}] ignore = true",
            choices=(
                SettingChoice(setting="missing", value=(word,), meaning="no reading"),
                SettingChoice(
                    setting="words", value={word: 0.0}, meaning="the number 0 (off, closed)"
                ),
                SettingChoice(
                    setting="words", value={word: 1.0}, meaning="the number 1 (on, open)"
                ),
                SettingChoice(
                    setting="ignored", value=(self._texts.name,), meaning="ignore the column"
                ),
            ),
        )


def _toml(text: str) -> str:
    """Return a text as a key or string of a plant file, shortened if it is long."""
    escaped = text[:LONGEST_SHOWN].replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _numbers(texts: pl.Series, decimal: str) -> pl.Series:
    """Convert texts that are numbers with this decimal mark; others become null."""
    other = "," if decimal == "." else "."
    m, o = re.escape(decimal), re.escape(other)
    texts = texts.str.replace("\u2212", "-", literal=True)
    if decimal == ".":
        numbers = texts.cast(pl.Float64, strict=False)
    elif not _has(texts, ".") and (swapped := _swapped(texts)) is not None:
        return swapped
    else:
        simple = texts.str.contains(
            rf"^[+-]?(?:\d+(?:{m}\d*)?|{m}\d+)(?:[eE][+-]?\d+)?$|^[+-]?inf$"
        )
        plain = texts.set(~simple, None).str.replace(decimal, ".", literal=True)
        numbers = plain.cast(pl.Float64, strict=False)
    left = numbers.is_null() & texts.is_not_null()
    if not left.any():
        return numbers
    grouped = texts.str.contains(
        rf"^[+-]?\d{{1,3}}(?:(?:{o}\d{{3}})+|(?:{GROUPS}\d{{3}})+)(?:{m}\d*)?$"
    ).fill_null(value=False)
    if not (left & grouped).any():
        return numbers
    bare = (
        texts.str.replace_all(rf"[{o}'\u2019\u00a0\u202f ]", "")
        .str.replace(decimal, ".", literal=True)
        .cast(pl.Float64, strict=False)
    )
    return bare.zip_with(left & grouped, numbers)
