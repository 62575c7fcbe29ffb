"""Flower at the coordinator: its SuperLink on loopback, and the wire over it.

Flower's usual way is to ship a bundle of code and to start it on every node. Here nothing of the
kind is run: the SuperLink is started in the isolation mode in which somebody else runs the apps,
and this process is that somebody. The bundle which a run must name is empty.
"""

import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.cli.build import build_fab_from_files
from flwr.common.serde import run_from_proto
from flwr.proto.control_pb2 import ListNodesRequest, RegisterNodeRequest, StartRunRequest
from flwr.proto.fab_pb2 import Fab
from flwr.proto.runtime_pb2 import (
    AcquireTaskRequest,
    PullTaskInputRequest,
    SendTaskHeartbeatRequest,
)
from flwr.supercore.constant import TaskType
from flwr.supercore.control.control_http_client import ControlHttpClient
from flwr.supercore.interceptors import SuperExecAuthHttpInterceptor
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import HttpGrid

from sluice.errors import SettingError
from sluice.files import atomically
from sluice.network.wire import LARGEST_MESSAGE

__all__ = ["FlowerWire", "Link", "bound_to_us", "environment", "start_superlink"]

POLL_S = 0.3
HEARTBEAT_S = 10.0
RECORD, FIELD, KIND = "sluice", "bytes", "query.sluice"
LOST = (httpx.HTTPError, ConnectionError)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where Flower's SuperLink listens, on loopback, and what it needs."""

    port: int
    folder: Path  # its database and log
    certificate: Path
    key: Path
    authority: Path

    @property
    def address(self) -> str:
        """Where it is reached from this machine."""
        return f"127.0.0.1:{self.port}"

    @property
    def secret(self) -> Path:
        """What the runner of tasks shows, so that no other process of this machine can be it."""
        return self.folder / "runner.secret"


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a Flower process: its own home, no telemetry, no update check."""
    quiet = {
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
    }
    return {**os.environ, **quiet}


def bound_to_us() -> tuple[str, ...]:
    """Return what makes a process end when this one is gone, where the system offers it."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "TERM") if setpriv else ()


def start_superlink(link: Link) -> subprocess.Popen[bytes]:
    """Start Flower's SuperLink on loopback, with TLS, node authentication and its own database."""
    link.folder.mkdir(parents=True, exist_ok=True)
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
        *("--database", str(link.folder / "superlink.sqlite")),
        "--enable-supernode-auth",
        "--disable-runtime-dependency-installation",
    ]
    with (link.folder / "superlink.log").open("ab") as written:
        return subprocess.Popen(  # noqa: S603 - our own command, no shell
            command, env=environment(link.folder), stdout=written, stderr=subprocess.STDOUT
        )


class FlowerWire:
    """Questions to nodes by Flower messages, answers by their replies."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._trust = link.authority.read_bytes()
        self._nodes: dict[str, int] = {}
        self._run: _Run | None = None

    def enrol(self, keys: Mapping[str, bytes]) -> None:
        """Let the nodes with these public keys in, by plant; those let in before are found."""
        with self._control() as control:
            nodes = control.ListNodes(ListNodesRequest()).nodes_info
            held = {bytes(node.public_key): node.node_id for node in nodes if node.node_id}
            for plant, key in keys.items():
                if key not in held:
                    told = control.RegisterNode(RegisterNodeRequest(public_key=key, name=plant))
                    held[key] = told.node_id
                self._nodes[plant] = held[key]

    def present(self) -> frozenset[str]:
        """Return the plants whose nodes Flower has heard of lately."""
        with self._control() as control:
            nodes = control.ListNodes(ListNodesRequest()).nodes_info
        up = {node.node_id for node in nodes if node.status == "online"}
        return frozenset(plant for plant, node in self._nodes.items() if node in up)

    def ask(self, questions: Mapping[str, bytes], *, seconds: float) -> Iterator[tuple[str, bytes]]:
        """Ask each plant; one whose message got lost is asked again while there is time."""
        deadline = time.monotonic() + seconds
        waiting = dict(questions)
        sent: dict[str, str] = {}  # message -> plant
        while waiting and (left := deadline - time.monotonic()) > 0:
            try:
                run = self._running()
                missing = [plant for plant in waiting if plant not in sent.values()]
                for plant in missing:
                    message = run.send(self._nodes[plant], waiting[plant], ttl=max(left, 5.0))
                    if message:
                        sent[message] = plant
                for message, answer in run.replies(sent):
                    plant = sent.pop(message)
                    if answer is not None and waiting.pop(plant, None) is not None:
                        yield plant, answer
            except LOST:
                sent.clear()
                self._drop()
            time.sleep(min(POLL_S, max(0.0, deadline - time.monotonic())))

    def close(self) -> None:
        """Let go of the run; its nodes stay."""
        self._drop()

    def _running(self) -> "_Run":
        if self._run is None or self._run.lost:
            self._drop()
            self._run = _Run(self._link, self._trust, self._begin())
        return self._run

    def _begin(self) -> int:
        bundle, _ = build_fab_from_files(_EMPTY_BUNDLE)
        with self._control() as control:
            return int(control.StartRun(StartRunRequest(fab=Fab(content=bundle))).run_id)

    def _drop(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None

    def _control(self) -> "_Control":
        return _Control(self._link.address, self._trust)


class _Control:
    """Flower's control interface, which only this machine reaches."""

    def __init__(self, address: str, trust: bytes) -> None:
        self._client = ControlHttpClient.from_server_address(address, False, trust, [])

    def __enter__(self) -> ControlHttpClient:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()


class _Run:
    """One run of Flower, whose server app is this process."""

    def __init__(self, link: Link, trust: bytes, number: int) -> None:
        self.lost = False
        self._stopped = threading.Event()
        token = _acquire(link, trust)
        self._grid = HttpGrid(link.address, root_certificates=trust, token=token)
        # Flower's own retries end in a signal to the process; here a loss is the caller's to mend.
        self._grid._retry_invoker = None  # type: ignore[assignment]  # noqa: SLF001
        self._client = self._grid._runtime_client  # noqa: SLF001
        told = self._client.PullTaskInput(PullTaskInputRequest())
        if told.run.run_id != number:
            raise SettingError(
                f"another run ({told.run.run_id}) was waiting for a runner; it is ended now, "
                "start again"
            )
        TaskIdentity.task_id = told.task_id
        TaskIdentity.run_id = told.run.run_id
        TaskIdentity.node_id = told.context.node_id
        self._grid.set_run(run_from_proto(told.run))
        threading.Thread(target=self._beat, daemon=True, name="flower-heartbeat").start()

    def send(self, node: int, question: bytes, *, ttl: float) -> str | None:
        """Send a question and return the message's name; None where the node was never there."""
        content = RecordDict({RECORD: ConfigRecord({FIELD: question})})
        return next(iter(self._grid.push_messages([Message(content, node, KIND, ttl=ttl)])), None)

    def replies(self, sent: Mapping[str, str]) -> Iterator[tuple[str, bytes | None]]:
        """Give what came in reply to these messages; None where Flower says that none will.

        A reply is told by the message it answers: that of a dead node names another source.
        """
        if not sent:
            return
        for reply in self._grid.pull_messages(list(sent)):
            asked = reply.metadata.reply_to_message_id
            if asked in sent:
                yield asked, None if reply.has_error() else _content(reply)

    def close(self) -> None:
        """Stop the heartbeat, which ends the run at Flower's."""
        self._stopped.set()
        self._grid.close()

    def _beat(self) -> None:
        while not self._stopped.wait(HEARTBEAT_S):
            try:
                alive = self._client.SendTaskHeartbeat(SendTaskHeartbeatRequest()).success
            except LOST:
                alive = False
            if not alive:
                self.lost = True
                return


def _acquire(link: Link, trust: bytes) -> str:
    """Take the server task of the run that was begun, as its runner."""
    auth = SuperExecAuthHttpInterceptor(
        master_secret=link.secret.read_bytes(),
        protected_methods={"/flwr.proto.Runtime/AcquireTask"},
    )
    client = RuntimeHttpClient.from_server_address(link.address, False, trust, [auth])
    wanted = AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP])
    try:
        for _ in range(50):
            taken = client.AcquireTask(wanted)
            if taken.token:
                return str(taken.token)
            time.sleep(0.1)
    finally:
        with suppress(httpx.HTTPError):
            client.close()
    raise ConnectionError("Flower has no task for the run that was begun")


def _content(reply: Message) -> bytes | None:
    """Return the bytes of a reply; a reply that is none of ours is no reply."""
    record = reply.content.get(RECORD)
    found = record.get(FIELD) if isinstance(record, ConfigRecord) else None
    return found if isinstance(found, bytes) and len(found) <= LARGEST_MESSAGE else b""
