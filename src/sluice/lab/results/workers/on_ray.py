"""Hands on a Ray cluster: one actor a CPU. The runner alone touches the store.

A grid that outgrows one machine runs on whatever cluster RAY_ADDRESS names; without one, Ray starts
on this machine. Actors get their work and the scores they may recall, and send back what they made,
so nothing is shared between machines but the plant records, which must lie at the same place.
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
        self._began_it = not self._ray.is_initialized()
        if self._began_it:
            self._ray.init(log_to_driver=False, include_dashboard=False, logging_level="error")
        most = int(self._ray.cluster_resources().get("CPU", 1))
        self._bench = bench
        # A lost actor is ours to replace: Ray must neither revive it nor repeat its work.
        self._actor = self._ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_RayWorker)
        workers = range(min(count or most, most))
        self._actors = [self._actor.remote(bench, worker) for worker in workers]
        self._under_way: dict[Any, int] = {}

    @property
    def workers(self) -> int:
        """How many actors there are."""
        return len(self._actors)

    def give(self, worker: int, task: WorkerTask) -> None:
        """Send work over."""
        self._under_way[self._actors[worker].work.remote(task)] = worker

    def wait(self, timeout_s: float) -> Sequence[tuple[int, Reply]]:
        """Listen to all actors at once."""
        if not self._under_way:
            return ()
        ready, _ = self._ray.wait(
            list(self._under_way), num_returns=len(self._under_way), timeout=timeout_s
        )
        return [self._heard(reference) for reference in ready]

    def close(self) -> None:
        """Kill the actors: whatever they were at is not kept."""
        for actor in self._actors:
            self._ray.kill(actor)
        if self._began_it:
            self._ray.shutdown()

    def _heard(self, reference: Any) -> tuple[int, Reply]:
        worker = self._under_way.pop(reference)
        try:
            reply: Reply = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            self._ray.kill(self._actors[worker])
            self._actors[worker] = self._actor.remote(self._bench, worker)
            reply = Died(reason=f"its Ray actor was lost ({type(error).__name__})")
        return worker, reply


class _RayWorker:
    """What runs inside an actor."""

    def __init__(self, bench: Bench, worker: int) -> None:
        if sys.platform == "linux":
            # Sums over several threads differ in their last digits; over one they do not.
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, {cores[worker % len(cores)]})
        self._work: Callable[[WorkerTask], Made] = bench()

    def work(self, task: WorkerTask) -> Reply:
        """Do one piece of work."""
        return attempted(self._work, task)


def _ray() -> Any:
    try:
        import ray  # noqa: PLC0415 - an extra, and heavy
    except ImportError:
        raise SettingError(
            "the Ray engine needs Ray, which is not installed; install the extra with "
            "'pip install sluice[ray]' or use --engine local"
        ) from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # plants' machines tell nobody anything
    return ray
