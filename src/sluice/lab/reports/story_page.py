"""The page of the demo: one picture of the result, then its details."""

from dataclasses import dataclass
from pathlib import Path

import plotly.graph_objects as go

from sluice.evaluation import VoteCertificate
from sluice.lab.reports.tables import Column, ReportTable, as_part, without_empty_columns
from sluice.reports import (
    Bullets,
    Columns,
    Drawing,
    Legend,
    LegendKey,
    PageSection,
    Part,
    Prose,
    ReportPage,
    Tile,
    Tone,
    certificate_figures,
    write_page,
)

__all__ = ["StoryPage", "StoryPlant", "Way", "write_story_page"]

ADMITTED, REFUSED, UNDETECTED = "var(--good)", "var(--bad)", "var(--second)"
WAYS = {
    "clean": "var(--neutral)",
    "honest-only": "var(--neutral)",
    "naive": "var(--actuator)",
    "physics-aware": "var(--second)",
    "gated": "var(--flow)",
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
RULES_SHOWN = 8
_KEYS = (
    LegendKey(colour="good", label="admitted, honest"),
    LegendKey(colour="bad", label="refused"),
    LegendKey(colour="second", label="malicious and not refused, or physics-aware"),
    LegendKey(colour="actuator", label="naive attack, no gate"),
    LegendKey(colour="flow", label="gated"),
)
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
    certificate: VoteCertificate  # of a vote of all plants


def write_story_page(story: StoryPage, path: Path, *, self_contained: bool = False) -> None:
    """Write the page."""
    malicious = sum(plant.lies for plant in story.plants)
    refused = sum(plant.lies and not plant.admitted for plant in story.plants)
    page = ReportPage(
        kind="Demonstration",
        title=f"{len(story.plants)} plants, {malicious} of them malicious; the gate refuses "
        f"{refused} of these",
        lead=_sentence(story),
        tiles=_tiles(story, malicious=malicious, refused=refused),
        sections=_sections(story),
        end=f"Seed {story.seed}, {story.rounds} rounds, one simulated plant: {CAVEAT}",
    )
    write_page(page, path, self_contained=self_contained)


def _tiles(story: StoryPage, *, malicious: int, refused: int) -> tuple[Tile, ...]:
    honest = [plant for plant in story.plants if not plant.lies]
    admitted = sum(plant.admitted for plant in honest)
    ways = {way.name: way for way in story.ways}
    proofs = [plant.proof_bytes for plant in story.plants if plant.proof_bytes is not None]
    return (
        Tile(
            label="malicious plants refused",
            value=f"{refused} of {malicious}",
            tone=Tone.GOOD if refused == malicious else Tone.BAD,
        ),
        Tile(
            label="honest plants admitted",
            value=f"{admitted} of {len(honest)}",
            tone=Tone.GOOD if admitted == len(honest) else Tone.BAD,
        ),
        Tile(
            label="hidden attacks found without a gate",
            value=f"{ways['naive'].recall:.0%}",
            note=f"{ways['clean'].recall:.0%} if no plant lies",
            tone=Tone.WARN,
        ),
        Tile(
            label="with the gate",
            value=f"{ways['gated'].recall:.0%}" if "gated" in ways else "not run",
        ),
        Tile(
            label="proofs",
            value=str(len(proofs)),
            note=f"{sum(proofs) / len(proofs) / 1000:.0f} kB each" if proofs else "",
        ),
    )


def _sections(story: StoryPage) -> tuple[PageSection, ...]:
    pictures = Columns(
        drawings=(
            Drawing(
                figure=_violations(story),
                title="Rows that break a rule",
                note="Plants with a star lie.",
                tools=False,
            ),
            Drawing(
                figure=_recalls(story),
                title="Hidden attacks that the detector finds",
                note="By mode of training.",
                tools=False,
            ),
        )
    )
    return (
        PageSection(title="The result", short="Result", parts=(Legend(keys=_KEYS), pictures)),
        PageSection(
            title="Decisions of the gate",
            short="Decisions",
            parts=(as_part(_decisions(story)), *_refusals(story)),
        ),
        PageSection(
            title="Hidden attacks that each mode of training finds",
            short="Modes",
            parts=(as_part(without_empty_columns(_ways(story))),),
        ),
        PageSection(
            title=f"{len(story.rules)} rules of physics, mined from clean rows",
            short="Rules",
            parts=(Bullets(items=story.rules, shown=RULES_SHOWN),),
        ),
        _vote(story.certificate),
    )


def _vote(certificate: VoteCertificate) -> PageSection:
    """Return what a vote of all plants promises."""
    first, *others = certificate.sentences
    return PageSection(
        title="If the plants vote: what malicious ones can do at worst",
        short="Certificate",
        parts=(
            Prose(text=first, tone=Tone.BAD if certificate.vacuous else Tone.GOOD),
            certificate_figures(certificate),
            Bullets(items=tuple(others)),
        ),
    )


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


def _refusals(story: StoryPage) -> tuple[Part, ...]:
    """List the reasons below the table: they are sentences, too long for a table on a phone."""
    items = tuple(f"{plant.name}: {plant.why}" for plant in story.plants if plant.why)
    if not items:
        return ()
    return Prose(text="Only the refused plant sees its reasons:"), Bullets(items=items)


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
