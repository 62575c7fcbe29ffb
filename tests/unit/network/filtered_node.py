"""A filter in this process, between nodes that a test writes and a SuperLink that only records.

The SuperLink here accepts everything, so that whatever reaches it was not refused by the filter.
"""

import asyncio
import hashlib
import json
import time
from base64 import b64encode
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import httpx
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.proto.control_pb2 import ListNodesResponse
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    ActivateNodeResponse,
    PullMessagesRequest,
    PullMessagesResponse,
    PushMessagesRequest,
    PushMessagesResponse,
)
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.proto.message_pb2 import (
    Metadata,
    ObjectTree,
    PullObjectRequest,
    PullObjectResponse,
    PushObjectRequest,
    PushObjectResponse,
)
from flwr.proto.node_pb2 import Node as ProtoNode
from flwr.proto.node_pb2 import NodeInfo
from flwr.proto.recorddict_pb2 import ConfigRecord, ConfigRecordValue, RecordDict

from sluice.network.wire.filter import EnrolledPlant, FleetFilter, FleetLimits
from sluice.network.wire.questions import ANSWERS, Answer, Declined
from sluice.network.wire.refusals import RefusalCounts

SECRET = "5ec2e7"
TYPE = "application/protobuf"
ANSWER = ANSWERS.write(Answer(instance="0" * 64, seen=0, answer=Declined(word="not able")))


class Request(Protocol):
    def SerializeToString(self) -> bytes: ...  # noqa: N802 - protobuf's word


class SuperLink:
    """Records every call, and hands out the questions that a test puts in."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, bytes]] = []
        self.nodes: dict[bytes, int] = {}
        self.questions: dict[int, list[tuple[ProtoMessage, ObjectTree]]] = {}
        self.held: set[str] = set()  # objects that the coordinator has not received
        self.fails: set[str] = set()  # calls that do not answer

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        call, body = request.url.path.rpartition("/")[2], request.content
        self.calls.append((call, body))
        if call in self.fails:
            raise httpx.ConnectError("the SuperLink is away")
        return httpx.Response(200, content=self._answer(call, body), headers={"content-type": TYPE})

    def _answer(self, call: str, body: bytes) -> bytes:
        return bytes(self._response(call, body).SerializeToString())

    def _response(self, call: str, body: bytes) -> Request:
        response: Request = PullMessagesResponse()
        match call:
            case "list-nodes":
                nodes = [NodeInfo(public_key=key, node_id=node) for key, node in self.nodes.items()]
                response = ListNodesResponse(nodes_info=nodes)
            case "activate-node":
                key = ActivateNodeRequest.FromString(body).public_key
                response = ActivateNodeResponse(node_id=self.nodes[key])
            case "pull-messages":
                node = PullMessagesRequest.FromString(body).node.node_id
                waiting = self.questions.pop(node, [])
                response = PullMessagesResponse(
                    messages_list=[message for message, _ in waiting],
                    message_object_trees=[tree for _, tree in waiting],
                )
            case "push-messages":
                ids = ids_of(PushMessagesRequest.FromString(body).message_object_trees[0])
                response = PushMessagesResponse(objects_to_push=ids, session_id="flower")
            case "push-object":
                self.held.add(PushObjectRequest.FromString(body).object_id)
                response = PushObjectResponse(stored=True)
            case "pull-object":
                held = PullObjectRequest.FromString(body).object_id in self.held
                response = PullObjectResponse(object_found=held, object_available=held)
        return response

    def seen(self, call: str) -> list[bytes]:
        return [body for name, body in self.calls if name == call]

    def ask(self, node: int, *, run: int = 7, seconds: float = 60.0) -> Metadata:
        """Put in a question to a node, and return its metadata."""
        metadata = Metadata(
            run_id=run,
            src_node_id=1,
            dst_node_id=node,
            ttl=seconds,
            created_at=time.time(),
            message_type="query.sluice",
        )
        metadata.message_id = digest(f"{node}{run}{metadata.created_at}".encode())
        leaf = ObjectTree(object_id=digest(metadata.message_id.encode()))
        tree = ObjectTree(object_id=metadata.message_id, children=[leaf])
        self.questions.setdefault(node, []).append((ProtoMessage(metadata=metadata), tree))
        return metadata


@dataclass
class Reply:
    """A reply as a node sends it: its head, and its objects by id."""

    request: PushMessagesRequest
    objects: dict[str, bytes]

    @property
    def metadata(self) -> Metadata:
        metadata: Metadata = self.request.messages_list[0].metadata
        return metadata


@dataclass(kw_only=True)
class Answered:
    status: int
    body: bytes


class Node:
    """A plant's node, as a test directs it."""

    def __init__(self, bench: "Bench", name: str, node: int) -> None:
        self.bench, self.name, self.node = bench, name, node
        self.key = ec.generate_private_key(ec.SECP384R1())
        self.serial = f"{node:04X}"
        self.ahead_s = 0.0

    @property
    def public(self) -> bytes:
        return self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    @property
    def own(self) -> ProtoNode:
        return ProtoNode(node_id=self.node)

    def headers(self) -> dict[str, str]:
        """Return the headers of a genuine call; the first three are the proxy's."""
        at = (datetime.now(UTC) + timedelta(seconds=self.ahead_s)).isoformat()
        signature = self.key.sign(at.encode("ascii"), ec.ECDSA(hashes.SHA256()))
        return {
            "x-sluice-proxy": SECRET,
            "x-sluice-plant": self.name,
            "x-sluice-serial": self.serial,
            "content-type": TYPE,
            "flwr-public-key": b64encode(self.public).decode(),
            "flwr-timestamp": at,
            "flwr-signature": b64encode(signature).decode(),
        }

    def call(
        self, name: str, request: Request | bytes, headers: Mapping[str, str] | None = None
    ) -> Answered:
        body = request if isinstance(request, bytes) else request.SerializeToString()
        return self.bench.post(f"/v1/fleet/{name}", body, {**self.headers(), **(headers or {})})

    def pull(self) -> Answered:
        return self.call("pull-messages", PullMessagesRequest(node=self.own))

    def asked(self, **kind: Any) -> Metadata:
        """Have the coordinator ask this node, and take the question."""
        question = self.bench.link.ask(self.node, **kind)
        assert self.pull().status == 200
        return question

    def reply(self, question: Metadata, answer: bytes = ANSWER, **changed: Any) -> Reply:
        """Return a reply to a question; `changed` are other values of its message object."""
        metadata = Metadata(
            run_id=question.run_id,
            src_node_id=self.node,
            dst_node_id=1,
            reply_to_message_id=question.message_id,
            ttl=30.0,
            created_at=time.time(),
            message_type=question.message_type,
        )
        inner = Metadata()
        inner.CopyFrom(metadata)
        for name, value in changed.items():
            setattr(inner, name, value)
        value = ConfigRecordValue(bytes=answer)
        items = ConfigRecord(items=[ConfigRecord.Item(key="bytes", value=value)])
        return chained(self.own, metadata, inner, items.SerializeToString())

    def announce(self, reply: Reply) -> tuple[Answered, str]:
        """Send a reply's head; return the answer and the session for its objects."""
        answer = self.call("push-messages", reply.request)
        told = PushMessagesResponse()
        if answer.status == 200:
            told.ParseFromString(answer.body)
        return answer, told.session_id

    def push(self, reply: Reply, session: str, object_id: str) -> Answered:
        request = PushObjectRequest(
            node=self.own,
            run_id=reply.metadata.run_id,
            object_id=object_id,
            object_content=reply.objects[object_id],
            session_id=session,
        )
        return self.call("push-object", request)

    def send(self, reply: Reply) -> Answered:
        """Send a whole reply; return the answer to the last call, or to the first refused one."""
        answer, session = self.announce(reply)
        for object_id in reply.objects:
            if answer.status != 200:
                break
            answer = self.push(reply, session, object_id)
        return answer


@dataclass
class Bench:
    """A SuperLink, the filter before it, and two enrolled plants."""

    folder: Path
    limits: FleetLimits = field(default_factory=FleetLimits)

    def __post_init__(self) -> None:
        self.link = SuperLink()
        self.roster: dict[str, EnrolledPlant] = {}
        self.counts = RefusalCounts(self.folder / "refusals.json")
        self._loop = asyncio.new_event_loop()
        self.filter = FleetFilter(
            link=httpx.AsyncClient(
                transport=httpx.MockTransport(self.link), base_url="https://superlink"
            ),
            secret=SECRET,
            roster=lambda: self.roster,
            refusals=self.counts,
            limits=self.limits,
        )
        self.north, self.south = self.enrol("north", 1_001), self.enrol("south", 1_002)

    def enrol(self, name: str, node: int) -> Node:
        enrolled = Node(self, name, node)
        self.roster[name] = EnrolledPlant(
            name=name, node_key=enrolled.public, serials=frozenset((enrolled.serial,))
        )
        self.link.nodes[enrolled.public] = node
        return enrolled

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answered:
        async def ask() -> Answered:
            transport = httpx.ASGITransport(self.filter)
            async with httpx.AsyncClient(transport=transport, base_url="http://filter") as client:
                answer = await client.post(path, content=body, headers=dict(headers))
            return Answered(status=answer.status_code, body=answer.content)

        return self.run(ask())

    def run(self, work: Coroutine[Any, Any, Answered]) -> Answered:
        return self._loop.run_until_complete(work)

    def refused(self, plant: str = "north") -> dict[str, int]:
        return dict(self.counts.of(plant))

    def close(self) -> None:
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


def chained(node: ProtoNode, head: Metadata, inner: Metadata, record: bytes) -> Reply:
    """Return a reply of three objects; `inner` is the metadata in its message object."""
    leaf = flower_object("ConfigRecord", (), record)
    names = json.dumps({"sluice": digest(leaf)}).encode()
    middle = flower_object("RecordDict", (digest(leaf),), names)
    body = ProtoMessage(metadata=inner).SerializeToString(deterministic=True)
    root = flower_object("Message", (digest(middle),), body)
    tree = ObjectTree(object_id=digest(leaf))
    for parent in (middle, root):
        tree = ObjectTree(object_id=digest(parent), children=[tree])
    head.message_id = digest(root)
    request = PushMessagesRequest(
        node=node,
        messages_list=[ProtoMessage(metadata=head, content=RecordDict())],
        message_object_trees=[tree],
        clientapp_runtime_list=[0.1],
    )
    return Reply(request, {digest(each): each for each in (leaf, middle, root)})


def flower_object(kind: str, children: tuple[str, ...], body: bytes) -> bytes:
    """Return an object as Flower stores it."""
    return f"{kind} {','.join(children)} {len(body)}".encode() + b"\0" + body


def ids_of(tree: ObjectTree) -> list[str]:
    return [each for child in tree.children for each in ids_of(child)] + [tree.object_id]


def digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
