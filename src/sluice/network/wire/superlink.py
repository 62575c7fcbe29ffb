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
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from flwr.cli.build import build_fab_from_files
from flwr.proto.control_pb2 import ListNodesRequest, RegisterNodeRequest, StartRunRequest
from flwr.proto.fab_pb2 import Fab
from flwr.supercore.control.control_http_client import ControlHttpClient

from sluice.errors import SettingError
from sluice.files import atomically
from sluice.network.wire.flower_run import LOST, FlowerRun, Link

__all__ = ["FlowerWire", "Link", "PendingRequests", "bound_to_us", "environment", "start_superlink"]

ASK_AGAIN_S = 20.0
RETRY_S = 2.0
GRACE_S = 120.0
"""How long a plant whose node has gone is asked again before the others stop waiting for it."""


class PendingRequests:
    """The plants that have not answered yet. Times are seconds of a clock that never goes back."""

    def __init__(self, plants: Iterable[str]) -> None:
        self._due = dict.fromkeys(plants, 0.0)  # when each is asked next
        self._pause = dict.fromkeys(self._due, ASK_AGAIN_S)
        self._away: dict[str, float] = {}  # since when Flower says that a node is gone

    @property
    def plants(self) -> tuple[str, ...]:
        """Those who are still waited for."""
        return tuple(self._due)

    def due(self, now: float) -> tuple[str, ...]:
        """Return whom to ask now."""
        return tuple(plant for plant, when in self._due.items() if when <= now)

    def asked(self, plant: str, now: float) -> None:
        """Note that a question is on its way."""
        self._due[plant] = now + self._pause[plant]
        self._pause[plant] *= 2

    def answered(self, plant: str) -> bool:
        """Note an answer; False where one came before."""
        return self._due.pop(plant, None) is not None

    def lost(self, plant: str, now: float) -> None:
        """Note that a question will not be answered; a node gone for long is given up."""
        if plant not in self._due:
            return
        if now - self._away.setdefault(plant, now) > GRACE_S:
            del self._due[plant]
        else:
            self._due[plant] = now + RETRY_S

    def ask_all_again(self) -> None:
        """Note that every question is lost, with Flower's process or its run."""
        self._due = dict.fromkeys(self._due, 0.0)
        self._pause = dict.fromkeys(self._pause, ASK_AGAIN_S)


POLL_S = 0.3
RETURN_S = 120.0
"""How long Flower may be away before the coordinator stops; it is started again meanwhile."""

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
            command,
            env=environment(link.folder),
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class FlowerWire:
    """Questions to nodes by Flower messages, answers by their replies."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._trust = link.authority.read_bytes()
        self._nodes: dict[str, int] = {}
        self._run: FlowerRun | None = None

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
        """Ask each plant; one whose message got lost is asked again while there is time."""
        deadline = time.monotonic() + seconds
        awaited = PendingRequests(questions)
        sent: dict[str, str] = {}  # message -> plant
        while awaited.plants and (left := deadline - time.monotonic()) > 0:
            try:
                run = self._running()
                for plant in awaited.due(time.monotonic()):
                    message = run.send(self._nodes[plant], questions[plant], ttl=max(left, 5.0))
                    if message:
                        sent[message] = plant
                        awaited.asked(plant, time.monotonic())
                for message, answer in run.replies(sent):
                    plant = sent.pop(message)
                    if answer is None:
                        awaited.lost(plant, time.monotonic())
                    elif awaited.answered(plant):
                        yield plant, answer
            except LOST:
                sent.clear()
                awaited.ask_all_again()
                self._drop()
            time.sleep(min(POLL_S, max(0.0, deadline - time.monotonic())))

    def close(self) -> None:
        """Let go of the run; its nodes stay."""
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
    """Flower's control interface, which only this machine reaches."""

    def __init__(self, address: str, trust: bytes) -> None:
        self._client = ControlHttpClient.from_server_address(address, False, trust, [])

    def __enter__(self) -> ControlHttpClient:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()
