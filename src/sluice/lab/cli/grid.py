"""`sluice lab`: plan, run and resume experiment grids."""

from pathlib import Path
from typing import Annotated

import typer

from sluice.cli import Json, Quiet, emit, reads_folder, warn, writes_file, writes_folder
from sluice.files import demand_room
from sluice.lab.cli import grid_audit as lab_audit
from sluice.lab.cli import grid_reading as lab_reading
from sluice.lab.cli.grid_progress import LabView
from sluice.lab.cli.grid_reading import Results
from sluice.lab.cli.grid_words import describe, payload, plan_payload, show_plan, show_status
from sluice.lab.grids import EngineName, GridPlan, plan_grid, preset_names, resume_grid, run_grid
from sluice.lab.results import Counts, ResultStore

__all__ = ["app"]

app = typer.Typer(help="Plan, run, resume, inspect, export and report experiment grids.")
app.command()(lab_audit.audit)
app.command()(lab_reading.status)
app.command()(lab_reading.export)
app.command()(lab_reading.report)

INCOMPLETE = 3

GridName = Annotated[
    str,
    typer.Argument(metavar="GRID", help=f"A grid file, or one of: {', '.join(preset_names())}."),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the records; default: $SLUICE_DATA, else the grid file's folder.",
        click_type=reads_folder(),
    ),
]
Only = Annotated[
    list[str] | None, typer.Option(help="Select only cells of this record; may be repeated.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Number of processes; default: one per core.")
]

Federations = Annotated[
    Path | None,
    typer.Option(
        help="File of federations trained elsewhere: equal ones are not trained again. When "
        "the run ends, the file is replaced by one with all federations.",
        click_type=writes_file(),
    ),
]

EngineOption = Annotated[
    EngineName,
    typer.Option("--engine", help="Run in local processes or on a Ray cluster (extra 'ray')."),
]


@app.command()
def plan(grid: GridName, data: Data = None, only: Only = None, json: Json = False) -> None:
    """Check a grid and count its cells and federations; nothing runs.

    Example: [bold]sluice lab plan paper --only swat[/bold]
    """
    planned = _planned(grid, data, only)
    if json:
        emit(plan_payload(planned))
    else:
        show_plan(planned)


@app.command()
def run(
    grid: GridName,
    out_dir: Annotated[
        Path,
        typer.Option("--out", help="The results folder to create.", click_type=writes_folder()),
    ],
    workers: Workers = None,
    data: Data = None,
    only: Only = None,
    engine: EngineOption = EngineName.LOCAL,
    federations: Federations = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a grid into a new results folder.

    The whole grid is checked before it starts. A cell that fails stores the reason and does not
    stop the others; the command then exits with 3. Continue a stopped run with 'sluice lab resume'.

    Example: [bold]sluice lab run paper --only batadal --data data --out results[/bold]
    """
    planned = _planned(grid, data, only)
    demand_room(out_dir)
    if not json:
        show_plan(planned)
    with LabView(describe, quiet=quiet or json) as view:
        counts = run_grid(
            planned,
            out_dir,
            workers=workers,
            engine=engine,
            federations=federations,
            watcher=view,
            warn=warn,
        )
    _show(out_dir, counts, json=json)


@app.command()
def resume(
    results: Results,
    workers: Workers = None,
    engine: EngineOption = EngineName.LOCAL,
    failed: Annotated[bool, typer.Option("--failed", help="Also run failed cells again.")] = False,
    mixed: Annotated[
        bool, typer.Option("--mixed", help="Continue even if code or environment changed.")
    ] = False,
    federations: Federations = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Continue a grid that was stopped; interrupted cells run again, finished ones do not.

    Example: [bold]sluice lab resume results[/bold]
    """
    demand_room(results)
    with LabView(describe, quiet=quiet or json) as view:
        counts = resume_grid(
            results,
            workers=workers,
            engine=engine,
            failed=failed,
            mixed=mixed,
            federations=federations,
            watcher=view,
            warn=warn,
        )
    _show(results, counts, json=json)


def _planned(grid: str, data: Path | None, only: list[str] | None) -> GridPlan:
    planned = plan_grid(grid, data=data, only=only or ())
    for note in planned.stand_ins:
        warn(note)
    return planned


def _show(results: Path, counts: Counts, *, json: bool) -> None:
    store = ResultStore(results, read_only=True)
    if json:
        emit(payload(store))
    else:
        show_status(store)
    store.close()
    if counts.failed:
        raise typer.Exit(INCOMPLETE)
