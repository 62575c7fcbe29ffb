"""A plant's Flower node, in the plant's own process: it pulls questions and pushes answers.

It makes the fleet calls of Flower's SuperNode and none of its others: it never asks for the bundle
that a run names, so a plant runs no code from the network. Its loop runs on a thread of its own and
is watched by its calls: a loop that ends or hangs is replaced by a new connection.
"""

import logging
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar, final

import httpx
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    DeactivateNodeRequest,
    PullMessagesRequest,
    PushMessagesRequest,
)
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.message_pb2 import (
    ConfirmMessageReceivedRequest,
    Metadata,
    ObjectTree,
    PullObjectRequest,
    PushObjectRequest,
)
from flwr.proto.node_pb2 import Node as NodeName
from flwr.supercore.primitives.asymmetric import public_key_to_bytes
from flwr.supercore.protobuf.client import ProtobufRequestContext
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from sluice.errors import SettingError
from sluice.files import atomically
from sluice.network.wire.objects import (
    HEAD_BYTES,
    LOST,
    OBJECT_EXTRA,
    Calls,
    leaf_of,
    packed,
    unpacked,
)
from sluice.network.wire.wire import LARGEST_ANSWER, LARGEST_MESSAGE, Answerer

__all__ = ["Connection", "FleetConnection", "Incoming", "Node", "serve"]

ACTIVE_S, IDLE_S, SLOWER = 0.2, 1.0, 1.3
"""Seconds between two pulls after a question, when idle, and the factor from one to the other."""
CALL_S = 30.0
SIGN_OFF_S = 3.0
BEAT_S, LIVES_S = 8.0, 15.0
"""Seconds between two heartbeats; Flower takes a node for gone after twice the second number."""
CONTENT_S = 10.0
"""Seconds to wait for a question's content after its head; the coordinator sends both at once."""
TRIES, TRY_AGAIN_S = 5, 0.25
"""How often a call is tried, and the first pause, which doubles each time."""
RECONNECT_S = 1.0
SILENT_S = 90.0
"""Seconds without a successful call after which a loop counts as hanging."""
LOOK_S = 0.5
BUSY = frozenset({429, 502, 503, 504})
T = TypeVar("T")
_log = logging.getLogger("sluice.plant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A plant's node: where the coordinator's proxy is, and how each proves who it is."""

    proxy: str  # host:port
    authority: Path  # the certificate that the plant trusts
    key: Path  # the node's P-384 private key, which signs its calls
    certificate: Path | None = None  # the plant's TLS client certificate
    certificate_key: Path | None = None
    memory: Path | None = None  # holds the number that Flower gave the node last

    def trust(self) -> ssl.SSLContext:
        """Return the TLS settings: the federation's authority, and the plant's certificate."""
        trust = ssl.create_default_context(cafile=str(self.authority))
        if self.certificate is not None:
            trust.load_cert_chain(self.certificate, self.certificate_key)
        return trust


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """A question as Flower announces it."""

    metadata: Metadata
    tree: ObjectTree


class Connection(Protocol):
    """A node's calls to the coordinator's Flower; each raises one of `LOST` if it fails."""

    def sign_in(self) -> None:
        """Tell Flower that the node is online."""
        ...

    def heartbeat(self) -> None:
        """Tell Flower that the node is still online."""
        ...

    def pull(self) -> Incoming | None:
        """Return the next question, if there is one."""
        ...

    def content(self, question: Incoming) -> bytes | None:
        """Return a question's bytes; None while they have not arrived."""
        ...

    def confirm(self, question: Incoming) -> None:
        """Tell Flower that the question's bytes have arrived, so that it deletes them."""
        ...

    def push(self, question: Incoming, answer: bytes) -> None:
        """Send the answer to a question."""
        ...

    def sign_off(self) -> None:
        """Tell Flower that the node goes offline, and close the connection."""
        ...


@final
class FleetConnection:
    """The connection of a node to the coordinator's proxy, over TLS."""

    def __init__(self, node: Node) -> None:
        key = _private_key(node.key)
        self._public = public_key_to_bytes(key.public_key())
        self._memory = node.memory
        trust = node.trust()
        self._calls = Calls(trust, largest=_largest_response, seconds=CALL_S)
        self._client = FleetHttpClient(
            f"https://{node.proxy}",
            interceptors=[NodeAuthHttpInterceptor(key, key.public_key()), self._calls],
            verify=trust,
        )
        self._name = NodeName(node_id=self._last())

    def sign_in(self) -> None:
        """Tell Flower that the node is online.

        Flower refuses to activate a node that it still takes for online, as after the plant was
        killed. Such a node goes on under its number.
        """
        if self._name.node_id and self._goes_on():
            return
        request = ActivateNodeRequest(public_key=self._public, heartbeat_interval=LIVES_S)
        self._name = NodeName(node_id=self._client.ActivateNode(request).node_id)
        if self._memory is not None:
            with atomically(self._memory) as draft:
                draft.write_text(f"{self._name.node_id}\n", encoding="ascii")

    def heartbeat(self) -> None:
        """Tell Flower that the node is still online."""
        self._beat()

    def _beat(self) -> bool:
        request = SendNodeHeartbeatRequest(node=self._name, heartbeat_interval=LIVES_S)
        return bool(self._client.SendNodeHeartbeat(request).success)

    def _goes_on(self) -> bool:
        """Whether Flower still knows the node by its last number."""
        try:
            return self._beat()
        except httpx.HTTPStatusError:
            return False

    def _last(self) -> int:
        """Return the number that Flower gave the node last; 0 if there is none."""
        try:
            return int(self._memory.read_text(encoding="ascii")) if self._memory else 0
        except (OSError, ValueError):
            return 0

    def pull(self) -> Incoming | None:
        """Return the next question, if there is one."""
        pulled = self._client.PullMessages(PullMessagesRequest(node=self._name))
        if not pulled.messages_list or not pulled.message_object_trees:
            return None
        return Incoming(
            metadata=pulled.messages_list[0].metadata, tree=pulled.message_object_trees[0]
        )

    def content(self, question: Incoming) -> bytes | None:
        """Return a question's bytes; None while they have not arrived.

        A question in another form than the coordinator's is returned as empty bytes, which the
        plant declines. Bytes that Flower has deleted are not an empty question: they are awaited
        until the coordinator asks again.
        """
        leaf = leaf_of(question.tree)
        if leaf is None:
            return b""
        run = question.metadata.run_id
        pulled = self._client.PullObject(
            PullObjectRequest(node=self._name, run_id=run, object_id=leaf)
        )
        if not (pulled.object_found and pulled.object_available):
            return None
        return unpacked(pulled.object_content) or b""

    def confirm(self, question: Incoming) -> None:
        """Tell Flower that the question's bytes have arrived, so that it deletes them."""
        self._client.ConfirmMessageReceived(
            ConfirmMessageReceivedRequest(
                node=self._name,
                run_id=question.metadata.run_id,
                message_object_id=question.metadata.message_id,
            )
        )

    def push(self, question: Incoming, answer: bytes) -> None:
        """Send the answer to a question."""
        asked = question.metadata
        reply = packed(
            Metadata(
                run_id=asked.run_id,
                src_node_id=self._name.node_id,
                dst_node_id=asked.src_node_id,
                reply_to_message_id=asked.message_id,
                group_id=asked.group_id,
                message_type=asked.message_type,
                # The question's own time, so that the plant's clock does not matter here.
                created_at=asked.created_at,
                ttl=asked.ttl,
            ),
            answer,
        )
        accepted = self._client.PushMessages(
            PushMessagesRequest(
                node=self._name,
                messages_list=[reply.head],
                message_object_trees=[reply.tree],
                clientapp_runtime_list=[0.0],
            )
        )
        awaited = set(accepted.objects_to_push)
        for object_id, content in reply.objects:
            if object_id in awaited:
                request = PushObjectRequest(
                    node=self._name,
                    run_id=asked.run_id,
                    object_id=object_id,
                    object_content=content,
                    session_id=accepted.session_id,
                )
                self._client.PushObject(request)

    def sign_off(self) -> None:
        """Tell Flower that the node goes offline, and close the connection."""
        self._calls.seconds = SIGN_OFF_S
        with suppress(*LOST, RuntimeError):
            if self._name.node_id:
                self._client.DeactivateNode(DeactivateNodeRequest(node_id=self._name.node_id))
        self.close()

    def close(self) -> None:
        """Close the connection; Flower takes the node for online for a while."""
        self._calls.close()
        self._client.close()


def serve(
    connect: Callable[[], Connection],
    plant: Answerer,
    *,
    seconds: float | None = None,
    connecting: Callable[[], None] = lambda: None,
    over: Callable[[], bool] = lambda: False,
) -> None:
    """Answer questions for so many seconds, or until `over` says so after an answer.

    A loop that fails or hangs is replaced after a short pause. `connecting` is called before each
    connection. An error of the plant itself is raised.
    """
    until = None if seconds is None else time.monotonic() + seconds
    trouble = ""
    while until is None or time.monotonic() < until:
        connecting()
        loop = _Loop(connect(), plant, over)
        try:
            loop.start()
            while not loop.ended(LOOK_S) and (until is None or time.monotonic() < until):
                if loop.silent_s > SILENT_S:
                    _log.warning(
                        "no call to the coordinator has ended for %.0f s; connecting again",
                        loop.silent_s,
                    )
                    break
                if trouble and loop.connected:
                    _log.warning("connected to the coordinator")
                    trouble = ""
        except BaseException:
            loop.abandon()  # the plant is being stopped: do not wait for its work
            raise
        loop.stop()
        if loop.failure is not None:
            raise loop.failure
        if over():
            return
        if loop.loss is not None and _first_line(loop.loss) != trouble:
            trouble = _first_line(loop.loss)
            _log.warning("lost the coordinator (%s); trying again", trouble)
        if until is None or time.monotonic() < until:
            time.sleep(RECONNECT_S)


@final
class _Loop:
    """One connection, on its own thread: it signs in, then pulls and answers question by question.

    Another thread sends heartbeats, because an answer can take minutes.
    """

    def __init__(self, connection: Connection, plant: Answerer, over: Callable[[], bool]) -> None:
        self.loss: Exception | None = None  # of the connection
        self.failure: BaseException | None = None  # of the plant, or a bug
        self.connected = False
        self._connection, self._plant, self._over = connection, plant, over
        self._stopped = threading.Event()
        self._answering = False
        self._called = time.monotonic()  # when a call of this loop last ended
        self._thread = threading.Thread(target=self._run, daemon=True, name="sluice-node")

    def start(self) -> None:
        """Start the loop."""
        self._thread.start()

    @property
    def silent_s(self) -> float:
        """Seconds since a call of the loop ended; 0 while the plant works on an answer."""
        return 0.0 if self._answering else time.monotonic() - self._called

    def ended(self, wait_s: float) -> bool:
        """Wait for so many seconds at most, and return whether the loop has ended."""
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def stop(self) -> None:
        """End the loop and sign off, after the plant has finished the answer it works on."""
        self._stopped.set()
        while self._answering:
            self._thread.join(LOOK_S)
        self._thread.join(SIGN_OFF_S)
        self._connection.sign_off()

    def abandon(self) -> None:
        """Sign off without waiting for the loop."""
        self._stopped.set()
        self._connection.sign_off()

    def _run(self) -> None:
        try:
            self._connection.sign_in()
            self.connected = True
            threading.Thread(target=self._beat, daemon=True, name="flower-heartbeat").start()
            pause = ACTIVE_S
            while not self._stopped.is_set() and not self._over():
                question = self._persist(self._connection.pull)
                if question is not None:
                    self._serve(question)
                    pause = ACTIVE_S
                elif self._stopped.wait(pause):
                    break
                else:
                    pause = min(pause * SLOWER, IDLE_S)
        except LOST as error:
            self.loss = error
        except BaseException as error:  # noqa: BLE001 - raised again where the loop is watched
            if not self._stopped.is_set():  # a closed connection is no failure
                self.failure = error
        finally:
            self._stopped.set()

    def _serve(self, question: Incoming) -> None:
        """Answer one question; the coordinator asks again for one that gets lost."""
        try:
            self._exchange(question)
        except httpx.HTTPStatusError as error:
            if error.response.status_code in {httpx.codes.UNAUTHORIZED, *BUSY}:
                raise
            _log.info("Flower has given a question up (%s)", error)

    def _exchange(self, question: Incoming) -> None:
        content = self._persist(lambda: self._awaited(question))
        if content is None or self._stopped.is_set():
            return
        with suppress(httpx.HTTPStatusError):  # Flower has deleted it: the last call got through
            self._persist(lambda: self._connection.confirm(question))
        answer = self._answer(content)
        if answer is None:
            return
        if len(answer) > LARGEST_ANSWER:
            _log.warning(
                "the answer has %s bytes and is not sent; the coordinator takes %s at most",
                f"{len(answer):,}",
                f"{LARGEST_ANSWER:,}",
            )
            return
        self._persist(lambda: self._connection.push(question, answer))

    def _answer(self, content: bytes) -> bytes | None:
        """Return the plant's answer; None if it gives none. Its errors end the loop."""
        self._answering = True
        try:
            return self._plant.answer(content)
        except ConnectionError as error:
            _log.warning("a question is left without an answer: %s", error)
            return None
        except BaseException as error:  # noqa: BLE001 - raised again where the loop is watched
            self.failure = error
            self._stopped.set()
            return None
        finally:
            self._answering, self._called = False, time.monotonic()

    def _awaited(self, question: Incoming) -> bytes | None:
        """Return a question's content; None if it does not come, as after a killed coordinator."""
        until = time.monotonic() + CONTENT_S
        while (content := self._connection.content(question)) is None:
            self._called = time.monotonic()
            if time.monotonic() > until or self._stopped.wait(ACTIVE_S):
                return None
        return content

    def _persist(self, call: Callable[[], T]) -> T | None:
        """Make a call a few times if the network fails or the proxy is busy; None if stopped."""
        for left in reversed(range(TRIES)):
            try:
                result = call()
            except httpx.HTTPStatusError as error:
                if not left or error.response.status_code not in BUSY:
                    raise
            except httpx.TransportError:
                if not left:
                    raise
            else:
                return result
            finally:
                self._called = time.monotonic()
            if self._stopped.wait(TRY_AGAIN_S * 2 ** (TRIES - left - 1)):
                return None
        return None

    def _beat(self) -> None:
        while not self._stopped.wait(BEAT_S):
            with suppress(*LOST, RuntimeError):
                self._connection.heartbeat()


def _first_line(error: BaseException) -> str:
    """Return an error's first line; HTTP errors have a second one with an address to read."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def _largest_response(context: ProtobufRequestContext) -> int:
    content = context.rpc_method.endswith("/PullObject")
    return LARGEST_MESSAGE + OBJECT_EXTRA if content else HEAD_BYTES


def _private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = load_ssh_private_key(path.read_bytes(), None)
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise SettingError(
            f"cannot read the node's key {path} ({error}); restore it from a backup, or join again"
        ) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise SettingError(f"{path} is not a key on P-384; restore it from a backup, or join again")
    return key
