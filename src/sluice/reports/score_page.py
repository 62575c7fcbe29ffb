"""The page of scores: a detector's score against its threshold, attacks shaded."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from sluice.arrays import Floats, Times
from sluice.detector import Blame, Detector, Scored
from sluice.reports.drawings import Drawing, attack_times, stamps, thinned, time_axis
from sluice.reports.page import (
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
from sluice.telemetry import Label, Record

__all__ = ["write_score_page"]

MOST_POINTS = 6_000
MOST_EVENTS = 50
FLOOR = 1e-12  # a score of 0 has no place on a logarithmic axis
NOT_ABOUT_PEOPLE = (
    "This is evidence about telemetry, not about people: a failed sensor, a valve opened by hand "
    "and an edited record look the same."
)


def write_score_page(
    scored: Scored,
    record: Record,
    detector: Detector,
    path: Path,
    *,
    self_contained: bool = False,
) -> None:
    """Write the page; the line has fewer points than windows but keeps every peak."""
    events = len(scored.events())
    shown = f"the {MOST_EVENTS} " if events > MOST_EVENTS else ""
    page = ReportPage(
        kind="Scores",
        title=f"{record.name}: {int(scored.alarms.sum()):,} alarms",
        lead=_lead(scored, detector),
        tiles=_tiles(scored, record),
        sections=(
            PageSection(title="Score over time", short="Score", parts=_plot(scored, record)),
            PageSection(
                title=f"{events:,} alarm events, {shown}longest first"
                if events
                else "Alarm events",
                short="Alarms",
                parts=(_events(scored, detector.blame(record, scored)),),
            ),
        ),
        search="alarms" if events > 5 else "",
        end=NOT_ABOUT_PEOPLE,
        shaded=attack_times(record),
    )
    write_page(page, path, self_contained=self_contained)


def _lead(scored: Scored, detector: Detector) -> str:
    threshold, framing = scored.threshold, detector.framing
    return (
        f"{len(scored):,} windows of {framing.window_rows} rows, each scored at its last row; one "
        f"row every {scored.stride_s:g} s. Detector: {detector.kind} over "
        f"{len(framing.scaler.names)} channels; an alarm is a score above {threshold.score:.4g}, "
        f"{threshold.origin}."
    )


def _tiles(scored: Scored, record: Record) -> tuple[Tile, ...]:
    events, alarms = scored.events(), int(scored.alarms.sum())
    tiles = [
        Tile(
            label="alarms",
            value=f"{alarms:,}",
            note=f"of {len(scored):,} windows, in {len(events):,} "
            f"event{'' if len(events) == 1 else 's'}",
            tone=Tone.BAD if alarms else Tone.GOOD,
        ),
        Tile(
            label="threshold",
            value=f"{scored.threshold.score:.4g}",
            note=f"highest score {scored.scores.max():.4g}" if len(scored) else "",
        ),
    ]
    false = scored.false_alarms_per_day()
    if false is not None:
        tiles.append(
            Tile(label="false alarms", value=f"{false:.2g} per day", note="on rows labelled normal")
        )
    if record.attack_segments:
        attacked = scored.labels == Label.ATTACK
        detected = int((scored.alarms & attacked).sum())
        found = _attacks_found(scored, record)
        total = len(record.attack_segments)
        tiles.append(
            Tile(
                label=f"labelled attack{'' if total == 1 else 's'} with an alarm",
                value=f"{found} of {total}",
                note=f"{detected:,} of {int(attacked.sum()):,} windows with attack rows raise an "
                "alarm",
                tone=Tone.GOOD if found == total else Tone.WARN,
            )
        )
    return tuple(tiles)


def _attacks_found(scored: Scored, record: Record) -> int:
    alarmed = np.zeros(len(record), bool)
    alarmed[scored.last_rows[scored.alarms]] = True
    return sum(bool(alarmed[run.slice].any()) for run in record.attack_segments)


def _events(scored: Scored, blame: tuple[Blame, ...]) -> Part:
    events = sorted(scored.events(), key=lambda event: -event.alarms)
    if not events:
        return Prose(text="No window raises an alarm.")
    columns = (
        DataColumn(name="from"),
        DataColumn(name="to"),
        DataColumn(name="rows", numeric=True),
        DataColumn(name="windows", numeric=True),
        DataColumn(name="peak score", numeric=True),
        DataColumn(name="tags and rules behind the peak, worst first"),
    )
    alarmed = scored.last_rows[scored.alarms]
    rows = tuple(
        (
            _clock(event.start),
            _clock(event.end),
            f"{event.first_row}-{event.last_row}",
            f"{event.alarms:,}",
            f"{event.peak:.4g}",
            ", ".join(blame[int(np.searchsorted(alarmed, event.peak_row))].names),
        )
        for event in events[:MOST_EVENTS]
    )
    return DataTable(columns=columns, rows=rows, key="events", searched=True)


def _plot(scored: Scored, record: Record) -> tuple[Part, ...]:
    keys = [
        LegendKey(colour="score", label="score of a window", shape="line"),
        LegendKey(colour="alarm", label="score above the threshold: an alarm", shape="line"),
        LegendKey(colour="limit", label=f"threshold {scored.threshold.score:.4g}", shape="dash"),
    ]
    if record.attack_segments:
        keys.append(LegendKey(colour="attack", label="labelled attack"))
    drawing = Drawing(figure=_figure(scored, record), link="time", shaded=True)
    return Legend(keys=tuple(keys)), drawing


def _figure(scored: Scored, record: Record) -> go.Figure:
    points = thinned(scored.scores, MOST_POINTS)
    # A NaN breaks the line where a missing reading or a time jump lies between two windows.
    segment = np.concatenate(([0], np.cumsum(np.diff(scored.last_rows) != 1)))
    breaks = np.flatnonzero(np.diff(segment[points])) + 1
    drawn_at = stamps(scored.times[points])
    times = np.insert(drawn_at, breaks, drawn_at[breaks])
    drawn = np.insert(np.maximum(scored.scores[points], FLOOR), breaks, np.nan)
    figure = go.Figure()
    figure.add_trace(_line("score", times, drawn, "var(--score)"))
    above = np.where(drawn > scored.threshold.score, drawn, np.nan)
    figure.add_trace(_line("alarm", times, above, "var(--alarm)"))
    limit = max(scored.threshold.score, FLOOR)
    figure.add_trace(
        go.Scatter(
            x=stamps(scored.times[[0, -1]]),
            y=[limit, limit],
            mode="lines",
            line={"color": "var(--limit)", "width": 1.5, "dash": "dash"},
            name=f"threshold {scored.threshold.score:.4g}",
        )
    )
    figure.update_layout(
        height=440,
        margin={"l": 60, "r": 12, "t": 16, "b": 36},
        showlegend=False,
        xaxis=time_axis(record.times),
        yaxis={"type": "log", "title": "score", "exponentformat": "power"},
    )
    return figure


def _line(name: str, times: Times, drawn: Floats, colour: str) -> go.Scatter:
    # With markers, because a line through one window has no length.
    return go.Scatter(
        x=times,
        y=drawn,
        mode="lines+markers",
        line={"color": colour, "width": 1},
        marker={"color": colour, "size": 2},
        name=name,
    )


def _clock(time: np.datetime64) -> str:
    return str(time.astype("datetime64[s]")).replace("T", " ")
