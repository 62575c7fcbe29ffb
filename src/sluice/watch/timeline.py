"""The page of alarms: when each one lasted, what it says, and the signals that it blames."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import plotly.graph_objects as go

from sluice.reports import (
    ROLE_COLOURS,
    Bullets,
    Cell,
    DataColumn,
    DataTable,
    Drawing,
    Legend,
    LegendKey,
    PageSection,
    Part,
    Prose,
    ReportPage,
    Tile,
    Tone,
    attack_times,
    stamps,
    thinned,
    time_axis,
    write_page,
)
from sluice.telemetry import Record
from sluice.watch.alarms import Alarm, Severity
from sluice.watch.intake import RowCounts
from sluice.watch.rows import clock

if TYPE_CHECKING:
    from sluice.watch.watching import Watch

__all__ = ["ShownAlarm", "Timeline", "attacks_found", "timeline_of_store", "write_timeline"]

MOST_ALARMS = 500
MOST_SECTIONS = 12
MOST_LANES = 14
MOST_TAGS = 3
MOST_POINTS = 2_000
LANE_PX = 26
COLOURS = {Severity.HIGH: "bad", Severity.MEDIUM: "warn", Severity.LOW: "neutral"}
TONES = {Severity.HIGH: Tone.BAD, Severity.MEDIUM: Tone.WARN, Severity.LOW: Tone.PLAIN}
NOT_ABOUT_PEOPLE = (
    "An alarm is evidence about telemetry, not about people: a failed sensor, a valve opened by "
    "hand and an attack look the same."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAlarm:
    """An alarm as the page shows it."""

    id: str
    start: int  # microseconds
    last: int
    ended: bool
    severity: Severity
    rules: tuple[str, ...]
    tags: tuple[str, ...]
    sentence: str
    evidence: tuple[str, ...]

    @classmethod
    def of(cls, alarm: Alarm) -> "ShownAlarm":
        """Return how an alarm is shown."""
        return cls(
            id=alarm.id,
            start=alarm.start,
            last=alarm.last,
            ended=alarm.ended,
            severity=alarm.severity,
            rules=alarm.rules,
            tags=alarm.tags,
            sentence=alarm.sentence,
            evidence=tuple(each.sentence for each in alarm.ranked),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What the page is made of."""

    plant: str
    alarms: tuple[ShownAlarm, ...]
    counts: RowCounts
    record: Record | None = None  # the history, if there is one: its signals are drawn


def timeline_of_store(watch: "Watch") -> Timeline:
    """Return the last alarms of a live watch."""
    alarms = []
    for stored in watch.parts.store.alarms(MOST_ALARMS):
        found = json.loads(stored.content)
        alarms.append(
            ShownAlarm(
                id=stored.id,
                start=stored.start,
                last=int(np.datetime64(found["last"], "us").astype(np.int64)),
                ended=found["end"] is not None,
                severity=Severity(found["severity"]),
                rules=tuple(found["rules"]),
                tags=tuple(found["tags"]),
                sentence=found["sentence"],
                evidence=tuple(each["sentence"] for each in found["evidence"]),
            )
        )
    return Timeline(
        plant=watch.parts.subject.plant, alarms=tuple(alarms), counts=watch.intake.counts
    )


def write_timeline(timeline: Timeline, path: Path, *, self_contained: bool = False) -> None:
    """Write the page."""
    alarms, record = timeline.alarms, timeline.record
    count = f"{len(alarms):,} alarm{'' if len(alarms) == 1 else 's'}"
    sections = [
        PageSection(title="Alarms over time", short="Timeline", parts=_over_time(timeline)),
        PageSection(title="All alarms", short="Alarms", parts=(_table(alarms),)),
        *(_section(alarm, record) for alarm in _worst(alarms)),
    ]
    page = ReportPage(
        kind="Watch",
        title=f"{timeline.plant}: {count}",
        lead=_lead(timeline.counts),
        tiles=_tiles(timeline),
        sections=tuple(sections),
        search="tags and alarms" if alarms else "",
        end=NOT_ABOUT_PEOPLE,
        shaded=attack_times(record) if record is not None else (),
    )
    write_page(page, path, self_contained=self_contained)


def _worst(alarms: tuple[ShownAlarm, ...]) -> tuple[ShownAlarm, ...]:
    """Return the alarms with a section of their own: the most severe ones, in order of time."""
    order = list(Severity)
    chosen = sorted(alarms, key=lambda alarm: (-order.index(alarm.severity), -alarm.start))
    return tuple(sorted(chosen[:MOST_SECTIONS], key=lambda alarm: alarm.start))


def _lead(counts: RowCounts) -> str:
    if counts.last is None:
        return "No row has come in yet."
    return (
        f"{counts.rows:,} rows judged, the last one of {_shown(counts.last)}; {counts.gaps:,} time "
        f"jumps, {counts.late:,} late and {counts.repeated:,} repeated rows, "
        f"{counts.missing:,} missing readings."
    )


def _tiles(timeline: Timeline) -> tuple[Tile, ...]:
    alarms, counts = timeline.alarms, timeline.counts
    high = sum(alarm.severity is Severity.HIGH for alarm in alarms)
    lasting = [alarm for alarm in alarms if not alarm.ended]
    tiles = [
        Tile(
            label="alarms",
            value=f"{len(alarms):,}",
            note=f"{high:,} of high severity",
            tone=Tone.BAD if high else Tone.WARN if alarms else Tone.GOOD,
        ),
        Tile(
            label="lasting now",
            value=f"{len(lasting):,}",
            note=", ".join(lasting[0].tags[:MOST_TAGS]) if lasting else "",
            tone=Tone.BAD if lasting else Tone.GOOD,
        ),
        Tile(label="rows judged", value=f"{counts.rows:,}"),
    ]
    record = timeline.record
    if record is not None and record.attack_segments:
        found = attacks_found(record, alarms)
        total = len(record.attack_segments)
        tiles.append(
            Tile(
                label="labelled attacks with an alarm",
                value=f"{found} of {total}",
                tone=Tone.GOOD if found == total else Tone.WARN,
            )
        )
    return tuple(tiles)


def attacks_found(record: Record, alarms: tuple[ShownAlarm, ...]) -> int:
    """Return how many labelled attacks overlap with an alarm."""
    times = record.times.astype("datetime64[us]").astype(np.int64)
    return sum(
        any(a.start <= times[run.stop - 1] and a.last >= times[run.start] for a in alarms)
        for run in record.attack_segments
    )


# -- all alarms -------------------------------------------------------------------------------


def _over_time(timeline: Timeline) -> tuple[Part, ...]:
    alarms = timeline.alarms
    if not alarms:
        return (Prose(text="No alarm was raised.", tone=Tone.GOOD),)
    keys = [
        LegendKey(colour=COLOURS[severity], label=f"{severity} severity", shape="line")
        for severity in reversed(Severity)
    ]
    if timeline.record is not None and timeline.record.attack_segments:
        keys.append(LegendKey(colour="attack", label="labelled attack"))
    note = "Each line is one alarm, in the row of the tag that it blames most."
    return Legend(keys=tuple(keys)), Drawing(
        figure=_lanes(timeline), note=note, link="time", shaded=True
    )


def _lanes(timeline: Timeline) -> go.Figure:
    alarms = timeline.alarms
    counted: dict[str, int] = {}
    for alarm in alarms:
        tag = _lane(alarm)
        counted[tag] = counted.get(tag, 0) + 1
    lanes = sorted(counted, key=lambda tag: -counted[tag])[:MOST_LANES]
    figure = go.Figure()
    for severity in Severity:
        chosen = [alarm for alarm in alarms if alarm.severity is severity]
        x: list[int] = []
        y: list[str | None] = []
        for alarm in chosen:
            lane = _lane(alarm) if _lane(alarm) in lanes else "other tags"
            x += [alarm.start, alarm.last, alarm.last]
            y += [lane, lane, None]
        colour = f"var(--{COLOURS[severity]})"
        figure.add_trace(
            go.Scatter(
                x=stamps(np.array(x, "datetime64[us]")),
                y=y,
                mode="lines+markers",
                line={"color": colour, "width": 8},
                marker={"color": colour, "size": 8, "symbol": "square"},
                name=f"{severity} severity",
            )
        )
    shown = [*lanes, *(["other tags"] if len(counted) > len(lanes) else [])]
    figure.update_layout(
        height=90 + LANE_PX * max(3, len(shown)),
        margin={"l": 110, "r": 12, "t": 12, "b": 36},
        showlegend=False,
        xaxis=time_axis(_span(timeline)),
        yaxis={"type": "category", "categoryorder": "array", "categoryarray": shown[::-1]},
    )
    return figure


def _lane(alarm: ShownAlarm) -> str:
    return alarm.tags[0] if alarm.tags else "detector"


def _span(timeline: Timeline) -> np.ndarray[tuple[int], np.dtype[np.datetime64]]:
    if timeline.record is not None:
        return timeline.record.times
    first = min(alarm.start for alarm in timeline.alarms)
    last = max(timeline.counts.last or 0, *(alarm.last for alarm in timeline.alarms), first + 1)
    return np.array([first, last], "datetime64[us]")


def _table(alarms: tuple[ShownAlarm, ...]) -> Part:
    if not alarms:
        return Prose(text="No alarm was raised.")
    columns = tuple(
        DataColumn(name=name) for name in ("severity", "from", "to", "tags and rules", "what to do")
    )
    rows = tuple(
        (
            Cell(text=alarm.severity.value, tone=TONES[alarm.severity]),
            _shown(alarm.start),
            _shown(alarm.last) if alarm.ended else Cell(text="lasts", note=_shown(alarm.last)),
            Cell(text=", ".join(alarm.tags), note=", ".join(alarm.rules)),
            Cell(text=alarm.sentence, note=alarm.id),
        )
        for alarm in alarms
    )
    return DataTable(columns=columns, rows=rows, key="alarms", searched=True)


# -- one alarm --------------------------------------------------------------------------------


def _section(alarm: ShownAlarm, record: Record | None) -> PageSection:
    lasted = "" if alarm.start == alarm.last else f" to {_shown(alarm.last)}"
    parts: list[Part] = [
        Prose(text=alarm.sentence, tone=TONES[alarm.severity]),
    ]
    if len(alarm.evidence) > 1:
        parts.append(Bullets(items=alarm.evidence, shown=3))
    if record is not None:
        parts += [
            Drawing(
                figure=_signal(alarm, record, tag),
                title=tag,
                tags=(tag, alarm.id),
                tools=False,
                shaded=True,
            )
            for tag in alarm.tags[:MOST_TAGS]
            if tag in record.names
        ]
    return PageSection(
        title=f"{_shown(alarm.start)}{lasted}: {', '.join(alarm.tags[:MOST_TAGS])}",
        short=_shown(alarm.start).removesuffix(":00"),
        key=alarm.id,
        parts=tuple(parts),
    )


def _signal(alarm: ShownAlarm, record: Record, tag: str) -> go.Figure:
    """Draw a tag before, during and after an alarm; the alarm's rows have another colour."""
    times = record.times.astype("datetime64[us]").astype(np.int64)
    before = max(alarm.last - alarm.start, round(48e6 * record.stride_s))
    start, stop = np.searchsorted(times, [alarm.start - before, alarm.last + before + 1])
    readings = record.column(tag)[start:stop]
    at = record.times[start:stop]
    during = (times[start:stop] >= alarm.start) & (times[start:stop] <= alarm.last)
    rows = thinned(readings, MOST_POINTS)
    channel = record.channel(tag)
    shape = "hv" if channel.role.discrete else "linear"
    figure = go.Figure()
    for colour, drawn, width in (
        (ROLE_COLOURS[channel.role], readings[rows], 1.2),
        ("var(--alarm)", np.where(during, readings, np.nan)[rows], 2.4),
    ):
        figure.add_trace(
            go.Scatter(
                x=stamps(at[rows]),
                y=drawn,
                mode="lines+markers" if width > 2 else "lines",
                line={"color": colour, "width": width, "shape": shape},
                marker={"color": colour, "size": 3},
                name=tag,
            )
        )
    figure.update_layout(
        height=170,
        margin={"l": 60, "r": 12, "t": 8, "b": 28},
        showlegend=False,
        xaxis=time_axis(at),
        yaxis={"title": channel.unit},
    )
    return figure


def _shown(time: int) -> str:
    return clock(time).replace("T", " ")
