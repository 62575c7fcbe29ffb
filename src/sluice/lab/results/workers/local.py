"""Local workers: processes on this machine, one core each."""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from sluice.lab.results.owner import hold
from sluice.lab.results.workers.pool import Bench, Died, Reply, WorkerTask, attempted

__all__ = ["LocalPool"]


class LocalPool:
    """Processes on this machine, each pinned to one core so that results do not vary with cores."""

    def __init__(self, count: int, *, lock: Path, bench: Bench) -> None:
        self._lock, self._bench = lock, bench
        self._cores = sorted(os.sched_getaffinity(0)) if _pins() else []
        self._workers = [self._started(worker) for worker in range(count)]

    @property
    def workers(self) -> int:
        """How many processes there are."""
        return len(self._workers)

    def give(self, worker: int, task: WorkerTask) -> None:
        """Send a task; a process that ended while idle is replaced first."""
        try:
            self._workers[worker].line.send(task)
        except (BrokenPipeError, ConnectionResetError):
            self._replace(worker)
            self._workers[worker].line.send(task)

    def wait(self, timeout_s: float) -> Sequence[tuple[int, Reply]]:
        """Wait for replies from all processes."""
        ready = wait([process.line for process in self._workers], timeout_s)
        replies: list[tuple[int, Reply]] = []
        for worker, process in enumerate(self._workers):
            if process.line not in ready:
                continue
            try:
                replies.append((worker, process.line.recv()))
            except (EOFError, ConnectionResetError):
                replies.append((worker, Died(reason=self._replace(worker))))
        return replies

    def close(self) -> None:
        """Kill the processes; unfinished work is lost."""
        for process in self._workers:
            process.process.kill()
        for process in self._workers:
            process.process.join()
            process.line.close()

    def _replace(self, worker: int) -> str:
        process = self._workers[worker].process
        process.join()
        self._workers[worker].line.close()
        self._workers[worker] = self._started(worker)
        code = process.exitcode or 0
        if code < 0:
            hint = ", perhaps because memory ran out" if code == -signal.SIGKILL else ""
            return f"its process was killed by {signal.Signals(-code).name}{hint}"
        return f"its process ended with exit code {code}"

    def _started(self, worker: int) -> "_Process":
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        core = self._cores[worker % len(self._cores)] if self._cores else None
        process = context.Process(
            target=_serve, args=(theirs, self._lock, core, self._bench), name=f"worker-{worker}"
        )
        process.start()
        theirs.close()
        return _Process(process=process, line=ours)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    process: SpawnProcess
    line: "Connection[WorkerTask, Reply]"


def _serve(
    line: "Connection[Reply, WorkerTask]", lock: Path, core: int | None, bench: Bench
) -> None:
    """Run tasks until the runner closes the pipe."""
    hold(lock)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner handles it and closes the pool
    threading.Thread(target=_die_with_the_runner, daemon=True).start()
    if core is not None and sys.platform == "linux":
        os.sched_setaffinity(0, {core})  # before jax starts its threads
    work = bench()
    while True:
        try:
            task = line.recv()
        except EOFError:
            return
        line.send(attempted(work, task))


def _die_with_the_runner() -> None:
    """End at once when the runner is killed: its leases are void, so this work is not needed."""
    runner = parent_process()
    assert runner is not None
    runner.join()
    os._exit(1)


def _pins() -> bool:
    return sys.platform == "linux"
