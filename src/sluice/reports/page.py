"""The parts of a page, and the one template, stylesheet and script that all pages share.

A page is made of parts that hold plain text, never markup. The template escapes every text, so a
tag name from telemetry cannot become markup on any page.

A page refers to Plotly as one file beside it, which all pages of a folder share. A self-contained
page includes Plotly and can be sent alone.
"""

import base64
import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.errors import SettingError
from sluice.files import atomically
from sluice.reports.drawings import Drawing, figure_data

if TYPE_CHECKING:
    import jinja2

__all__ = [
    "Bullets",
    "Cell",
    "Columns",
    "DataColumn",
    "DataTable",
    "Legend",
    "LegendKey",
    "PageSection",
    "Part",
    "Prose",
    "ReportPage",
    "Tile",
    "Tone",
    "asset",
    "plotly_name",
    "plotly_source",
    "rendered",
    "rendered_main",
    "write_page",
]

HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; script-src 'self' file: {hashes}; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


class Tone(StrEnum):
    """How a tile, a cell or a paragraph is marked."""

    PLAIN = "plain"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One figure of the summary: what it is, its value, and a note."""

    label: str
    value: str
    note: str = ""
    tone: Tone = Tone.PLAIN
    key: str = ""  # the id of its element


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """A paragraph."""

    text: str
    tone: Tone = Tone.PLAIN
    small: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullets:
    """A list of sentences; those after the first `shown` are folded."""

    items: tuple[str, ...]
    shown: int | None = None
    ordered: bool = False
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LegendKey:
    """What a colour means; the colour is a variable of the stylesheet, such as `flow`."""

    colour: str
    label: str
    shape: str = "area"  # area, line, dash or mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Legend:
    """The meaning of the colours of the drawings below it."""

    keys: tuple[LegendKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataColumn:
    """A column of a table; numbers are aligned to the right."""

    name: str
    numeric: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell with a mark or a second line."""

    text: str
    note: str = ""
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTable:
    """A table; on a phone each row becomes a card."""

    columns: tuple[DataColumn, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    key: str = ""
    searched: bool = False  # whether a search over tags hides rows that do not match

    def __post_init__(self) -> None:
        for row in self.rows:
            assert len(row) == len(self.columns), row


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Drawings beside each other; below each other on a phone."""

    drawings: tuple[Drawing, ...]


Part = Prose | Bullets | Legend | DataTable | Drawing | Columns


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A part of a page with a heading, which the navigation links to."""

    title: str
    parts: tuple[Part, ...]
    short: str = ""  # its name in the navigation, if the title is long
    key: str = ""  # its name in addresses, if other documents link to it

    @property
    def slug(self) -> str:
        """The id of its element."""
        name = (self.key or self.short or self.title).lower()
        words = re.sub(r"[^a-z0-9]+", "-", name).strip("-")
        return f"section-{words or 'part'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """A whole page: title, summary tiles, and sections."""

    kind: str  # what the page is about, such as "Verdict"
    title: str
    lead: str = ""
    tiles: tuple[Tile, ...]
    sections: tuple[PageSection, ...]
    search: str = ""  # what its search box searches for, such as "tags"; empty: no box
    end: str = ""  # what the reader must not conclude
    shaded: tuple[tuple[str, str], ...] = ()  # attacks: shaded in drawings that ask for it

    @property
    def drawn(self) -> bool:
        """Whether it has a drawing, and so needs the drawing script."""
        parts = (part for section in self.sections for part in section.parts)
        return any(isinstance(part, Drawing | Columns) for part in parts)

    @property
    def anchors(self) -> tuple[tuple[str, PageSection], ...]:
        """Return the sections, each with an id that no other one has."""
        counted: dict[str, int] = {}
        anchored = []
        for section in self.sections:
            counted[section.slug] = nth = counted.get(section.slug, 0) + 1
            anchored.append((section.slug if nth == 1 else f"{section.slug}-{nth}", section))
        return tuple(anchored)


def write_page(page: ReportPage, path: Path, *, self_contained: bool = False) -> None:
    """Write a page, and Plotly beside it unless the page shall be self-contained."""
    beside = path.with_name(plotly_name())
    if path.name == beside.name:
        raise SettingError(f"{path} is the name of the drawing script; name the page differently")
    with atomically(path) as draft:
        draft.write_text(rendered(page, self_contained=self_contained), encoding="utf-8")
        if page.drawn and not self_contained:
            _write_plotly(beside)


def rendered(page: ReportPage, *, self_contained: bool = False) -> str:
    """Return a page as one HTML text."""
    script = asset("page.js")
    plotly = plotly_source() if self_contained and page.drawn else ""
    inline = [script, plotly] if plotly else [script]
    return str(
        _environment()
        .get_template("file.html.j2")
        .render(
            page=page,
            policy=POLICY.format(hashes=" ".join(_hashed(each) for each in inline)),
            style=asset("page.css"),
            script=script,
            plotly=plotly,
            plotly_file=plotly_name(),
        )
    )


def rendered_main(page: ReportPage, *, template: str, state: str = "") -> str:
    """Return a page, or its changing part, for a server that serves stylesheet and scripts."""
    return str(_environment().get_template(template).render(page=page, state=state, plotly_file=""))


def asset(name: str) -> str:
    """Return the text of the shared stylesheet or script."""
    return (HERE / "assets" / name).read_text(encoding="utf-8")


def plotly_name() -> str:
    """Return the name of the file with Plotly that the pages of a folder share."""
    import plotly.offline  # noqa: PLC0415 - only pages need it

    return f"plotly-{plotly.offline.get_plotlyjs_version()}.min.js"


def plotly_source() -> str:
    """Return Plotly's script."""
    import plotly.offline  # noqa: PLC0415 - only pages need it

    return str(plotly.offline.get_plotlyjs())


def _write_plotly(path: Path) -> None:
    """Write Plotly, unless exactly this script is there: nothing else may run in the page."""
    source = plotly_source().encode()
    if path.is_file() and path.stat().st_size == len(source) and path.read_bytes() == source:
        return
    with atomically(path) as draft:
        draft.write_bytes(source)


def _hashed(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _part_kind(part: Part) -> str:
    return type(part).__name__.lower()


@cache
def _environment() -> "jinja2.Environment":
    import jinja2  # noqa: PLC0415 - only pages need it

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure_data"] = figure_data
    environment.filters["part_kind"] = _part_kind
    return environment
