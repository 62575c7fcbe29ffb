"""A malicious plant's own client of Flower's fleet calls, without any code of a genuine node.

It signs each call with the node's key, as the SuperLink demands, and otherwise sends what a test
tells it to. Every call returns a `Response` and never raises for a refusal, so that a test can
assert the status.

    with FleetClient("127.0.0.1:8443", authority=..., key=...) as client:
        client.activate()
        question = client.await_question(10)
        client.reply(question, b"an honest answer")                # head and objects
        client.announce(question, client.answer(b"..."))           # a reply without its objects
        client.reply(question, client.large(400 * 2**20))          # 400 MB, in objects of 4 MiB
        client.reply(question, b"...", source=other_node)          # another node as its source
        client.reply(stolen, b"...")                               # answer another node's message
        client.flood(question, 100)                                # many replies to one message

`certificate` and `certificate_key` are the plant's TLS client certificate, if the proxy demands
one. `call` sends any request to any fleet path; `post` sends any bytes. `claims` is the node id
that the calls name; set it to another node's id to claim its identity.
"""

import hashlib
import json
import ssl
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import httpx
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    ActivateNodeResponse,
    DeactivateNodeRequest,
    PullMessagesRequest,
    PullMessagesResponse,
    PushMessagesRequest,
    PushMessagesResponse,
)
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.message_pb2 import (
    ConfirmMessageReceivedRequest,
    Metadata,
    ObjectTree,
    PullObjectRequest,
    PullObjectResponse,
    PushObjectRequest,
    PushObjectResponse,
)
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.proto.node_pb2 import Node
from flwr.proto.recorddict_pb2 import ConfigRecord, ConfigRecordValue, RecordDict

SUPERLINK = 1  # the node id of the coordinator's side
TYPE = "application/protobuf"
RECORD, FIELD = "sluice", "bytes"
PIECE = 4 * 2**20
TIMEOUT_S = 60.0


class Request(Protocol):
    """A message of Flower's protocol buffers."""

    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's word


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """The answer to one call."""

    status: int
    body: bytes

    @property
    def accepted(self) -> bool:
        return self.status == httpx.codes.OK


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A question's head, its tree of objects, and its content if it was pulled."""

    metadata: Metadata
    tree: ObjectTree
    content: bytes = b""

    @property
    def message(self) -> str:
        return self.metadata.message_id

    @property
    def run(self) -> int:
        return self.metadata.run_id


@dataclass(frozen=True, slots=True)
class Pieces:
    """The objects of an answer's content: the tree, and each object's bytes, made on demand."""

    tree: ObjectTree
    small: Mapping[str, bytes]  # object id -> content
    large: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # id -> number, size

    def content(self, object_id: str) -> bytes:
        if object_id in self.small:
            return self.small[object_id]
        return _filled(*self.large[object_id])

    def ids(self) -> Iterator[str]:
        yield from self.large
        yield from self.small


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """A reply whose head was sent: the response, and the objects that Flower now waits for."""

    response: Response
    run: int
    pieces: Pieces
    session: str = ""
    awaited: tuple[str, ...] = ()


class FleetClient:
    """One node's connection to a SuperLink, through the proxy or past it."""

    def __init__(
        self,
        address: str,
        *,
        authority: Path,
        key: Path | ec.EllipticCurvePrivateKey,
        certificate: Path | None = None,
        certificate_key: Path | None = None,
    ) -> None:
        trust = ssl.create_default_context(cafile=str(authority))
        if certificate is not None:
            trust.load_cert_chain(certificate, certificate_key)
        self._http = httpx.Client(verify=trust, timeout=TIMEOUT_S)
        self._address = address
        self._key = read_key(key) if isinstance(key, Path) else key
        self.public = self._key.public_key().public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
        )
        self.node = 0  # its own id, after `activate`
        self.claims = 0  # the id that its calls name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # -- calls --------------------------------------------------------------------------------

    def post(self, path: str, body: bytes, *, headers: Mapping[str, str] | None = None) -> Response:
        """Send any bytes to a path, signed unless other headers are given."""
        sent = {"content-type": TYPE, **(self._signed() if headers is None else headers)}
        answer = self._http.post(f"https://{self._address}{path}", content=body, headers=sent)
        return Response(status=answer.status_code, body=answer.content)

    def call(self, name: str, request: Request) -> Response:
        """Make a fleet call, for example `pull-messages`."""
        return self.post(f"/v1/fleet/{name}", request.SerializeToString())

    def _signed(self) -> dict[str, str]:
        at = datetime.now(UTC).isoformat()
        signature = self._key.sign(at.encode("ascii"), ec.ECDSA(hashes.SHA256()))
        return {
            "flwr-public-key": b64encode(self.public).decode("ascii"),
            "flwr-timestamp": at,
            "flwr-signature": b64encode(signature).decode("ascii"),
        }

    # -- what an honest node does -------------------------------------------------------------

    def activate(self) -> Response:
        """Sign in; sets `node`."""
        request = ActivateNodeRequest(public_key=self.public, heartbeat_interval=30.0)
        answer = self.call("activate-node", request)
        if answer.accepted:
            self.node = self.claims = ActivateNodeResponse.FromString(answer.body).node_id
        return answer

    def deactivate(self) -> Response:
        return self.call("deactivate-node", DeactivateNodeRequest(node_id=self.claims))

    def heartbeat(self) -> Response:
        request = SendNodeHeartbeatRequest(node=self._name, heartbeat_interval=30.0)
        return self.call("send-node-heartbeat", request)

    def pull(self) -> Received | None:
        """Take the next question's head; None if there is none or the call was refused."""
        answer = self.call("pull-messages", PullMessagesRequest(node=self._name))
        if not answer.accepted:
            return None
        pulled = PullMessagesResponse.FromString(answer.body)
        if not pulled.messages_list:
            return None
        return Received(
            metadata=pulled.messages_list[0].metadata, tree=pulled.message_object_trees[0]
        )

    def pull_object(self, run: int, object_id: str) -> PullObjectResponse:
        request = PullObjectRequest(node=self._name, run_id=run, object_id=object_id)
        answer = self.call("pull-object", request)
        pulled = PullObjectResponse()
        pulled.ParseFromString(answer.body if answer.accepted else b"")
        return pulled

    def confirm(self, run: int, message: str) -> Response:
        request = ConfirmMessageReceivedRequest(
            node=self._name, run_id=run, message_object_id=message
        )
        return self.call("confirm-message-received", request)

    def await_question(self, seconds: float) -> Received:
        """Take the next question with its content, and confirm it."""
        deadline = time.monotonic() + seconds
        while (head := self.pull()) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no question came in {seconds:.0f} s")
            time.sleep(0.1)
        leaf = head.tree
        while leaf.children:
            leaf = leaf.children[0]
        while not (pulled := self.pull_object(head.run, leaf.object_id)).object_available:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the question's content did not come in {seconds:.0f} s")
            time.sleep(0.1)
        self.confirm(head.run, head.message)
        body = pulled.object_content.split(b"\0", 1)[1]
        value = ConfigRecord.FromString(body).items[0].value
        return Received(metadata=head.metadata, tree=head.tree, content=value.bytes)

    # -- replies ------------------------------------------------------------------------------

    def answer(self, content: bytes) -> Pieces:
        """Return the objects of an answer in the form of an honest node."""
        value = ConfigRecordValue(bytes=content)
        record = ConfigRecord(items=[ConfigRecord.Item(key=FIELD, value=value)])
        raw = _object("ConfigRecord", (), record.SerializeToString())
        return _records({RECORD: (_id(raw), raw)})

    def large(self, size: int) -> Pieces:
        """Return the objects of an answer of so many bytes, in records of 4 MiB each."""
        numbers = range(-(-size // PIECE))
        large = {_id(_filled(number, PIECE)): (number, PIECE) for number in numbers}
        leaves = {f"piece-{number}": object_id for object_id, (number, _) in large.items()}
        raw = _object("RecordDict", tuple(large), json.dumps(leaves).encode())
        tree = ObjectTree(object_id=_id(raw), children=[ObjectTree(object_id=o) for o in large])
        return Pieces(tree, {_id(raw): raw}, large)

    def reply(
        self,
        question: Received,
        content: bytes | Pieces,
        *,
        source: int | None = None,
        run: int | None = None,
    ) -> Announced:
        """Send a reply with all its objects; `source` is the node that it claims to come from."""
        pieces = self.answer(content) if isinstance(content, bytes) else content
        announced = self.announce(question, pieces, source=source, run=run)
        for object_id in reversed(announced.awaited):  # the bytes last: then it is complete
            self.push(announced, object_id)
        return announced

    def announce(
        self,
        question: Received,
        pieces: Pieces,
        *,
        source: int | None = None,
        run: int | None = None,
        nonce: int = 0,
    ) -> Announced:
        """Send the head of a reply and none of its objects; `nonce` makes another reply of it."""
        asked = question.metadata
        now = time.time()
        metadata = Metadata(
            run_id=asked.run_id if run is None else run,
            src_node_id=self.node if source is None else source,
            dst_node_id=SUPERLINK,
            reply_to_message_id=asked.message_id,
            group_id=str(nonce) if nonce else asked.group_id,
            ttl=asked.created_at + asked.ttl - now,
            message_type=asked.message_type,
            created_at=now,
        )
        raw = _object(
            "Message",
            (pieces.tree.object_id,),
            ProtoMessage(metadata=metadata).SerializeToString(deterministic=True),
        )
        whole = Pieces(
            ObjectTree(object_id=_id(raw), children=[pieces.tree]),
            {**pieces.small, _id(raw): raw},
            pieces.large,
        )
        metadata.message_id = _id(raw)
        request = PushMessagesRequest(
            node=self._name,
            messages_list=[ProtoMessage(metadata=metadata, content=RecordDict())],
            message_object_trees=[whole.tree],
            clientapp_runtime_list=[0.0],
        )
        answer = self.call("push-messages", request)
        told = PushMessagesResponse.FromString(answer.body if answer.accepted else b"")
        return Announced(
            response=answer,
            run=metadata.run_id,
            pieces=whole,
            session=told.session_id,
            awaited=tuple(told.objects_to_push),
        )

    def push(self, announced: Announced, object_id: str) -> bool:
        """Send one object of an announced reply; return whether Flower stored it."""
        request = PushObjectRequest(
            node=self._name,
            run_id=announced.run,
            object_id=object_id,
            object_content=announced.pieces.content(object_id),
            session_id=announced.session,
        )
        answer = self.call("push-object", request)
        return answer.accepted and PushObjectResponse.FromString(answer.body).stored

    def flood(self, question: Received, times: int) -> list[Announced]:
        """Announce many different replies to one question; return what came of each."""
        pieces = self.answer(b"again")
        return [self.announce(question, pieces, nonce=at + 1) for at in range(times)]

    @property
    def _name(self) -> Node:
        return Node(node_id=self.claims)


def read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Read a node's private key, in OpenSSH's or in PKCS 8 form."""
    raw = path.read_bytes()
    load = load_ssh_private_key if b"OPENSSH" in raw else load_pem_private_key
    key = load(raw, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _records(records: Mapping[str, tuple[str, bytes]]) -> Pieces:
    ids = {name: object_id for name, (object_id, _) in records.items()}
    raw = _object("RecordDict", tuple(ids.values()), json.dumps(ids).encode())
    children = [ObjectTree(object_id=object_id) for object_id in ids.values()]
    small = dict(records.values())
    return Pieces(ObjectTree(object_id=_id(raw), children=children), {**small, _id(raw): raw})


def _filled(number: int, size: int) -> bytes:
    """Return a record of so many bytes; another number gives another record."""
    filling = number.to_bytes(8, "big") * (size // 8)
    value = ConfigRecordValue(bytes=filling)
    record = ConfigRecord(items=[ConfigRecord.Item(key=FIELD, value=value)])
    return _object("ConfigRecord", (), record.SerializeToString())


def _object(kind: str, children: tuple[str, ...], body: bytes) -> bytes:
    """Return an object as Flower stores it: a head of three parts, a zero byte, the body."""
    return f"{kind} {','.join(children)} {len(body)}".encode() + b"\0" + body


def _id(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
