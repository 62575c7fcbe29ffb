"""`sluice coordinator template`: derive the template of a kind of plant from a reference record."""

from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.console import Json, emit, out
from sluice.cli.options import Every, PlantPath, RecordPath, SkipSeconds, open_record
from sluice.cli.paths import reads_file, writes_file

__all__ = ["template"]


def template(
    record: RecordPath,
    out_path: Annotated[
        Path, typer.Option("--out", help="The template to write (JSON).", click_type=writes_file())
    ],
    rules: Annotated[
        Path | None,
        typer.Option(
            help="Rules of the reference plant: they tell which points are connected.",
            click_type=reads_file("a rules file"),
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The template's name; default: the record's.")
    ] = None,
    plant_file: PlantPath = None,
    every: Every = 1,
    skip_seconds: SkipSeconds = 0.0,
    json: Json = False,
) -> None:
    """Derive a template from a clean record: the points that plants of this kind share.

    The names of the record's channels become the names of the points. A plant file can give them
    others. The template holds statistics of the record and none of its rows.

    Example: [bold]sluice coordinator template reference.parquet --out template.json[/bold]
    """
    from sluice.invariants import load_rules
    from sluice.template import derive_template, write_template

    loaded = open_record(record, plant=plant_file, skip_s=skip_seconds, every=every)
    ties = [rule.relation.channels for rule in load_rules(rules).invariants] if rules else []
    derived = derive_template(loaded, name=name, ties=ties)
    write_template(derived, out_path)
    still = [point.name for point in derived.points if point.still]
    if json:
        emit(
            {
                "template": derived.name,
                "points": list(derived.names),
                "still": still,
                "digest": derived.digest,
            }
        )
        return
    out.print(
        f"{out_path}: template {derived.name!r} of {len(derived.points)} points", markup=False
    )
    if still:
        out.print(
            f"{len(still)} points never change in this record, so nothing tells them apart: "
            f"{', '.join(still)}",
            markup=False,
        )
