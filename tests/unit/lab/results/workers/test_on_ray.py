"""The Ray engine: against a stand-in for Ray everywhere, on a local Ray where it is installed."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluice.errors import SettingError
from sluice.lab.results.reading import GridState, stored_cells
from sluice.lab.results.store import ResultStore
from sluice.lab.results.work import Made
from sluice.lab.results.workers import on_ray
from sluice.lab.results.workers.on_ray import RayPool
from sluice.lab.results.workers.pool import Died, Unable, WorkerTask

PROGRAM = Path(__file__).with_name("fake_grid.py")


class LostError(Exception):
    """What Ray raises when an actor is gone."""


class StandIn:
    """As much of Ray as the engine uses: actors that answer at once, or are lost."""

    exceptions = SimpleNamespace(RayError=LostError)

    def __init__(self) -> None:
        self.started, self.killed, self.initialised = 0, 0, False

    def is_initialized(self) -> bool:
        return self.initialised

    def init(self, **_: object) -> None:
        self.initialised = True

    def shutdown(self) -> None:
        self.initialised = False

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def remote(self, **_: object) -> Callable[[type], Any]:
        return lambda actor: SimpleNamespace(remote=lambda *told: self._actor(actor, told))

    def _actor(self, actor: type, told: tuple[object, ...]) -> Any:
        self.started += 1
        made = actor(*told)

        def work(task: WorkerTask) -> object:
            return LostError() if task.settings == "lost" else made.work(task)

        return SimpleNamespace(work=SimpleNamespace(remote=lambda task: Reference(work(task))))

    def wait(
        self, references: list["Reference"], *, num_returns: int, timeout: float
    ) -> tuple[list["Reference"], list["Reference"]]:
        assert num_returns == len(references)
        assert timeout > 0
        return references, []

    def get(self, reference: "Reference") -> object:
        if isinstance(reference.value, LostError):
            raise reference.value
        return reference.value

    def kill(self, _: object) -> None:
        self.killed += 1


class Reference:
    def __init__(self, value: object) -> None:
        self.value = value


class EchoBench:
    def __call__(self) -> Callable[[WorkerTask], Made]:
        def work(task: WorkerTask) -> Made:
            if task.settings == "unable":
                raise SettingError("too short")
            return Made(result=None, federation=task.settings, recalled=False, wall_s=0.0)  # type: ignore[arg-type]

        return work


def test_actors_answer_fail_and_are_replaced_when_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = StandIn()
    monkeypatch.setattr(on_ray, "_ray", lambda: ray)
    monkeypatch.setattr(
        "sluice.lab.results.workers.on_ray.sys.platform", "elsewhere"
    )  # leave this process on its cores
    workers = RayPool(8, bench=EchoBench())
    assert workers.workers == 3  # no more than the cluster has CPUs
    assert workers.wait(0.1) == ()
    for worker, settings in enumerate(("fine", "unable", "lost")):
        workers.give(worker, WorkerTask(settings=settings, known={}))
    (_, fine), (_, unable), (_, lost) = workers.wait(0.1)
    assert isinstance(fine, Made)
    assert fine.federation == "fine"
    assert unable == Unable(reason="too short")
    assert lost == Died(reason="its Ray actor was lost (LostError)")
    assert ray.started == 4
    workers.close()
    assert ray.killed == 4
    assert not ray.initialised


def test_without_ray_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingError, match=r"pip install 'sluice-fl\[ray\]'"):
        RayPool(2, bench=EchoBench())


def test_the_same_cells_come_out_of_a_local_ray(tmp_path: Path) -> None:
    works = "ok unable die-once ok bug"
    for engine in ("local", "ray"):
        made = [sys.executable, str(PROGRAM), str(tmp_path / engine), "make", works, engine]
        assert subprocess.run(made, check=False, timeout=300).returncode == 0
    local, ray = (tmp_path / engine / "cells.parquet" for engine in ("local", "ray"))
    assert local.read_bytes() == ray.read_bytes()
    states = [cell.state for cell in stored_cells(ResultStore(tmp_path / "ray"))]
    assert states == [
        GridState.DONE,
        GridState.FAILED,
        GridState.DONE,
        GridState.DONE,
        GridState.FAILED,
    ]
