"""One Flower run. This process is its server app: it sends questions and pulls replies."""

import ssl
import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from flwr.common.constant import SUPERLINK_NODE_ID
from flwr.proto.message_pb2 import (
    ConfirmMessageReceivedRequest,
    Metadata,
    PullObjectRequest,
    PushObjectRequest,
)
from flwr.proto.node_pb2 import Node
from flwr.proto.runtime_pb2 import (
    AcquireTaskRequest,
    PullAppMessagesRequest,
    PullTaskInputRequest,
    PushAppMessagesRequest,
    SendTaskHeartbeatRequest,
)
from flwr.supercore.constant import TaskType
from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor, SuperExecAuthHttpInterceptor
from flwr.supercore.protobuf.client import ProtobufClientInterceptor, ProtobufRequestContext
from flwr.supercore.runtime import RuntimeHttpClient

from sluice.network.wire.objects import (
    HEAD_BYTES,
    KIND,
    LOST,
    OBJECT_EXTRA,
    Calls,
    OversizedError,
    leaf_of,
    packed,
    unpacked,
)
from sluice.network.wire.wire import LARGEST_ANSWER

__all__ = ["FlowerRun", "Link", "ReplyHead"]

HEARTBEAT_S = 10.0
CALL_S = 30.0
SETTINGS_BYTES = 1024 * 1024
"""Bytes of a task's input, which holds the run's empty bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The loopback port of Flower's SuperLink, and the files it needs."""

    port: int
    folder: Path  # its log
    certificate: Path
    key: Path
    authority: Path

    @property
    def address(self) -> str:
        """Its address on this machine."""
        return f"127.0.0.1:{self.port}"

    @property
    def secret(self) -> Path:
        """The secret for running tasks; it keeps other processes of this machine from doing so."""
        return self.folder / "runner.secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyHead:
    """The head of a reply.

    `answers` is the message it answers: the source that a reply names is the sender's claim.
    """

    message: str
    answers: str
    leaf: str | None  # the object with its bytes; None if it has another form than an answer's
    lost: bool  # Flower itself reports that no reply will come


class FlowerRun:
    """One Flower run, with this process as its server app."""

    def __init__(self, link: Link, number: int) -> None:
        self.number = number
        self.lost = False
        self.sent = 0  # bytes, with those that Flower keeps of each message
        self._stopped = threading.Event()
        self._node = Node(node_id=SUPERLINK_NODE_ID)
        self._trust = ssl.create_default_context(cafile=str(link.authority))
        self._link = link
        self._calls = Calls(self._trust, largest=_largest_response, seconds=CALL_S)
        self._client = self._connected(RuntimeTokenHttpInterceptor(self._acquire()))
        task = self._client.PullTaskInput(PullTaskInputRequest())
        if task.run.run_id != number:
            # A run from before Flower was killed; acquired here, it ends without a heartbeat.
            self.close()
            raise ConnectionError(f"Flower gave the task of run {task.run.run_id}, not of {number}")
        threading.Thread(target=self._beat, daemon=True, name="flower-heartbeat").start()

    def send(self, node: int, question: bytes, *, ttl: float) -> str | None:
        """Send a question and return the message's id; None if the node has never connected."""
        metadata = Metadata(
            run_id=self.number,
            src_node_id=SUPERLINK_NODE_ID,
            dst_node_id=node,
            message_type=KIND,
            created_at=time.time(),
            ttl=ttl,
        )
        message = packed(metadata, question)
        accepted = self._client.PushMessages(
            PushAppMessagesRequest(
                messages_list=[message.head], message_object_trees=[message.tree]
            )
        )
        name = next(iter(accepted.message_ids), "")
        awaited = set(accepted.objects_to_push)
        for object_id, content in message.objects if name else ():
            if object_id in awaited:
                request = PushObjectRequest(
                    node=self._node,
                    run_id=self.number,
                    object_id=object_id,
                    object_content=content,
                    session_id=accepted.session_id,
                )
                self._client.PushObject(request)
        self.sent += len(question) + HEAD_BYTES
        return name or None

    def replies(self, messages: Collection[str]) -> Iterator[ReplyHead]:
        """Yield the heads of the replies to these messages; each is handed out once.

        Raises `OversizedError` if the heads together are longer than so many heads are; Flower has
        then forgotten these replies.
        """
        if not messages:
            return
        pulled = self._client.PullMessages(PullAppMessagesRequest(message_ids=messages))
        for head, tree in zip(pulled.messages_list, pulled.message_object_trees, strict=True):
            metadata, failed = head.metadata, head.HasField("error")
            yield ReplyHead(
                message=metadata.message_id,
                answers=metadata.reply_to_message_id,
                leaf=None if failed else leaf_of(tree),
                lost=failed and metadata.src_node_id == SUPERLINK_NODE_ID,
            )

    def content(self, reply: ReplyHead) -> bytes | None:
        """Return the bytes of a reply; None while they have not arrived.

        Empty if the reply has another form than an answer's, or more bytes than an answer may have.
        """
        if reply.leaf is None:
            return b""
        request = PullObjectRequest(node=self._node, run_id=self.number, object_id=reply.leaf)
        try:
            pulled = self._client.PullObject(request)
        except OversizedError:
            return b""
        if pulled.object_found and not pulled.object_available:
            return None
        return unpacked(pulled.object_content) or b""

    def forget(self, message: str) -> None:
        """Let Flower delete the objects of a question or a reply."""
        request = ConfirmMessageReceivedRequest(
            node=self._node, run_id=self.number, message_object_id=message
        )
        self._client.ConfirmMessageReceived(request)

    def close(self) -> None:
        """Stop the heartbeat and close the connection."""
        self._stopped.set()
        self._calls.close()
        self._client.close()

    def _connected(self, *interceptors: ProtobufClientInterceptor) -> RuntimeHttpClient:
        address = f"https://{self._link.address}"
        return RuntimeHttpClient(
            address, interceptors=[*interceptors, self._calls], verify=self._trust
        )

    def _acquire(self) -> str:
        """Acquire the server task of the run that was started, and return its token."""
        auth = SuperExecAuthHttpInterceptor(
            master_secret=self._link.secret.read_bytes(),
            protected_methods={"/flwr.proto.Runtime/AcquireTask"},
        )
        client = self._connected(auth)
        request = AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP])
        try:
            for _ in range(50):
                acquired = client.AcquireTask(request)
                if acquired.token:
                    return str(acquired.token)
                time.sleep(0.1)
        finally:
            client.close()
        raise ConnectionError("Flower has no task for the run that was started")

    def _beat(self) -> None:
        while not self._stopped.wait(HEARTBEAT_S):
            try:
                alive = self._client.SendTaskHeartbeat(SendTaskHeartbeatRequest()).success
            except (*LOST, RuntimeError):
                alive = False
            if not alive:
                self.lost = True
                return


def _largest_response(context: ProtobufRequestContext) -> int:
    if isinstance(context.message, PullAppMessagesRequest):
        return HEAD_BYTES * max(1, len(context.message.message_ids))
    if isinstance(context.message, PullObjectRequest):
        return LARGEST_ANSWER + OBJECT_EXTRA
    return SETTINGS_BYTES
