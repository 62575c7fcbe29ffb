"""One self-contained page: a detector's score against its threshold, attacks shaded."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from sluice.arrays import Floats, Times
from sluice.detector import Detector, Scored
from sluice.files import atomically
from sluice.reports.page import attack_shapes, drawing, page, thinned
from sluice.telemetry import Label, Record

__all__ = ["write_score_page"]

MOST_POINTS = 6_000
MOST_STRETCHES = 50
FLOOR = 1e-12  # a score of 0 has no place on a logarithmic axis
SCORE_COLOUR = "#066091"
ALARM_COLOUR = "#e8710a"
THRESHOLD_COLOUR = "#444444"

BODY = """<p>{facts}</p>
{figure}
{stretches}
<p>This is evidence about telemetry, not about people: a failed sensor, a valve opened by hand and
an edited record look the same.</p>"""


def write_score_page(scored: Scored, record: Record, detector: Detector, path: Path) -> None:
    """Write the page; the line has fewer points than windows but keeps every peak."""
    body = BODY.format(
        facts=_facts(scored, record, detector),
        figure=drawing(_figure(scored, record)),
        stretches=_stretches(scored),
    )
    title = f"{record.name}: {int(scored.alarms.sum()):,} alarms"
    with atomically(path) as draft:
        draft.write_text(page(title, body), encoding="utf-8")


def _facts(scored: Scored, record: Record, detector: Detector) -> str:
    threshold = scored.threshold
    framing = detector.framing
    facts = (
        f"{len(scored):,} windows of {framing.window_rows} rows, each scored at its last row; one "
        f"row every {scored.stride_s:g} s. Model: {detector.model.kind} over "
        f"{len(framing.scaler.names)} channels; an alarm is a score above {threshold.score:.4g}, "
        f"the {threshold.quantile:.1%} quantile of {threshold.clean_windows:,} clean windows."
    )
    false = scored.false_alarms_per_day()
    if false is not None:
        facts += f" {false:.2g} false alarms per day on rows labelled normal."
    if record.attack_segments:
        attacked = scored.labels == Label.ATTACK
        detected = int((scored.alarms & attacked).sum())
        facts += (
            f' <span class="key"></span> {len(record.attack_segments)} labelled '
            f"attack{'' if len(record.attack_segments) == 1 else 's'}; "
            f"{detected:,} of {int(attacked.sum()):,} windows with attack rows raise an alarm."
        )
    return facts


def _stretches(scored: Scored) -> str:
    stretches = sorted(scored.stretches(), key=lambda stretch: -stretch.rows)
    if not stretches:
        return "<p>No window raises an alarm.</p>"
    rows = "\n".join(
        f"<tr><td>{_clock(stretch.start)}</td><td>{_clock(stretch.end)}</td>"
        f"<td class=n>{stretch.first_row}-{stretch.last_row}</td>"
        f"<td class=n>{stretch.rows:,}</td><td class=n>{stretch.peak:.4g}</td></tr>"
        for stretch in stretches[:MOST_STRETCHES]
    )
    shown = f"the {MOST_STRETCHES} " if len(stretches) > MOST_STRETCHES else ""
    return (
        f"<h2>{len(stretches):,} alarm stretches, {shown}longest first</h2>"
        '<div class="scroll"><table><tr><th>from</th><th>to</th><th>rows</th><th>windows</th>'
        f"<th>peak score</th></tr>\n{rows}</table></div>"
    )


def _figure(scored: Scored, record: Record) -> go.Figure:
    points = thinned(scored.scores, MOST_POINTS)
    # A NaN breaks the line where a missing reading or a time jump lies between two windows.
    segment = np.concatenate(([0], np.cumsum(np.diff(scored.last_rows) != 1)))
    breaks = np.flatnonzero(np.diff(segment[points])) + 1
    stamps = scored.times[points].astype("datetime64[ms]")
    times = np.insert(stamps, breaks, stamps[breaks])
    drawn = np.insert(np.maximum(scored.scores[points], FLOOR), breaks, np.nan)
    figure = go.Figure()
    figure.add_trace(_line("score", times, drawn, SCORE_COLOUR))
    above = np.where(drawn > scored.threshold.score, drawn, np.nan)
    figure.add_trace(_line("alarm", times, above, ALARM_COLOUR))
    ends = scored.times[[0, -1]].astype("datetime64[ms]")
    limit = max(scored.threshold.score, FLOOR)
    figure.add_trace(
        go.Scatter(
            x=ends,
            y=[limit, limit],
            mode="lines",
            line={"color": THRESHOLD_COLOUR, "width": 1, "dash": "dash"},
            name=f"threshold {scored.threshold.score:.4g}",
        )
    )
    figure.update_layout(
        height=460,
        margin={"l": 60, "r": 10, "t": 40, "b": 30},
        template="plotly_white",
        legend={"orientation": "h", "y": 1.08},
        yaxis={"type": "log", "title": "score", "exponentformat": "power"},
        shapes=attack_shapes(record),
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
