"""One run of Flower, whose server app is this process: it sends messages and pulls replies."""

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
"""What a call to Flower ends in when Flower is away or has given the run up."""


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


class FlowerRun:
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
            # One that was begun before Flower was killed; it is taken and ends without a heartbeat.
            self._grid.close()
            raise ConnectionError(f"another run ({told.run.run_id}) was waiting for a runner")
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
