"""Quality columns: words and codes that say whether a reading is good."""

import re

import polars as pl

from sluice.errors import RecordError, SettingChoice, UnclearRecordError
from sluice.telemetry.exports.numbers import BAD_CELL
from sluice.telemetry.exports.words import (
    BAD_WORDS,
    GOOD_WORDS,
    QUALITY_NAMES,
    is_status,
    plain_word,
)
from sluice.telemetry.plantfile import PlantFile
from sluice.telemetry.record import Note

__all__ = ["good_rows", "mask_by_quality", "masked", "quality_columns"]

SEPARATED = re.compile(r"^(.*?)[._\s\-/:|]+\(?([^._\s\-/:|()]+)\)?$")
STATE_LIKE = ("status", "estado", "statut", "状态")
"""Such a column can also hold the state of a pump; its words decide."""
MOST_WORDS = 1_000
MOST_CODE, MOST_CODES = 1_023, 32
"""OPC's codes; a column with other or more numbers holds readings, not qualities."""
OPC_GOOD = 192
OPC_CODES = 64
"""OPC's codes below are bad, up to 191 uncertain, and from 192 good."""
UA_BAD = 0x4000_0000
"""Status codes of OPC UA: below is good, the rest uncertain or bad."""
TRUE_IS_GOOD = ("good", "isgood", "gültig", "validité")
TRUE_IS_BAD = ("questionable", "substituted")


def quality_columns(frame: pl.DataFrame, plant: PlantFile) -> dict[str, tuple[str, ...]]:
    """Return the quality columns of a wide table, with the columns that each is about."""
    found: dict[str, tuple[str, ...]] = {}
    for name in frame.columns:
        match = SEPARATED.match(name)
        word = plain_word(match[2]) if match else plain_word(name)
        if word not in QUALITY_NAMES or name in plant.channels:
            continue
        if name == plant.quality or not match:
            about = tuple(other for other in frame.columns if not _is_about_quality(other))
        else:
            about = (match[1],) if match[1] in frame.columns else ()
        state_like = word in STATE_LIKE or not match
        if about and (not state_like or _all_quality_words(frame[name])):
            found[name] = about
    return found


def _is_about_quality(name: str) -> bool:
    match = SEPARATED.match(name)
    return plain_word(match[2] if match else name) in QUALITY_NAMES


def _texts(column: pl.Series) -> pl.Series:
    texts = column.cast(pl.String).str.strip_chars().str.replace(r"\.0$", "")
    return texts.fill_null("")


def _all_quality_words(column: pl.Series) -> bool:
    if column.dtype != pl.String:
        return False
    words = [word for word in _texts(column).unique().to_list() if word]
    return bool(words) and all(_meaning(word) is not None for word in words)


def _meaning(word: str) -> bool | None:
    """Return whether a word means good; None if it is unknown."""
    plain = plain_word(word)
    if plain in GOOD_WORDS or plain.startswith("good"):
        return True
    if plain in BAD_WORDS or plain.startswith(("bad", "uncertain")):
        return False
    return False if is_status(word, among_numbers=True) else None


def good_rows(column: pl.Series, *, name: str, plant: PlantFile) -> pl.Series:
    """Return which rows are good; words or codes of unknown meaning are refused."""
    texts = _texts(column)
    distinct = texts.unique(maintain_order=True).to_list()
    if plant.good_quality:
        allowed = {word.casefold().removesuffix(".0") for word in plant.good_quality}
        return texts.is_in([word for word in distinct if word.casefold() in allowed])
    if len(distinct) > MOST_WORDS:
        raise RecordError(
            f"{name}: quality column {column.name!r} holds {len(distinct):,} different words; "
            "expected a few: name the words that mean good in the plant file, [record] good_quality"
        )
    known = _codes(column.name, distinct)
    if known is None:
        known = {word: _meaning(word) for word in distinct if word}
        if "" in distinct:
            # An empty cell is good only if good is never written.
            known[""] = False if any(known.values()) else None
    unknown = next((word for word, good in known.items() if good is None), None)
    if unknown is not None:
        raise _unclear(column.name, unknown, known, name)
    return texts.is_in([word for word, good in known.items() if good])


def _codes(column: str, distinct: list[str]) -> dict[str, bool | None] | None:
    """Return the meaning of codes; None if they are words."""
    codes = {}
    for word in distinct:
        if word == "":
            continue
        if not word.isdecimal():
            return None
        codes[word] = int(word)
    if not codes:
        return None
    highest = max(codes.values())
    plain = plain_word(column)
    known: dict[str, bool | None]
    if highest >= UA_BAD:
        known = {word: code < UA_BAD for word, code in codes.items()}
    elif OPC_CODES <= highest <= MOST_CODE and len(codes) <= MOST_CODES:
        known = {word: code >= OPC_GOOD for word, code in codes.items()}
    elif highest <= 1 and plain.endswith((*TRUE_IS_GOOD, *TRUE_IS_BAD)):
        good = 1 if plain.endswith(TRUE_IS_GOOD) else 0
        known = {word: code == good for word, code in codes.items()}
    else:
        known = dict.fromkeys(codes, None)
    if "" in distinct:
        known[""] = False
    return known


def _unclear(
    column: str, word: str, known: dict[str, bool | None], name: str
) -> UnclearRecordError:
    good = tuple(each for each, meaning in known.items() if meaning)
    shown = repr(word) if word else "an empty cell"
    return UnclearRecordError(
        f"quality column {column!r} holds {shown}, which means neither good nor bad here",
        file=name,
        cure=f'[record] good_quality = ["{word}"] (all words and codes that mean good)',
        choices=tuple(
            SettingChoice(
                setting="good_quality",
                value=(*good, each),
                meaning=f"{each or 'an empty cell'} means good, all others bad",
            )
            for each in dict.fromkeys((word, *(w for w, m in known.items() if m is None)))
        ),
        free=True,
    )


def masked(readings: pl.Series, good: pl.Series) -> pl.Series:
    """Return readings without those whose quality is bad; an empty cell stays empty."""
    bad = ~good & readings.is_not_null()
    if readings.dtype == pl.String:
        return readings.set(bad, BAD_CELL)
    return readings.cast(pl.Float64).set(bad, float("nan"))


def mask_by_quality(
    frame: pl.DataFrame, *, name: str, plant: PlantFile
) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Mask the bad readings of a wide table, and drop its quality columns."""
    notes = []
    columns = quality_columns(frame, plant)
    for quality, about in columns.items():
        good = good_rows(frame[quality], name=name, plant=plant)
        bad = ~good
        for tag in about:
            if tag in columns:
                continue
            frame = frame.with_columns(masked(frame[tag], good))
            if bad.any():
                notes.append(
                    Note(
                        what=f"bad quality by {quality!r}, readings masked",
                        channel=tag,
                        rows=int(bad.sum()),
                        first_row=int(bad.arg_max() or 0),
                    )
                )
    return frame.drop(list(columns)), tuple(notes)
