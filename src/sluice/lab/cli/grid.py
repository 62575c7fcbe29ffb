"""`sluice lab`: the experiment grid."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sluice.cli import Json, Quiet, emit, warn
from sluice.errors import ResultsError
from sluice.lab.cli import grid_audit as lab_audit
from sluice.lab.cli import grid_reading as lab_reading
from sluice.lab.cli.grid_progress import LabView
from sluice.lab.cli.grid_reading import Results
from sluice.lab.cli.grid_words import describe, payload, plan_payload, tell, tell_plan
from sluice.lab.grids import GridPlan, LabBench, planned, preset_names, read_grid, work_to_json
from sluice.lab.results import GridFacts, Owner, Provenance, ResultStore, WorkRow, provenance
from sluice.lab.results.workers import Engine, LocalPool, Runner
from sluice.lab.trials import KEPT

__all__ = ["app"]

app = typer.Typer(help="The experiment grid: plan, run, resume, look, export, report.")
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
    typer.Option(help="Where the grid's records are; else SLUICE_DATA, else the grid's folder."),
]
Only = Annotated[
    list[str] | None, typer.Option(help="Only the cells of this record; may be repeated.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes, a core each; default: as many as cores.")
]


class EngineName(StrEnum):
    """Where cells run."""

    LOCAL = "local"
    RAY = "ray"


EngineOption = Annotated[
    EngineName, typer.Option("--engine", help="local processes, or a Ray cluster (extra 'ray').")
]


@app.command()
def plan(grid: GridName, data: Data = None, only: Only = None, json: Json = False) -> None:
    """Check a grid and say what it comes down to; nothing runs.

    Example: [bold]sluice lab plan paper --only swat[/bold]
    """
    found = _planned(grid, data, only)
    if json:
        emit(plan_payload(found))
    else:
        tell_plan(found)


@app.command()
def run(
    grid: GridName,
    out_dir: Annotated[Path, typer.Option("--out", help="The results folder to make.")],
    workers: Workers = None,
    data: Data = None,
    only: Only = None,
    engine: EngineOption = EngineName.LOCAL,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a grid into a new results folder.

    Everything is checked before anything runs. A cell that cannot run keeps its reason and does
    not stop the others; the command then ends with 3. Whatever stops it, go on with lab resume.

    Example: [bold]sluice lab run paper --only batadal --data data --out results[/bold]
    """
    found = _planned(grid, data, only)
    if not json:
        tell_plan(found)
    facts = GridFacts(name=found.name, stand_ins=found.stand_ins)
    store = ResultStore.create(out_dir, facts, _work_rows(found))
    _run(store, workers, engine, json=json, quiet=quiet)


@app.command()
def resume(
    results: Results,
    workers: Workers = None,
    engine: EngineOption = EngineName.LOCAL,
    failed: Annotated[bool, typer.Option("--failed", help="Try failed cells again too.")] = False,
    mixed: Annotated[
        bool, typer.Option("--mixed", help="Go on although code or environment have changed.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a grid that was stopped: cells that were in flight run again, and no others.

    Example: [bold]sluice lab resume results[/bold]
    """
    store = ResultStore(results)
    _refuse_mixing(store, provenance(), mixed=mixed)
    store.release_the_dead()
    if failed:
        store.retry_failed()
    _run(store, workers, engine, json=json, quiet=quiet)


def _planned(grid: str, data: Path | None, only: list[str] | None) -> GridPlan:
    folder = data or os.environ.get("SLUICE_DATA") or Path(grid).parent
    found = planned(read_grid(grid), data=Path(folder), only=only or ())
    for note in found.stand_ins:
        warn(note)
    return found


def _work_rows(found: GridPlan) -> list[WorkRow]:
    waiting: dict[str, list[int]] = {}
    for at, cell in enumerate(found.cells):
        waiting.setdefault(cell.work.id, []).append(at)
    return [
        WorkRow(
            id=work.id,
            layout=work.layout.id,
            rule=work.rule,
            settings=work_to_json(work),
            cells=tuple((at, found.cells[at].asked) for at in waiting[work.id]),
        )
        for work in found.works
    ]


def _run(
    store: ResultStore, workers: int | None, engine: EngineName, *, json: bool, quiet: bool
) -> None:
    made_by = provenance()
    with Owner(store.folder) as owner, LabView(describe, quiet=quiet or json) as view:
        runner = Runner(
            store=store,
            owner=owner,
            made_by=made_by,
            engine=_engine(engine, workers, store, owner, made_by),
            watcher=view,
        )
        counts = runner.run()
    if json:
        emit(payload(store))
    else:
        tell(store)
    store.close()
    if counts.failed:
        raise typer.Exit(INCOMPLETE)


def _engine(
    name: EngineName, workers: int | None, store: ResultStore, owner: Owner, made_by: Provenance
) -> Engine:
    bench = LabBench(kept=store.folder / KEPT, code=made_by.code)
    if name is EngineName.LOCAL:
        return LocalPool(workers or os.cpu_count() or 1, lock=owner.path, bench=bench)
    from sluice.lab.results.workers import RayPool

    return RayPool(workers, bench=bench)


def _refuse_mixing(store: ResultStore, now: Provenance, *, mixed: bool) -> None:
    """Refuse to go on with other code: results would look alike and not be comparable."""
    same = (now.code, now.environment)  # a commit that touches neither changes no result
    before = [maker for maker in store.makers() if (maker.code, maker.environment) != same]
    if not before:
        return
    other = before[0]
    what = "code" if other.code != now.code else "installed packages"
    told = (
        f"results in {store.folder} come from other {what} (commit {other.commit[:12]}, now "
        f"{now.commit[:12]})"
    )
    if not mixed:
        raise ResultsError(f"{told}; run the grid into a new folder, or mix them with --mixed")
    warn(f"{told}; every result says which it comes from")
