"""The owner of a results folder: a lock that the system releases when its last process ends.

A lease expires at a fixed time; the lock shows at once that its owner has ended. A runner and all
its workers hold the lock, so a worker that outlives a killed runner still owns its cell.
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
    """The name of a runner on its leases, valid while the runner or one of its workers runs."""

    def __init__(self, folder: Path) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.path = folder / FOLDER / f"{self.name}.lock"
        self.path.parent.mkdir(exist_ok=True)
        self._handle = hold(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self._handle)


def hold(path: Path) -> int:
    """Hold an owner's lock, shared, until this process ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


def gone(folder: Path, name: str) -> bool:
    """Whether every process of an owner on this machine has ended; False for other machines."""
    if not name.startswith(f"{socket.gethostname()}-"):
        return False  # on another machine: wait until its lease expires
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
