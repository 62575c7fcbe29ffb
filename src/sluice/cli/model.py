"""`sluice model`: show, export and recalibrate detectors."""

from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.console import Json, emit, out, table, warn
from sluice.cli.options import Every, FormatName, PlantPath, open_record, refuse_overwriting
from sluice.cli.paths import reads_file, reads_record, writes_file
from sluice.detector import Detector, load_detector, save_detector

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Show, export and recalibrate trained detectors.")

ModelPath = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A trained detector (.safetensors).",
        click_type=reads_file("a detector's file"),
    ),
]


class ModelFormat(StrEnum):
    """The formats of an exported detector."""

    ONNX = "onnx"


@app.command()
def show(model: ModelPath, json: Json = False) -> None:
    """Show a detector's card: how it was trained, its channels and its threshold.

    Example: [bold]sluice model show model.safetensors[/bold]
    """
    detector = load_detector(model)
    card = _card(detector)
    if json:
        emit(card)
        return
    listed = table("", "", "")
    for name, value in card.items():
        words = ", ".join(map(str, value)) if isinstance(value, tuple) else value
        if words not in (None, ""):
            listed.add_row(name.replace("_", " "), str(words))
    out.print(listed)


@app.command()
def export(
    model: ModelPath,
    out_path: Annotated[
        Path, typer.Option("--out", help="The file to write.", click_type=writes_file())
    ],
    format_: Annotated[
        ModelFormat, typer.Option("--format", help="The format of the file.")
    ] = ModelFormat.ONNX,
    json: Json = False,
) -> None:
    """Export a detector for programs that do not have Sluice.

    The ONNX graph takes windows of readings in the plant's own units, and returns the score and the
    alarm of each window. Its metadata names the channels in their order.

    Example: [bold]sluice model export model.safetensors --format onnx --out model.onnx[/bold]
    """
    from sluice.detector import export_onnx

    refuse_overwriting(out_path, model)
    detector = load_detector(model)
    export_onnx(detector, out_path)
    if json:
        emit({"format": format_.value, "file": str(out_path), **_card(detector)})
    else:
        out.print(f"{out_path}: {len(detector.framing.scaler.names)} channels", markup=False)


@app.command()
def recalibrate(
    model: ModelPath,
    clean: Annotated[
        list[Path],
        typer.Option("--clean", help="Recent clean rows of this plant.", click_type=reads_record()),
    ],
    out_path: Annotated[
        Path,
        typer.Option("--out", help="The new detector's file to write.", click_type=writes_file()),
    ],
    false_alarms: Annotated[
        float | None,
        typer.Option(
            "--false-alarms-per-week",
            help="False alarms a week; of a vote without rules, of each voter. Default: as before.",
        ),
    ] = None,
    plant: PlantPath = None,
    format_: FormatName = None,
    every: Every = 1,
    json: Json = False,
) -> None:
    """Set the thresholds of a detector on this plant's clean rows; nothing else does it.

    The model and the rules stay as they are. The command prints every threshold before and after.
    The new file lists all calibrations, and `sluice model restore` goes back by one.

    Example: [bold]sluice model recalibrate model.safetensors --clean may.csv --out
    new.safetensors[/bold]
    """
    from sluice.detector import recalibrated

    refuse_overwriting(out_path, model, *clean)
    detector = load_detector(model)
    record = open_record(clean, plant=plant, format_name=format_, every=every)
    now = datetime.now(UTC)
    changed = recalibrated(detector, record, time=now, false_alarms_per_week=false_alarms)
    save_detector(changed, out_path)
    if changed.shortfall:
        warn(changed.shortfall)
    _show_changes(changed, out_path, json=json)


@app.command()
def restore(
    model: ModelPath,
    out_path: Annotated[
        Path,
        typer.Option("--out", help="The new detector's file to write.", click_type=writes_file()),
    ],
    json: Json = False,
) -> None:
    """Undo the last calibration of a detector; the file lists this act too.

    Example: [bold]sluice model restore new.safetensors --out old.safetensors[/bold]
    """
    from sluice.detector import restored

    refuse_overwriting(out_path, model)
    changed = restored(load_detector(model), time=datetime.now(UTC))
    save_detector(changed, out_path)
    _show_changes(changed, out_path, json=json)


def _show_changes(detector: Detector, path: Path, *, json: bool) -> None:
    """Print the last calibration and what it changed."""
    from sluice.detector import VotedModel, calibration_changes, last_calibration

    changes, used = calibration_changes(detector), last_calibration(detector)
    if json:
        model = detector.model
        entry = model.calibration if isinstance(model, VotedModel) else used
        emit(
            {
                "file": str(path),
                "calibration": asdict(entry),
                "changes": [asdict(change) for change in changes],
            }
        )
        return
    listed = table("", "threshold of", "before", "after", "change")
    for change in changes:
        ratio = f"{change.after / change.before - 1:+.1%}" if change.before else "from 0"
        listed.add_row(change.voter, f"{change.before:.4g}", f"{change.after:.4g}", ratio)
    out.print(listed)
    events = "" if used.clean_events is None else f"; it raises {used.clean_events} alarms on them"
    out.print(
        f"\n{path}: {used.act} at {used.time} on {used.windows:,} clean windows of "
        f"{used.record!r}{events}",
        markup=False,
    )


def _card(detector: Detector) -> dict[str, object]:
    """Return what a detector's file says about it."""
    framing, training = detector.framing, detector.training
    return {
        "kind": detector.kind,
        "rules": detector.fusion.physics.digest if detector.fusion else None,
        "channels": framing.scaler.names,
        "window_rows": framing.window_rows,
        "stride_s": framing.stride_s,
        "threshold": detector.threshold.score,
        "clean_windows": detector.threshold.clean_windows,
        **{
            name: value
            for name, value in asdict(training).items()
            if name in ("clients", "rounds", "rule", "seed", "federation", "model")
        },
        **_vote(detector),
        **_acts(detector),
    }


def _acts(detector: Detector) -> dict[str, object]:
    """Return the calibrations of a detector that is no vote; nothing before it has two."""
    if not detector.calibrations:
        return {}
    return {
        "calibrations": tuple(
            f"{one.time or 'first'}: {one.act} on {one.threshold.clean_windows:,} clean windows of "
            f"{one.record!r}"
            for one in detector.calibrations
        )
    }


def _vote(detector: Detector) -> dict[str, object]:
    """Return who votes; nothing for a detector that is no vote."""
    from sluice.detector import VotedModel

    model = detector.model
    if not isinstance(model, VotedModel):
        return {}
    return {
        "voters": tuple(voter.name for voter in model.voters),
        "voters_kind": str(model.voters[0].model.kind),
        "votes_needed": model.needed,
        "malicious": model.malicious,
        "borrowed": model.calibration.borrowed,
        "statistics": tuple(
            f"{each.member}: {each.statistic} of {each.windows:,} windows, attestation "
            f"{each.attestation[:12]}"
            for each in detector.training.contributions
        ),
        "calibrations": tuple(
            f"{one.time}: {one.act} on {one.windows:,} clean windows of {one.record!r}"
            for one in model.calibrations
        ),
    }
