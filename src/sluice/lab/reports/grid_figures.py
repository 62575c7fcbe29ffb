"""The figures of a grid: removal bars with a dash per seed, the heat map, the coverage dial."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import plotly.graph_objects as go

from sluice.lab.reports.grid_measures import Group, groups, removal_of, seeds_of
from sluice.lab.reports.tables import ReportTable
from sluice.lab.results import StoredCell

__all__ = ["Drawn", "dial_figures", "removal_figures", "sweep_figures"]

BARS = (
    ("naive", "var(--actuator)"),
    ("physics-aware", "var(--second)"),
    ("gated", "var(--flow)"),
)
DIAL = {"paper-narrow": "var(--pale)", "paper-wide": "var(--level)", "hardened": "var(--flow)"}
SEED = "var(--seed)"
HEIGHT = 380


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A figure with its title and a sentence that explains it."""

    topic: str  # slug of the table with its figures and the paper's, shown below it
    title: str
    sentence: str
    figure: go.Figure


def removal_figures(cells: Sequence[StoredCell]) -> list[Drawn]:
    """Draw targeted recall lost against the reference, per record, rule set and attack."""
    panels: dict[tuple[str, str, str], list[Group]] = {}
    for group in groups(cells):
        if "naive" in group.cells and _reference(group):
            key = (group.line.plant, group.line.invariants, group.line.attack)
            panels.setdefault(key, []).append(group)
    return [_removal(key, panel) for key, panel in panels.items()]


def sweep_figures(sweep: ReportTable) -> list[Drawn]:
    """Draw points lost by rule and attack as a heat map, one per record."""
    drawn = []
    for plant in dict.fromkeys(str(row[0]) for row in sweep.rows):
        rows = [row for row in sweep.rows if row[0] == plant]
        attacks = list(dict.fromkeys(str(row[1]) for row in rows))
        rules = list(dict.fromkeys(str(row[2]) for row in rows))
        lost = {(row[2], row[1]): row[4] for row in rows}
        accepted = {(row[2], row[1]): row[7] for row in rows}
        figure = go.Figure(
            go.Heatmap(
                x=attacks,
                y=rules,
                z=[[lost.get((rule, attack)) for attack in attacks] for rule in rules],
                text=[
                    [_label(lost.get((r, a)), accepted.get((r, a))) for a in attacks] for r in rules
                ],
                texttemplate="%{text}",
                colorscale=[[0, "var(--heat-low)"], [1, "var(--heat-high)"]],
                colorbar={"title": "points"},
                hovertemplate="%{y} under %{x}: %{z:.1f} points<extra></extra>",
            )
        )
        _shaped(figure, yaxis={"autorange": "reversed"})
        drawn.append(
            Drawn(
                topic="sweep",
                title=f"Recall lost to each attack under each aggregation rule: {plant}",
                sentence="Points of targeted recall lost against the clean federation; below, the "
                "share of rounds in which the rule accepted the updates of malicious clients. "
                "There is no gate.",
                figure=figure,
            )
        )
    return drawn


def dial_figures(cells: Sequence[StoredCell]) -> list[Drawn]:
    """Draw the damage that the gate removes under each rule set, if there are several."""
    panels: dict[tuple[str, str], dict[str, list[Group]]] = {}
    for group in groups(cells):
        if "gated" in group.cells:
            panel = panels.setdefault((group.line.plant, group.line.attack), {})
            panel.setdefault(group.line.invariants, []).append(group)
    drawn = []
    for (plant, attack), sets in panels.items():
        if len(sets) < 2:
            continue
        figure = go.Figure()
        for name, panel_groups in sets.items():
            removed = [removal_of(group, "gated") for group in panel_groups]
            figure.add_trace(
                go.Bar(
                    name=name,
                    x=[group.line.rule for group in panel_groups],
                    y=[_percent(one.share if one else None) for one in removed],
                    marker_color=DIAL.get(name),
                )
            )
        _shaped(figure, yaxis={"title": "damage removed, %"}, barmode="group")
        drawn.append(
            Drawn(
                topic="dial",
                title=f"The coverage dial: {plant}, {attack}",
                sentence="Share of the naive attack's damage that the gate removes under each "
                "rule set. No bar: no seed showed a point of damage.",
                figure=figure,
            )
        )
    return drawn


def _removal(key: tuple[str, str, str], panel: list[Group]) -> Drawn:
    plant, invariants, attack = key
    reference = _reference(panel[0])
    figure = go.Figure()
    for mode, colour in BARS:
        lost = [list(_lost(group, mode).values()) for group in panel]
        figure.add_trace(
            go.Bar(
                name=mode,
                x=[group.line.rule for group in panel],
                y=[fmean(points) if points else None for points in lost],
                marker_color=colour,
                offsetgroup=mode,
            )
        )
        figure.add_trace(
            go.Scatter(
                name=f"{mode}, by seed",
                x=[
                    group.line.rule
                    for group, points in zip(panel, lost, strict=True)
                    for _ in points
                ],
                y=[point for points in lost for point in points],
                mode="markers",
                marker={"color": SEED, "symbol": "line-ew-open", "size": 14, "line": {"width": 2}},
                showlegend=False,
                offsetgroup=mode,
            )
        )
    _shaped(
        figure,
        yaxis={"title": f"points of targeted recall lost against {reference}"},
        barmode="group",
        scattermode="group",
    )
    seeds = max(len(seeds_of(group, "naive")) for group in panel)
    by = f", rules: {invariants}" if invariants else ""
    return Drawn(
        topic="removal",
        title=f"Damage, and damage left with the gate: {plant}, {attack}{by}",
        sentence=f"Bars are means over {_counted(seeds)}, each dash is one seed; zero is the "
        f"{reference} federation. Below zero, the attacked federation has the higher recall.",
        figure=figure,
    )


def _counted(seeds: int) -> str:
    return "1 seed" if seeds == 1 else f"{seeds} seeds"


def _reference(group: Group) -> str | None:
    return next((mode for mode in ("honest-only", "clean") if mode in group.cells), None)


def _lost(group: Group, mode: str) -> dict[int, float]:
    reference = _reference(group)
    assert reference is not None
    before, after = seeds_of(group, reference), seeds_of(group, mode)
    return {seed: 100 * (before[seed] - after[seed]) for seed in after if seed in before}


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _label(lost: object, accepted: object) -> str:
    if not isinstance(lost, float):
        return ""
    return f"{lost:.1f}" + (f"<br>{accepted:.0%}" if isinstance(accepted, float) else "")


def _shaped(figure: go.Figure, **layout: object) -> None:
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 60, "r": 10, "t": 40, "b": 40},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        **layout,
    )
