"""The interface between the runner and its workers: tasks and replies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sluice.errors import SluiceError
from sluice.lab.results.cell import Score
from sluice.lab.results.work import Made

__all__ = ["Bench", "Died", "Engine", "Reply", "Unable", "WorkerTask", "attempted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTask:
    """A piece of work for a worker, with the scores of federations that have already run."""

    settings: str
    known: Mapping[str, Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unable:
    """The work cannot be done; another attempt would also fail."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """The worker ended; another attempt may succeed."""

    reason: str


Reply = Made | Unable | Died


class Bench(Protocol):
    """Creates, inside the worker's process, the function that does the work."""

    def __call__(self) -> Callable[[WorkerTask], Made]:
        """Set up the process and return the function that runs one task."""
        ...


class Engine(Protocol):
    """A pool of workers."""

    @property
    def workers(self) -> int:
        """How many tasks run at the same time."""
        ...

    def give(self, worker: int, task: WorkerTask) -> None:
        """Send a task to an idle worker."""
        ...

    def wait(self, timeout_s: float) -> Sequence[tuple[int, Reply]]:
        """Wait at most `timeout_s` and return the replies that have arrived."""
        ...

    def close(self) -> None:
        """Stop all workers, even while they work."""
        ...


def attempted(work: Callable[[WorkerTask], Made], task: WorkerTask) -> Reply:
    """Run a task; an error becomes the reason in the reply and does not stop other tasks."""
    try:
        return work(task)
    except SluiceError as error:
        return Unable(reason=str(error))
    except MemoryError:
        return Died(reason="memory ran out")
    except Exception as error:  # noqa: BLE001 - a bug in one cell must not stop the others
        lines = str(error).splitlines()
        first = lines[0] if lines else ""
        return Unable(reason=f"a bug in Sluice: {type(error).__name__}: {first}")
