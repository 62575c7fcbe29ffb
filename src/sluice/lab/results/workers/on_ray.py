"""Workers on a Ray cluster: one actor per CPU. Only the runner accesses the store.

A grid that is too large for one machine runs on the cluster that RAY_ADDRESS names; without it, Ray
starts on this machine. Actors receive their work and the known scores, and send back results. The
machines share only the plant records, which must have the same paths everywhere.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from sluice.errors import SettingError
from sluice.lab.results.work import Made
from sluice.lab.results.workers.pool import Bench, Died, Reply, WorkerTask, attempted

__all__ = ["RayPool"]


class RayPool:
    """Actors on a Ray cluster."""

    def __init__(self, count: int | None, *, bench: Bench) -> None:
        self._ray = _ray()
        self._started_ray = not self._ray.is_initialized()
        if self._started_ray:
            self._ray.init(log_to_driver=False, include_dashboard=False, logging_level="error")
        most = int(self._ray.cluster_resources().get("CPU", 1))
        self._bench = bench
        # This pool replaces lost actors, so Ray must neither restart them nor repeat their work.
        self._actor = self._ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_RayWorker)
        workers = range(min(count or most, most))
        self._actors = [self._actor.remote(bench, worker) for worker in workers]
        self._under_way: dict[Any, int] = {}

    @property
    def workers(self) -> int:
        """How many actors there are."""
        return len(self._actors)

    def give(self, worker: int, task: WorkerTask) -> None:
        """Send a task."""
        self._under_way[self._actors[worker].work.remote(task)] = worker

    def wait(self, timeout_s: float) -> Sequence[tuple[int, Reply]]:
        """Wait for replies from all actors."""
        if not self._under_way:
            return ()
        ready, _ = self._ray.wait(
            list(self._under_way), num_returns=len(self._under_way), timeout=timeout_s
        )
        return [self._reply(reference) for reference in ready]

    def close(self) -> None:
        """Kill the actors; unfinished work is lost."""
        for actor in self._actors:
            self._ray.kill(actor)
        if self._started_ray:
            self._ray.shutdown()

    def _reply(self, reference: Any) -> tuple[int, Reply]:
        worker = self._under_way.pop(reference)
        try:
            reply: Reply = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self._ray.kill(self._actors[worker])
            self._actors[worker] = self._actor.remote(self._bench, worker)
            reply = Died(reason=f"its Ray actor was lost ({type(error).__name__})")
        return worker, reply


class _RayWorker:
    """The code that runs inside an actor."""

    def __init__(self, bench: Bench, worker: int) -> None:
        if sys.platform == "linux":
            # One core: sums over several threads differ in their last digits.
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, {cores[worker % len(cores)]})
        self._work: Callable[[WorkerTask], Made] = bench()

    def work(self, task: WorkerTask) -> Reply:
        """Run one task."""
        return attempted(self._work, task)


def _ray() -> Any:
    try:
        import ray  # noqa: PLC0415 - an optional extra, slow to import
    except ImportError:
        raise SettingError(
            "the Ray engine needs Ray, which is not installed; install it with "
            "pip install 'sluice-fl[ray]' or use --engine local"
        ) from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no data from plants' machines
    return ray
