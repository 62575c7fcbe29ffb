"""A helper's process, which can be killed and started again."""

import signal
import socket
import subprocess
import time

from sluice.network.helper import HelperFolder

from .sites import SLUICE

__all__ = ["PATIENCE_S", "HelperProcess"]

PATIENCE_S = 60.0


class HelperProcess:
    """`sluice helper run` of a folder."""

    def __init__(self, folder: HelperFolder) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [*SLUICE, "helper", "run", str(self.folder.path), "--quiet"]
        )
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", self.folder.card.port)):
                    return
            time.sleep(0.05)
        raise AssertionError("the helper does not listen")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE_S)
