"""`sluice data make`: simulate a plant and write its record."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated
from warnings import catch_warnings, simplefilter

import typer

from sluice.cli import Json, Quiet, emit, out, warn, working, writes_file
from sluice.lab.plants import simulate
from sluice.lab.plants.distribution import IdleNetworkWarning
from sluice.telemetry import FileLayout, layout_for, write

__all__ = ["make"]


class As(StrEnum):
    """The file layouts that `--as` accepts."""

    SWAT = "swat"
    WADI = "wadi"
    BATADAL = "batadal"
    CSV = "csv"
    PARQUET = "parquet"
    IPAL = "ipal"


def make(
    plant: Annotated[
        str, typer.Argument(help="line, treatment, or network:NAME (see 'data list').")
    ],
    out_path: Annotated[
        Path, typer.Option("--out", help="The file to write.", click_type=writes_file())
    ],
    days: Annotated[
        float | None, typer.Option(help="Days to simulate; default: see 'data list'.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed; the same seed gives the same bytes.")
    ] = 0,
    attacks: Annotated[bool, typer.Option("--attacks", help="Include labelled attacks.")] = False,
    as_: Annotated[
        As | None, typer.Option("--as", help="Layout; default: by the suffix of --out.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulate a plant and write its record.

    Example: [bold]sluice data make treatment --attacks --as swat --out attack.csv[/bold]
    """
    layout = FileLayout(as_.value) if as_ else layout_for(out_path)
    with (
        working(f"simulating {plant}", quiet=quiet or json),
        catch_warnings(record=True) as said,
    ):
        simplefilter("always", IdleNetworkWarning)
        record = simulate(plant, seed=seed, days=days, attacks=attacks)
    for warning in said:
        warn(str(warning.message))
    with working(f"writing {out_path}", quiet=quiet or json):
        write(record, out_path, layout)
    attacked = len(record.attack_segments)
    if json:
        emit({"rows": len(record), "channels": len(record.channels), "attacks": attacked})
    else:
        out.print(
            f"{out_path}: {len(record):,} rows of {len(record.channels)} channels every "
            f"{record.stride_s:g} s, {attacked} attacks"
        )
