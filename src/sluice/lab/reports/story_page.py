"""The demonstration's page: one picture that tells the story, then what it is made of."""

import html
from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go

from sluice.files import atomically
from sluice.lab.reports.tables import Column, ReportTable, as_html, told_only
from sluice.reports import drawing, page

__all__ = ["StoryPage", "StoryPlant", "Way", "write_story_page"]

ADMITTED, REFUSED, LET_IN = "#1b9e77", "#c81e1e", "#e6ab02"
WAYS = {
    "clean": "#9aa5b1",
    "honest-only": "#9aa5b1",
    "naive": "#d95f02",
    "physics-aware": "#e6ab02",
    "gated": "#1b9e77",
}
MEANINGS = {
    "clean": "nobody lies",
    "honest-only": "the liars are left out",
    "naive": "they replay attacks, and no gate stands at the door",
    "physics-aware": "they move what they replay onto the rules; no gate",
    "gated": "they do so, and the gate judges them",
}
HEIGHT = 340
LEAST_DAMAGE = 0.01  # a point of recall, the paper's mark of damage
CAVEAT = "a story, not evidence. A verdict speaks of telemetry, not of people."


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryPlant:
    """One plant at the door."""

    name: str
    lies: bool
    admitted: bool
    violating_share: float
    why: str
    proof_bytes: int | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to train, and what its detector finds."""

    name: str
    recall: float
    precision: float  # on average over all thresholds: it moves before recall does
    other_recall: float | None
    liars_in: int


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
    liars = sum(plant.lies for plant in story.plants)
    caught = sum(plant.lies and not plant.admitted for plant in story.plants)
    title = f"{len(story.plants)} plants, {liars} of them lie; physics keeps {caught} out"
    body = "\n".join(
        (
            f"<p>{html.escape(_sentence(story))}</p>",
            '<div class="beside">',
            _shown("Rows that break a rule; the starred lie", _at_the_door(story), first=True),
            _shown("Hidden attacks that are found", _found(story), first=False),
            "</div>",
            "<h2>At the door</h2>",
            as_html(_door(story)),
            _refusals(story),
            "<h2>What each way to train finds of the hidden attacks</h2>",
            as_html(told_only(_ways(story))),
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
    told = (
        "The liars replay recorded attacks as if they were normal operation, so that the shared "
        "detector learns to overlook them. "
    )
    if clean.recall - naive.recall >= LEAST_DAMAGE:
        told += (
            f"Without a gate it then finds {naive.recall:.0%} of those attacks' windows, where it "
            f"would have found {clean.recall:.0%}. "
        )
    else:
        told += (
            "In so small a federation that does not show in what it finds (recall "
            f"{clean.recall:.3f} without liars, {naive.recall:.3f} with them); how well it tells "
            f"those attacks apart moves from {clean.precision:.3f} to {naive.precision:.3f} in "
            "average precision. "
        )
    return told + (
        "Here every plant proves in zero knowledge that its batch obeys the plant's physics: "
        f"{proven} of {len(story.plants)} could."
    )


def _shown(caption: str, figure: go.Figure, *, first: bool) -> str:
    drawn = drawing(figure, first=first, tools=False)
    return f"<figure><figcaption>{html.escape(caption)}</figcaption>{drawn}</figure>"


def _at_the_door(story: StoryPage) -> go.Figure:
    return _bars(
        names=[_short(plant) for plant in story.plants],
        percents=[100 * plant.violating_share for plant in story.plants],
        colours=[_colour(plant) for plant in story.plants],
        labels=["in" if plant.admitted else "out" for plant in story.plants],
        hints=[plant.why or "admitted" for plant in story.plants],
    )


def _found(story: StoryPage) -> go.Figure:
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
    """Name a plant so that ten fit beside each other on a phone."""
    return plant.name.removeprefix("plant-") + ("*" if plant.lies else "")


def _colour(plant: StoryPlant) -> str:
    if not plant.admitted:
        return REFUSED
    return LET_IN if plant.lies else ADMITTED


def _door(story: StoryPage) -> ReportTable:
    return ReportTable(
        slug="door",
        title="At the door",
        sentence="",
        columns=(
            Column(name="plant"),
            Column(name="does"),
            Column(name="door"),
            Column(name="violating, %", digits=2),
            Column(name="proof, kB", digits=0),
            Column(name="s", digits=1),
        ),
        rows=tuple(
            (
                plant.name,
                "lies" if plant.lies else "as agreed",
                "admitted" if plant.admitted else "refused",
                100 * plant.violating_share,
                None if plant.proof_bytes is None else plant.proof_bytes / 1000,
                plant.seconds,
            )
            for plant in story.plants
        ),
    )


def _refusals(story: StoryPage) -> str:
    """Say why, below the table: reasons are sentences, and a phone has no room for such a cell."""
    told = "".join(
        f"<li><b>{html.escape(plant.name)}</b>: {html.escape(plant.why)}</li>"
        for plant in story.plants
        if plant.why
    )
    return f"<p>Who was refused sees why, and nobody else does:</p><ul>{told}</ul>" if told else ""


def _ways(story: StoryPage) -> ReportTable:
    return ReportTable(
        slug="ways",
        title="Ways to train",
        sentence="",
        columns=(
            Column(name="trained"),
            Column(name="liars in", digits=0),
            Column(name="recall", digits=3),
            Column(name="average precision", digits=3),
            Column(name="recall on other attacks", digits=3),
            Column(name="that is"),
        ),
        rows=tuple(
            (
                way.name,
                way.liars_in,
                way.recall,
                way.precision,
                way.other_recall,
                MEANINGS[way.name],
            )
            for way in story.ways
        ),
    )
