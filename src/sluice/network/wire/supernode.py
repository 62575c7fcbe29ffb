"""Flower at a plant: its SuperNode, and the loop that answers the questions it receives.

The SuperNode uses the isolation mode in which a separate process runs the apps, and this is that
process. It answers questions with Sluice's own code and never opens the bundle that a run names: a
plant runs no code from the network.
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

from sluice.files import atomically, private_folder
from sluice.network.wire.flower_run import FIELD, RECORD
from sluice.network.wire.superlink import bound_to_us, environment
from sluice.network.wire.wire import LARGEST_MESSAGE, Answerer

__all__ = ["Node", "serve", "start_supernode"]

POLL_S = 0.3
HEARTBEAT_S = 10.0
LOST = (httpx.HTTPError, ConnectionError, RuntimeError, ObjectPullError)
"""Errors of a call when the SuperNode is unreachable, or when it or we gave a question up."""
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
        """The secret for running tasks; it keeps other processes of this machine from doing so."""
        return self.folder / "runner.secret"


def start_supernode(node: Node) -> subprocess.Popen[bytes]:
    """Start Flower's SuperNode; its own interface listens on loopback."""
    private_folder(node.folder)
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
    """Answer questions as long as the SuperNode is alive and accepts answers.

    A SuperNode hands out one question at a time. When it hands out the next one, it has given the
    last one up, for example because that run is over and its content will never come. If a question
    failed here, the SuperNode waits for its answer forever, so the caller restarts it.
    """
    task: _Task | None = None
    while alive() and not (task and task.failed):
        try:
            token = _acquire(node)
        except LOST:
            token = ""
        if token:
            if task:
                task.give_up()
            task = _Task(_client(node, RuntimeTokenHttpInterceptor(token)), plant)
        time.sleep(POLL_S)
    if task:
        if task.failed:
            _log.warning("a question got lost at Flower's node; restarting the node")
        task.give_up()


def _acquire(node: Node) -> str:
    """Acquire the next question and return its token; an empty string if there is none."""
    auth = SuperExecAuthHttpInterceptor(
        master_secret=node.secret.read_bytes(),
        protected_methods={"/flwr.proto.Runtime/AcquireTask"},
    )
    client = _client(node, auth)
    try:
        request = AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP])
        return str(client.AcquireTask(request).token)
    finally:
        client.close()


class _Task:
    """A question that is answered on its own thread, while another thread sends heartbeats."""

    def __init__(self, client: RuntimeHttpClient, plant: Answerer) -> None:
        self._error: BaseException | None = None
        self._client, self._plant = client, plant
        self._done = threading.Event()
        self._answering = threading.Thread(target=self._answer, daemon=True, name="sluice-answer")
        self._answering.start()
        threading.Thread(target=self._beat, daemon=True, name="flower-heartbeat").start()

    @property
    def failed(self) -> bool:
        """Whether the question was lost at Flower; any other error is raised."""
        if self._error and not isinstance(self._error, LOST):
            raise self._error
        return self._error is not None

    def give_up(self) -> None:
        """Stop receiving and sending; wait until the plant has finished its current work."""
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
            self._error = error  # the coordinator repeats a lost question
        finally:
            self._done.set()
            client.close()

    def _beat(self) -> None:
        while not self._done.wait(HEARTBEAT_S):
            with suppress(*LOST):
                self._client.SendTaskHeartbeat(SendTaskHeartbeatRequest())


def _client(node: Node, interceptor: ProtobufClientInterceptor) -> RuntimeHttpClient:
    # Loopback without TLS: no party would trust the interface's own certificate.
    return RuntimeHttpClient.from_server_address(
        f"127.0.0.1:{node.port}", True, None, [interceptor]
    )


def _question(message: Message) -> bytes:
    """Return the question of a message; if it has none, empty bytes, which the plant declines."""
    record = message.content.get(RECORD)
    content = record.get(FIELD) if isinstance(record, ConfigRecord) else None
    return content if isinstance(content, bytes) and len(content) <= LARGEST_MESSAGE else b""
