"""The page of a verdict: its reasons, the whole batch over time, and the worst stretches drawn."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from sluice.admission import Finding, Reason, Verdict
from sluice.arrays import Bools, Floats, Run, Times
from sluice.files import atomically
from sluice.invariants import (
    Bound,
    Coupling,
    Invariant,
    Mean,
    RuleSet,
    Window,
    residuals,
    rule_in_words,
    unit_of,
)
from sluice.reports.drawings import Drawing, attack_times, stamps, time_axis
from sluice.reports.page import (
    Bullets,
    Cell,
    DataColumn,
    DataTable,
    Legend,
    LegendKey,
    PageSection,
    Part,
    Prose,
    ReportPage,
    Tile,
    Tone,
    write_page,
)
from sluice.telemetry import Channel, Record

if TYPE_CHECKING:  # matplotlib is slow to import, and few commands draw
    from matplotlib.axes import Axes

__all__ = ["write_verdict_figure", "write_verdict_page"]

MOST_PANELS = 4
MOST_CHANNELS = 4
MOST_STRIPS = 12
STRIP_BINS = 240
STRIP_PX = 22
LONGEST_LABEL = 24
SPACE_PX = 44  # between two rows of a drawing: tick labels and a title
TOP_REASONS = 3
STRETCH_ROWS = 200
USUAL = 0.9  # share of a stretch's violating rows that fit on the axis
STRETCH_WINDOWS = 8  # a window rule is judged only at its anchors; show several of them
ANY_RULE = "any rule"
RESIDUAL_COLOUR = "#066091"  # of the PNG
CHANNEL_COLOUR = "#1b9e77"
STATE_COLOUR = "#6b4fa0"
MARK_COLOUR = "#e8710a"
NOT_ABOUT_PEOPLE = (
    "This is evidence about telemetry, not about people: a failed sensor, a valve opened by hand "
    "and an edited record look the same."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictPanel:
    """One rule over the stretch in which it is broken most."""

    rule: Invariant
    unit: str
    sentence: str
    run: Run
    residual: Floats  # over the stretch; NaN where the rule is not judged
    violating: Bools  # over the stretch
    low: Floats  # the lowest reading of the first channel that the rule allows; NaN: not judged
    high: Floats
    channels: tuple[Channel, ...]


def write_verdict_page(verdict: Verdict, path: Path, *, self_contained: bool = False) -> None:
    """Write the page: verdict, ranked reasons, timeline of the batch, drawings, every rule."""
    batch, rules = verdict.measured.record, verdict.measured.rules
    panels = _panels(verdict, batch, rules)
    sections = [
        PageSection(title="Why", parts=_reasons(verdict)),
        PageSection(
            title="The whole batch over time", short="Timeline", parts=_timeline(verdict, batch)
        ),
        PageSection(
            title="The worst stretches", short="Worst stretches", parts=_drawn(panels, batch)
        ),
        PageSection(title="Every rule", short="Rules", parts=(_findings(verdict, rules),)),
    ]
    page = ReportPage(
        kind="Verdict",
        title=_title(verdict, batch),
        tiles=_tiles(verdict, batch),
        sections=tuple(section for section in sections if section.parts),
        search="tags and rules",
        end=NOT_ABOUT_PEOPLE,
        shaded=attack_times(batch),
    )
    write_page(page, path, self_contained=self_contained)


def write_verdict_figure(verdict: Verdict, path: Path) -> None:
    """Draw the worst stretches as a PNG."""
    batch, rules = verdict.measured.record, verdict.measured.rules
    panels = _panels(verdict, batch, rules)
    heights = [height for panel in panels for height in (2.0, *(1.0 for _ in panel.channels))]
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(10, 1 + 0.85 * sum(heights or [2.0])), layout="constrained")
    figure.suptitle(
        "\n".join([_title(verdict, batch), _facts(verdict, batch), *verdict.sentences[:3]]),
        fontsize=9,
        x=0.01,
        ha="left",
    )
    if panels:
        axes = list(np.ravel(figure.subplots(len(heights), 1, height_ratios=heights)))
        for panel in panels:
            own, axes = axes[: 1 + len(panel.channels)], axes[1 + len(panel.channels) :]
            _draw(own, panel, batch)
    with atomically(path) as draft:
        figure.savefig(draft, format="png", dpi=110)


def _title(verdict: Verdict, batch: Record) -> str:
    return f"{batch.name}: {'admitted' if verdict.admitted else 'not admitted'}"


def _facts(verdict: Verdict, batch: Record) -> str:
    start, end = _ends(batch)
    return (
        f"{verdict.violating_rows:,} of {verdict.rows:,} rows ({verdict.violating_share:.2%}) "
        f"count as violating, {int(verdict.suspect.sum()):,} are part of the evidence; {start} to "
        f"{end}"
    )


def _ends(batch: Record) -> tuple[str, str]:
    start, end = (
        str(time.astype("datetime64[s]")).replace("T", " ") for time in batch.times[[0, -1]]
    )
    return start, end


def _tiles(verdict: Verdict, batch: Record) -> tuple[Tile, ...]:
    broken = [finding for finding in verdict.findings if finding.violating_rows]
    reasons = len(verdict.reasons)
    start, end = _ends(batch)
    tiles = [
        Tile(
            label="verdict",
            value="admitted" if verdict.admitted else "not admitted",
            note=f"{reasons} reason{'' if reasons == 1 else 's'}"
            if reasons
            else "no budget is exceeded",
            tone=Tone.GOOD if verdict.admitted else Tone.BAD,
            key="verdict",
        ),
        Tile(
            label="violating rows",
            value=f"{verdict.violating_rows:,}",
            note=f"of {verdict.rows:,} ({verdict.violating_share:.2%})",
        ),
        Tile(
            label="rows in the evidence",
            value=f"{int(verdict.suspect.sum()):,}",
            note="violating rows, broken windows, still or repeated levels",
        ),
        Tile(
            label="rules broken",
            value=f"{len(broken)} of {len(verdict.findings)}",
            note=max(broken, key=lambda each: each.violating_rows).name if broken else "",
        ),
        Tile(label="batch", value=f"{verdict.rows:,} rows", note=f"{start} to {end}"),
    ]
    return tuple(tiles)


def _reasons(verdict: Verdict) -> tuple[Part, ...]:
    if verdict.admitted:
        return (Prose(text="Every budget of the policy is kept.", tone=Tone.GOOD),)
    said = Prose(text="The budget that is exceeded furthest comes first.", small=True)
    listed = Bullets(items=verdict.sentences, shown=TOP_REASONS, ordered=True, key="reasons")
    return said, listed


def _findings(verdict: Verdict, rules: RuleSet) -> DataTable:
    sentences = {rule.name: rule_in_words(rule, rules) for rule in rules.invariants}
    ordered = sorted(verdict.findings, key=lambda finding: -finding.violating_rows)
    columns = (
        DataColumn(name="rule"),
        DataColumn(name="kind"),
        DataColumn(name="violating rows", numeric=True),
        DataColumn(name="share", numeric=True),
        DataColumn(name="limit", numeric=True),
        DataColumn(name="in transition", numeric=True),
        DataColumn(name="the rule, and how it is broken"),
    )
    rows = tuple(
        (
            finding.name,
            finding.kind.value,
            f"{finding.violating_rows:,}",
            f"{finding.violating_share:.2%}",
            f"{finding.limit:.2%}",
            f"{finding.envelope_share:.1%}",
            Cell(text=finding.sentence, note=sentences[finding.name], tone=Tone.BAD)
            if finding.sentence
            else sentences[finding.name],
        )
        for finding in ordered
    )
    return DataTable(columns=columns, rows=rows, key="rules", searched=True)


# -- the whole batch over time ----------------------------------------------------------------


def _timeline(verdict: Verdict, batch: Record) -> tuple[Part, ...]:
    """Draw one strip per broken rule over the whole batch: where, and how densely, it is broken."""
    strips: dict[str, Bools] = {}
    for reason in verdict.reasons:
        if reason.kind.about_a_level:
            strips.setdefault(f"{reason.rule} ({reason.kind.value})", reason.rows)
    broken = sorted(
        (finding for finding in verdict.findings if finding.violating_rows),
        key=lambda finding: -finding.violating_rows,
    )
    for finding in broken:
        strips.setdefault(finding.name, finding.violating)
    if not strips and not batch.attack_segments:
        return (Prose(text="No row of the batch breaks a rule."),)
    shown = {ANY_RULE: verdict.suspect, **dict(list(strips.items())[:MOST_STRIPS])}
    keys = [
        LegendKey(
            colour="violating", label="rows that break the rule; the stronger, the more of them"
        )
    ]
    if batch.attack_segments:
        keys.append(LegendKey(colour="attack", label="labelled attack"))
    parts: list[Part] = [
        Legend(keys=tuple(keys)),
        Drawing(figure=_strips(shown, batch), tags=tuple(shown), shaded=True),
    ]
    if len(strips) > MOST_STRIPS:
        rest = len(strips) - MOST_STRIPS
        parts.append(
            Prose(text=f"{rest} more broken rules are in the table of every rule.", small=True)
        )
    return tuple(parts)


def _strips(strips: dict[str, Bools], batch: Record) -> go.Figure:
    at = stamps(batch.times).astype(np.int64)
    bins = min(STRIP_BINS, len(batch))
    edges = np.linspace(at[0], at[-1] + 1, bins + 1)
    which = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, bins - 1)
    rows = np.bincount(which, minlength=bins)
    counts = np.array([np.bincount(which[mask], minlength=bins) for mask in strips.values()])
    share = np.where(counts > 0, np.sqrt(counts / np.maximum(rows, 1)), np.nan)
    figure = go.Figure(
        go.Heatmap(
            x=edges[:-1].astype("datetime64[ms]"),
            y=list(strips),
            z=share,
            customdata=counts,
            zmin=0,
            zmax=1,
            colorscale=[[0, "var(--strip)"], [1, "var(--violating)"]],
            showscale=False,
            ygap=4,
            hoverongaps=False,
            hovertemplate="%{y}: %{customdata} rows from %{x}<extra></extra>",
        )
    )
    figure.update_layout(
        height=70 + STRIP_PX * max(len(strips), 2),
        margin={"l": 60, "r": 12, "t": 10, "b": 34},
        xaxis={**time_axis(batch.times), "nticks": 8},
        yaxis={
            "autorange": "reversed",
            "type": "category",
            "showgrid": False,
            "tickvals": list(strips),
            "ticktext": [_short(name) for name in strips],
        },
    )
    return figure


def _short(name: str) -> str:
    """Return a name that leaves room for its strip: paths of historians are long."""
    half = LONGEST_LABEL // 2
    return name if len(name) <= LONGEST_LABEL else f"{name[: half - 1]}\u2026{name[-half:]}"


# -- the worst stretches ----------------------------------------------------------------------


def _drawn(panels: tuple[VerdictPanel, ...], batch: Record) -> tuple[Part, ...]:
    if not panels:
        return (Prose(text="No rule is broken: there is nothing to draw."),)
    keys = [
        LegendKey(colour="limit", label="limits of the rule", shape="dash"),
        LegendKey(colour="band", label="what the rule allows"),
        LegendKey(colour="violating", label="violating row", shape="mark"),
        LegendKey(colour="score", label="residual: how far the rule is off", shape="line"),
        LegendKey(colour="flow", label="reading", shape="line"),
        LegendKey(colour="actuator", label="state of an actuator", shape="line"),
    ]
    if batch.attack_segments:
        keys.append(LegendKey(colour="attack", label="labelled attack"))
    drawings = (
        Drawing(
            figure=_panel_figure(panel, batch),
            title=panel.rule.name,
            note=panel.sentence,
            tags=(panel.rule.name, *(channel.name for channel in panel.channels)),
            shaded=True,
        )
        for panel in panels
    )
    return Legend(keys=tuple(keys)), *drawings


def _panel_figure(panel: VerdictPanel, batch: Record) -> go.Figure:
    """Draw the readings first, with the rule's limits on the first, then the residual."""
    times = stamps(batch.times[panel.run.slice])
    titles = [_named(channel) for channel in panel.channels]
    titles[0] += ", with the limits of the rule"
    rows = len(titles) + 1
    heights = [1.6, *(0.8 for _ in titles[1:]), 1.2]
    drawn_px = int(85 * sum(heights)) + SPACE_PX * rows
    figure = make_subplots(
        rows=rows,
        cols=1,
        subplot_titles=[*titles, _label(panel)],
        row_heights=heights,
        vertical_spacing=SPACE_PX / drawn_px,
        shared_xaxes=True,
    )
    _add_limits(figure, panel, batch)
    for row, channel in enumerate(panel.channels, start=1):
        line: dict[str, object] = {
            "color": "var(--actuator)" if channel.codes else "var(--flow)",
            "width": 1.4,
        }
        if channel.codes:
            line["shape"] = "hv"
        readings = batch.column(channel.name)[panel.run.slice]
        figure.add_trace(
            go.Scatter(x=times, y=readings, mode="lines", line=line, name=channel.name),
            row=row,
            col=1,
        )
    band = _add_residual(figure, panel, batch, rows)
    figure.update_annotations(font_size=11, xanchor="left", x=0)
    figure.update_xaxes(
        **time_axis(batch.times[panel.run.slice]), nticks=7, tickformat=_tick_format(times)
    )
    figure.update_xaxes(showticklabels=True, row=1, col=1)  # the axis where it is read
    figure.update_layout(
        height=drawn_px + 56,
        margin={"l": 55, "r": 12, "t": 26, "b": 30},
        shapes=[band],
        showlegend=False,
        hovermode="x",
    )
    return figure


def _tick_format(times: Times) -> str:
    """Return a format of one line: a second line would run into the title below."""
    short = times[-1] - times[0] < np.timedelta64(10, "m")
    return "%H:%M:%S" if short else "%d %b %H:%M"


def _add_limits(figure: go.Figure, panel: VerdictPanel, batch: Record) -> None:
    """Draw the readings that the rule allows for the first channel."""
    times = stamps(batch.times[panel.run.slice])
    known = ~np.isnan(panel.low)
    sparse = isinstance(panel.rule.relation, Window | Mean)  # judged at its anchors only
    at = times[known] if sparse else times
    for name, edge in (("lowest allowed", panel.low), ("highest allowed", panel.high)):
        figure.add_trace(
            go.Scatter(
                x=at,
                y=edge[known] if sparse else edge,
                mode="lines",
                line={"color": "var(--limit)", "width": 1, "dash": "dash"},
                fill="tonexty" if name == "highest allowed" and known.all() else "none",
                fillcolor="var(--band)",
                name=name,
            ),
            row=1,
            col=1,
        )


def _add_residual(
    figure: go.Figure, panel: VerdictPanel, batch: Record, row: int
) -> dict[str, object]:
    """Add the residual and its marks; return the tolerance band."""
    times = stamps(batch.times[panel.run.slice])
    low, high = _limits(panel)
    known = ~np.isnan(panel.residual)
    figure.add_trace(
        go.Scatter(
            x=times[known],
            y=panel.residual[known],
            mode="lines+markers",
            line={"color": "var(--score)", "width": 1},
            marker={"size": 3},
            name=panel.rule.name,
        ),
        row=row,
        col=1,
    )
    marked = times[panel.violating]
    figure.add_trace(
        go.Scatter(
            x=marked,
            y=np.full(len(marked), low + 0.05 * (high - low)),
            mode="markers",
            marker={
                "symbol": "line-ns",
                "size": 9,
                "line": {"width": 2, "color": "var(--violating)"},
            },
            name="violating row",
        ),
        row=row,
        col=1,
    )
    figure.update_yaxes(range=[low, high], row=row, col=1)
    return {
        "type": "rect",
        "xref": f"x{row} domain",
        "yref": f"y{row}",
        "x0": 0,
        "x1": 1,
        "y0": -panel.rule.tolerance,
        "y1": panel.rule.tolerance,
        "fillcolor": "var(--band)",
        "line": {"width": 0},
        "layer": "below",
    }


# -- the panels of page and PNG -----------------------------------------------------------------


def _panels(verdict: Verdict, batch: Record, rules: RuleSet) -> tuple[VerdictPanel, ...]:
    """Choose the rules with the most violating rows, first one per channel."""
    broken = sorted(
        (finding for finding in verdict.findings if finding.violating_rows),
        key=lambda finding: -finding.violating_rows,
    )
    by_name = {rule.name: rule for rule in rules.invariants}
    first: dict[str, Finding] = {}
    for finding in broken:
        first.setdefault(by_name[finding.name].relation.channels[0], finding)
    ranked = [*first.values(), *(f for f in broken if f not in first.values())]
    still: dict[str, Reason] = {}
    for reason in verdict.reasons:
        if reason.kind.about_a_level and f"{reason.rule} rate" in by_name:
            still.setdefault(f"{reason.rule} rate", reason)
    levels = [
        _panel(by_name[name], reason.sentence, reason.rows, batch, rules)
        for name, reason in still.items()
    ]
    drawn = [
        _panel(by_name[finding.name], finding.sentence, finding.violating, batch, rules)
        for finding in ranked
        if finding.name not in still
    ]
    half = MOST_PANELS // 2  # a still or repeated level breaks no rule, so it comes first
    return tuple((levels[:half] + drawn)[:MOST_PANELS])


def _panel(
    rule: Invariant, sentence: str, broken: Bools, batch: Record, rules: RuleSet
) -> VerdictPanel:
    relation = rule.relation
    rows = STRETCH_ROWS
    if isinstance(relation, Window | Mean):
        rows = max(rows, STRETCH_WINDOWS * relation.rows)
    run = _worst_stretch(broken, rows)
    evaluated = residuals(relation, batch)
    residual = np.where(evaluated.applies, evaluated.values, np.nan)
    low, high = _allowed(rule, batch, residual, evaluated.envelope)
    return VerdictPanel(
        rule=rule,
        unit=unit_of(relation, rules),
        sentence=sentence,
        run=run,
        residual=residual[run.slice],
        violating=broken[run.slice],
        low=low[run.slice],
        high=high[run.slice],
        channels=tuple(
            batch.channel(name) for name in dict.fromkeys(relation.channels[:MOST_CHANNELS])
        ),
    )


def _allowed(
    rule: Invariant, batch: Record, residual: Floats, transition: Bools
) -> tuple[Floats, Floats]:
    """Return the lowest and the highest reading of the rule's first channel that it allows.

    A residual is the reading minus what the rule expects, so the reading minus the residual is
    what it expects. A range has its own limits, and so has a coupling in transition.
    """
    relation, tolerance = rule.relation, rule.tolerance
    if isinstance(relation, Bound):
        return np.full(len(batch), relation.low), np.full(len(batch), relation.high)
    expected = batch.column(relation.channels[0]) - residual
    low, high = expected - tolerance, expected + tolerance
    if isinstance(relation, Coupling):
        low[transition] = -tolerance
        high[transition] = relation.nominal + tolerance
    return low, high


def _worst_stretch(broken: Bools, rows: int) -> Run:
    """Return the stretch with the most violating rows, and rows before it where there is room."""
    if len(broken) <= rows:
        return Run(0, len(broken))
    total = np.concatenate(([0], np.cumsum(broken)))
    start = int((total[rows:] - total[:-rows]).argmax())
    marked = np.flatnonzero(broken[start : start + rows]) + start
    middle = int(marked[0] + marked[-1]) // 2 if marked.size else start + rows // 2
    begin = min(middle - rows // 2, int(marked[0]) - rows // 4) if marked.size else start
    begin = min(max(0, begin), len(broken) - rows)
    return Run(begin, begin + rows)


def _limits(panel: VerdictPanel) -> tuple[float, float]:
    """Return the limits of the residual axis; a single spike does not set them."""
    beyond = np.abs(panel.residual[panel.violating & ~np.isnan(panel.residual)])
    usual = float(np.quantile(beyond, USUAL)) if beyond.size else 0.0
    reach = max(1.3 * usual, 2 * panel.rule.tolerance)
    return -1.2 * reach, 1.05 * reach


def _label(panel: VerdictPanel) -> str:
    return f"Residual of {panel.rule.name}{f' ({panel.unit})' if panel.unit else ''}"


def _draw(axes: "list[Axes]", panel: VerdictPanel, batch: Record) -> None:
    times = batch.times[panel.run.slice]
    top = axes[0]
    low, high = _limits(panel)
    known = ~np.isnan(panel.residual)
    top.axhspan(
        -panel.rule.tolerance, panel.rule.tolerance, color=RESIDUAL_COLOUR, alpha=0.14, lw=0
    )
    top.plot(times[known], panel.residual[known], ".-", color=RESIDUAL_COLOUR, lw=0.8, ms=2.5)
    marked = times[panel.violating]
    at = np.full(len(marked), low + 0.06 * (high - low))
    top.plot(marked, at, "|", color=MARK_COLOUR, ms=8, mew=1.4)
    top.set_ylim(low, high)
    top.set_title(f"{_label(panel)}: {panel.sentence}", fontsize=8.5, loc="left")
    for axis, channel in zip(axes[1:], panel.channels, strict=True):
        readings = batch.column(channel.name)[panel.run.slice]
        if channel.codes:
            axis.step(times, readings, where="post", color=STATE_COLOUR, lw=0.9)
        else:
            axis.plot(times, readings, color=CHANNEL_COLOUR, lw=0.9)
        axis.set_ylabel(_named(channel), fontsize=7, rotation=0, ha="right", va="center")
    for axis in axes:
        axis.set_xlim(times[0], times[-1])
        axis.tick_params(labelsize=7)
        axis.grid(alpha=0.25)
        if axis is not axes[-1]:
            axis.tick_params(labelbottom=False)


def _named(channel: Channel) -> str:
    return f"{channel.name} ({channel.unit})" if channel.unit else channel.name
