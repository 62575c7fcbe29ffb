"""`sluice coordinator template`, `provisional`, `export-statistics`: what plants have in common."""

from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.console import Json, emit, out
from sluice.cli.options import Every, PlantPath, RecordPath, SkipSeconds, open_record, ties_in
from sluice.cli.paths import coordinators_folder, reads_file, writes_file
from sluice.errors import SettingError

__all__ = ["export_statistics", "provisional", "template"]


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
    from sluice.template import derive_template, write_template

    loaded = open_record(record, plant=plant_file, skip_s=skip_seconds, every=every)
    derived = derive_template(loaded, name=name, ties=ties_in(rules, loaded))
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


def provisional(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="The coordinator's folder.", click_type=coordinators_folder()
        ),
    ],
    out_path: Annotated[
        Path, typer.Option("--out", help="The rules file to write.", click_type=writes_file())
    ],
    json: Json = False,
) -> None:
    """Write provisional rules for a plant with few rows: ranges and rates of the members.

    They are in points of the federation's template. Each limit is the widest that the malicious
    members which the vote withstands cannot set alone. They serve 'sluice watch' until the plant
    has mined its own rules; gate and proofs refuse them.

    Example: [bold]sluice coordinator provisional water --out provisional.json[/bold]
    """
    from sluice.invariants import save_rules
    from sluice.network.coordinator import CoordinatorFolder, CoordinatorStore, provisional_rules

    site = CoordinatorFolder(folder)
    terms = site.terms
    if terms.template is None or terms.statistic is None:
        raise SettingError(
            f"federation {terms.federation!r} has no template or no vote, so there are no points "
            "to give limits for; found one with --detector moments --template"
        )
    store = CoordinatorStore(site.base, read_only=True)
    try:
        members = site.rules(store)
    finally:
        store.close()
    rules = provisional_rules(members, terms.template, malicious=terms.statistic.malicious)
    digest = save_rules(rules, out_path)
    if json:
        emit(
            {
                "rules": str(out_path),
                "hash": digest,
                "members": len(members),
                "limits": len(rules.invariants),
                "provisional": True,
            }
        )
    else:
        out.print(
            f"{out_path}: {len(rules.invariants)} ranges and rates from the rules of "
            f"{len(members)} plants; provisional, for 'sluice watch' only",
            markup=False,
        )


def export_statistics(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="The coordinator's folder.", click_type=coordinators_folder()
        ),
    ],
    out_path: Annotated[
        Path, typer.Option("--out", help="The file to write.", click_type=writes_file())
    ],
    json: Json = False,
) -> None:
    """Export the members' statistics for an invited plant that has too few rows to join.

    The plant makes its first detector of them ('sluice plant borrow') and checks them by the log
    ('sluice coordinator export-log'). Only members that lend thresholds have agreed to this. The
    file tells what every member's statistic tells, so send it over a channel that you trust.

    Example: [bold]sluice coordinator export-statistics water --out members.bin[/bold]
    """
    from sluice.network.coordinator import export_statistics as exported

    shared = exported(folder, out_path)
    lending = sum(member.tail is not None for member in shared.members)
    if json:
        emit(
            {
                "statistics": str(out_path),
                "members": list(shared.names),
                "tails_lent": lending,
                "hash": shared.digest,
            }
        )
    else:
        out.print(
            f"{out_path}: statistics of {len(shared.members)} plants, {lending} with a tail (hash "
            f"{shared.digest[:12]}); send it with the log to the plant that borrows",
            markup=False,
        )
