"""The options that every command which reads a record shares."""

import math
from pathlib import Path
from typing import Annotated

import typer

from sluice.errors import SettingError
from sluice.telemetry import Fill, Record, read_plant_file, read_record

__all__ = [
    "Every",
    "FillWith",
    "FormatName",
    "PlantPath",
    "RecordPath",
    "SkipSeconds",
    "open_record",
    "refuse_overwriting",
]

RecordPath = Annotated[Path, typer.Argument(metavar="RECORD", help="A record's file or folder.")]
PlantPath = Annotated[
    Path | None, typer.Option("--plant", help="Plant file (TOML) that declares channels.")
]
FormatName = Annotated[
    str | None, typer.Option("--format", help="Force a format (see data list) instead of sniffing.")
]
FillWith = Annotated[
    Fill | None,
    typer.Option(help="Missing readings; default: only what the record's documentation fills."),
]
SkipSeconds = Annotated[
    float, typer.Option("--skip-seconds", min=0, help="Drop a start-up transient (SWaT: 21600).")
]
Every = Annotated[int, typer.Option(min=1, help="Keep every n-th row (SWaT and WADI: 5).")]


def open_record(
    path: Path,
    *,
    plant: Path | None = None,
    format_name: str | None = None,
    fill: Fill | None = None,
    skip_s: float = 0.0,
    every: int = 1,
) -> Record:
    """Read a record as the shared options say."""
    declared = read_plant_file(plant) if plant else None
    record = read_record(path, plant=declared, format_name=format_name, fill=fill)
    if not math.isfinite(skip_s) or skip_s >= len(record) * record.stride_s:
        lasts = f"{len(record) * record.stride_s:g} s"
        raise SettingError(
            f"--skip-seconds {skip_s:g} leaves nothing of {path}, which lasts {lasts}"
        )
    if skip_s:
        record = record.without_first(skip_s)
    return record.every(every) if every > 1 else record


def refuse_overwriting(written: Path, *reads: Path | None) -> None:
    """Refuse to write over a file that is read, or over one in a folder that is read."""
    if not written.exists():
        return
    for read in reads:
        if read is None or not read.exists():
            continue
        inside = read.is_dir() and written.resolve().is_relative_to(read.resolve())
        if inside or written.samefile(read):
            raise SettingError(f"{written} is what is read; write somewhere else")
