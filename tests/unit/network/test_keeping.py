"""Silent plants are asked again, and killed processes are restarted."""

import logging
import signal
import subprocess
import sys
import time

import pytest

from sluice.network.coordinator.hosting import Supervisor
from sluice.network.wire.superlink import ASK_AGAIN_S, GRACE_S, RETRY_S, PendingRequests


def test_a_plant_that_stays_silent_is_asked_again_after_twice_as_long() -> None:
    awaited = PendingRequests(["north"])
    assert awaited.due(0.0) == ("north",)
    awaited.asked("north", 0.0)
    assert awaited.due(ASK_AGAIN_S - 1) == ()
    assert awaited.due(ASK_AGAIN_S) == ("north",)
    awaited.asked("north", ASK_AGAIN_S)
    assert awaited.due(3 * ASK_AGAIN_S - 1) == ()
    assert awaited.due(3 * ASK_AGAIN_S) == ("north",)


def test_a_second_answer_counts_for_nothing() -> None:
    awaited = PendingRequests(["north"])
    assert awaited.answered("north")
    assert not awaited.answered("north")
    awaited.lost("north", 1.0)  # what Flower says of the first question no longer matters
    assert awaited.plants == ()


def test_a_node_that_is_gone_for_long_is_not_waited_for() -> None:
    awaited = PendingRequests(["north", "south"])
    awaited.lost("north", 5.0)
    assert awaited.due(5.0) == ("south",)
    assert awaited.due(5.0 + RETRY_S) == ("north", "south")
    awaited.lost("north", 5.0 + GRACE_S + 1)
    assert awaited.plants == ("south",)


def test_all_are_asked_again_when_flower_was_away() -> None:
    awaited = PendingRequests(["north", "south"])
    awaited.asked("north", 0.0)
    awaited.answered("south")
    awaited.ask_all_again()
    assert awaited.due(0.0) == ("north",)


def test_a_process_that_is_killed_is_started_again_and_leaves_no_children(
    caplog: pytest.LogCaptureFixture,
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        code = (
            "import subprocess, sys, time\n"
            "child = subprocess.Popen(['sleep', '60'])\n"
            "print(child.pid, flush=True)\n"
            "time.sleep(60)"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True
        )
        started.append(process)
        return process

    supervisor = Supervisor("the sleeper", start)
    supervisor.watch()
    assert started[0].stdout is not None
    child = int(started[0].stdout.readline())
    with caplog.at_level(logging.WARNING):
        started[0].send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 5
        while len(started) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
    assert len(started) == 2
    assert "the sleeper ended (-9)" in caplog.text
    assert not runs(child)
    supervisor.stop()
    assert supervisor.ended
    for process in started:
        assert process.stdout is not None
        process.stdout.close()


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
