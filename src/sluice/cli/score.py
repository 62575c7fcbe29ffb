"""`sluice score`: score one record with a trained detector."""

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
from sluice.detector import AlarmStretch, Scored, load_detector
from sluice.errors import SettingError
from sluice.files import atomically
from sluice.reports import write_score_page

__all__ = ["score"]

MOST_STRETCHES = 10
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
    """Score a record with a trained detector; write a score and an alarm per window.

    The table has columns time, score and alarm. A window has the time of its last row. Rows that
    end no whole window (the first ones, and those after a missing reading or a time jump) are not
    in the table.

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
        refuse_overwriting(written, *record, model)
    detector = load_detector(model)
    with working(f"reading {listed(record)}", quiet=quiet):
        loaded = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
    with working(f"scoring {len(loaded):,} rows", quiet=quiet):
        scored = detector.score(loaded)
    with atomically(out_path) as draft:
        _write(scored, draft, suffix)
        if html:  # inside, so that no table is written if the page cannot be written
            with working(f"drawing {html}", quiet=quiet):
                write_score_page(scored, loaded, detector, html, self_contained=self_contained)
    if json:
        emit(_payload(scored))
    else:
        _show(scored, loaded.name)


def _write(scored: Scored, path: Path, suffix: str) -> None:
    windows = pl.DataFrame({"time": scored.times, "score": scored.scores, "alarm": scored.alarms})
    if suffix == ".parquet":
        windows.write_parquet(path)
    else:
        windows.write_csv(path, datetime_format="%Y-%m-%dT%H:%M:%S%.f")


def _payload(scored: Scored) -> dict[str, object]:
    return {
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
    }


def _show(scored: Scored, name: str) -> None:
    stretches = scored.stretches()
    alarms = int(scored.alarms.sum())
    out.print(
        f"[bold]{alarms:,} alarms[/bold] on {len(scored):,} windows in {len(stretches):,} "
        f"stretches; the threshold is {scored.threshold.score:.4g}"
    )
    false = scored.false_alarms_per_day()
    if false is not None:
        out.print(f"{false:.2g} false alarms per day on rows labelled normal")
    if stretches:
        _show_longest(stretches)
        out.print(
            f"\nThis is evidence about the telemetry of {name!r}; a fault and an attack look the "
            "same."
        )


def _show_longest(stretches: tuple[AlarmStretch, ...]) -> None:
    listed = table("\nLongest alarms", "rows", "from", "to", "windows", "peak score")
    for stretch in sorted(stretches, key=lambda s: -s.rows)[:MOST_STRETCHES]:
        listed.add_row(
            f"{stretch.first_row}-{stretch.last_row}",
            _clock(stretch.start),
            _clock(stretch.end),
            f"{stretch.rows:,}",
            f"{stretch.peak:.4g}",
        )
    out.print(listed)


def _clock(time: np.datetime64) -> str:
    return str(time.astype("datetime64[s]")).replace("T", " ")
