"""What workers and whoever gives them work say to each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sluice.errors import SluiceError
from sluice.lab.results.cell import Score
from sluice.lab.results.work import Made

__all__ = ["Bench", "Died", "Engine", "Reply", "Unable", "WorkerTask", "attempted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTask:
    """A piece of work as it is handed over, with the federations that need not run again."""

    settings: str
    known: Mapping[str, Score]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unable:
    """The work cannot be done, and trying again would not help."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """Whoever did the work is gone; another may manage."""

    reason: str


Reply = Made | Unable | Died


class Bench(Protocol):
    """Does the work: made in the process that it works in."""

    def __call__(self) -> Callable[[WorkerTask], Made]:
        """Set up and return what does one piece of work."""
        ...


class Engine(Protocol):
    """Several hands."""

    @property
    def workers(self) -> int:
        """How many pieces of work go on at once."""
        ...

    def give(self, worker: int, task: WorkerTask) -> None:
        """Hand work to an idle hand."""
        ...

    def wait(self, timeout_s: float) -> Sequence[tuple[int, Reply]]:
        """Return what hands have finished, after so long at most."""
        ...

    def close(self) -> None:
        """Let every hand go, whatever it is at."""
        ...


def attempted(work: Callable[[WorkerTask], Made], task: WorkerTask) -> Reply:
    """Do a piece of work; what stands in its way is its reason, never the end of the others."""
    try:
        return work(task)
    except SluiceError as error:
        return Unable(reason=str(error))
    except MemoryError:
        return Died(reason="memory ran out")
    except Exception as error:  # noqa: BLE001 - a bug in one cell must not stop the others
        told = str(error).splitlines()
        return Unable(reason=f"a bug in Sluice: {type(error).__name__}: {told[0] if told else ''}")
