"""Federations that are kept in a file: a grid in another folder does not train them again."""

from dataclasses import replace
from pathlib import Path

import pytest

from sluice.errors import SettingError
from sluice.lab.grids import kept
from sluice.lab.grids.planning import GridPlan
from sluice.lab.grids.running import plan_grid, resume_grid, run_grid
from sluice.lab.results.federations import load_federations
from sluice.lab.results.reading import stored_cells
from sluice.lab.results.store import ResultStore
from sluice.lab.results.work import Made
from sluice.lab.results.workers.pool import Unable, WorkerTask
from tests.unit.lab.grids.test_running import GRID, NOW, Laboratory, lab, plan

__all__ = ["lab", "plan"]  # fixtures


@pytest.fixture(autouse=True)
def behaviour(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[float, ...]]:
    """What the present code gives for its probes, by hand."""
    found: dict[str, tuple[float, ...]] = {"fedavg": (1.0,)}
    monkeypatch.setattr(kept, "_behaviour", lambda _: dict(found))
    return found


class Recalling(Laboratory):
    """A laboratory that takes known scores, as the workbench does."""

    def answer(self, task: WorkerTask) -> Made | Unable:
        done = super().answer(task)
        if isinstance(done, Made) and done.federation in task.known:
            self.rules.pop()
            result = replace(done.result, score=task.known[done.federation])
            return replace(done, result=result, recalled=True)
        return done


def test_other_code_that_behaves_the_same_trains_nothing_again(
    tmp_path: Path, plan: GridPlan, lab: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "f.jsonl"
    run_grid(plan, tmp_path / "one", federations=file)
    assert len(load_federations(file).federations) == 6
    other = Recalling()
    monkeypatch.setattr("sluice.lab.grids.running._engine", other.engine)
    lab.maker = replace(NOW, code="newer")
    before, warnings = file.read_bytes(), list[str]()
    counts = run_grid(plan, tmp_path / "two", federations=file, warn=warnings.append)
    assert (counts.done, counts.recalled, other.rules, warnings) == (6, 6, [], [])
    assert file.read_bytes() == before
    store = ResultStore(tmp_path / "two", read_only=True)
    cells = stored_cells(store)
    store.close()
    assert {(c.made_by, c.trained_by) for c in cells} == {(lab.maker, NOW)}
    assert {c.trained_s for c in cells} == {
        one.wall_s for one in load_federations(file).federations
    }


def test_code_that_behaves_otherwise_trains_all_again_and_says_so(
    tmp_path: Path,
    plan: GridPlan,
    lab: Laboratory,
    behaviour: dict[str, tuple[float, ...]],
) -> None:
    file = tmp_path / "f.jsonl"
    run_grid(plan, tmp_path / "one", federations=file)
    behaviour["fedavg"] = (2.0,)
    lab.maker = replace(NOW, code="newer")
    warnings: list[str] = []
    counts = run_grid(plan, tmp_path / "two", federations=file, warn=warnings.append)
    assert (counts.done, counts.recalled, len(lab.rules)) == (6, 0, 12)
    (warning,) = warnings
    assert "6 federations in" in warning
    assert "code code (commit aaaaaaaaaaaa) gave other figures for the probe 'fedavg'" in warning
    again = load_federations(file)
    assert {one.made_by for one in again.federations} == {lab.maker}
    assert list(again.behaviours) == [lab.maker]


def test_what_was_trained_before_a_run_was_stopped_is_in_the_file(
    tmp_path: Path, plan: GridPlan, lab: Laboratory
) -> None:
    class Stopping:
        def seen(self, counts: object, at_work: object) -> None:  # noqa: ARG002 - a watcher
            if len(lab.rules) > 2:
                raise KeyboardInterrupt

    file = tmp_path / "f.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run_grid(plan, tmp_path / "one", federations=file, watcher=Stopping())
    assert len(load_federations(file).federations) == 2
    assert resume_grid(tmp_path / "one", federations=file).done == 6
    assert len(load_federations(file).federations) == 6


def test_a_grid_of_another_detector_is_refused(tmp_path: Path, plan: GridPlan) -> None:
    path = tmp_path / "grid.toml"
    grid = GRID.replace(', "median"', "") + '[training]\ndetector = "subspace"\n'
    path.write_text(grid, encoding="utf-8")
    other = plan_grid(str(path))
    with pytest.raises(SettingError, match="keeps autoencoders.*'subspace'.*leave the file out"):
        run_grid(other, tmp_path / "out", federations=tmp_path / "f.jsonl")
    assert not (tmp_path / "out").exists()
