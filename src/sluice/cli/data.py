"""`sluice data`: list simulated plants and formats, inspect and convert records."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from sluice.cli.commands import CommandGroup
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
    thinned,
)
from sluice.cli.paths import writes_file
from sluice.cli.questions import ask_until_clear
from sluice.errors import SettingError
from sluice.plugins import load_all
from sluice.reports import write_record_page
from sluice.telemetry import (
    PlantFile,
    Summary,
    read_plant_file,
    read_with_settings,
    summarise,
    write_plant_file,
)
from sluice.telemetry.formats import FORMATS
from sluice.telemetry.writers import layout_for, write

__all__ = ["app"]

app = typer.Typer(
    cls=CommandGroup, no_args_is_help=True, help="Inspect, convert and simulate plant records."
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
    simulated = table("Simulated plants (sluice data make NAME)", "name", "days", "description")
    for plant in plants:
        simulated.add_row(plant.name, f"{plant.days:g}", plant.title)
    out.print(simulated)
    formats = table("Record formats (detected; --format overrides)", "name", "description")
    for format_ in FORMATS.values():
        formats.add_row(format_.name, format_.title)
    formats.add_row("plain", "any CSV, workbook or Parquet with a time column, wide or long")
    out.print(formats)


@app.command()
def inspect(
    record: RecordPaths,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write an HTML page with a plot of every channel.", click_type=writes_file()
        ),
    ] = None,
    self_contained: SelfContained = False,
    write_plant: Annotated[
        Path | None,
        typer.Option(
            help="Write how the record was read, and its channels, as a plant file.",
            click_type=writes_file(),
        ),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Ask about everything that is unclear, then write the answers as a plant file "
            "(--write-plant; default: plant.toml).",
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show how Sluice reads a record: channels, roles, stride, gaps, labels and notes on the file.

    Rows are counted from 0; a stretch includes its first and its last row.

    If a record can be read in more than one way, it is refused, and the message names the setting
    of the plant file that decides. --fix asks instead; it also reads its answers from a pipe.

    Example: [bold]sluice data inspect BATADAL_dataset04.csv --html page.html[/bold]
    """
    quiet = quiet or json
    refuse_without_page(html, self_contained=self_contained, option="--html PAGE")
    if fix and write_plant is None:
        write_plant = Path("plant.toml")
    if html:
        refuse_overwriting(html, *record, plant)
    if write_plant and write_plant.exists():
        raise SettingError(
            f"{write_plant} exists and may contain corrections; name another file with "
            "--write-plant"
        )
    declared = read_plant_file(plant) if plant else PlantFile()
    if fix:
        found = ask_until_clear(record, plant=declared, format_name=format_, fill=fill)
    else:
        with working(f"reading {listed(record)}", quiet=quiet):
            found = read_with_settings(record, plant=declared, format_name=format_, fill=fill)
    loaded = thinned(found.record, skip_s=skip, every=every)
    summary = summarise(loaded)
    if html:
        with working(f"drawing {html}", quiet=quiet):
            write_record_page(loaded, summary, html, self_contained=self_contained)
    if write_plant:
        write_plant_file(loaded, write_plant, plant=found.plant)
        if fix:
            typer.echo(f"{write_plant} written; use it with --plant {write_plant}", err=True)
    if json:
        emit(_payload(summary))
    else:
        _show(summary)


@app.command()
def convert(
    record: RecordPaths,
    out_path: Annotated[
        Path,
        typer.Option(
            "--out",
            help="The file to write; its suffix selects the format.",
            click_type=writes_file(),
        ),
    ],
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Convert a record to CSV, Parquet or IPAL state lines; the suffix of --out selects which.

    Example: [bold]sluice data convert WADI_14days_new.csv --out wadi.parquet[/bold]
    """
    layout = layout_for(out_path)
    with working(f"converting {listed(record)}", quiet=quiet or json):
        loaded = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
        if out_path.exists() and any(out_path.samefile(each) for each in record):
            raise SettingError(f"{out_path} is the record itself; write another file")
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
                "name": each.channel.name,
                "role": each.channel.role.value,
                "unit": each.channel.unit,
                "why": each.channel.why,
                "codes": asdict(each.channel.codes) if each.channel.codes else None,
                "low": each.low,
                "high": each.high,
                "missing": each.missing,
            }
            for each in summary.channels
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
    out.print(
        f"[bold]{escape(summary.name)}[/bold]: {summary.rows:,} rows every {summary.stride_s:g} s"
    )
    out.print(f"from {summary.start} to {summary.end}; {roles}")
    out.print(
        f"{summary.attack_rows:,} attack rows in {len(summary.attack_segments)} segments, "
        f"{summary.unlabelled_rows:,} unlabelled rows, {len(summary.gaps)} time jumps"
    )
    channels = table("\nChannels", "name", "role", "unit", "low", "high", "missing", "why")
    for each in summary.channels:
        channels.add_row(
            escape(each.channel.name),
            each.channel.role.value,
            escape(each.channel.unit),
            f"{each.low:g}",
            f"{each.high:g}",
            str(each.missing or ""),
            escape(each.channel.why),
        )
    out.print(channels)
    for title, stretches in (("Time jumps", summary.gaps), ("Attacks", summary.attack_segments)):
        if stretches:
            listed = table(f"\n{title}", "rows", "from", "to")
            for run in stretches:
                listed.add_row(f"{run.start_row}-{run.end_row}", run.start, run.end)
            out.print(listed)
    if summary.notes:
        notes = table("\nNotes on the file", "channel", "rows", "first row", "note")
        for note in summary.notes:
            first = "" if note.first_row is None else str(note.first_row)
            notes.add_row(escape(note.channel), str(note.rows or ""), first, escape(note.what))
        out.print(notes)
