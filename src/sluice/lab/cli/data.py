"""`sluice data make`: simulate a plant and write its record."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated
from warnings import catch_warnings, simplefilter

import typer

from sluice.cli import Json, Quiet, emit, out, warn, working, writes_file
from sluice.errors import SettingError
from sluice.lab.plants import simulate, varied_site
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


class Sites(StrEnum):
    """How plants of a federation differ."""

    VARIED = "varied"


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
    sites: Annotated[
        Sites | None,
        typer.Option(
            help="varied: one site of a federation of line or treatment plants, with other tags, "
            "units, sizes, set-points and sensors than the plant without this option."
        ),
    ] = None,
    site: Annotated[int, typer.Option(min=1, help="Number of the site, with --sites.")] = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulate a plant and write its record.

    With --sites varied, --json also prints which tag of the plant each tag of the site is.

    Example: [bold]sluice data make treatment --attacks --as swat --out attack.csv[/bold]
    """
    if sites is None and site != 1:
        raise SettingError(f"--site {site} needs --sites varied; a plant alone has no sites")
    layout = FileLayout(as_.value) if as_ else layout_for(out_path)
    with (
        working(f"simulating {plant}", quiet=quiet or json),
        catch_warnings(record=True) as said,
    ):
        simplefilter("always", IdleNetworkWarning)
        reference: dict[str, str] = {}
        if sites is None:
            record = simulate(plant, seed=seed, days=days, attacks=attacks)
        else:
            varied = varied_site(plant, site, seed=seed, days=days, attacks=attacks)
            record, reference = varied.record, dict(varied.reference)
    for warning in said:
        warn(str(warning.message))
    with working(f"writing {out_path}", quiet=quiet or json):
        write(record, out_path, layout)
    attacked = len(record.attack_segments)
    if json:
        made: dict[str, object] = {
            "rows": len(record),
            "channels": len(record.channels),
            "attacks": attacked,
        }
        emit(made | ({"reference": reference} if sites else {}))
    else:
        out.print(
            f"{out_path}: {len(record):,} rows of {len(record.channels)} channels every "
            f"{record.stride_s:g} s, {attacked} attacks"
        )
