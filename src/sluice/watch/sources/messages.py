"""Messages of a broker as rows or readings."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sluice.errors import RecordError
from sluice.watch.rows import microseconds

__all__ = ["Reading", "RowMessage", "parsed_message"]

TIME_KEYS = ("time", "timestamp", "ts", "datetime")
VALUE_KEYS = ("value", "val", "v")
WORDS = {"true": 1.0, "on": 1.0, "open": 1.0, "run": 1.0, "false": 0.0, "off": 0.0, "closed": 0.0,
         "stop": 0.0}  # fmt: skip
YEAR = re.compile(r"[0-9]{4}(?![0-9])")
LARGEST = 1 << 20  # bytes
EARLIEST, LATEST = (
    int(np.datetime64(day, "us").astype(np.int64)) for day in ("1900-01-01", "2200-01-01")
)
"""Microseconds since 1970: a time outside would overflow, or make every later row a late one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMessage:
    """A message with the readings of many tags at one time."""

    time: int | None  # microseconds; None if the message states none
    readings: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A message with the reading of one tag."""

    value: float


def parsed_message(payload: bytes, words: Mapping[str, float]) -> RowMessage | Reading:
    """Parse a message: an object of tags, an object with a value, or a plain number or word."""
    if len(payload) > LARGEST:
        raise RecordError(f"a message has {len(payload):,} bytes; expected at most {LARGEST:,}")
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        raise RecordError("a message is no text; expected JSON or a number") from None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return Reading(value=_number(text, words))
    if not isinstance(content, dict):
        return Reading(value=_number(content, words))
    lower = {str(key).lower(): key for key in content}
    value = next((content[lower[key]] for key in VALUE_KEYS if key in lower), None)
    if value is not None and not isinstance(value, dict):
        return Reading(value=_number(value, words))
    time_key = next((lower[key] for key in TIME_KEYS if key in lower), None)
    return RowMessage(
        time=None if time_key is None else _time(content[time_key]),
        readings={
            str(key): _number(each, words) for key, each in content.items() if key != time_key
        },
    )


def _number(value: object, words: Mapping[str, float]) -> float:
    """Return a reading; NaN for null, for a word that means nothing, and for nested content."""
    match value:
        case bool() | int() | float():
            return _float(value)
        case str():
            text = value.strip()
            if text in words:
                return float(words[text])
            if text.lower() in WORDS:
                return WORDS[text.lower()]
            try:
                return float(text)
            except ValueError:
                return math.nan
        case _:
            return math.nan


def _float(value: float) -> float:
    """Return a number as a float; one that no float holds is endless."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value > 0 or -1)


def _time(value: object) -> int:
    """Return a time in microseconds: ISO text, or a number of seconds, ms, us or ns since 1970."""
    at = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        at = _since_1970(_float(value))
    elif isinstance(value, str):
        at = _iso(value.strip().removesuffix("Z").removesuffix("+00:00"))
    if at is None or not EARLIEST <= at < LATEST:
        raise RecordError(
            f"a message has the time {str(value)[:40]!r}; expected ISO 8601 or a number"
        )
    return at


def _since_1970(value: float) -> int | None:
    if not math.isfinite(value):
        return None
    size = abs(value)
    unit = next(u for u, most in ((1.0, 1e11), (1e-3, 1e14), (1e-6, 1e17), (1e-9, math.inf))
                if size < most)  # fmt: skip
    return microseconds(value * unit)


def _iso(text: str) -> int | None:
    """Read a date of a year with four digits, with or without a time."""
    if not YEAR.match(text):
        return None  # NumPy also reads longer years, which overflow, and words such as "now"
    try:
        return int(np.datetime64(text, "us").astype(np.int64))
    except ValueError:
        return None
