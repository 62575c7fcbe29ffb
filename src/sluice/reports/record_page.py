"""The page of a record: every channel drawn on its own time axis, attacks shaded."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from sluice.reports.drawings import (
    ROLE_COLOURS,
    Drawing,
    attack_times,
    stamps,
    thinned,
    time_axis,
)
from sluice.reports.page import (
    Bullets,
    Cell,
    Columns,
    DataColumn,
    DataTable,
    Legend,
    LegendKey,
    PageSection,
    Part,
    ReportPage,
    Tile,
    Tone,
    write_page,
)
from sluice.telemetry import Channel, Note, Record, Role, Summary

__all__ = ["write_record_page"]

MOST_POINTS = 1_200
ALL_POINTS = 48_000
"""Points of all channels together, so that the page of a wide record stays small."""
HEIGHT_PX = 170


def write_record_page(
    record: Record, summary: Summary, path: Path, *, self_contained: bool = False
) -> None:
    """Write the page; drawings have fewer points than rows but keep every peak."""
    page = ReportPage(
        kind="Record",
        title=summary.name,
        tiles=_tiles(record, summary),
        sections=tuple(section for section in _sections(record, summary) if section.parts),
        search="tags",
        shaded=attack_times(record),
    )
    write_page(page, path, self_contained=self_contained)


def _tiles(record: Record, summary: Summary) -> tuple[Tile, ...]:
    roles = ", ".join(f"{count} {role}" for role, count in summary.roles.items())
    missing = sum(channel.missing for channel in summary.channels)
    segments, gaps = len(summary.attack_segments), len(summary.gaps)
    return (
        Tile(label="rows", value=f"{summary.rows:,}", note=f"one every {summary.stride_s:g} s"),
        Tile(
            label="time",
            value=_span(record),
            note=f"{summary.start} to {summary.end}".replace("T", " "),
        ),
        Tile(label="channels", value=str(len(summary.channels)), note=roles),
        Tile(
            label="labelled attacks",
            value=str(segments),
            note=f"{summary.attack_rows:,} attack rows, {summary.unlabelled_rows:,} unlabelled",
        ),
        Tile(
            label="missing readings",
            value=f"{missing:,}",
            note=f"of {record.values.size:,}",
            tone=Tone.WARN if missing else Tone.PLAIN,
        ),
        Tile(
            label="time jumps",
            value=str(gaps),
            note="rules are not checked across a jump" if gaps else "",
            tone=Tone.WARN if gaps else Tone.PLAIN,
        ),
    )


def _span(record: Record) -> str:
    seconds = float((record.times[-1] - record.times[0]) / np.timedelta64(1, "s"))
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:g} s"


def _sections(record: Record, summary: Summary) -> tuple[PageSection, ...]:
    return (
        PageSection(title="Channels over time", short="Plots", parts=_plots(record)),
        PageSection(title="Channels", parts=(_channels(summary),)),
        PageSection(
            title="Labelled attacks",
            short="Attacks",
            parts=_listed(
                [(r.start_row, r.end_row, r.start, r.end) for r in summary.attack_segments]
            ),
        ),
        PageSection(
            title="Time jumps",
            parts=_listed([(r.start_row, r.end_row, r.start, r.end) for r in summary.gaps]),
        ),
        PageSection(
            title="Notes from reading the file", short="Notes", parts=_notes(summary.notes)
        ),
    )


def _channels(summary: Summary) -> DataTable:
    columns = (
        DataColumn(name="name"),
        DataColumn(name="role"),
        DataColumn(name="unit"),
        DataColumn(name="low", numeric=True),
        DataColumn(name="high", numeric=True),
        DataColumn(name="missing", numeric=True),
        DataColumn(name="why this role"),
    )
    rows = tuple(
        (
            each.channel.name,
            each.channel.role.value,
            each.channel.unit,
            f"{each.low:g}",
            f"{each.high:g}",
            Cell(text=f"{each.missing:,}", tone=Tone.WARN) if each.missing else "",
            each.channel.why,
        )
        for each in summary.channels
    )
    return DataTable(columns=columns, rows=rows, key="channels", searched=True)


def _listed(stretches: list[tuple[int, int, str, str]]) -> tuple[Part, ...]:
    """Return a table of stretches: first and last row, first and last time."""
    if not stretches:
        return ()
    columns = (DataColumn(name="rows"), DataColumn(name="from"), DataColumn(name="to"))
    rows = tuple(
        (f"{first}-{last}", start.replace("T", " "), end.replace("T", " "))
        for first, last, start, end in stretches
    )
    return (DataTable(columns=columns, rows=rows),)


def _notes(notes: tuple[Note, ...]) -> tuple[Part, ...]:
    items = tuple(
        f"{f'{note.channel}: ' if note.channel else ''}{note.what}"
        f"{f' ({note.rows:,} rows)' if note.rows else ''}"
        for note in notes
    )
    return (Bullets(items=items, shown=10),) if items else ()


def _plots(record: Record) -> tuple[Part, ...]:
    channels = sorted(record.channels, key=lambda channel: list(Role).index(channel.role))
    most = max(100, min(MOST_POINTS, ALL_POINTS // max(len(channels), 1)))
    roles = dict.fromkeys(channel.role for channel in channels)
    keys = [LegendKey(colour=role.value, label=role.value, shape="line") for role in roles]
    if record.attack_segments:
        keys.append(LegendKey(colour="attack", label="labelled attack"))
    return (
        Legend(keys=tuple(keys)),
        Columns(drawings=tuple(_plot(record, channel, most) for channel in channels)),
    )


def _plot(record: Record, channel: Channel, most: int) -> Drawing:
    readings = record.column(channel.name)
    points = thinned(readings, most)
    line: dict[str, object] = {"color": ROLE_COLOURS[channel.role], "width": 1}
    if channel.role.discrete:
        line["shape"] = "hv"
    figure = go.Figure(
        go.Scatter(  # not Scattergl: browsers limit how many of its canvases a page may have
            x=stamps(record.times[points]),
            y=readings[points],
            mode="lines",
            line=line,
            name=channel.name,
            showlegend=False,
        )
    )
    figure.update_layout(
        height=HEIGHT_PX,
        margin={"l": 48, "r": 12, "t": 8, "b": 28},
        xaxis={**time_axis(record.times), "nticks": 6},
        yaxis={"nticks": 5},
    )
    title = f"{channel.name} ({channel.unit})" if channel.unit else channel.name
    tags = (channel.name, channel.role.value)
    return Drawing(figure=figure, title=title, tags=tags, link="time", tools=False, shaded=True)
