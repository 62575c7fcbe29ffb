"""`sluice model`: show a detector's card, and export a detector for other programs."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.console import Json, emit, out, table
from sluice.cli.options import refuse_overwriting
from sluice.cli.paths import reads_file, writes_file
from sluice.detector import Detector, load_detector

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Show and export trained detectors.")

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


def _card(detector: Detector) -> dict[str, object]:
    """Return what a detector's file says about it."""
    framing, training = detector.framing, detector.training
    return {
        "kind": str(detector.model.kind),
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
    }
