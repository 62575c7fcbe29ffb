"""The evidence of a verdict, drawn: residuals and tolerances where a rule is broken most."""

import html
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from sluice.admission import Finding, Verdict
from sluice.arrays import Bools, Floats, Run
from sluice.files import atomically
from sluice.invariants import (
    Invariant,
    RuleSet,
    Window,
    residuals,
    rule_in_words,
    unit_of,
)
from sluice.reports.page import drawing, page
from sluice.telemetry import Channel, Record

if TYPE_CHECKING:  # matplotlib is slow to import, and few commands draw
    from matplotlib.axes import Axes

__all__ = ["write_verdict_figure", "write_verdict_page"]

MOST_PANELS = 4
MOST_CHANNELS = 4
STRETCH_ROWS = 200
USUAL = 0.9  # share of a stretch's violating rows that fit on the axis
STRETCH_WINDOWS = 8  # a window rule is judged only at its anchors; show several of them
RESIDUAL_COLOUR = "#066091"
CHANNEL_COLOUR = "#1b9e77"
STATE_COLOUR = "#6b4fa0"
BAND_COLOUR = "rgba(6, 96, 145, 0.14)"
MARK_COLOUR = "#e8710a"

BODY = """<p>{facts}</p>
{reasons}
{figure}
<h2>Every rule</h2>
<div class="scroll"><table>
<tr><th>rule</th><th>kind</th><th>violating rows</th><th>share</th><th>limit</th>
<th>in transition</th><th>the rule, and how it is broken</th></tr>
{findings}</table></div>
<p>This is evidence about telemetry, not about people: a failed sensor, a valve opened by hand and
an edited record look the same.</p>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictPanel:
    """One rule over the stretch in which it is broken most."""

    rule: Invariant
    unit: str
    sentence: str
    run: Run
    residual: Floats  # over the stretch; NaN where the rule is not judged
    violating: Bools  # over the stretch
    channels: tuple[Channel, ...]


def write_verdict_page(verdict: Verdict, path: Path) -> None:
    """Write one self-contained page: verdict, reasons, drawings, every rule."""
    batch, rules = verdict.measured.record, verdict.measured.rules
    panels = _panels(verdict, batch, rules)
    nothing = "<p>No rule is broken: there is nothing to draw.</p>"
    reasons = "".join(f"<li>{html.escape(reason)}</li>" for reason in verdict.sentences)
    body = BODY.format(
        facts=html.escape(_facts(verdict, batch)),
        reasons=f"<ul>{reasons}</ul>" if reasons else "",
        figure=drawing(_figure(panels, batch)) if panels else nothing,
        findings="\n".join(_finding_rows(verdict, rules)),
    )
    with atomically(path) as draft:
        draft.write_text(page(_title(verdict, batch), body), encoding="utf-8")


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
    start, end = (
        str(time.astype("datetime64[s]")).replace("T", " ") for time in batch.times[[0, -1]]
    )
    return (
        f"{verdict.violating_rows:,} of {verdict.rows:,} rows ({verdict.violating_share:.2%}) "
        f"count as violating, {int(verdict.suspect.sum()):,} are part of the evidence; {start} to "
        f"{end}"
    )


def _finding_rows(verdict: Verdict, rules: RuleSet) -> list[str]:
    sentences = {rule.name: rule_in_words(rule, rules) for rule in rules.invariants}
    ordered = sorted(verdict.findings, key=lambda finding: -finding.violating_rows)
    return [
        f"<tr><td>{html.escape(finding.name)}</td><td>{finding.kind.value}</td>"
        f"<td class=n>{finding.violating_rows:,}</td><td class=n>{finding.violating_share:.2%}</td>"
        f"<td class=n>{finding.limit:.2%}</td><td class=n>{finding.envelope_share:.1%}</td>"
        f"<td>{html.escape(sentences[finding.name])}"
        f"{f'<br><b>{html.escape(finding.sentence)}</b>' if finding.sentence else ''}</td></tr>"
        for finding in ordered
    ]


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
    levels = [
        _panel(by_name[f"{reason.rule} rate"], reason.sentence, reason.rows, batch, rules)
        for reason in verdict.reasons
        if reason.kind.about_a_level and f"{reason.rule} rate" in by_name
    ]
    drawn = [
        _panel(by_name[finding.name], finding.sentence, finding.violating, batch, rules)
        for finding in ranked
    ]
    half = MOST_PANELS // 2  # a still or repeated level breaks no rule, so it comes first
    return tuple((levels[:half] + drawn)[:MOST_PANELS])


def _panel(
    rule: Invariant, sentence: str, broken: Bools, batch: Record, rules: RuleSet
) -> VerdictPanel:
    relation = rule.relation
    rows = STRETCH_ROWS
    if isinstance(relation, Window):
        rows = max(rows, STRETCH_WINDOWS * relation.rows)
    run = _worst_stretch(broken, rows)
    evaluated = residuals(relation, batch)
    residual = np.where(evaluated.applies, evaluated.values, np.nan)
    return VerdictPanel(
        rule=rule,
        unit=unit_of(relation, rules),
        sentence=sentence,
        run=run,
        residual=residual[run.slice],
        violating=broken[run.slice],
        channels=tuple(
            batch.channel(name) for name in dict.fromkeys(relation.channels[:MOST_CHANNELS])
        ),
    )


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


def _figure(panels: tuple[VerdictPanel, ...], batch: Record) -> go.Figure:
    titles, heights = [], []
    for panel in panels:
        titles.append(f"<b>{html.escape(_label(panel))}</b>: {html.escape(panel.sentence)}")
        titles += [html.escape(_named(channel)) for channel in panel.channels]
        heights += [2.0, *(1.0 for _ in panel.channels)]
    figure = make_subplots(
        rows=len(titles),
        cols=1,
        subplot_titles=titles,
        row_heights=heights,
        vertical_spacing=0.3 / max(len(titles), 2),
    )
    row, bands = 1, []
    for panel in panels:
        bands.append(_add(figure, panel, batch, row))
        row += 1 + len(panel.channels)
    figure.update_annotations(font_size=11, xanchor="left", x=0)
    figure.update_layout(
        height=85 * sum(heights) + 80,
        margin={"l": 55, "r": 10, "t": 30, "b": 30},
        plot_bgcolor="#fafbfc",
        template="plotly_white",
        shapes=bands,
        showlegend=False,
    )
    return figure


def _add(figure: go.Figure, panel: VerdictPanel, batch: Record, row: int) -> dict[str, object]:
    """Add one rule and its channels; return its tolerance band."""
    times = batch.times[panel.run.slice].astype("datetime64[ms]")
    low, high = _limits(panel)
    known = ~np.isnan(panel.residual)
    figure.add_trace(
        go.Scatter(
            x=times[known],
            y=panel.residual[known],
            mode="lines+markers",
            line={"color": RESIDUAL_COLOUR, "width": 1},
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
            y=np.full(len(marked), low + 0.04 * (high - low)),
            mode="markers",
            marker={
                "symbol": "line-ns",
                "size": 9,
                "line": {"width": 2, "color": MARK_COLOUR},
            },
            name="violating row",
        ),
        row=row,
        col=1,
    )
    figure.update_yaxes(range=[low, high], row=row, col=1)
    axis = "" if row == 1 else str(row)
    for below, channel in enumerate(panel.channels, start=row + 1):
        line = {"color": STATE_COLOUR if channel.codes else CHANNEL_COLOUR, "width": 1}
        if channel.codes:
            line["shape"] = "hv"
        readings = batch.column(channel.name)[panel.run.slice]
        figure.add_trace(
            go.Scatter(x=times, y=readings, mode="lines", line=line, name=channel.name),
            row=below,
            col=1,
        )
        figure.update_xaxes(matches=f"x{axis}", row=below, col=1)
    last = row + len(panel.channels)
    for at in range(row, last + 1):
        figure.update_xaxes(
            range=[times[0], times[-1]],
            tickformat="%d %b %H:%M",
            showticklabels=at == last,
            row=at,
            col=1,
        )
    return {
        "type": "rect",
        "xref": f"x{axis} domain",
        "yref": f"y{axis}",
        "x0": 0,
        "x1": 1,
        "y0": -panel.rule.tolerance,
        "y1": panel.rule.tolerance,
        "fillcolor": BAND_COLOUR,
        "line": {"width": 0},
        "layer": "below",
    }


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
