"""Run a grid into a results folder, or continue one that was stopped."""

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path

from sluice.errors import ResultsError
from sluice.lab.grids.gridfile import read_grid
from sluice.lab.grids.kept import KeptFederations
from sluice.lab.grids.planning import GridPlan, planned
from sluice.lab.grids.work import Work, work_from_json, work_to_json
from sluice.lab.grids.workbench import LabBench
from sluice.lab.results import (
    Counts,
    GridFacts,
    Owner,
    Provenance,
    ResultStore,
    WorkRow,
    provenance,
    settings_of,
)
from sluice.lab.results.workers import Engine, LocalPool, Runner, Silent, Watcher
from sluice.lab.trials import KEPT

__all__ = ["EngineName", "plan_grid", "resume_grid", "run_grid", "run_store"]


class EngineName(StrEnum):
    """Where cells run."""

    LOCAL = "local"
    RAY = "ray"


def plan_grid(grid: str, *, data: Path | None = None, only: Sequence[str] = ()) -> GridPlan:
    """Check a grid file, or a preset by name, and return the cells it consists of.

    `data` is the folder of the grid's records: by default SLUICE_DATA, else the grid's own folder.
    """
    folder = data or os.environ.get("SLUICE_DATA") or Path(grid).parent
    return planned(read_grid(grid), data=Path(folder), only=only)


def run_grid(  # noqa: PLR0913 - the options of `sluice lab run`
    plan: GridPlan,
    folder: str | Path,
    *,
    workers: int | None = None,
    engine: EngineName = EngineName.LOCAL,
    federations: Path | None = None,
    watcher: Watcher | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> Counts:
    """Run a planned grid into a new results folder; return how many cells are done and failed.

    `federations` is a file of federations that were trained elsewhere. Equal ones are not trained
    again. When the run ends, the file is replaced by one that also has those of this run.
    """
    kept = _kept(federations, plan.works, warn)
    facts = GridFacts(name=plan.name, stand_ins=plan.stand_ins)
    store = ResultStore.create(Path(folder), facts, _work_rows(plan))
    try:
        with kept.shared_with(store) if kept else nullcontext():
            return run_store(store, workers=workers, engine=engine, watcher=watcher)
    finally:
        store.close()


def resume_grid(  # noqa: PLR0913 - the options of `sluice lab resume`
    folder: str | Path,
    *,
    workers: int | None = None,
    engine: EngineName = EngineName.LOCAL,
    failed: bool = False,
    mixed: bool = False,
    federations: Path | None = None,
    watcher: Watcher | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> Counts:
    """Continue a grid that was stopped; with `failed`, run failed cells again too.

    Results of other code are refused unless `mixed`; then `warn` is called before anything runs.
    `federations` is a file as in `run_grid`.
    """
    store = ResultStore(Path(folder))
    try:
        problem = _mixing(store, provenance(), mixed=mixed)
        if problem:
            warn(problem)
        store.release_the_dead()
        if failed:
            store.retry_failed()
        works = [work_from_json(settings) for settings in settings_of(store)]
        kept = _kept(federations, works, warn)
        with kept.shared_with(store) if kept else nullcontext():
            return run_store(store, workers=workers, engine=engine, watcher=watcher)
    finally:
        store.close()


def run_store(
    store: ResultStore,
    *,
    workers: int | None = None,
    engine: EngineName = EngineName.LOCAL,
    watcher: Watcher | None = None,
) -> Counts:
    """Run every cell of a results folder that is not done."""
    made_by = provenance()
    with Owner(store.folder) as owner:
        runner = Runner(
            store=store,
            owner=owner,
            made_by=made_by,
            engine=_engine(engine, workers, store, owner, made_by),
            watcher=watcher or Silent(),
        )
        return runner.run()


def _work_rows(plan: GridPlan) -> list[WorkRow]:
    waiting: dict[str, list[int]] = {}
    for at, cell in enumerate(plan.cells):
        waiting.setdefault(cell.work.id, []).append(at)
    return [
        WorkRow(
            id=work.id,
            layout=work.layout.id,
            rule=work.rule,
            settings=work_to_json(work),
            cells=tuple((at, plan.cells[at].asked) for at in waiting[work.id]),
        )
        for work in plan.works
    ]


def _engine(
    name: EngineName, workers: int | None, store: ResultStore, owner: Owner, made_by: Provenance
) -> Engine:
    bench = LabBench(kept=store.folder / KEPT, code=made_by.code)
    if name is EngineName.LOCAL:
        return LocalPool(workers or os.cpu_count() or 1, lock=owner.path, bench=bench)
    from sluice.lab.results.workers import RayPool  # noqa: PLC0415 - Ray is an extra

    return RayPool(workers, bench=bench)


def _kept(
    path: Path | None, works: Sequence[Work], warn: Callable[[str], None]
) -> KeptFederations | None:
    return KeptFederations.of(path, works, now=provenance(), warn=warn) if path else None


def _mixing(store: ResultStore, now: Provenance, *, mixed: bool) -> str:
    """Refuse to continue with other code, because the results could not be compared."""
    same = (now.code, now.environment)  # a commit that touches neither changes no result
    before = [maker for maker in store.makers() if (maker.code, maker.environment) != same]
    if not before:
        return ""
    other = before[0]
    what = "code" if other.code != now.code else "installed packages"
    problem = (
        f"results in {store.folder} come from other {what} (commit {other.commit[:12]}, now "
        f"{now.commit[:12]})"
    )
    if not mixed:
        raise ResultsError(f"{problem}; run the grid into a new folder, or mix them with --mixed")
    return f"{problem}; every result states which it comes from"
