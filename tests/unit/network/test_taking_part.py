"""A plant stops on request, even if its node does not."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.network.plant import participation as taking_part
from sluice.network.plant.participation import take_part
from sluice.network.wire.supernode import Node

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"


class Echo:
    def answer(self, question: bytes) -> bytes:
        return question


def test_a_node_that_does_not_sign_off_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def deaf(_: Node) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([sys.executable, "-c", DEAF]))
        time.sleep(0.5)
        return started[0]

    def stopped(_: Node, __: Echo, *, alive: Callable[[], bool]) -> None:
        assert alive()
        sys.exit(0)

    monkeypatch.setattr(taking_part, "start_supernode", deaf)
    monkeypatch.setattr(taking_part, "serve", stopped)
    monkeypatch.setattr(taking_part, "_check_clock", lambda _: None)
    monkeypatch.setattr(taking_part, "GRACE_S", 0.2)
    node = Node(proxy="127.0.0.1:1", authority=tmp_path, key=tmp_path, port=1, folder=tmp_path)
    began = time.monotonic()
    with pytest.raises(SystemExit):
        take_part(node, Echo())
    assert time.monotonic() - began < 20
    assert started[0].poll() is not None
