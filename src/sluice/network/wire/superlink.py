"""Flower at the coordinator: its SuperLink on loopback, and the wire over it.

Flower usually ships a bundle of code and starts it on every node. Sluice runs no such code: the
SuperLink uses the isolation mode in which a separate process runs the apps, and this is that
process. The bundle that every run must name is empty.
"""

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from flwr.cli.build import build_fab_from_files
from flwr.proto.control_pb2 import ListNodesRequest, RegisterNodeRequest, StartRunRequest
from flwr.proto.fab_pb2 import Fab
from flwr.supercore.control.control_http_client import ControlHttpClient

from sluice.errors import SettingError
from sluice.files import atomically, private_folder
from sluice.network.wire.flower_run import LOST, FlowerRun, Link

__all__ = ["FlowerWire", "Link", "PendingRequests", "bound_to_us", "environment", "start_superlink"]

ASK_AGAIN_S = 20.0
RETRY_S = 2.0
GRACE_S = 120.0
"""Seconds for which a plant whose node is gone is asked again before it is given up."""


class PendingRequests:
    """The plants that have not answered yet. Times are seconds of a monotonic clock."""

    def __init__(self, plants: Iterable[str]) -> None:
        self._due = dict.fromkeys(plants, 0.0)  # when each is asked next
        self._pause = dict.fromkeys(self._due, ASK_AGAIN_S)
        self._away: dict[str, float] = {}  # since when Flower reports a node as gone

    @property
    def plants(self) -> tuple[str, ...]:
        """The plants whose answers are still expected."""
        return tuple(self._due)

    def due(self, now: float) -> tuple[str, ...]:
        """Return the plants to ask now."""
        return tuple(plant for plant, when in self._due.items() if when <= now)

    def asked(self, plant: str, now: float) -> None:
        """Record that a question was sent."""
        self._due[plant] = now + self._pause[plant]
        self._pause[plant] *= 2

    def answered(self, plant: str) -> bool:
        """Record an answer; return False if the plant is not pending any more."""
        return self._due.pop(plant, None) is not None

    def lost(self, plant: str, now: float) -> None:
        """Record that a question will not be answered; give up a node that is gone for long."""
        if plant not in self._due:
            return
        if now - self._away.setdefault(plant, now) > GRACE_S:
            del self._due[plant]
        else:
            self._due[plant] = now + RETRY_S

    def ask_all_again(self) -> None:
        """Record that every question is lost, because Flower's process or its run has ended."""
        self._due = dict.fromkeys(self._due, 0.0)
        self._pause = dict.fromkeys(self._pause, ASK_AGAIN_S)


POLL_S = 0.3
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


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a Flower process: its own home, no telemetry, no update check."""
    quiet = {
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
    }
    return {**os.environ, **quiet}


def bound_to_us() -> tuple[str, ...]:
    """Return a command prefix that ends a process with this one; empty without `setpriv`."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "TERM") if setpriv else ()


def start_superlink(link: Link) -> subprocess.Popen[bytes]:
    """Start Flower's SuperLink on loopback, with TLS, node authentication and its own database."""
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
        *("--database", str(link.folder / "superlink.sqlite")),
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


class FlowerWire:
    """Sends questions as Flower messages and receives answers as their replies."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._trust = link.authority.read_bytes()
        self._nodes: dict[str, int] = {}
        self._run: FlowerRun | None = None

    def enrol(self, keys: Mapping[str, bytes]) -> None:
        """Register each plant's node by its public key, unless it is registered already."""
        with self._control() as control:
            nodes = control.ListNodes(ListNodesRequest()).nodes_info
            node_ids = {bytes(node.public_key): node.node_id for node in nodes if node.node_id}
            for plant, key in keys.items():
                if key not in node_ids:
                    node = control.RegisterNode(RegisterNodeRequest(public_key=key, name=plant))
                    node_ids[key] = node.node_id
                self._nodes[plant] = node_ids[key]

    def present(self) -> frozenset[str]:
        """Return the plants whose nodes Flower reports as online."""
        deadline = time.monotonic() + RETURN_S
        while True:
            try:
                with self._control() as control:
                    nodes = control.ListNodes(ListNodesRequest()).nodes_info
            except LOST:
                if time.monotonic() > deadline:
                    raise SettingError(
                        "Flower's SuperLink does not answer; see flower/superlink.log, then run "
                        "'sluice coordinator resume'"
                    ) from None
                time.sleep(POLL_S)
            else:
                up = {node.node_id for node in nodes if node.status == "online"}
                return frozenset(plant for plant, node in self._nodes.items() if node in up)

    def ask(self, questions: Mapping[str, bytes], *, seconds: float) -> Iterator[tuple[str, bytes]]:
        """Ask each plant; repeat a lost question until the time is up."""
        deadline = time.monotonic() + seconds
        pending = PendingRequests(questions)
        sent: dict[str, str] = {}  # message -> plant
        while pending.plants and (left := deadline - time.monotonic()) > 0:
            try:
                run = self._running()
                for plant in pending.due(time.monotonic()):
                    message = run.send(self._nodes[plant], questions[plant], ttl=max(left, 5.0))
                    if message:
                        sent[message] = plant
                        pending.asked(plant, time.monotonic())
                for message, answer in run.replies(sent):
                    plant = sent.pop(message)
                    if answer is None:
                        pending.lost(plant, time.monotonic())
                    elif pending.answered(plant):
                        yield plant, answer
            except LOST:
                sent.clear()
                pending.ask_all_again()
                self._drop()
            time.sleep(min(POLL_S, max(0.0, deadline - time.monotonic())))

    def close(self) -> None:
        """End the run; its nodes stay registered."""
        self._drop()

    def _running(self) -> FlowerRun:
        if self._run is None or self._run.lost:
            self._drop()
            self._run = FlowerRun(self._link, self._trust, self._begin())
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
    """Flower's control interface, which only this machine can reach."""

    def __init__(self, address: str, trust: bytes) -> None:
        self._client = ControlHttpClient.from_server_address(address, False, trust, [])

    def __enter__(self) -> ControlHttpClient:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()
