"""A process that is started again when it ends before its time."""

import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import final

__all__ = ["Kept"]

LOOK_S = 0.5
PAUSE_S = 2.0
_log = logging.getLogger("sluice.coordinator")


@final
class Kept:
    """One process and the group it leads; `watch` keeps it up until `stop`."""

    def __init__(self, what: str, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._what = what
        self._start = start
        self._process = start()
        self._stopped = threading.Event()
        # Daemon: the system ends a child with the thread that started it, and this one stays.
        self._watcher = threading.Thread(target=self._keep, daemon=True, name=f"keeps {what}")

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def watch(self) -> None:
        """Start it again from now on, whenever it ends."""
        self._watcher.start()

    def stop(self) -> None:
        """End it: asked first, then made to."""
        self._stopped.set()
        if self._watcher.is_alive():
            self._watcher.join()
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)
        self._end_group()

    def _keep(self) -> None:
        while not self._stopped.wait(LOOK_S):
            if self.ended:
                _log.warning(
                    "%s ended (%s) and is started again", self._what, self._process.returncode
                )
                self._end_group()
                self._process = self._start()
                self._stopped.wait(PAUSE_S)

    def _end_group(self) -> None:
        """End what the process has left behind: nginx's workers outlive a master that is killed."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
