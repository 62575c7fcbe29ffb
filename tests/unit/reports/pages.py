"""Read a written page: its text, its tables, its figures, and what it refers to."""

import json
import re
from base64 import b64decode
from dataclasses import dataclass
from functools import cached_property
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import cast

import numpy as np

from sluice.arrays import Floats

FIGURE = re.compile(
    r'<script type="application/json" class="figure-data">(.*?)</script>', re.DOTALL
)
SCRIPT = re.compile(r"<script.*?</script>|<style>.*?</style>", re.DOTALL)
CAPTION = re.compile(r"<figcaption>(.*?)</figcaption>", re.DOTALL)
TILE = re.compile(
    r'<span class="label">(.*?)</span><b[^>]*>(.*?)</b>(?:<span class="note">(.*?)</span>)?</div>'
)


@dataclass(frozen=True)
class Figure:
    """The traces and the layout that the page gives to Plotly."""

    traces: list[dict[str, object]]
    layout: dict[str, object]

    @property
    def titles(self) -> list[str]:
        """The titles of its panels."""
        found = cast("list[dict[str, str]]", self.layout.get("annotations", []))
        return [annotation["text"] for annotation in found]

    @property
    def shapes(self) -> list[dict[str, object]]:
        """Its shaded rectangles."""
        return cast("list[dict[str, object]]", self.layout.get("shapes", []))

    def trace(self, name: str) -> dict[str, object]:
        """Return the first trace with a name."""
        return next(trace for trace in self.traces if trace["name"] == name)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []  # what a browser would fetch
        self.rows: list[list[str]] = []  # of tables
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [
            f"{tag} {key}={value}"
            for key, value in attrs
            if key in ("src", "href") and not (tag == "a" and str(value).startswith("#"))
        ]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self._in_cell = self._in_cell or tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


@dataclass(frozen=True)
class Page:
    """A page as a reader gets it."""

    html: str

    @classmethod
    def at(cls, path: Path) -> "Page":
        """Read a page from a file."""
        return cls(path.read_text(encoding="utf-8"))

    @cached_property
    def markup(self) -> str:
        """The page without its scripts."""
        return SCRIPT.sub("", self.html)

    @cached_property
    def loads(self) -> list[str]:
        """Everything that the page would fetch, from the network or from a file."""
        imports = re.findall(r"@import|url\(", self.markup)
        return _parsed(self.html).loads + imports

    @cached_property
    def rows(self) -> list[list[str]]:
        """The cells of every table row, as text."""
        return _parsed(self.markup).rows

    @cached_property
    def figures(self) -> list[Figure]:
        """Every figure, as Plotly draws it."""
        drawn = [json.loads(found) for found in FIGURE.findall(self.html)]
        return [Figure(traces=each["data"], layout=each["layout"]) for each in drawn]

    @cached_property
    def shaded(self) -> list[tuple[np.datetime64, np.datetime64]]:
        """The times that are shaded in its drawings."""
        found = re.search(r'id="shaded">(.*?)</script>', self.html)
        times = json.loads(found[1]) if found else []
        return [(np.datetime64(start), np.datetime64(end)) for start, end in times]

    @cached_property
    def captions(self) -> list[str]:
        """The titles of the drawings."""
        return [unescape(found) for found in CAPTION.findall(self.markup)]

    @cached_property
    def tiles(self) -> dict[str, tuple[str, str]]:
        """Value and note of each tile, by its label."""
        return {
            unescape(label): (unescape(value), unescape(note))
            for label, value, note in TILE.findall(self.markup)
        }

    def section(self, title: str) -> str:
        """Return the markup of the section with a heading."""
        found = [part for part in self.markup.split("<section ") if f"<h2>{title}</h2>" in part]
        assert len(found) == 1, title
        return found[0].split("</section>")[0]

    @cached_property
    def headings(self) -> list[str]:
        """The headings of the sections."""
        return [unescape(found) for found in re.findall(r"<h2>(.*?)</h2>", self.markup)]


def _parsed(html: str) -> _Page:
    parser = _Page()
    parser.feed(html)
    return parser


def numbers(values: object) -> Floats:
    """Return the numbers of an axis, which Plotly may write as base64; null is NaN."""
    if isinstance(values, dict):
        read = np.frombuffer(b64decode(values["bdata"]), values["dtype"]).astype(np.float64)
        shape = [int(size) for size in str(values.get("shape", read.size)).split(",")]
        return read.reshape(shape)
    return np.array(values, dtype=np.float64)


def times(values: object) -> list[np.datetime64]:
    """Return the times of an axis: steps of a unit from the first time."""
    assert isinstance(values, dict)
    steps = values.get("steps")
    if steps is None:
        steps = np.frombuffer(b64decode(values["packed"]), "<u4").tolist()
    return [np.datetime64(values["first"] + values["unit"] * step, "ms") for step in steps]
