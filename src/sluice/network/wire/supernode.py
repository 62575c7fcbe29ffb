"""Flower at a plant: its SuperNode, and the loop that answers what comes over it.

The SuperNode runs in the isolation mode in which somebody else runs the apps, and this process is
that somebody. It answers questions with Sluice's own code and never opens the bundle that a run
names: no code that came over the network is run at a plant.
"""

import logging
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.constant import SubStatus
from flwr.proto.runtime_pb2 import (
    AcquireTaskRequest,
    PushTaskOutputRequest,
    SendTaskHeartbeatRequest,
)
from flwr.supercore.constant import TaskType
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError
from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor, SuperExecAuthHttpInterceptor
from flwr.supercore.protobuf.client import ProtobufClientInterceptor
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message

from sluice.files import atomically
from sluice.network.wire.flower_run import FIELD, RECORD
from sluice.network.wire.superlink import bound_to_us, environment
from sluice.network.wire.wire import LARGEST_MESSAGE, Answerer

__all__ = ["Node", "serve", "start_supernode"]

POLL_S = 0.3
HEARTBEAT_S = 10.0
LOST = (httpx.HTTPError, ConnectionError, RuntimeError, ObjectPullError)
"""What a call to the SuperNode ends in when it is away, has given a question up, or we have."""
_log = logging.getLogger("sluice.plant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A plant's SuperNode: where the coordinator's proxy is, and its own port on loopback."""

    proxy: str  # host:port
    authority: Path
    key: Path  # its P-384 private key
    port: int
    folder: Path

    @property
    def secret(self) -> Path:
        """What the runner of tasks shows, so that no other process of this machine can be it."""
        return self.folder / "runner.secret"


def start_supernode(node: Node) -> subprocess.Popen[bytes]:
    """Start Flower's SuperNode; its own interface listens on loopback."""
    node.folder.mkdir(parents=True, exist_ok=True)
    if not node.secret.exists():
        with atomically(node.secret, private=True) as draft:
            draft.write_bytes(secrets.token_bytes(32))
    command = [
        *bound_to_us(),
        str(Path(sys.executable).with_name("flower-supernode")),
        *("--superlink", node.proxy, "--root-certificates", str(node.authority)),
        *("--auth-supernode-private-key", str(node.key)),
        *("--host", "127.0.0.1", "--port", str(node.port)),
        *("--isolation", "process", "--superexec-auth-secret-file", str(node.secret)),
    ]
    with (node.folder / "supernode.log").open("ab") as written:
        return subprocess.Popen(  # noqa: S603 - our own command, no shell
            command, env=environment(node.folder), stdout=written, stderr=subprocess.STDOUT
        )


def serve(node: Node, plant: Answerer, *, alive: Callable[[], bool]) -> None:
    """Answer questions as long as the SuperNode is alive and takes answers.

    A SuperNode hands out one question after the other. One that hands out another has given the
    last up, be it that the run it belonged to is over and its content will never come. One whose
    question failed here waits for the answer for good: the caller starts it anew.
    """
    taken: _Taken | None = None
    while alive() and not (taken and taken.failed):
        try:
            token = _acquire(node)
        except LOST:
            token = ""
        if token:
            if taken:
                taken.give_up()
            taken = _Taken(_client(node, RuntimeTokenHttpInterceptor(token)), plant)
        time.sleep(POLL_S)
    if taken:
        if taken.failed:
            _log.warning("a question got lost at Flower's node, which is started anew")
        taken.give_up()


def _acquire(node: Node) -> str:
    """Take the next question, as the runner of this node's tasks; nothing where none waits."""
    auth = SuperExecAuthHttpInterceptor(
        master_secret=node.secret.read_bytes(),
        protected_methods={"/flwr.proto.Runtime/AcquireTask"},
    )
    client = _client(node, auth)
    try:
        wanted = AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP])
        return str(client.AcquireTask(wanted).token)
    finally:
        client.close()


class _Taken:
    """A question that is answered on a thread of its own, while Flower's patience is kept."""

    def __init__(self, client: RuntimeHttpClient, plant: Answerer) -> None:
        self._error: BaseException | None = None
        self._client, self._plant = client, plant
        self._done = threading.Event()
        self._answering = threading.Thread(target=self._answer, daemon=True, name="sluice-answer")
        self._answering.start()
        threading.Thread(target=self._beat, daemon=True, name="flower-heartbeat").start()

    @property
    def failed(self) -> bool:
        """Whether Flower took the question back; what else went wrong is raised."""
        if self._error and not isinstance(self._error, LOST):
            raise self._error
        return self._error is not None

    def give_up(self) -> None:
        """Take nothing and send nothing from now on; the plant ends what it is at."""
        self._client.close()
        self._answering.join()

    def _answer(self) -> None:
        client = self._client
        try:
            message, context, _, _ = pull_task_input(client)
            answer = self._plant.answer(_question(message))
            content = RecordDict({RECORD: ConfigRecord({FIELD: answer})})
            push_message(client, Message(content, reply_to=message), context)
            client.PushTaskOutput(PushTaskOutputRequest(sub_status=SubStatus.COMPLETED))
        except BaseException as error:  # noqa: BLE001 - raised again in `failed`
            self._error = error  # a question that is lost is asked again by the coordinator
        finally:
            self._done.set()
            client.close()

    def _beat(self) -> None:
        while not self._done.wait(HEARTBEAT_S):
            with suppress(*LOST):
                self._client.SendTaskHeartbeat(SendTaskHeartbeatRequest())


def _client(node: Node, interceptor: ProtobufClientInterceptor) -> RuntimeHttpClient:
    # On loopback and without TLS: the interface's own certificate would be trusted by nobody.
    return RuntimeHttpClient.from_server_address(
        f"127.0.0.1:{node.port}", True, None, [interceptor]
    )


def _question(message: Message) -> bytes:
    """Return what is asked; nothing, which the plant declines, where a message asks nothing."""
    record = message.content.get(RECORD)
    found = record.get(FIELD) if isinstance(record, ConfigRecord) else None
    return found if isinstance(found, bytes) and len(found) <= LARGEST_MESSAGE else b""
