"""Flower at the coordinator: its SuperLink on loopback, and the wire over it.

Flower usually ships a bundle of code and starts it on every node. Sluice runs no such code: the
SuperLink uses the isolation mode in which a separate process runs the apps, and this is that
process. The bundle that every run must name is empty.

The SuperLink keeps its queue in memory. Nothing in it outlives a question: the coordinator asks
again after a restart, and registers the plants' nodes again.
"""

import hashlib
import math
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from flwr.cli.build import build_fab_from_files
from flwr.proto.control_pb2 import (
    ListNodesRequest,
    RegisterNodeRequest,
    StartRunRequest,
    StopRunRequest,
)
from flwr.proto.fab_pb2 import Fab
from flwr.supercore.constant import FLWR_IN_MEMORY_DB_NAME
from flwr.supercore.control.control_http_client import ControlHttpClient

from sluice.errors import SettingError
from sluice.files import atomically, private_folder
from sluice.network.wire.flower_run import FlowerRun, Link, ReplyHead
from sluice.network.wire.objects import LOST, OversizedError
from sluice.network.wire.wire import Cutoff

__all__ = [
    "FlowerWire",
    "Link",
    "PendingRequests",
    "Spent",
    "bound_to_us",
    "environment",
    "start_superlink",
]

ASK_AGAIN_S = 20.0
MOST_ASKS = 4
"""How often one plant is asked the same question at most; each time costs Flower its content."""
RETRY_S = 1.0
GRACE_S = 120.0
"""Seconds for which a plant whose node is gone is awaited before it is given up."""


class PendingRequests:
    """The plants that have not answered yet. Times are seconds of a monotonic clock."""

    def __init__(self, plants: Iterable[str]) -> None:
        self._due = dict.fromkeys(plants, 0.0)  # when each is asked next
        self._asks = dict.fromkeys(self._due, 0)
        self._away: dict[str, float] = {}  # since when Flower reports a node as gone

    @property
    def plants(self) -> tuple[str, ...]:
        """The plants whose answers are still expected."""
        return tuple(self._due)

    @property
    def away(self) -> frozenset[str]:
        """The plants whose nodes were gone when Flower last reported on them."""
        return frozenset(self._away)

    def due(self, now: float) -> tuple[str, ...]:
        """Return the plants to ask now."""
        return tuple(plant for plant, when in self._due.items() if when <= now)

    def asked(self, plant: str, now: float) -> None:
        """Record that a question was sent; the last time, the plant is only awaited."""
        self._away.pop(plant, None)
        self._asks[plant] += 1
        last = self._asks[plant] >= MOST_ASKS
        self._due[plant] = math.inf if last else now + ASK_AGAIN_S * 2 ** (self._asks[plant] - 1)

    def answered(self, plant: str) -> bool:
        """Record an answer; return False if the plant is not pending any more."""
        return self._due.pop(plant, None) is not None

    def lost(self, plant: str, now: float) -> None:
        """Record that a question will not be answered; give up after the last, or after long."""
        if plant not in self._due:
            return
        since = self._away.setdefault(plant, now)
        if now - since > GRACE_S or self._asks[plant] >= MOST_ASKS:
            del self._due[plant]
        else:
            self._due[plant] = now + RETRY_S

    def ask_all_again(self) -> None:
        """Record that every question is lost, because Flower's process or its run has ended."""
        self._due = dict.fromkeys(self._due, 0.0)
        self._asks = dict.fromkeys(self._asks, 0)


POLL_S, SLOWEST_POLL_S, SLOWER = 0.1, 0.5, 1.15
"""Seconds between two polls after an answer and later, and the factor from one to the other."""
LATE_S = 10.0
"""Seconds for which Flower keeps a question and its reply after the end of its phase."""
SENT_AT_ONCE = 8
"""Questions that are sent before replies are pulled again."""
SENT_IN_A_RUN = 64 * 1024 * 1024
"""Bytes after which a new run begins: Flower deletes what plants have not fetched with its run."""
COME_BACK_S = 20.0
"""Seconds for which plants are awaited that were online before Flower was restarted."""
RETURN_S = 120.0
"""Seconds Flower may be unreachable before the coordinator stops; it is restarted meanwhile."""

_EMPTY_BUNDLE = {
    "pyproject.toml": b"""[project]
name = "sluice-federation"
version = "1.0.0"
license = {file = "LICENSE"}
dependencies = ["flwr>=1.41.0,<1.43"]

[tool.flwr.app]
publisher = "sluice"
fab-format-version = 1
flwr-version-target = "1.41.0"

[tool.flwr.app.components]
serverapp = "nothing:app"
clientapp = "nothing:app"
""",
    "LICENSE": b"Nothing in this bundle is ever run.\n",
    "nothing.py": b"",
}


@cache
def _bundle() -> bytes:
    return build_fab_from_files(_EMPTY_BUNDLE)[0]


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a Flower process: its own home, no telemetry, no update check.

    Its worker threads come and go, and hold messages for a moment. glibc would give each new thread
    an arena of its own, and after the first large message it would keep the memory of all others:
    two arenas, and a fixed size from which memory goes back to the system.
    """
    quiet = {
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "MALLOC_ARENA_MAX": "2",
        "MALLOC_MMAP_THRESHOLD_": "65536",
    }
    return {**os.environ, **quiet}


def bound_to_us() -> tuple[str, ...]:
    """Return a command prefix that ends a process with this one; empty without `setpriv`."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "TERM") if setpriv else ()


def start_superlink(link: Link) -> subprocess.Popen[bytes]:
    """Start Flower's SuperLink on loopback, with TLS, node authentication and no database."""
    private_folder(link.folder)
    if not link.secret.exists():
        with atomically(link.secret, private=True) as draft:
            draft.write_bytes(secrets.token_bytes(32))
    command = [
        *bound_to_us(),
        str(Path(sys.executable).with_name("flower-superlink")),
        *("--host", "127.0.0.1", "--port", str(link.port)),
        *("--ssl-certfile", str(link.certificate), "--ssl-keyfile", str(link.key)),
        *("--ssl-ca-certfile", str(link.authority)),
        *("--isolation", "process", "--superexec-auth-secret-file", str(link.secret)),
        *("--database", FLWR_IN_MEMORY_DB_NAME),
        "--enable-supernode-auth",
        "--disable-runtime-dependency-installation",
    ]
    with (link.folder / "superlink.log").open("ab") as written:
        return subprocess.Popen(  # noqa: S603 - our own command, no shell
            command,
            env=environment(link.folder),
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


@dataclass(slots=True, kw_only=True)
class Spent:
    """The seconds that a wire has spent on each part of its work."""

    sending_s: float = 0.0
    pulling_s: float = 0.0  # polls for replies, and their content
    waiting_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A question that was sent; a reply to it answers the same question asked again."""

    plant: str
    question: bytes  # its hash


class FlowerWire:
    """Sends questions as Flower messages and receives answers as their replies."""

    def __init__(self, link: Link) -> None:
        self.spent = Spent()
        self._link = link
        self._trust = link.authority.read_bytes()
        self._keys: dict[str, bytes] = {}
        self._nodes: dict[str, int] = {}
        self._run: FlowerRun | None = None
        self._open: dict[str, _Sent] = {}  # by message, until Flower has handed out its reply
        self._arriving: dict[ReplyHead, _Sent] = {}  # replies whose content has not arrived
        self._alone: set[str] = set()  # plants that have sent a head that is too long
        self._suspects: set[str] = set()  # plants of which one has
        self._up = frozenset[str]()  # plants that were online when Flower was last asked
        self._returning = 0.0  # until when plants are awaited that a restart of Flower cut off

    def enrol(self, keys: Mapping[str, bytes]) -> None:
        """Register each plant's node by its public key, unless it is registered already."""
        self._keys |= keys
        with self._control() as control:
            nodes = control.ListNodes(ListNodesRequest()).nodes_info
            node_ids = {bytes(node.public_key): node.node_id for node in nodes if node.node_id}
            for plant, key in keys.items():
                if key not in node_ids:
                    node = control.RegisterNode(RegisterNodeRequest(public_key=key, name=plant))
                    node_ids[key] = node.node_id
                self._nodes[plant] = node_ids[key]

    def present(self) -> frozenset[str]:
        """Return the plants whose nodes Flower reports as online.

        A Flower that was restarted knows no node. The nodes are then registered again, and plants
        that were online before get a little time to come back.
        """
        deadline = time.monotonic() + RETURN_S
        while True:
            try:
                online = self._online()
                if self._up <= online or time.monotonic() > self._returning:
                    self._up = online
                    return online
                time.sleep(POLL_S)
            except LOST:
                if time.monotonic() > deadline:
                    raise SettingError(
                        "Flower's SuperLink does not answer; see flower/superlink.log, then run "
                        "'sluice coordinator resume'"
                    ) from None
                time.sleep(POLL_S)

    def ask(
        self,
        questions: Mapping[str, bytes],
        *,
        seconds: float,
        quorum: int | None = None,
        grace_s: float = 0.0,
    ) -> Iterator[tuple[str, bytes]]:
        """Ask each plant; repeat a lost question a few times, until the time is up.

        A reply whose content does not arrive holds up no other plant: it is tried again with the
        next poll.
        """
        cutoff = Cutoff(seconds=seconds, quorum=quorum, grace_s=grace_s)
        asked = {plant: _Sent(plant=plant, question=_hash(q)) for plant, q in questions.items()}
        pending, pause = PendingRequests(questions), POLL_S
        if self._run is not None and self._run.sent > SENT_IN_A_RUN:
            self._drop()
        with suppress(*LOST):
            self._take_up(pending, asked)
        while pending.plants and cutoff.left_s > 0:
            try:
                more = self._send(pending, asked, questions, ttl=cutoff.left_s + LATE_S)
                for plant, answer in self._pull(pending, asked):
                    if answer:
                        cutoff.answered()
                    pause = POLL_S
                    yield plant, answer
            except LOST:
                self._drop()
                more = False
                pending.ask_all_again()
            if not more:
                waited = min(pause, max(0.0, cutoff.left_s))
                time.sleep(waited)
                self.spent.waiting_s += waited
                pause = min(pause * SLOWER, SLOWEST_POLL_S)
        if pending.plants and self._run is not None:
            with suppress(*LOST):  # what arrived while the caller worked on another answer
                yield from self._pull(pending, asked)

    def close(self) -> None:
        """End the run; its nodes stay registered."""
        self._drop()

    def _take_up(self, pending: PendingRequests, asked: Mapping[str, _Sent]) -> None:
        """Await the replies to questions that are asked again; let Flower delete all others."""
        run = self._run
        if run is None or run.lost:
            return
        now = time.monotonic()
        for message, sent in list(self._open.items()):
            if asked.get(sent.plant) == sent:
                pending.asked(sent.plant, now)
            elif sent.question:
                self._open[message] = _Sent(plant=sent.plant, question=b"")  # content deleted
                run.forget(message)
        for reply, sent in list(self._arriving.items()):
            if asked.get(sent.plant) == sent:
                pending.asked(sent.plant, now)
            else:
                del self._arriving[reply]
                run.forget(reply.message)

    def _send(
        self,
        pending: PendingRequests,
        asked: Mapping[str, _Sent],
        questions: Mapping[str, bytes],
        *,
        ttl: float,
    ) -> bool:
        """Send the questions that are due, some at a time; return whether more are due."""
        run, began = self._running(), time.monotonic()
        due = pending.due(began)
        if away := pending.away.intersection(due):
            # Nothing is sent to a node that is gone: each copy would count, and lie in the queue.
            gone = away - self._online()
            for plant in gone:
                pending.lost(plant, began)
            due = tuple(plant for plant in due if plant not in gone)
        for plant in islice(due, SENT_AT_ONCE):
            message = run.send(self._nodes[plant], questions[plant], ttl=ttl)
            if message is None:
                pending.lost(plant, time.monotonic())  # it has not connected yet
            else:
                self._open[message] = asked[plant]
                pending.asked(plant, time.monotonic())
        self.spent.sending_s += time.monotonic() - began
        return len(due) > SENT_AT_ONCE

    def _pull(
        self, pending: PendingRequests, asked: Mapping[str, _Sent]
    ) -> Iterator[tuple[str, bytes]]:
        """Yield the answers that have arrived, one at a time, so that one at most is in memory."""
        run, began = self._running(), time.monotonic()
        for reply in self._heads(run):
            sent = self._open.pop(reply.answers, None)
            wanted = sent is not None and asked.get(sent.plant) == sent
            if sent is not None and wanted and not reply.lost:
                self._arriving[reply] = sent
                continue
            run.forget(reply.message)  # it comes too late, or is Flower's own
            if sent is not None and reply.lost:
                run.forget(reply.answers)
                if wanted:
                    pending.lost(sent.plant, time.monotonic())
        for reply, sent in list(self._arriving.items()):
            answer = run.content(reply) if sent.plant in pending.plants else b""
            if answer is None:
                continue
            del self._arriving[reply]
            run.forget(reply.message)
            if pending.answered(sent.plant):
                self.spent.pulling_s += time.monotonic() - began
                yield sent.plant, answer
                began = time.monotonic()
        self.spent.pulling_s += time.monotonic() - began

    def _heads(self, run: FlowerRun) -> Iterator[ReplyHead]:
        """Yield the heads of new replies to all open messages, also to those of earlier asks.

        If heads are too long, Flower forgets them. The plants in question are then pulled one by
        one, so that the plant with the long head costs another one its reply only once.
        """
        apart = self._alone | self._suspects
        groups = [[message] for message, sent in self._open.items() if sent.plant in apart]
        groups.append([m for m, sent in self._open.items() if sent.plant not in apart])
        for group in groups:
            plants = {self._open[message].plant for message in group}
            try:
                heads = list(run.replies(group))
            except OversizedError:
                if len(group) == 1:
                    self._alone |= plants
                    yield ReplyHead(message=group[0], answers=group[0], leaf=None, lost=False)
                else:
                    self._suspects |= plants
            else:
                if heads:
                    self._suspects -= plants
                yield from heads

    def _online(self) -> frozenset[str]:
        with self._control() as control:
            nodes = control.ListNodes(ListNodesRequest()).nodes_info
        if not set(self._nodes.values()) <= {node.node_id for node in nodes}:
            self._returning = time.monotonic() + COME_BACK_S
            self.enrol(self._keys)
        up = {node.node_id for node in nodes if node.status == "online"}
        return frozenset(plant for plant, node in self._nodes.items() if node in up)

    def _running(self) -> FlowerRun:
        if self._run is None:
            self._online()  # a SuperLink that was restarted knows no node
            self._run = FlowerRun(self._link, self._begin())
        elif self._run.lost:
            raise ConnectionError("Flower has ended the run")
        return self._run

    def _begin(self) -> int:
        with self._control() as control:
            return int(control.StartRun(StartRunRequest(fab=Fab(content=_bundle()))).run_id)

    def _drop(self) -> None:
        """End the run, so that Flower deletes its messages and their objects."""
        run, self._run = self._run, None
        self._open.clear()
        self._arriving.clear()
        if run is not None:
            run.close()
            with suppress(*LOST), self._control() as control:
                control.StopRun(StopRunRequest(run_id=run.number))

    def _control(self) -> "_Control":
        return _Control(self._link.address, self._trust)


def _hash(question: bytes) -> bytes:
    return hashlib.sha256(question).digest()


class _Control:
    """Flower's control interface, which only this machine can reach."""

    def __init__(self, address: str, trust: bytes) -> None:
        self._client = ControlHttpClient.from_server_address(address, False, trust, [])

    def __enter__(self) -> ControlHttpClient:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()
