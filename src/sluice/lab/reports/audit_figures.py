"""The paper's two audit figures, as a PNG or as a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from sluice.errors import SettingError
from sluice.files import atomically
from sluice.reports import (
    DataColumn,
    DataTable,
    Drawing,
    Legend,
    LegendKey,
    PageSection,
    Prose,
    ReportPage,
    Tile,
    Tone,
    write_page,
)

if TYPE_CHECKING:  # matplotlib is slow to import, and most commands draw no figure
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "AuditPanel",
    "Bar",
    "Stem",
    "coverage_figure",
    "demand_figure_suffix",
    "separation_figure",
    "write_coverage_figure",
    "write_separation_figure",
]

FLOOR = 1e-4  # where a share of zero is drawn
TOP = 1.6  # room for a label beyond a share of one
THRESHOLD = 0.01
SUFFIXES = (".png", ".html")
HONEST, FABRICATED, LINE = "#1b9e77", "#d95f02", "#444444"
SETS = ("#066091", "#d95f02")
SET_COLOURS = ("var(--level)", "var(--actuator)")
COVERED = 0.01
CAUTION = (
    "A rule set is measured on this record only; another record of the same plant gives other "
    "figures."
)
PANEL_IN = 2.1
PANEL_PX = 260
DPI = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One kind of telemetry: its mean share of violating rows and share of admitted batches."""

    kind: str
    share: float
    admitted_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPanel:
    """One rule set's bars."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stem:
    """One labelled attack: its number, its length, and its share of suspect rows per rule set."""

    index: int
    rows: int
    shares: tuple[float, ...]


def demand_figure_suffix(path: Path) -> None:
    """Refuse a figure file that is neither PNG nor HTML, before any work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise SettingError(
            f"a figure is written as .png or .html, got {path.name!r}; change the suffix"
        )


def write_separation_figure(
    panels: Sequence[AuditPanel], path: Path, *, self_contained: bool = False
) -> None:
    """Draw the mean violating share of each kind, one panel per rule set, on a log scale."""
    demand_figure_suffix(path)
    if path.suffix.lower() == ".png":
        _save(_drawn_bars(panels), path)
        return
    write_page(_separation_page(panels), path, self_contained=self_contained)


def write_coverage_figure(
    stems: Sequence[Stem], rule_sets: Sequence[str], path: Path, *, self_contained: bool = False
) -> None:
    """Draw the share of suspect rows of each attack under one or two rule sets, sorted."""
    demand_figure_suffix(path)
    if not stems or not 1 <= len(rule_sets) <= len(SETS):
        raise SettingError(
            f"a coverage figure shows attacks under one or two rule sets, got {len(stems)} attacks "
            f"and {len(rule_sets)} sets"
        )
    ordered = sorted(stems, key=lambda stem: (stem.shares[-1], stem.shares[0]), reverse=True)
    if path.suffix.lower() == ".png":
        _save(_drawn_stems(ordered, rule_sets), path)
        return
    write_page(_coverage_page(ordered, rule_sets), path, self_contained=self_contained)


# -- PNG ------------------------------------------------------------------------------------------


def _drawn_bars(panels: Sequence[AuditPanel]) -> "Figure":
    figure = _empty(7.2, 0.5 + PANEL_IN * len(panels))
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axis, panel in zip(axes, panels, strict=True):
        places = np.arange(len(panel.bars))
        widths = [_drawn(bar.share) - FLOOR / 2 for bar in panel.bars]
        colours = [_colour(bar.kind) for bar in panel.bars]
        axis.barh(places, widths, left=FLOOR / 2, color=colours, height=0.66)
        for place, bar in zip(places, panel.bars, strict=True):
            label = f" {bar.share:.2%}, {bar.admitted_share:.0%} admitted"
            inside = bar.share > 0.05
            axis.text(
                _drawn(bar.share),
                place,
                f"{label.strip()} " if inside else label,
                va="center",
                ha="right" if inside else "left",
                fontsize=8,
                color="white" if inside else "black",
                # The threshold's line must not run through a number.
                bbox=None if inside else {"facecolor": "white", "edgecolor": "none", "pad": 0},
            )
        axis.set_yticks(places, [bar.kind for bar in panel.bars])
        axis.invert_yaxis()
        axis.set_xscale("log")
        axis.set_xlim(FLOOR / 2, TOP)
        axis.axvline(THRESHOLD, color=LINE, linestyle="--", linewidth=1)
        axis.xaxis.set_major_formatter(_percent)
        axis.set_title(panel.title, fontsize=10, loc="left")
        _quiet_frame(axis)
    axes[-1].set_xlabel("mean share of violating rows (zero drawn at 0.01 %)")
    return figure


def _drawn_stems(stems: Sequence[Stem], rule_sets: Sequence[str]) -> "Figure":
    figure = _empty(max(5.0, 1.5 + 0.24 * len(stems)), 3.8)
    axis = figure.subplots()
    places = np.arange(len(stems))
    areas = _areas(stems)
    lowest = [FLOOR if len(rule_sets) == 1 else _drawn(min(stem.shares)) for stem in stems]
    highest = [_drawn(max(stem.shares)) for stem in stems]
    axis.vlines(places, lowest, highest, color="#9aa5b1", linewidth=1.2, zorder=1)
    for nth, name in enumerate(rule_sets):
        shares = [_drawn(stem.shares[nth]) for stem in stems]
        ring = (
            nth < len(rule_sets) - 1
        )  # stays visible around the last set's disc if both are equal
        axis.scatter(
            places,
            shares,
            s=[2.2 * area for area in areas] if ring else areas,
            facecolors="white" if ring else SETS[nth],
            edgecolors=SETS[nth],
            linewidths=1.3 if ring else 0,
            label=name,
            zorder=2,
        )
    axis.axhline(THRESHOLD, color=LINE, linestyle="--", linewidth=1)
    axis.set_yscale("log")
    axis.set_ylim(FLOOR / 2, 2.5)
    axis.yaxis.set_major_formatter(_percent)
    axis.set_xticks(places, [str(stem.index) for stem in stems], fontsize=8)
    axis.set_xlim(-0.8, len(stems) - 0.2)
    axis.set_xlabel("attack (index in the record), marker area by duration")
    axis.set_ylabel("share of suspect rows (zero drawn at 0.01 %)", fontsize=9)
    legend = axis.legend(
        frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(rule_sets)
    )
    for handle in legend.legend_handles:
        if handle is not None:
            handle.set(sizes=[36])  # else its size follows the first attack's duration
    _quiet_frame(axis)
    return figure


def _areas(stems: Sequence[Stem]) -> list[float]:
    """Return marker areas in square points: proportional to duration, but always visible."""
    longest = max(stem.rows for stem in stems)
    return [max(12.0, 320.0 * stem.rows / longest) for stem in stems]


def _empty(width_in: float, height_in: float) -> "Figure":
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _quiet_frame(axis: "Axes") -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)


def _save(figure: "Figure", path: Path) -> None:
    with atomically(path) as draft:
        figure.savefig(draft, format="png", dpi=DPI)


# -- page -----------------------------------------------------------------------------------------


def separation_figure(panels: Sequence[AuditPanel]) -> go.Figure:
    """Return the bars as a figure for a page."""
    figure = make_subplots(
        rows=len(panels),
        cols=1,
        shared_xaxes=True,
        subplot_titles=[panel.title for panel in panels],
        vertical_spacing=0.3 / max(len(panels), 2),
    )
    for row, panel in enumerate(panels, start=1):
        figure.add_trace(
            go.Bar(
                y=[bar.kind for bar in panel.bars],
                x=[_drawn(bar.share) for bar in panel.bars],
                orientation="h",
                marker_color=[
                    "var(--good)" if bar.kind == "honest" else "var(--alarm)" for bar in panel.bars
                ],
                text=[f"{bar.share:.2%}, {bar.admitted_share:.0%} admitted" for bar in panel.bars],
                hovertemplate="%{y}: %{text}<extra></extra>",
                showlegend=False,
            ),
            row=row,
            col=1,
        )
    figure.update_annotations(font_size=12, xanchor="left", x=0)
    figure.update_xaxes(
        type="log", range=[np.log10(FLOOR / 2), np.log10(TOP)], tickformat="~%", dtick=1
    )
    figure.update_yaxes(autorange="reversed")
    figure.add_vline(x=THRESHOLD, line_dash="dash", line_color="var(--limit)")
    figure.update_layout(
        height=PANEL_PX * len(panels) + 80,
        margin={"l": 100, "r": 10, "t": 40, "b": 40},
    )
    return figure


def coverage_figure(stems: Sequence[Stem], rule_sets: Sequence[str]) -> go.Figure:
    """Return the stems as a figure for a page."""
    figure = go.Figure()
    names = [str(stem.index) for stem in stems]
    areas = _areas(stems)
    for place, stem in enumerate(stems):
        ends = (FLOOR, *stem.shares) if len(rule_sets) == 1 else stem.shares
        for low, high in pairwise(sorted(_drawn(share) for share in ends)):
            figure.add_shape(
                type="line",
                x0=place,
                x1=place,
                y0=low,
                y1=high,
                line_color="var(--neutral)",
                layer="below",
            )
    for nth, name in enumerate(rule_sets):
        ring = nth < len(rule_sets) - 1
        figure.add_trace(
            go.Scatter(
                x=names,
                y=[_drawn(stem.shares[nth]) for stem in stems],
                mode="markers",
                name=name,
                marker={
                    "size": [(2.2 if ring else 1.5) * float(np.sqrt(area)) for area in areas],
                    "color": SET_COLOURS[nth],
                    "symbol": "circle-open" if ring else "circle",
                    "opacity": 1,
                    "line": {"width": 2 if ring else 0},
                },
                text=[f"{stem.rows:,} rows, {stem.shares[nth]:.2%} suspect" for stem in stems],
                hovertemplate="attack %{x}: %{text}<extra></extra>",
            )
        )
    figure.add_hline(y=THRESHOLD, line_dash="dash", line_color="var(--limit)")
    figure.update_xaxes(type="category", title="attack (index in the record)")
    figure.update_yaxes(
        type="log",
        range=[np.log10(FLOOR / 2), np.log10(2.5)],
        tickformat="~%",
        dtick=1,
        title="share of suspect rows",
    )
    figure.update_layout(
        height=480,
        showlegend=True,
        margin={"l": 70, "r": 10, "t": 40, "b": 50},
        legend={"itemsizing": "constant", "orientation": "h", "y": 1.02, "yanchor": "bottom"},
    )
    return figure


def _separation_page(panels: Sequence[AuditPanel]) -> ReportPage:
    bars = [bar for panel in panels for bar in panel.bars]
    honest = [bar.admitted_share for bar in bars if bar.kind == "honest"]
    passing = sorted({bar.kind for bar in bars if bar.kind != "honest" and bar.admitted_share > 0})
    columns = (
        DataColumn(name="rules"),
        DataColumn(name="telemetry"),
        DataColumn(name="rows violating", numeric=True),
        DataColumn(name="batches admitted", numeric=True),
    )
    rows = tuple(
        (panel.title, bar.kind, f"{bar.share:.3%}", f"{bar.admitted_share:.1%}")
        for panel in panels
        for bar in panel.bars
    )
    keys = (
        LegendKey(colour="good", label="honest telemetry"),
        LegendKey(colour="alarm", label="fabricated telemetry"),
        LegendKey(colour="limit", label="1 % of the rows", shape="dash"),
    )
    return ReportPage(
        kind="Audit: separation",
        title="Honest and fabricated telemetry",
        tiles=(
            Tile(
                label="honest batches admitted",
                value=f"{min(honest, default=0.0):.1%}" if honest else "none judged",
                note="the lowest of all rule sets" if len(panels) > 1 else "",
                tone=Tone.GOOD if honest and min(honest) == 1 else Tone.WARN,
            ),
            Tile(
                label="fabrications that pass",
                value=str(len(passing)),
                note=", ".join(passing) or "none of the kinds that were judged",
                tone=Tone.WARN if passing else Tone.GOOD,
            ),
            Tile(label="rule sets", value=str(len(panels)), note=panels[0].title),
        ),
        sections=(
            PageSection(
                title="Rows that break a rule",
                short="Figure",
                parts=(
                    Legend(keys=keys),
                    Drawing(
                        figure=separation_figure(panels),
                        note="Mean share of rows that violate at least one rule (log scale; zero "
                        "drawn at 0.01 %). The dashed line marks 1 % of the rows.",
                    ),
                ),
            ),
            PageSection(title="Table", parts=(DataTable(columns=columns, rows=rows),)),
        ),
        end=CAUTION,
    )


def _coverage_page(stems: Sequence[Stem], rule_sets: Sequence[str]) -> ReportPage:
    tiles = []
    for nth, name in enumerate(rule_sets):
        covered = sum(stem.shares[nth] > COVERED for stem in stems)
        rows = sum(stem.rows for stem in stems)
        tiles.append(
            Tile(
                label=f"attacks covered by {name}",
                value=f"{covered} of {len(stems)}",
                note=f"{rows:,} attack rows in total",
                tone=Tone.GOOD if covered == len(stems) else Tone.WARN,
            )
        )
    last = len(rule_sets) - 1
    missed = sorted(stem.index for stem in stems if stem.shares[last] <= COVERED)
    tiles.append(
        Tile(
            label=f"not covered by {rule_sets[last]}",
            value=str(len(missed)),
            note=", ".join(str(index) for index in missed) or "every attack is covered",
            tone=Tone.WARN if missed else Tone.GOOD,
        )
    )
    columns = (
        DataColumn(name="attack"),
        DataColumn(name="rows", numeric=True),
        *(DataColumn(name=f"suspect, {name}", numeric=True) for name in rule_sets),
    )
    by_index = sorted(stems, key=lambda stem: stem.index)
    table = tuple(
        (str(stem.index), f"{stem.rows:,}", *(f"{share:.2%}" for share in stem.shares))
        for stem in by_index
    )
    return ReportPage(
        kind="Audit: coverage",
        title="Attacks that the rules detect",
        tiles=tuple(tiles),
        sections=(
            PageSection(
                title="Suspect rows of each attack",
                short="Figure",
                parts=(
                    Drawing(
                        figure=coverage_figure(stems, rule_sets),
                        note="Share of each attack's rows that are suspect (log scale; zero drawn "
                        "at 0.01 %), marker area by the attack's duration.",
                    ),
                    Prose(
                        text="The dashed line marks 1 %: an attack above it is covered. For a "
                        "short attack, one or two suspect rows can be enough.",
                        small=True,
                    ),
                ),
            ),
            PageSection(
                title="Every attack",
                short="Table",
                parts=(DataTable(columns=columns, rows=table, searched=True),),
            ),
        ),
        end=CAUTION,
    )


# -- shared ---------------------------------------------------------------------------------------


def _drawn(share: float) -> float:
    return max(share, FLOOR)


def _colour(kind: str) -> str:
    return HONEST if kind == "honest" else FABRICATED


def _percent(share: float, _: float | None = None) -> str:
    return f"{share * 100:g} %"
