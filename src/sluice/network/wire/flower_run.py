"""One Flower run. This process is its server app: it sends messages and pulls replies."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.serde import run_from_proto
from flwr.proto.runtime_pb2 import (
    AcquireTaskRequest,
    PullTaskInputRequest,
    SendTaskHeartbeatRequest,
)
from flwr.supercore.constant import TaskType
from flwr.supercore.interceptors import SuperExecAuthHttpInterceptor
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import HttpGrid

from sluice.network.wire.wire import LARGEST_MESSAGE

__all__ = ["FIELD", "LOST", "RECORD", "FlowerRun", "Link"]

HEARTBEAT_S = 10.0
RECORD, FIELD, KIND = "sluice", "bytes", "query.sluice"
LOST = (httpx.HTTPError, ConnectionError)
"""Errors of a call to Flower when Flower is unreachable or has ended the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The loopback port of Flower's SuperLink, and the files it needs."""

    port: int
    folder: Path  # its database and log
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


class FlowerRun:
    """One Flower run, with this process as its server app."""

    def __init__(self, link: Link, trust: bytes, number: int) -> None:
        self.lost = False
        self._stopped = threading.Event()
        token = _acquire(link, trust)
        self._grid = HttpGrid(link.address, root_certificates=trust, token=token)
        # Flower's own retries end in a signal to the process; here the caller handles a loss.
        self._grid._retry_invoker = None  # type: ignore[assignment]  # noqa: SLF001
        self._client = self._grid._runtime_client  # noqa: SLF001
        task = self._client.PullTaskInput(PullTaskInputRequest())
        if task.run.run_id != number:
            # A run from before Flower was killed; acquired here, it ends without a heartbeat.
            self._grid.close()
            raise ConnectionError(f"Flower gave the task of run {task.run.run_id}, not of {number}")
        TaskIdentity.task_id = task.task_id
        TaskIdentity.run_id = task.run.run_id
        TaskIdentity.node_id = task.context.node_id
        self._grid.set_run(run_from_proto(task.run))
        threading.Thread(target=self._beat, daemon=True, name="flower-heartbeat").start()

    def send(self, node: int, question: bytes, *, ttl: float) -> str | None:
        """Send a question and return the message's id; None if the node has never connected."""
        content = RecordDict({RECORD: ConfigRecord({FIELD: question})})
        return next(iter(self._grid.push_messages([Message(content, node, KIND, ttl=ttl)])), None)

    def replies(self, sent: Mapping[str, str]) -> Iterator[tuple[str, bytes | None]]:
        """Yield the replies to these messages; None if Flower reports that no reply will come.

        Replies are matched by the message they answer, because a dead node's reply names another
        source.
        """
        if not sent:
            return
        for reply in self._grid.pull_messages(list(sent)):
            message = reply.metadata.reply_to_message_id
            if message in sent:
                yield message, None if reply.has_error() else _content(reply)

    def close(self) -> None:
        """Stop the heartbeat, so that Flower ends the run."""
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
    """Acquire the server task of the run that was started, and return its token."""
    auth = SuperExecAuthHttpInterceptor(
        master_secret=link.secret.read_bytes(),
        protected_methods={"/flwr.proto.Runtime/AcquireTask"},
    )
    client = RuntimeHttpClient.from_server_address(link.address, False, trust, [auth])
    request = AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP])
    try:
        for _ in range(50):
            acquired = client.AcquireTask(request)
            if acquired.token:
                return str(acquired.token)
            time.sleep(0.1)
    finally:
        with suppress(httpx.HTTPError):
            client.close()
    raise ConnectionError("Flower has no task for the run that was started")


def _content(reply: Message) -> bytes | None:
    """Return the bytes of a reply; empty bytes if it is not one of ours or too large."""
    record = reply.content.get(RECORD)
    content = record.get(FIELD) if isinstance(record, ConfigRecord) else None
    return content if isinstance(content, bytes) and len(content) <= LARGEST_MESSAGE else b""
