"""`sluice score`: score one record with a trained detector."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from sluice.cli.console import Json, Quiet, emit, out, table, working
from sluice.cli.options import (
    Every,
    FillWith,
    FormatName,
    PlantPath,
    RecordPaths,
    SelfContained,
    SkipSeconds,
    listed,
    open_record,
    refuse_overwriting,
    refuse_without_page,
)
from sluice.cli.paths import reads_file, writes_file
from sluice.detector import AlarmEvent, Blame, Detector, Scored, load_detector
from sluice.errors import SettingError
from sluice.evaluation import DetectionReport, Outcome, Unlabelled, detection_report
from sluice.evaluation import false_alarms_per_week as false_events_per_week
from sluice.files import atomically
from sluice.reports import write_score_page
from sluice.telemetry import Label, Record

__all__ = ["score"]

MOST_EVENTS = 10
MOST_VOTES = 10
SUFFIXES = (".csv", ".parquet")


def score(
    record: RecordPaths,
    model: Annotated[
        Path,
        typer.Option(
            "--model",
            help="A trained detector (.safetensors).",
            click_type=reads_file("a detector's file"),
        ),
    ],
    out_path: Annotated[
        Path,
        typer.Option(
            "--out", help="The table to write: .csv or .parquet.", click_type=writes_file()
        ),
    ],
    rules: Annotated[
        Path | None,
        typer.Option(
            help="Refuse a detector that was not calibrated with these rules.",
            click_type=reads_file("a rules file"),
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write an HTML page that plots score and threshold.", click_type=writes_file()
        ),
    ] = None,
    self_contained: SelfContained = False,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score a record with a trained detector; write a score and an alarm per row.

    The table has columns time, score, alarm (0 or 1) and blame: the tags and rules behind an alarm,
    worst first, joined by ';'. A window has the time of its last row. Rows that end no whole window
    (the first ones, and those after a missing reading or a time jump) have an empty score and no
    alarm. If the record has labels, the detector's metrics are printed.

    Example: [bold]sluice score april.csv --model model.safetensors --out april-scores.csv[/bold]
    """
    quiet = quiet or json
    suffix = out_path.suffix.lower()
    if suffix not in SUFFIXES:
        raise SettingError(
            f"--out is {out_path.name!r}; scores are a table, so it must end in "
            f"{' or '.join(SUFFIXES)}"
        )
    refuse_without_page(html, self_contained=self_contained, option="--html PAGE")
    for written in (out_path, html or out_path):
        refuse_overwriting(written, *record, model, rules)
    detector = load_detector(model)
    if rules is not None:
        _refuse_other_rules(detector, rules)
    with working(f"reading {listed(record)}", quiet=quiet):
        loaded = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
    with working(f"scoring {len(loaded):,} rows", quiet=quiet):
        result = _result(loaded, detector)
    with atomically(out_path) as draft:
        _write(result, draft, suffix)
        if html:  # inside, so that no table is written if the page cannot be written
            with working(f"drawing {html}", quiet=quiet):
                write_score_page(
                    result.scored, loaded, detector, html, self_contained=self_contained
                )
    if json:
        emit(_payload(result) | _votes(loaded, detector))
    else:
        _show(result)
        _show_votes(loaded, detector)


def _votes(record: Record, detector: Detector) -> dict[str, object]:
    """Return who voted for each alarm; nothing for a detector that is no vote."""
    from sluice.detector import VotedModel, voted_alarms

    if not isinstance(detector.model, VotedModel):
        return {}
    return {
        "votes": [
            {
                "start": str(alarm.start),
                "end": str(alarm.end),
                "tags": list(alarm.tags),
                "voted": list(alarm.voted),
                "dissented": list(alarm.dissented),
            }
            for alarm in voted_alarms(detector, record)
        ]
    }


def _show_votes(record: Record, detector: Detector) -> None:
    """Print which members voted for each alarm and which did not."""
    from sluice.detector import VotedModel, voted_alarms

    if not isinstance(detector.model, VotedModel):
        return
    listed = table("\nVotes", "from", "tags", "voted", "dissented")
    for alarm in voted_alarms(detector, record)[:MOST_VOTES]:
        listed.add_row(
            _clock(alarm.start),
            ", ".join(alarm.tags),
            ", ".join(alarm.voted),
            ", ".join(alarm.dissented) or "-",
        )
    out.print(listed)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Result:
    """A scored record, the blame of each alarm, and the metrics if the record has labels."""

    record: Record
    scored: Scored
    blame: tuple[Blame, ...]
    report: DetectionReport | None

    def blamed(self, row: int) -> tuple[str, ...]:
        """Return the names behind the alarm at a row."""
        rows = self.scored.last_rows[self.scored.alarms]
        return self.blame[int(np.searchsorted(rows, row))].names


def _refuse_other_rules(detector: Detector, path: Path) -> None:
    """Refuse rules other than those whose residuals the threshold was calibrated with."""
    from sluice.invariants import load_rules, rules_hash

    if detector.fusion is None:
        raise SettingError(
            f"the detector is of kind {detector.kind!r} and reads no rules; leave --rules out, or "
            "train one with 'sluice train --rules'"
        )
    own, other = detector.fusion.physics.digest, rules_hash(load_rules(path))
    if own != other:
        raise SettingError(
            f"the detector was calibrated with rules {own[:12]}..., and {path} holds rules "
            f"{other[:12]}...; give the same rules, or train again with these"
        )


def _result(record: Record, detector: Detector) -> _Result:
    scored = detector.score(record)
    return _Result(
        record=record,
        scored=scored,
        blame=detector.blame(record, scored),
        report=_report(record, scored),
    )


def _report(record: Record, scored: Scored) -> DetectionReport | None:
    """Return the metrics; unlabelled rows count as normal only if no row is labelled normal."""
    if not (scored.labels == Label.ATTACK).any():
        return None
    known = bool((scored.labels == Label.NORMAL).any())
    unlabelled = Unlabelled.EXCLUDE if known else Unlabelled.NORMAL
    if not known and (scored.labels == Label.ATTACK).all():
        return None
    return detection_report(scored, record.labels, unlabelled=unlabelled)


def _write(result: _Result, path: Path, suffix: str) -> None:
    """Write one line per row of the record."""
    rows, scored = len(result.record), result.scored
    score, alarm = np.full(rows, np.nan), np.zeros(rows, np.int8)
    score[scored.last_rows] = scored.scores
    alarm[scored.last_rows] = scored.alarms
    blame: list[str | None] = [None] * rows
    alarmed = scored.last_rows[scored.alarms]
    for row, names in zip(alarmed.tolist(), result.blame, strict=True):
        blame[row] = ";".join(names.names)
    columns = pl.DataFrame(
        {"time": result.record.times, "score": score, "alarm": alarm, "blame": blame},
        schema_overrides={"blame": pl.String},
    ).with_columns(pl.col("score").fill_nan(None))
    if suffix == ".parquet":
        columns.write_parquet(path)
    else:
        columns.write_csv(path, datetime_format="%Y-%m-%dT%H:%M:%S%.f")


def _payload(result: _Result) -> dict[str, object]:
    scored = result.scored
    payload: dict[str, object] = {
        "windows": len(scored),
        "alarms": int(scored.alarms.sum()),
        "threshold": scored.threshold.score,
        "false_alarms_per_day": scored.false_alarms_per_day(),
        "stretches": [
            {
                "start_row": stretch.first_row,
                "end_row": stretch.last_row,
                "start": str(stretch.start),
                "end": str(stretch.end),
                "peak": stretch.peak,
            }
            for stretch in scored.stretches()
        ],
        "events": [
            {
                "start_row": event.first_row,
                "end_row": event.last_row,
                "start": str(event.start),
                "end": str(event.end),
                "peak": event.peak,
                "alarms": event.alarms,
                "blame": list(result.blamed(event.peak_row)),
            }
            for event in scored.events()
        ],
    }
    if result.report is not None:
        payload |= {metric.key: metric.value for metric in result.report.metrics}
    elif (scored.labels == Label.NORMAL).any():
        payload["false_alarms_per_week"] = false_events_per_week(Outcome.of(scored))
    return payload


def _show(result: _Result) -> None:
    scored, events = result.scored, result.scored.events()
    out.print(
        f"[bold]{len(events):,} alarm events[/bold] ({int(scored.alarms.sum()):,} of "
        f"{len(scored):,} windows); the threshold is {scored.threshold.score:.4g}"
    )
    if result.report is not None:
        metrics = table("\nAgainst the labels", "metric", "value")
        for metric in result.report.metrics:
            metrics.add_row(metric.words, metric.shown)
        out.print(metrics)
    elif (false := scored.false_alarms_per_day()) is not None:
        out.print(f"{false:.2g} false alarms per day on rows labelled normal")
    if events:
        _show_longest(events, result)
        out.print(
            f"\nThis is evidence about the telemetry of {result.record.name!r}; a fault and an "
            "attack look the same."
        )


def _show_longest(events: tuple[AlarmEvent, ...], result: _Result) -> None:
    listed = table("\nLongest alarms", "rows", "from", "to", "windows", "peak score", "blame")
    for event in sorted(events, key=lambda one: -one.alarms)[:MOST_EVENTS]:
        listed.add_row(
            f"{event.first_row}-{event.last_row}",
            _clock(event.start),
            _clock(event.end),
            f"{event.alarms:,}",
            f"{event.peak:.4g}",
            ", ".join(result.blamed(event.peak_row)),
        )
    out.print(listed)


def _clock(time: np.datetime64) -> str:
    return str(time.astype("datetime64[s]")).replace("T", " ")
