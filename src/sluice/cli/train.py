"""`sluice train`: train a detector on one plant's clean rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluice.cli.console import Json, Quiet, emit, known, out, warn, working
from sluice.cli.options import (
    Every,
    FillWith,
    FormatName,
    PlantPath,
    RecordPaths,
    SkipSeconds,
    listed,
    open_record,
    refuse_overwriting,
)
from sluice.cli.paths import reads_file, writes_file

if TYPE_CHECKING:
    from sluice.detector import Detector

__all__ = ["train"]


def train(
    record: RecordPaths,
    out_path: Annotated[
        Path,
        typer.Option(
            "--out", help="The detector's file to write (.safetensors).", click_type=writes_file()
        ),
    ],
    rules: Annotated[
        Path | None,
        typer.Option(
            help="The plant's rules file; default: rules are mined from the same rows.",
            click_type=reads_file("a rules file"),
        ),
    ] = None,
    detector: Annotated[
        str,
        typer.Option(
            "--detector",
            help="physics+moments, moments, autoencoder, subspace, or physics+ another one.",
        ),
    ] = "physics+moments",
    false_alarms: Annotated[
        float,
        typer.Option(
            "--false-alarms-per-week", help="How many false alarms a week the threshold allows."
        ),
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed (autoencoder only).")] = 0,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a detector on one plant's clean rows; labels are not needed.

    The first 70 % of the rows fit the detector, and the others calibrate it. The rules are written
    into the detector's file.

    Example: [bold]sluice train march.csv --rules rules.json --out model.safetensors[/bold]
    """
    from sluice.detector import save_detector, trained_kinds
    from sluice.detector import train as train_detector
    from sluice.invariants import load_rules

    quiet = quiet or json
    refuse_overwriting(out_path, *record, plant, rules)
    known("detector", detector, trained_kinds())
    own = load_rules(rules) if rules else None
    with working(f"reading {listed(record)}", quiet=quiet):
        loaded = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
    with working(f"training on {len(loaded):,} rows", quiet=quiet):
        trained = train_detector(
            loaded, kind=detector, rules=own, seed=seed, false_alarms_per_week=false_alarms
        )
    save_detector(trained, out_path)
    if trained.shortfall:
        warn(trained.shortfall)
    if json:
        emit(_payload(trained, out_path))
    else:
        out.print(
            f"{out_path}: {detector} over {len(trained.framing.scaler.names)} channels; an alarm "
            f"is a score above {trained.threshold.score:.4g}, {trained.threshold.origin}",
            markup=False,
        )


def _payload(trained: "Detector", path: Path) -> dict[str, object]:
    from sluice.detector import RateThreshold

    assert isinstance(trained.threshold, RateThreshold)
    return {
        "file": str(path),
        "detector": trained.kind,
        "rules": trained.fusion.physics.digest if trained.fusion else None,
        "channels": trained.framing.scaler.names,
        "window_rows": trained.framing.window_rows,
        "stride_s": trained.framing.stride_s,
        "windows": trained.training.windows,
        "clean_windows": trained.threshold.clean_windows,
        "threshold": trained.threshold.score,
        "clean_events": trained.threshold.clean_events,
        "false_alarms_per_week": trained.threshold.false_alarms_per_week,
    }
