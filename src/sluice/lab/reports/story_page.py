"""The page of the demo: one picture of the result, then its details."""

import html
from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go

from sluice.files import atomically
from sluice.lab.reports.tables import Column, ReportTable, as_html, without_empty_columns
from sluice.reports import drawing, page

__all__ = ["StoryPage", "StoryPlant", "Way", "write_story_page"]

ADMITTED, REFUSED, UNDETECTED = "#1b9e77", "#c81e1e", "#e6ab02"
WAYS = {
    "clean": "#9aa5b1",
    "honest-only": "#9aa5b1",
    "naive": "#d95f02",
    "physics-aware": "#e6ab02",
    "gated": "#1b9e77",
}
MEANINGS = {
    "clean": "no plant lies",
    "honest-only": "without the malicious plants",
    "naive": "malicious plants replay attacks; no gate",
    "physics-aware": "malicious plants project the replay onto the rules; no gate",
    "gated": "the same, and the gate judges every batch",
}
HEIGHT = 340
LEAST_DAMAGE = 0.01  # one point of recall, the paper's threshold for damage
CAVEAT = "an illustration, not evidence. A verdict is about telemetry, not about people."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryPlant:
    """One plant and the gate's decision on it."""

    name: str
    lies: bool
    admitted: bool
    violating_share: float
    why: str
    proof_bytes: int | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One mode of training, and the quality of its detector."""

    name: str
    recall: float
    precision: float  # average over all thresholds; it changes before recall does
    other_recall: float | None
    malicious_in: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryPage:
    """Everything the page shows."""

    plants: tuple[StoryPlant, ...]
    ways: tuple[Way, ...]
    rules: tuple[str, ...]
    rounds: int
    seed: int


def write_story_page(story: StoryPage, path: Path) -> None:
    """Write the page."""
    malicious = sum(plant.lies for plant in story.plants)
    refused = sum(plant.lies and not plant.admitted for plant in story.plants)
    title = (
        f"{len(story.plants)} plants, {malicious} of them malicious; the gate refuses {refused} of "
        "these"
    )
    body = "\n".join(
        (
            f"<p>{html.escape(_sentence(story))}</p>",
            '<div class="beside">',
            _shown(
                "Rows that break a rule; plants with a star lie", _violations(story), first=True
            ),
            _shown("Hidden attacks that the detector finds", _recalls(story), first=False),
            "</div>",
            "<h2>Decisions of the gate</h2>",
            as_html(_decisions(story)),
            _refusals(story),
            "<h2>Hidden attacks that each mode of training finds</h2>",
            as_html(without_empty_columns(_ways(story))),
            f"<h2>{len(story.rules)} rules of physics, mined from clean rows</h2>",
            "<ul>" + "".join(f"<li>{html.escape(rule)}</li>" for rule in story.rules) + "</ul>",
            f"<p>Seed {story.seed}, {story.rounds} rounds, one simulated plant: {CAVEAT}</p>",
        )
    )
    with atomically(path) as draft:
        draft.write_text(page(title, body), encoding="utf-8")


def _sentence(story: StoryPage) -> str:
    ways = {way.name: way for way in story.ways}
    clean, naive = ways["clean"], ways["naive"]
    proven = sum(plant.admitted for plant in story.plants)
    text = (
        "The malicious plants replay recorded attacks as if they were normal operation, so that "
        "the shared detector learns to overlook them. "
    )
    if clean.recall - naive.recall >= LEAST_DAMAGE:
        text += (
            f"Without a gate it then finds {naive.recall:.0%} of those attacks' windows; without "
            f"malicious plants it finds {clean.recall:.0%}. "
        )
    else:
        text += (
            "In this small federation the effect on recall is too small to see (recall "
            f"{clean.recall:.3f} without malicious plants, {naive.recall:.3f} with them); the "
            f"average precision on those attacks changes from {clean.precision:.3f} to "
            f"{naive.precision:.3f}. "
        )
    return text + (
        "Here every plant must prove in zero knowledge that its batch obeys the plant's physics: "
        f"{proven} of {len(story.plants)} succeed."
    )


def _shown(caption: str, figure: go.Figure, *, first: bool) -> str:
    drawn = drawing(figure, first=first, tools=False)
    return f"<figure><figcaption>{html.escape(caption)}</figcaption>{drawn}</figure>"


def _violations(story: StoryPage) -> go.Figure:
    return _bars(
        names=[_short(plant) for plant in story.plants],
        percents=[100 * plant.violating_share for plant in story.plants],
        colours=[_colour(plant) for plant in story.plants],
        labels=["in" if plant.admitted else "out" for plant in story.plants],
        hints=[plant.why or "admitted" for plant in story.plants],
    )


def _recalls(story: StoryPage) -> go.Figure:
    return _bars(
        names=[way.name.replace("-", "-<br>") for way in story.ways],
        percents=[100 * way.recall for way in story.ways],
        colours=[WAYS[way.name] for way in story.ways],
        labels=[f"{way.recall:.0%}" for way in story.ways],
        hints=[MEANINGS[way.name] for way in story.ways],
    )


def _bars(
    *,
    names: list[str],
    percents: list[float],
    colours: list[str],
    labels: list[str],
    hints: list[str],
) -> go.Figure:
    figure = go.Figure(
        go.Bar(
            x=names,
            y=percents,
            marker_color=colours,
            text=labels,
            textposition="outside",
            textangle=0,
            cliponaxis=False,
            hovertext=hints,
        )
    )
    figure.update_yaxes(ticksuffix=" %", rangemode="tozero")
    figure.update_xaxes(type="category", tickangle=0)
    figure.update_layout(
        height=HEIGHT,
        showlegend=False,
        template="plotly_white",
        margin={"l": 45, "r": 5, "t": 25, "b": 45},
    )
    return figure


def _short(plant: StoryPlant) -> str:
    """Return a name so short that ten names fit beside each other on a phone."""
    return plant.name.removeprefix("plant-") + ("*" if plant.lies else "")


def _colour(plant: StoryPlant) -> str:
    if not plant.admitted:
        return REFUSED
    return UNDETECTED if plant.lies else ADMITTED


def _decisions(story: StoryPage) -> ReportTable:
    return ReportTable(
        slug="decisions",
        title="Decisions of the gate",
        sentence="",
        columns=(
            Column(name="plant"),
            Column(name="behaviour"),
            Column(name="decision"),
            Column(name="violating, %", digits=2),
            Column(name="proof, kB", digits=0),
            Column(name="s", digits=1),
        ),
        rows=tuple(
            (
                plant.name,
                "lies" if plant.lies else "honest",
                "admitted" if plant.admitted else "refused",
                100 * plant.violating_share,
                None if plant.proof_bytes is None else plant.proof_bytes / 1000,
                plant.seconds,
            )
            for plant in story.plants
        ),
    )


def _refusals(story: StoryPage) -> str:
    """List the reasons below the table: they are sentences, too long for a table on a phone."""
    items = "".join(
        f"<li><b>{html.escape(plant.name)}</b>: {html.escape(plant.why)}</li>"
        for plant in story.plants
        if plant.why
    )
    if not items:
        return ""
    return f"<p>Only the refused plant sees its reasons:</p><ul>{items}</ul>"


def _ways(story: StoryPage) -> ReportTable:
    return ReportTable(
        slug="ways",
        title="Modes of training",
        sentence="",
        columns=(
            Column(name="mode"),
            Column(name="malicious plants admitted", digits=0),
            Column(name="recall", digits=3),
            Column(name="average precision", digits=3),
            Column(name="recall on other attacks", digits=3),
            Column(name="meaning"),
        ),
        rows=tuple(
            (
                way.name,
                way.malicious_in,
                way.recall,
                way.precision,
                way.other_recall,
                MEANINGS[way.name],
            )
            for way in story.ways
        ),
    )
