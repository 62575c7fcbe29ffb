"""`sluice data`: simulated plants, and what Sluice makes of any plant's record."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.commands import CommandGroup
from sluice.cli.console import Json, Quiet, emit, out, table, working
from sluice.cli.options import (
    Every,
    FillWith,
    FormatName,
    PlantPath,
    RecordPath,
    SkipSeconds,
    open_record,
)
from sluice.errors import SettingError
from sluice.plugins import load_all
from sluice.reports import write_record_page
from sluice.telemetry import Summary, summarise, write_plant_file
from sluice.telemetry.formats import FORMATS
from sluice.telemetry.writers import layout_for, write

__all__ = ["app"]

app = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, help="Simulated plants and plant records."
)


@app.command("list")
def list_plants(json: Json = False) -> None:
    """List the simulated plants and the record formats.

    Example: [bold]sluice data list[/bold]
    """
    plants = [plant for known in load_all("sluice.plants").values() for plant in known]
    if json:
        listed = [{"name": p.name, "title": p.title, "days": p.days} for p in plants]
        emit(
            {
                "plants": listed,
                "formats": [{"name": f.name, "title": f.title} for f in FORMATS.values()],
            }
        )
        return
    drawn = table("Simulated plants (sluice data make NAME)", "name", "days", "what it is")
    for plant in plants:
        drawn.add_row(plant.name, f"{plant.days:g}", plant.title)
    out.print(drawn)
    known = table("Record formats (sniffed; --format to force)", "name", "what it reads")
    for format_ in FORMATS.values():
        known.add_row(format_.name, format_.title)
    known.add_row("plain", "any CSV or Parquet with a time column, wide or long")
    out.print(known)


@app.command()
def inspect(
    record: RecordPath,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    html: Annotated[
        Path | None, typer.Option(help="Write a page with every channel drawn.")
    ] = None,
    write_plant: Annotated[
        Path | None, typer.Option(help="Write what was inferred as a plant file to correct.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what Sluice makes of a record: channels, roles, stride, gaps, labels, quirks met.

    Rows of stretches are counted from 0, first and last included.

    Example: [bold]sluice data inspect BATADAL_dataset04.csv --html page.html[/bold]
    """
    quiet = quiet or json
    with working(f"reading {record}", quiet=quiet):
        loaded = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
        summary = summarise(loaded)
    if html:
        with working(f"drawing {html}", quiet=quiet):
            write_record_page(loaded, summary, html)
    if write_plant:
        if write_plant.exists():
            raise SettingError(f"{write_plant} exists and may hold corrections; name another file")
        write_plant_file(loaded, write_plant)
    if json:
        emit(_payload(summary))
    else:
        _show(summary)


@app.command()
def convert(
    record: RecordPath,
    out_path: Annotated[Path, typer.Option("--out", help="The file to write.")],
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write any known record as CSV, Parquet or IPAL state lines, by the suffix of --out.

    Example: [bold]sluice data convert WADI_14days_new.csv --out wadi.parquet[/bold]
    """
    layout = layout_for(out_path)
    with working(f"converting {record}", quiet=quiet or json):
        loaded = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
        if out_path.exists() and out_path.samefile(record):
            raise SettingError(f"{out_path} is the record itself; write somewhere else")
        write(loaded, out_path, layout)
    if json:
        emit({"rows": len(loaded)})
    else:
        out.print(f"{out_path}: {len(loaded):,} rows of {len(loaded.channels)} channels")


def _payload(summary: Summary) -> dict[str, object]:
    return {
        "name": summary.name,
        "rows": summary.rows,
        "stride_s": summary.stride_s,
        "start": summary.start,
        "end": summary.end,
        "channels": [
            {
                "name": seen.channel.name,
                "role": seen.channel.role.value,
                "unit": seen.channel.unit,
                "why": seen.channel.why,
                "codes": asdict(seen.channel.codes) if seen.channel.codes else None,
                "low": seen.low,
                "high": seen.high,
                "missing": seen.missing,
            }
            for seen in summary.channels
        ],
        "roles": summary.roles,
        "gaps": [asdict(gap) for gap in summary.gaps],
        "attack_segments": [asdict(run) for run in summary.attack_segments],
        "attack_rows": summary.attack_rows,
        "unlabelled_rows": summary.unlabelled_rows,
        "notes": [asdict(note) for note in summary.notes],
    }


def _show(summary: Summary) -> None:
    roles = ", ".join(f"{count} {role}" for role, count in summary.roles.items())
    out.print(f"[bold]{summary.name}[/bold]: {summary.rows:,} rows every {summary.stride_s:g} s")
    out.print(f"from {summary.start} to {summary.end}; {roles}")
    out.print(
        f"{summary.attack_rows:,} attack rows in {len(summary.attack_segments)} segments, "
        f"{summary.unlabelled_rows:,} unlabelled rows, {len(summary.gaps)} time jumps"
    )
    drawn = table("\nChannels", "name", "role", "unit", "low", "high", "missing", "why")
    for seen in summary.channels:
        channel = seen.channel
        drawn.add_row(
            channel.name,
            channel.role.value,
            channel.unit,
            f"{seen.low:g}",
            f"{seen.high:g}",
            str(seen.missing or ""),
            channel.why,
        )
    out.print(drawn)
    for title, stretches in (("Time jumps", summary.gaps), ("Attacks", summary.attack_segments)):
        if stretches:
            listed = table(f"\n{title}", "rows", "from", "to")
            for run in stretches:
                listed.add_row(f"{run.start_row}-{run.end_row}", run.start, run.end)
            out.print(listed)
    if summary.notes:
        quirks = table("\nMet while reading", "channel", "rows", "first", "what")
        for note in summary.notes:
            first = "" if note.first_row is None else str(note.first_row)
            quirks.add_row(note.channel, str(note.rows or ""), first, note.what)
        out.print(quirks)
