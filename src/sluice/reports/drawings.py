"""Figures as data for the script of a page: compact, escaped, and coloured by the stylesheet.

A figure names its colours as variables of the stylesheet, such as `var(--flow)`. The script of the
page looks them up, so that one figure can be drawn on a light and on a dark page.
"""

import base64
import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import plotly.graph_objects as go

from sluice.arrays import Floats, Ints, Times
from sluice.telemetry import Record, Role

__all__ = [
    "ROLE_COLOURS",
    "Drawing",
    "attack_times",
    "figure_data",
    "stamps",
    "thinned",
    "time_axis",
]

ROLE_COLOURS = {role: f"var(--{role.value})" for role in Role}
TEXTS = frozenset({"name", "text", "hovertext", "ticktext", "tickvals", "x", "y"})
"""Keys of a figure whose strings Plotly shows, and in which it would read markup."""
LARGEST_STEP = np.iinfo(np.uint32).max


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A figure of a page, with its title and a sentence that explains it."""

    figure: go.Figure
    title: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()  # what a search finds it by
    link: str = ""  # drawings with the same link are zoomed together
    tools: bool = True  # buttons for zooming and saving
    shaded: bool = False  # whether the times that its page shades are shaded in it


def figure_data(figure: go.Figure) -> str:
    """Return a figure as JSON that may stand in a `<script>` element of a page.

    Times are whole steps from the first one: a quarter of the size of written times, and no
    browser moves them to its own time zone.
    """
    drawn = figure.to_plotly_json()
    drawn["layout"].pop("template", None)  # the script has the one of the page
    text = json.dumps(_plain(drawn), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(value: Any, key: str = "") -> Any:  # noqa: PLR0911 - one per kind of value
    match value:
        case Mapping():
            return {name: _plain(each, name) for name, each in value.items()}
        case np.ndarray() if value.dtype.kind == "M":
            return _times(value)
        case np.ndarray():
            return _plain(value.tolist(), key)
        case list() | tuple():
            return [_plain(each, key) for each in value]
        case np.generic():
            return _plain(value.item(), key)
        case str() if key in TEXTS:
            # Plotly reads markup in texts: only a line break may be one.
            return html.escape(value, quote=False).replace("&lt;br&gt;", "<br>")
        case float() if not np.isfinite(value):
            return None
        case _:
            return value


def _times(values: Times) -> dict[str, object]:
    """Return times as a first one, a unit in milliseconds, and steps of this unit."""
    stamps_ms = values.astype("datetime64[ms]").astype(np.int64)
    first = int(stamps_ms.min()) if stamps_ms.size else 0
    after = stamps_ms - first
    unit = max(int(np.gcd.reduce(after)) if after.size else 1, 1)
    steps = after // unit
    if steps.size and int(steps.max()) > LARGEST_STEP:
        return {"first": first, "unit": unit, "steps": steps.tolist()}
    packed = base64.b64encode(steps.astype("<u4").tobytes()).decode("ascii")
    return {"first": first, "unit": unit, "packed": packed}


def stamps(times: Times) -> Times:
    """Return times for an axis."""
    return times.astype("datetime64[ms]")


def time_axis(times: Times) -> dict[str, object]:
    """Return the settings of an axis that shows these times from the first to the last."""
    return {"type": "date", "range": [str(each) for each in stamps(times[[0, -1]])]}


def attack_times(record: Record) -> tuple[tuple[str, str], ...]:
    """Return the first and the last time of each attack, for a page to shade."""
    return tuple(
        (str(record.times[run.start]), str(record.times[run.stop - 1]))
        for run in record.attack_segments
    )


def thinned(readings: Floats, most: int) -> Ints:
    """Return about `most` rows to draw: the lowest and the highest reading of each stretch.

    Of equal readings in a row only the first and the last are drawn, which loses nothing.
    """
    moved = np.ones(len(readings), bool)
    moved[1:-1] = (readings[1:-1] != readings[:-2]) | (readings[1:-1] != readings[2:])
    unknown = np.isnan(readings)
    moved[1:-1] &= ~(unknown[1:-1] & unknown[:-2] & unknown[2:])
    if np.count_nonzero(moved) <= most:
        return np.flatnonzero(moved)
    edges = np.linspace(0, len(readings), most // 2 + 1).astype(np.int64)
    rows = {0, len(readings) - 1}
    for start, stop in pairwise(edges):
        stretch = readings[start:stop]
        if not np.isnan(stretch).all():
            rows |= {int(start + np.nanargmin(stretch)), int(start + np.nanargmax(stretch))}
    return np.array(sorted(rows), dtype=np.int64)
