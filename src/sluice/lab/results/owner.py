"""Who works on a results folder: a lock file that the system drops when the last process dies.

A lease says until when; the lock says at once that its owner is gone. A runner and its workers
all hold it, so a worker that outlives a killed runner still owns its cell.
"""

import fcntl
import os
import secrets
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["Owner", "gone", "hold"]

FOLDER = "owners"


class Owner:
    """A runner's name on its leases, alive as long as it or one of its workers is."""

    def __init__(self, folder: Path) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.path = folder / FOLDER / f"{self.name}.lock"
        self.path.parent.mkdir(exist_ok=True)
        self._held = hold(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self._held)


def hold(path: Path) -> int:
    """Share an owner's lock until this process ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


def gone(folder: Path, name: str) -> bool:
    """Whether every process of an owner has ended, as far as this machine can tell."""
    if not name.startswith(f"{socket.gethostname()}-"):
        return False  # another machine's: its lease has to run out
    path = folder / FOLDER / f"{name}.lock"
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(handle)
