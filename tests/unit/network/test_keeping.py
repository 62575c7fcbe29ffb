"""Silent plants are asked again, and killed processes are restarted."""

import logging
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest
from flwr.proto.control_pb2 import (
    ListNodesResponse,
    RegisterNodeRequest,
    RegisterNodeResponse,
)
from flwr.proto.node_pb2 import NodeInfo

from sluice.network.coordinator.hosting import Supervisor
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire.superlink import (
    ASK_AGAIN_S,
    GRACE_S,
    MOST_ASKS,
    RETRY_S,
    FlowerWire,
    Link,
    PendingRequests,
    environment,
)
from sluice.network.wire.wire import Direct


def test_a_plant_that_stays_silent_is_asked_again_after_twice_as_long() -> None:
    awaited = PendingRequests(["north"])
    assert awaited.due(0.0) == ("north",)
    awaited.asked("north", 0.0)
    assert awaited.due(ASK_AGAIN_S - 1) == ()
    assert awaited.due(ASK_AGAIN_S) == ("north",)
    awaited.asked("north", ASK_AGAIN_S)
    assert awaited.due(3 * ASK_AGAIN_S - 1) == ()
    assert awaited.due(3 * ASK_AGAIN_S) == ("north",)


def test_a_plant_that_takes_questions_and_never_answers_is_asked_a_few_times_only() -> None:
    awaited = PendingRequests(["north"])
    asks, now = 0, 0.0
    while now < 7 * 24 * 3_600:
        if awaited.due(now):
            awaited.asked("north", now)
            asks += 1
        now += 10.0
    assert asks == MOST_ASKS
    assert awaited.plants == ("north",)  # an answer to an earlier question still counts
    assert awaited.answered("north")


def test_a_plant_that_loses_every_question_is_given_up_after_the_last() -> None:
    awaited = PendingRequests(["north"])
    asks, now = 0, 0.0
    while awaited.plants and now < 1_000:
        if awaited.due(now):
            awaited.asked("north", now)
            asks += 1
            awaited.lost("north", now)
        now += RETRY_S
    assert asks == MOST_ASKS
    assert not awaited.plants


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
    assert awaited.away == {"north"}
    awaited.lost("north", 5.0 + GRACE_S + 1)
    assert awaited.plants == ("south",)


def test_a_node_that_came_back_has_its_time_again() -> None:
    awaited = PendingRequests(["north"])
    awaited.lost("north", 5.0)
    awaited.asked("north", 100.0)
    assert awaited.away == frozenset()
    awaited.lost("north", 5.0 + GRACE_S + 1)
    assert awaited.plants == ("north",)


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


class Named:
    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def answer(self, question: bytes) -> bytes:  # noqa: ARG002
        return self._answer


def test_plants_beyond_the_quorum_are_not_awaited() -> None:
    plants = {name: Named(name.encode()) for name in ("east", "north", "south", "west")}
    questions = dict.fromkeys(plants, b"?")
    assert len(list(Direct(plants).ask(questions, seconds=60))) == 4
    answers = list(Direct(plants).ask(questions, seconds=60, quorum=2))
    assert [name for name, _ in answers] == ["east", "north"]


def test_plants_that_answer_in_the_grace_period_count() -> None:
    plants = {name: Named(b"x") for name in ("east", "north", "south")}
    answers = list(
        Direct(plants).ask(dict.fromkeys(plants, b"?"), seconds=60, quorum=1, grace_s=60)
    )
    assert len(answers) == 3


def test_refused_answers_do_not_make_up_a_quorum() -> None:
    plants = {"east": Named(b""), "north": Named(b""), "south": Named(b"x"), "west": Named(b"x")}
    answers = list(Direct(plants).ask(dict.fromkeys(plants, b"?"), seconds=60, quorum=1))
    assert [name for name, _ in answers] == ["east", "north", "south"]


def test_flower_gives_the_memory_of_messages_back_to_the_system(tmp_path: Path) -> None:
    """It grew by tens of megabytes in a hundred rounds: see glibc's mallopt(3)."""
    settings = environment(tmp_path)
    assert settings["MALLOC_ARENA_MAX"] == "2"
    assert int(settings["MALLOC_MMAP_THRESHOLD_"]) <= 128 * 1024


def test_a_second_store_of_one_process_does_not_end_the_locks_of_the_first(tmp_path: Path) -> None:
    """Without its lock, another process that closes the store would delete the log beside it."""
    path = tmp_path / "store.sqlite"
    first = CoordinatorStore(path)
    first.absent("north", 1)
    CoordinatorStore(path).close()
    other = (
        "import sqlite3, sys; base = sqlite3.connect(sys.argv[1]); "
        "base.execute('SELECT COUNT(*) FROM absences').fetchall(); base.close()"
    )
    subprocess.run((sys.executable, "-c", other, str(path)), check=True)
    assert path.with_name("store.sqlite-wal").exists()
    first.close()


@dataclass
class Restarted:
    """Flower's control interface after a restart: it knows no node until one is registered.

    A node that is registered comes online after it was listed a few times.
    """

    nodes: dict[bytes, int] = field(default_factory=dict)
    listed: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ListNodes(self, _: object) -> ListNodesResponse:  # noqa: N802 - Flower's name
        self.listed += 1
        return ListNodesResponse(
            nodes_info=[
                NodeInfo(
                    public_key=key,
                    node_id=node,
                    status="online" if self.listed > 3 + 2 * at else "offline",
                )
                for at, (key, node) in enumerate(self.nodes.items())
            ]
        )

    def RegisterNode(self, request: RegisterNodeRequest) -> RegisterNodeResponse:  # noqa: N802
        self.nodes[request.public_key] = 1_000 + len(self.nodes)
        return RegisterNodeResponse(node_id=self.nodes[request.public_key])


def test_a_superlink_killed_between_two_questions_does_not_leave_the_plants_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eleven rounds without any plant took three seconds, and every plant was suspended."""
    authority = tmp_path / "authority.pem"
    authority.write_bytes(b"")
    link = Link(port=1, folder=tmp_path, certificate=authority, key=authority, authority=authority)
    wire, flower = FlowerWire(link), Restarted(listed=100)
    monkeypatch.setattr(wire, "_control", lambda: flower)
    wire.enrol({"north": b"n", "south": b"s"})
    assert wire.present() == {"north", "south"}
    flower = Restarted()  # killed, and started again
    assert wire.present() == {"north", "south"}
    assert set(flower.nodes) == {b"n", b"s"}
