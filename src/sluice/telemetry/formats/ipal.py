"""IPAL: state files of the Industrial Protocol Abstraction Layer (Wolsing et al. 2022), JSON lines.

    {"timestamp": 1451294954, "state": {"FIT101": 2.4, "MV101": 2}, "malicious": false}

`malicious` is true, false, the id of an attack, or null for an unlabelled row.
"""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sluice.arrays import Times
from sluice.errors import RecordError
from sluice.files import parse_json
from sluice.telemetry.formats.format import Format
from sluice.telemetry.limits import MOST_COLUMNS
from sluice.telemetry.record import Label, Note
from sluice.telemetry.source import Container, Source
from sluice.telemetry.table import FURTHEST_S, Table, from_epoch, numeric

__all__ = ["IPAL"]

TIME = "timestamp"
STATE = "state"
MALICIOUS = "malicious"
ATTACK_LIST = "attacks.json"
LONGEST_LINE = 2 << 20
MOST_OPEN = 32  # objects and lists in a line; more are checked for their nesting
STRINGS = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)(?:"\s*+(:)?)?', re.DOTALL)
"""A string, and the colon behind it if it is a key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Interval:
    """An attack in epoch seconds, both ends included, as in IPAL's own tools."""

    start: float
    end: float


def recognises(source: Source) -> bool:
    """Look for a first line that is a JSON object with a timestamp and a state."""
    if source.container is not Container.TEXT or not source.head[0].lstrip().startswith("{"):
        return False
    try:
        first = json.loads(source.head[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and TIME in first and isinstance(first.get(STATE), dict)


def load(source: Source) -> Table:
    """Read one state per line; a tag that a line does not have is a missing reading."""
    _demand_limits(source)
    lines = _parse(source)
    notes = [Note(what="time stamps are epoch seconds, read as UTC")]
    states = _in_order(lines[STATE].struct.unnest(), source)
    nested = [name for name, kind in states.schema.items() if kind.is_nested()]
    if nested:
        raise RecordError(
            f"{source.path.name}: state {nested[0]!r} holds lists or objects; expected numbers"
        )
    return Table(
        format=IPAL.name,
        frame=numeric(states, name=source.path.name),
        times=_times(lines, source),
        labels=_labels(lines, source, notes),
        notes=tuple(notes),
    )


def _demand_limits(source: Source) -> None:
    """Raise a `RecordError` for lines that are nested, or for too many tags in all lines together.

    A table has a cell for every tag in every row. So a file whose lines have different tags grows
    with the square of its size.
    """
    text, name = source.text, source.path.name
    tags: set[bytes] = set()
    for number, line in enumerate(io.BytesIO(text)):
        if len(line) > LONGEST_LINE:
            raise RecordError(
                f"{name}: line {number + 1} has more than {LONGEST_LINE:,} bytes; expected one "
                "state per line"
            )
        if line.count(b"{") + line.count(b"[") > MOST_OPEN:
            parse_json(
                line.decode(errors="replace"), f"{name}, line {number + 1},", error=RecordError
            )
        tags.update(tag for tag, colon in STRINGS.findall(line) if colon)
        if len(tags) > MOST_COLUMNS:
            break
    source.limits.demand_cells(text.count(b"\n"), len(tags))


def _in_order(states: pl.DataFrame, source: Source) -> pl.DataFrame:
    """Sort tags in the first line's order, others by name; polars guarantees no order."""
    first = source.text.lstrip().split(b"\n", 1)[0]
    leading = list(_object(first, 0, source).get(STATE) or ())
    return states.select(*leading, *sorted(set(states.columns) - set(leading)))


def _parse(source: Source) -> pl.DataFrame:
    try:
        # Infer the schema from all lines: later lines may add tags, or ids among booleans.
        lines = pl.read_ndjson(io.BytesIO(source.text), infer_schema_length=None)
    except pl.exceptions.PolarsError:
        lines = _parse_as_text(source)
    if TIME not in lines.columns or lines.schema.get(STATE) != pl.Struct:
        raise RecordError(
            f"{source.path.name} has no {TIME!r} or no {STATE!r} object in its lines; "
            "IPAL's message files hold packets; give the state file instead"
        )
    stateless = lines[STATE].is_null()
    if stateless.any():
        row = int(stateless.arg_max() or 0)
        raise RecordError(f"{source.path.name}: row {row} has no {STATE!r}; every line needs one")
    return lines


def _parse_as_text(source: Source) -> pl.DataFrame:
    """Read every value as text, for files in which a tag has both booleans and numbers."""
    tags: dict[str, type[pl.DataType]] = {}
    for number, line in enumerate(source.text.splitlines()):
        if line.strip():
            tags.update(dict.fromkeys(_object(line, number, source).get(STATE) or (), pl.String))
    text = pl.String()
    schema: dict[str, pl.DataType] = {TIME: text, STATE: pl.Struct(tags), MALICIOUS: text}
    try:
        return pl.read_ndjson(io.BytesIO(source.text), schema=schema)
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise RecordError(f"{source.path.name} is not readable as JSON lines: {reason}") from None


def _object(line: bytes, number: int, source: Source) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict) or not isinstance(parsed.get(STATE, {}), dict | None):
        raise RecordError(
            f"{source.path.name} is truncated or damaged: line {number + 1} is not a JSON object "
            f"with a state ({line[:40]!r}); fetch it again"
        )
    return parsed


def _times(lines: pl.DataFrame, source: Source) -> Times:
    seconds = lines[TIME].cast(pl.Float64, strict=False)
    return from_epoch(seconds, lines[TIME], name=source.path.name)


def _labels(lines: pl.DataFrame, source: Source, notes: list[Note]) -> NDArray[np.int8]:
    if MALICIOUS in lines.columns:
        words = lines[MALICIOUS].cast(pl.String).str.strip_chars().str.to_lowercase()
        words = words.set(words == "", None)
        if words.is_in(["0", "0.0"]).any():
            raise RecordError(
                f"{source.path.name}: {MALICIOUS!r} holds 0, which may mean no attack or an attack "
                "called 0; write true, false, null or the id of an attack"
            )
    else:
        words = pl.Series(MALICIOUS, [None] * len(lines), pl.String)
    unlabelled = words.is_null().to_numpy()
    normal = (words == "false").fill_null(value=False).to_numpy()
    labels = np.where(normal, Label.NORMAL, Label.ATTACK).astype(np.int8)
    if unlabelled.any():
        labels[unlabelled] = _listed_labels(lines, source, notes)[unlabelled]
    return labels


def _listed_labels(lines: pl.DataFrame, source: Source, notes: list[Note]) -> NDArray[np.int8]:
    """Return labels from the attack list next to the record, or unlabelled without a list."""
    companion = source.path.parent / ATTACK_LIST
    if not companion.is_file():
        notes.append(
            Note(what=f"rows without {MALICIOUS!r} are unlabelled: no {ATTACK_LIST} beside")
        )
        return np.full(len(lines), Label.UNLABELLED, np.int8)
    seconds = lines[TIME].cast(pl.Float64).to_numpy()
    labels = np.full(len(lines), Label.NORMAL, np.int8)
    intervals = tuple(_intervals(Source(companion)))
    starts = np.sort([interval.start for interval in intervals])
    ends = np.sort([interval.end for interval in intervals])
    begun, over = np.searchsorted(starts, seconds, "right"), np.searchsorted(ends, seconds, "left")
    labels[begun > over] = Label.ATTACK
    what = f"rows without {MALICIOUS!r} labelled by the {len(intervals)} attacks of {ATTACK_LIST}"
    notes.append(Note(what=what))
    return labels


def _intervals(source: Source) -> Iterator[_Interval]:
    text = source.text.decode(errors="replace")
    attacks = parse_json(text, f"attack list {source.path}", error=RecordError)
    for attack in attacks if isinstance(attacks, list) else [attacks]:
        start, end = (
            attack.get(at) if isinstance(attack, dict) else None for at in ("start", "end")
        )
        match start, end:
            case (int() | float(), int() | float()) if -FURTHEST_S <= start <= end <= FURTHEST_S:
                yield _Interval(start=float(start), end=float(end))
            case _:
                raise RecordError(
                    f"{source.path}: an attack runs from {start!r} to {end!r}; expected epoch "
                    "seconds with start <= end"
                )


IPAL = Format(name="ipal", title="IPAL state file", version="1", recognises=recognises, load=load)
