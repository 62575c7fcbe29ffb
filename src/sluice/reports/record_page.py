"""One self-contained page that shows a record: every channel drawn, attacks shaded."""

import html
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from sluice.files import atomically
from sluice.reports.page import attack_shapes, drawing, page, thinned
from sluice.telemetry import Record, Role, Summary

__all__ = ["write_record_page"]

MOST_POINTS = 1_200
ROW_HEIGHT_PX = 110
COLOURS = {
    Role.LEVEL: "#066091",
    Role.FLOW: "#1b9e77",
    Role.PRESSURE: "#7570b3",
    Role.QUALITY: "#b8860b",
    Role.SPEED: "#a6761d",
    Role.POSITION: "#666666",
    Role.ACTUATOR: "#d95f02",
    Role.OTHER: "#444444",
}
BODY = """<p>{facts}</p>
{figure}
<h2>Channels</h2>
<div class="scroll"><table>
<tr><th>name</th><th>role</th><th>unit</th><th>low</th><th>high</th><th>missing</th>
<th>why this role</th></tr>
{channels}</table></div>
{notes}"""


def write_record_page(record: Record, summary: Summary, path: Path) -> None:
    """Write the page; drawings have fewer points than rows but keep every peak."""
    body = BODY.format(
        facts=_facts(summary),
        figure=drawing(_figure(record)),
        channels="\n".join(_channel_rows(summary)),
        notes=_notes(summary),
    )
    with atomically(path) as draft:
        draft.write_text(page(summary.name, body), encoding="utf-8")


def _facts(summary: Summary) -> str:
    roles = ", ".join(f"{count} {role}" for role, count in summary.roles.items())
    key = '<span class="key"></span> ' if summary.attack_rows else ""
    return (
        f"{summary.rows:,} rows every {summary.stride_s:g} s, {summary.start} to {summary.end}. "
        f"Channels: {roles}. {key}{summary.attack_rows:,} attack rows in "
        f"{len(summary.attack_segments)} segments, {summary.unlabelled_rows:,} unlabelled rows, "
        f"{len(summary.gaps)} time jump{'' if len(summary.gaps) == 1 else 's'}."
    )


def _channel_rows(summary: Summary) -> list[str]:
    return [
        f"<tr><td>{html.escape(row.channel.name)}</td><td>{row.channel.role.value}</td>"
        f"<td>{html.escape(row.channel.unit)}</td><td class=n>{row.low:g}</td>"
        f"<td class=n>{row.high:g}</td><td class=n>{row.missing or ''}</td>"
        f"<td>{html.escape(row.channel.why)}</td></tr>"
        for row in summary.channels
    ]


def _notes(summary: Summary) -> str:
    if not summary.notes:
        return ""
    items = "".join(
        f"<li>{html.escape(f'{note.channel}: ' if note.channel else '')}{html.escape(note.what)}"
        f"{f' ({note.rows:,} rows)' if note.rows else ''}</li>"
        for note in summary.notes
    )
    return f"<h2>Notes from reading the file</h2><ul>{items}</ul>"


def _figure(record: Record) -> go.Figure:
    channels = sorted(record.channels, key=lambda channel: list(Role).index(channel.role))
    titles = [f"{c.name} ({c.unit})" if c.unit else c.name for c in channels]
    figure = make_subplots(
        rows=len(channels),
        cols=1,
        shared_xaxes=True,
        subplot_titles=titles,
        vertical_spacing=0.35 / max(len(channels), 2),
    )
    for row, channel in enumerate(channels, start=1):
        points = thinned(record.column(channel.name), MOST_POINTS)
        line = {"color": COLOURS[channel.role], "width": 1}
        if channel.role.discrete:
            line["shape"] = "hv"
        figure.add_trace(
            go.Scatter(  # not Scattergl: browsers limit the height of its canvas
                x=record.times[points].astype("datetime64[ms]"),
                y=record.column(channel.name)[points],
                mode="lines",
                line=line,
                name=channel.name,
                showlegend=False,
            ),
            row=row,
            col=1,
        )
    figure.update_annotations(font_size=11, xanchor="left", x=0)
    figure.update_layout(
        height=ROW_HEIGHT_PX * len(channels) + 60,
        margin={"l": 50, "r": 10, "t": 30, "b": 30},
        plot_bgcolor="#fafbfc",
        template="plotly_white",
        shapes=attack_shapes(record),
    )
    return figure
