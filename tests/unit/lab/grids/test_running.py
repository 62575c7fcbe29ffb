"""Running a grid into a folder and continuing it, with the work done in this process."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sluice.errors import GridError, ResultsError
from sluice.lab.grids import running
from sluice.lab.grids.planning import GridPlan
from sluice.lab.grids.running import EngineName, plan_grid, resume_grid, run_grid
from sluice.lab.grids.work import work_from_json
from sluice.lab.results.owner import Owner
from sluice.lab.results.provenance import Provenance
from sluice.lab.results.reading import GridState, stored_cells
from sluice.lab.results.store import ResultStore
from sluice.lab.results.work import Counts, GridFacts, Made, WorkClaim
from sluice.lab.results.workers.local import LocalPool
from sluice.lab.results.workers.pool import Reply, Unable, WorkerTask
from tests.unit.lab.results.workers.fake_grid import made

GRID = """
name = "small"
[record.tanks]
plant = "line"
days = 5.0
clients = 3
[record.lost]
clean = "lost/clean.csv"
test = "lost/test.csv"
clients = 3
instead = "tanks"
[[study]]
name = "removal"
records = ["tanks", "lost"]
rules = ["fedavg", "median"]
attacks = ["replay", "channel-roll"]
modes = ["clean", "naive"]
seeds = [0]
"""
NOW = Provenance(version="1", commit="a" * 40, code="code", environment="packages")


class InThisProcess:
    """An engine of one worker that answers at once."""

    workers = 1

    def __init__(self, answer: Callable[[WorkerTask], Reply]) -> None:
        self.answer = answer
        self.replies: list[tuple[int, Reply]] = []
        self.closed = False

    def give(self, worker: int, task: WorkerTask) -> None:
        self.replies.append((worker, self.answer(task)))

    def wait(self, timeout_s: float) -> Sequence[tuple[int, Reply]]:  # noqa: ARG002 - as every engine
        assert self.replies, "no worker has a task, so no reply will come"
        replies, self.replies = self.replies, []
        return replies

    def close(self) -> None:
        self.closed = True


class Laboratory:
    """What was worked on, and who made it; work of `failing` rules cannot be done."""

    def __init__(self) -> None:
        self.maker = NOW
        self.rules: list[str] = []
        self.failing: set[str] = set()
        self.engines: list[InThisProcess] = []

    def answer(self, task: WorkerTask) -> Made | Unable:
        work = work_from_json(task.settings)
        self.rules.append(work.rule)
        if work.rule in self.failing:
            return Unable(reason=f"{work.rule} is out of order")
        return replace(made(len(self.rules)), federation=work.id)

    def engine(self, *_: object) -> InThisProcess:
        self.engines.append(InThisProcess(self.answer))
        return self.engines[-1]


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Laboratory:
    found = Laboratory()
    monkeypatch.setattr(running, "_engine", found.engine)
    monkeypatch.setattr(running, "provenance", lambda: found.maker)
    monkeypatch.delenv("SLUICE_DATA", raising=False)
    return found


@pytest.fixture
def plan(tmp_path: Path, lab: Laboratory) -> GridPlan:
    path = tmp_path / "grid.toml"
    path.write_text(GRID, encoding="utf-8")
    return plan_grid(str(path))


def states(folder: Path) -> list[GridState]:
    store = ResultStore(folder, read_only=True)
    found = [cell.state for cell in stored_cells(store)]
    store.close()
    return found


def test_records_are_sought_beside_the_grid_unless_a_folder_is_named(
    tmp_path: Path, plan: GridPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = str(tmp_path / "grid.toml")
    assert plan.stand_ins == (f"tanks STANDS IN for lost, which is not under {tmp_path}",)
    monkeypatch.setenv("SLUICE_DATA", "/by/environment")
    assert plan_grid(grid).stand_ins[0].endswith("not under /by/environment")
    assert plan_grid(grid, data=Path("/by/hand")).stand_ins[0].endswith("not under /by/hand")


def test_a_plan_can_be_of_some_records_alone(tmp_path: Path, plan: GridPlan) -> None:
    part = plan_grid(str(tmp_path / "grid.toml"), only=["tanks"])
    assert {cell.asked.record for cell in part.cells} == {"tanks"}
    assert len(plan.cells) == 2 * len(part.cells)
    with pytest.raises(GridError, match="record 'tank' is unknown"):
        plan_grid(str(tmp_path / "grid.toml"), only=["tank"])


def test_each_federation_is_run_once_for_all_cells_that_need_it(
    tmp_path: Path, plan: GridPlan, lab: Laboratory
) -> None:
    counts = run_grid(plan, tmp_path / "out")
    assert (counts.cells, counts.works) == (16, 6)  # the stand-in is the other record
    assert (counts.cells_done, counts.done, counts.failed) == (16, 6, 0)
    assert len(lab.rules) == 6
    assert [engine.closed for engine in lab.engines] == [True]


def test_cells_are_stored_in_the_order_of_the_grid_with_the_work_they_need(
    tmp_path: Path, plan: GridPlan
) -> None:
    run_grid(plan, tmp_path / "out")
    store = ResultStore(tmp_path / "out", read_only=True)
    stored = stored_cells(store)
    assert store.facts().name == "small"
    assert store.facts().stand_ins == plan.stand_ins
    store.close()
    assert [cell.asked for cell in stored] == [cell.asked for cell in plan.cells]
    assert [cell.work for cell in stored] == [cell.work.id for cell in plan.cells]
    assert [cell.federation for cell in stored] == [cell.work.id for cell in plan.cells]
    assert [work_from_json(cell.settings).id for cell in stored] == [cell.work for cell in stored]
    assert {cell.made_by for cell in stored} == {NOW}


def test_a_folder_with_results_is_not_run_into_again(
    tmp_path: Path, plan: GridPlan, lab: Laboratory
) -> None:
    run_grid(plan, tmp_path / "out")
    with pytest.raises(ResultsError, match="already holds results; continue with 'sluice lab res"):
        run_grid(plan, tmp_path / "out")
    assert len(lab.rules) == 6


def test_a_watcher_sees_the_end(tmp_path: Path, plan: GridPlan) -> None:
    class Watching:
        def __init__(self) -> None:
            self.counts: list[Counts] = []

        def seen(self, counts: Counts, at_work: Sequence[WorkClaim]) -> None:
            assert counts.running == len(at_work)
            self.counts.append(counts)

    watching = Watching()
    final = run_grid(plan, tmp_path / "out", watcher=watching)
    done = [counts.done for counts in watching.counts]
    assert done == sorted(done)
    assert watching.counts[-1] == final


def test_a_finished_grid_has_nothing_to_resume(
    tmp_path: Path, plan: GridPlan, lab: Laboratory
) -> None:
    run_grid(plan, tmp_path / "out")
    warnings: list[str] = []
    assert resume_grid(tmp_path / "out", warn=warnings.append).done == 6
    assert warnings == []
    assert len(lab.rules) == 6


def test_failed_cells_stay_failed_until_they_are_asked_for(
    tmp_path: Path, plan: GridPlan, lab: Laboratory
) -> None:
    lab.failing = {"median"}
    counts = run_grid(plan, tmp_path / "out")
    assert (counts.done, counts.failed, counts.cells_done) == (3, 3, 8)
    assert states(tmp_path / "out").count(GridState.FAILED) == 8
    lab.failing = set()
    lab.rules = []
    assert resume_grid(tmp_path / "out").failed == 3
    assert lab.rules == []
    counts = resume_grid(tmp_path / "out", failed=True)
    assert (counts.done, counts.failed) == (6, 0)
    assert lab.rules == ["median"] * 3


def test_a_run_that_was_stopped_continues_with_what_is_left(
    tmp_path: Path, plan: GridPlan, lab: Laboratory
) -> None:
    class Stopped(Exception):  # noqa: N818 - as KeyboardInterrupt
        pass

    answer = lab.answer

    def stopping(task: WorkerTask) -> Made | Unable:
        if len(lab.rules) == 2:
            raise Stopped
        return answer(task)

    lab.answer = stopping  # type: ignore[method-assign]
    with pytest.raises(Stopped):
        run_grid(plan, tmp_path / "out")
    assert lab.engines[-1].closed
    assert GridState.RUNNING not in states(tmp_path / "out")
    lab.answer = answer  # type: ignore[method-assign]
    counts = resume_grid(tmp_path / "out")
    assert counts.done == 6
    assert len(lab.rules) == 6


def test_work_of_an_owner_who_is_gone_is_done_again(tmp_path: Path, plan: GridPlan) -> None:
    run_grid(plan, tmp_path / "out")
    store = ResultStore(tmp_path / "out")
    store._file.execute(
        "UPDATE works SET state = 'running', result = NULL, owner = ?, lease_until = 1e18"
        " WHERE at = 0",
        (gone_owner(tmp_path / "out"),),
    )
    store.close()
    assert resume_grid(tmp_path / "out").done == 6


def gone_owner(folder: Path) -> str:
    with Owner(folder) as owner:
        return owner.name


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (replace(NOW, code="other", commit="b" * 40), "code"),
        (replace(NOW, environment="other", commit="b" * 40), "installed packages"),
        (replace(NOW, code="other", environment="other", commit="b" * 40), "code"),
    ],
)
def test_results_of_other_code_are_not_mixed_unless_it_is_asked_for(
    tmp_path: Path, plan: GridPlan, lab: Laboratory, other: Provenance, what: str
) -> None:
    lab.maker = other
    run_grid(plan, tmp_path / "out")
    lab.maker = NOW
    problem = (
        f"results in {tmp_path / 'out'} come from other {what} (commit {'b' * 12}, now {'a' * 12})"
    )
    with pytest.raises(ResultsError) as refused:
        resume_grid(tmp_path / "out")
    assert str(refused.value) == (
        f"{problem}; run the grid into a new folder, or mix them with --mixed"
    )
    warnings: list[str] = []
    assert resume_grid(tmp_path / "out", mixed=True, warn=warnings.append).done == 6
    assert warnings == [f"{problem}; every result states which it comes from"]


def test_another_commit_of_the_same_code_is_no_other_code(
    tmp_path: Path, plan: GridPlan, lab: Laboratory
) -> None:
    run_grid(plan, tmp_path / "out")
    lab.maker = replace(NOW, commit="b" * 40, version="2")
    assert resume_grid(tmp_path / "out").done == 6


def test_a_folder_without_results_cannot_be_resumed(tmp_path: Path, lab: Laboratory) -> None:
    with pytest.raises(ResultsError, match="holds no results; create some with 'sluice lab run'"):
        resume_grid(tmp_path)


def test_a_local_engine_has_as_many_workers_as_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []

    def pool(self: LocalPool, count: int, *, lock: Path, bench: object) -> None:
        counts.append(count)

    monkeypatch.setattr(LocalPool, "__init__", pool)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    store = ResultStore.create(tmp_path, GridFacts(name="none", stand_ins=()), [])
    with Owner(tmp_path) as owner:
        for workers in (3, None):
            running._engine(EngineName.LOCAL, workers, store, owner, NOW)
    store.close()
    assert counts == [3, 7]
