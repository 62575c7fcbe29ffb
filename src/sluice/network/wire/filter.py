"""The filter between the proxy and Flower: it lets a plant act as itself, and as no other.

Flower 1.41 signs the time of a call, not its content, and stores whatever sender a message names.
The filter checks every call before Flower sees it:

1. The call comes through the proxy, which has verified the caller's certificate.
2. The certificate is one that the coordinator issued to an active plant and has not revoked.
3. The node key of the call is the one with which this plant joined, and the call's signature holds.
4. The node that the call names, and the sender of each message, is this plant's node.
5. A reply answers a question that Flower handed to this node, once, and carries an answer of ours.
   Flower gets a reply whole or not at all.
6. A node takes and confirms only objects of its own questions. No node is registered this way.
7. Sizes, times, and what one plant occupies in the memory of the filter and in Flower's queue, are
   limited.

The filter is an ASGI application. It runs in a process of its own, so that a flood of calls takes
no time from the coordinator.
"""

import asyncio
import time
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from hmac import compare_digest
from typing import Any, final

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.common.constant import SYSTEM_TIME_TOLERANCE, TIMESTAMP_HEADER, TIMESTAMP_TOLERANCE
from flwr.proto.control_pb2 import ListNodesRequest, ListNodesResponse
from flwr.proto.fab_pb2 import GetFabRequest
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    ActivateNodeResponse,
    DeactivateNodeRequest,
    PullMessagesRequest,
    PullMessagesResponse,
    PushMessagesRequest,
    PushMessagesResponse,
    Reconnect,
)
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.message_pb2 import (
    ConfirmMessageReceivedRequest,
    PullObjectRequest,
    PullObjectResponse,
    PushObjectRequest,
    PushObjectResponse,
)
from flwr.proto.node_pb2 import Node as NodeName
from flwr.proto.run_pb2 import GetRunRequest
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
from flwr.supercore.primitives.asymmetric import bytes_to_public_key, verify_signature

from sluice.network.wire.proxy import (
    FILTER_HEADER,
    FLEET_CALLS,
    LARGEST_CALL,
    LARGEST_OBJECT_CALL,
    PLANT_HEADER,
    SECRET_HEADER,
    SERIAL_HEADER,
)
from sluice.network.wire.refusals import CallRefusal, CallRefusedError, RefusalCounts, demand
from sluice.network.wire.replies import Announcement, OpenQuestion, PartialReply

__all__ = ["EnrolledPlant", "FleetFilter", "FleetLimits", "Roster"]

PROTOBUF = "application/protobuf"
PREFIX = "/v1/fleet/"
LARGE_CALLS = ("push-object", "pull-object")
"""Calls of which one plant has one at a time."""
REMEMBERED = 16
RELEASED_AT_ONCE = 4
REPLY_EXTRA = 4 * 1024
"""Bytes that count for a reply beside its objects, so that small ones are not free."""
AGAIN_S = 1.0
"""Seconds between two questions to Flower about its nodes, and between two writes of counts."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolledPlant:
    """A plant that may call: its node's public key, and its valid certificates."""

    name: str
    node_key: bytes  # PEM
    serials: frozenset[str]


Roster = Callable[[], Mapping[str, EnrolledPlant]]
"""Returns the active plants by name, as the coordinator's store has them now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetLimits:
    """What one plant may occupy."""

    calls: int = 4  # that are answered at one time; further ones wait
    questions: int = 64  # that are open; the oldest is forgotten
    replies: int = 2  # that are incomplete; the oldest is forgotten
    reply_bytes: int = LARGEST_OBJECT_CALL + LARGEST_CALL  # of incomplete replies, in memory
    stored_bytes: int = 64 * 1024 * 1024  # of replies that Flower holds for the coordinator
    reply_s: float = 180.0  # until an incomplete reply is forgotten
    body_s: float = 120.0  # until the body of a call must have come
    call_s: float = 300.0  # until a call is given up
    heartbeat_s: float = 120.0  # for which one heartbeat may count


Request = (
    ActivateNodeRequest
    | DeactivateNodeRequest
    | SendNodeHeartbeatRequest
    | PullMessagesRequest
    | PushMessagesRequest
    | GetRunRequest
    | GetFabRequest
    | PushObjectRequest
    | PullObjectRequest
    | ConfirmMessageReceivedRequest
)
REQUESTS: Mapping[str, type[Request]] = {
    "activate-node": ActivateNodeRequest,
    "deactivate-node": DeactivateNodeRequest,
    "send-node-heartbeat": SendNodeHeartbeatRequest,
    "pull-messages": PullMessagesRequest,
    "push-messages": PushMessagesRequest,
    "get-run": GetRunRequest,
    "get-fab": GetFabRequest,
    "push-object": PushObjectRequest,
    "pull-object": PullObjectRequest,
    "confirm-message-received": ConfirmMessageReceivedRequest,
}
"""What each call carries. Two calls are missing, because no plant may make them: the coordinator
registers nodes itself, over the control interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Response:
    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A call of a plant whose certificate, node key and signature were checked."""

    name: str
    plant: EnrolledPlant
    node: int  # the plant's
    headers: Mapping[str, str]  # that Flower gets
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredReply:
    """A reply that Flower holds until the coordinator has received it."""

    message: str
    run: int
    size: int


class _State:
    """What the filter remembers of one plant."""

    def __init__(self, limits: FleetLimits) -> None:
        self.calls = asyncio.Semaphore(limits.calls)
        self.large = asyncio.Lock()
        self.questions: OrderedDict[str, OpenQuestion] = OrderedDict()
        self.answered: dict[str, str] = {}  # question -> the reply that Flower has
        self.replies: OrderedDict[str, PartialReply] = OrderedDict()  # by session
        self.delivered: OrderedDict[str, None] = OrderedDict()  # sessions
        self.stored: OrderedDict[str, _StoredReply] = OrderedDict()  # by message

    def forget(self, now: float) -> None:
        """Forget questions whose time is over, and replies that never became complete."""
        for message in [m for m, each in self.questions.items() if each.until <= now]:
            del self.questions[message]
            self.answered.pop(message, None)
        for session in [s for s, each in self.replies.items() if each.until <= now]:
            del self.replies[session]

    def hand_out(self, question: OpenQuestion, *, most: int) -> None:
        self.questions[question.message] = question
        while len(self.questions) > most:
            message, _ = self.questions.popitem(last=False)
            self.answered.pop(message, None)

    def question(self, message: str) -> OpenQuestion:
        demand(message in self.questions, CallRefusal.NO_QUESTION)
        return self.questions[message]

    @property
    def stored_bytes(self) -> int:
        """Bytes of replies that Flower holds."""
        return sum(each.size for each in self.stored.values())

    def make_room(self, size: int, session: str, *, most: int) -> None:
        """Forget older incomplete replies until an object fits; raise if it cannot."""
        while (
            sum(each.size for each in self.replies.values()) + size > most
            and next(iter(self.replies)) != session
        ):
            self.replies.popitem(last=False)
        held = sum(each.size for each in self.replies.values())
        demand(held + size <= most, CallRefusal.QUOTA)

    def done(self, session: str, *, stored: bool) -> None:
        """Forget a complete reply; if Flower has it, remember that for a repeated call."""
        self.replies.pop(session, None)
        if stored:
            self.delivered[session] = None
        while len(self.delivered) > REMEMBERED:
            self.delivered.popitem(last=False)


@final
@dataclass(kw_only=True, eq=False)
class FleetFilter:
    """Checks the calls of plants and forwards them to a SuperLink.

    `link` reaches the SuperLink on loopback. `secret` shows that a call comes from the proxy.
    """

    link: httpx.AsyncClient
    secret: str = field(repr=False)
    roster: Roster
    refusals: RefusalCounts
    limits: FleetLimits = field(default_factory=FleetLimits)
    clock: Callable[[], float] = time.time
    _nodes: dict[bytes, int] = field(default_factory=dict, init=False)  # node key -> node
    _asked_for_nodes: float = field(default=float("-inf"), init=False)
    _states: dict[str, _State] = field(default_factory=dict, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call (ASGI)."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            with suppress(_CallerGoneError, TimeoutError):  # the server closes the connection
                async with asyncio.timeout(self.limits.call_s):
                    await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {
            key.decode("latin-1").lower(): value.decode("latin-1")
            for key, value in scope["headers"]
        }
        passed = compare_digest(headers.get(SECRET_HEADER, "").encode(), self.secret.encode())
        name = headers.get(PLANT_HEADER, "") if passed else ""
        try:
            demand(passed, CallRefusal.NOT_FROM_PROXY)
            await self._checked(scope, headers, receive, send)
        except CallRefusedError as error:
            self.refusals.count(name, error.refusal)
            await _respond(send, _refusal(error))
        except (httpx.HTTPError, OSError):
            away = b"Flower's SuperLink does not answer\n"
            await _respond(send, _Response(status=503, body=away))

    async def _checked(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> None:
        """Check the caller, then the content of the call, and answer it."""
        path = str(scope["path"])
        name = path.removeprefix(PREFIX)
        known = scope["method"] == "POST" and path != name and name in FLEET_CALLS
        demand(known, CallRefusal.NO_SUCH_CALL)
        plant = self._caller(headers)
        demand(name in REQUESTS, CallRefusal.REGISTRATION)
        largest = LARGEST_OBJECT_CALL if name == "push-object" else LARGEST_CALL
        demand(_fits(headers.get("content-length", "0"), largest), CallRefusal.TOO_LARGE)
        if plant.name not in self._states:
            self._states[plant.name] = _State(self.limits)
        state = self._states[plant.name]
        async with AsyncExitStack() as occupied:
            await occupied.enter_async_context(state.calls)
            if name in LARGE_CALLS:
                await occupied.enter_async_context(state.large)
            body = await self._within(self._body(receive, largest))
            node = await self._node(plant)
            state.forget(self.clock())
            call = _Call(name=name, plant=plant, node=node, headers=_kept(headers), body=body)
            # A plant that reads slowly occupies its own places only.
            await _respond(send, await self._answered(call, state))

    async def _answered(self, call: _Call, state: _State) -> _Response:
        request = _parsed(REQUESTS[call.name], call.body)
        self._demand_own(call, request)
        match request:
            case ActivateNodeRequest() | SendNodeHeartbeatRequest():
                # A longer interval would count the node as online long after it has gone.
                interval = request.heartbeat_interval
                demand(0 < interval <= self.limits.heartbeat_s, CallRefusal.HEARTBEAT)
            case PullObjectRequest():
                objects = (each.objects for each in state.questions.values())
                own = any(request.object_id in each for each in objects)
                demand(own, CallRefusal.NO_QUESTION)
            case ConfirmMessageReceivedRequest():
                state.question(request.message_object_id)
            case PushMessagesRequest():
                return await self._announced(call, request, state)
            case PushObjectRequest():
                return await self._taken(call, request, state)
            case _:
                pass
        answer = await self._forward(call)
        if answer.status == httpx.codes.OK:
            self._learn(call, answer.body, state)
        return answer

    def _demand_own(self, call: _Call, request: Request) -> None:
        """Raise unless a call names the node of the plant that makes it."""
        if isinstance(request, ActivateNodeRequest):
            demand(request.public_key == call.plant.node_key, CallRefusal.NODE_KEY)
        elif isinstance(request, DeactivateNodeRequest):
            demand(request.node_id == call.node, CallRefusal.NODE)
        else:
            demand(request.node.node_id == call.node, CallRefusal.NODE)

    def _learn(self, call: _Call, answer: bytes, state: _State) -> None:
        """Remember the node's id, or the questions that Flower has handed to it."""
        if call.name == "activate-node":
            self._nodes[call.plant.node_key] = ActivateNodeResponse.FromString(answer).node_id
        elif call.name == "pull-messages":
            pulled = PullMessagesResponse.FromString(answer)
            for head, tree in zip(pulled.messages_list, pulled.message_object_trees, strict=True):
                state.hand_out(OpenQuestion.of(head, tree), most=self.limits.questions)

    # -- who calls ----------------------------------------------------------------------------

    def _caller(self, headers: Mapping[str, str]) -> EnrolledPlant:
        """Return the plant that calls; raise unless certificate, node key and signature agree."""
        plant = self.roster().get(headers.get(PLANT_HEADER, ""))
        if plant is None:
            raise CallRefusedError(CallRefusal.NOT_ENROLLED)
        demand(headers.get(SERIAL_HEADER, "") in plant.serials, CallRefusal.CERTIFICATE)
        node_key = _decoded(headers.get(FLEET_HTTP_PUBLIC_KEY_HEADER, ""))
        demand(node_key == plant.node_key, CallRefusal.NODE_KEY)
        timestamp = headers.get(TIMESTAMP_HEADER, "")
        try:
            age = self.clock() - datetime.fromisoformat(timestamp).timestamp()
        except ValueError:
            raise CallRefusedError(CallRefusal.MALFORMED) from None
        oldest = TIMESTAMP_TOLERANCE + SYSTEM_TIME_TOLERANCE
        demand(-SYSTEM_TIME_TOLERANCE < age < oldest, CallRefusal.CLOCK)
        signature = _decoded(headers.get(FLEET_HTTP_SIGNATURE_HEADER, ""))
        signed = verify_signature(_public_key(plant.node_key), timestamp.encode(), signature)
        demand(signed, CallRefusal.SIGNATURE)
        return plant

    async def _node(self, plant: EnrolledPlant) -> int:
        """Return the id that Flower gave to a plant's node."""
        if plant.node_key not in self._nodes:
            await self._ask_for_nodes()
        if plant.node_key not in self._nodes:
            raise httpx.ConnectError("Flower does not know the plant's node yet")
        return self._nodes[plant.node_key]

    async def _ask_for_nodes(self) -> None:
        if self.clock() - self._asked_for_nodes < AGAIN_S:
            return
        self._asked_for_nodes = self.clock()
        answer = await self.link.post(
            "/v1/control/list-nodes",
            content=ListNodesRequest().SerializeToString(),
            headers={"content-type": PROTOBUF},
        )
        if answer.status_code == httpx.codes.OK:
            nodes = ListNodesResponse.FromString(answer.content).nodes_info
            self._nodes = {bytes(each.public_key): each.node_id for each in nodes if each.node_id}

    # -- replies ------------------------------------------------------------------------------

    async def _announced(
        self, call: _Call, request: PushMessagesRequest, state: _State
    ) -> _Response:
        """Take the head of a reply; Flower gets it together with its objects."""
        announced = Announcement.read(call.body, request, node=call.node)
        question = state.question(announced.question)
        announced.demand_fits(question)
        response = PushMessagesResponse(
            reconnect=Reconnect(reconnect=5), results={announced.message: 0}
        )
        taken = state.answered.get(question.message)
        demand(taken in (None, announced.message), CallRefusal.ANSWERED)
        if taken is None:  # otherwise the response to a complete reply was lost
            await self._demand_room(call, 0, state)
            until = min(question.until, self.clock() + self.limits.reply_s)
            reply = PartialReply(announcement=announced, until=until)
            while len(state.replies) >= self.limits.replies:
                state.replies.popitem(last=False)
            state.replies[reply.session] = reply
            response.session_id = reply.session
            response.objects_to_push.extend(reply.missing)
        return _protobuf(response.SerializeToString())

    async def _taken(self, call: _Call, request: PushObjectRequest, state: _State) -> _Response:
        """Take an object of a reply; when it was the last one, check the reply and forward it."""
        session, content = request.session_id, request.object_content
        if session in state.delivered:  # the response to the last object was lost
            return _protobuf(PushObjectResponse(stored=True).SerializeToString())
        reply = state.replies.get(session)
        if reply is None:
            raise CallRefusedError(CallRefusal.NOT_ANNOUNCED)
        stored = True
        try:
            added = 0 if request.object_id in reply.contents else len(content)
            state.make_room(added, session, most=self.limits.reply_bytes)
            reply.add(request.object_id, content)
            if not reply.missing:
                stored = await self._deliver(call, reply, state)
                state.done(session, stored=stored)
        except CallRefusedError:
            state.replies.pop(session, None)
            raise
        return _protobuf(PushObjectResponse(stored=stored).SerializeToString())

    async def _deliver(self, call: _Call, reply: PartialReply, state: _State) -> bool:
        """Give a complete reply to Flower; return whether it stored all of it."""
        await asyncio.to_thread(reply.demand_answer)
        await self._demand_room(call, reply.size + REPLY_EXTRA, state)
        announced = reply.announcement
        answered = state.answered.get(announced.question)
        demand(answered in (None, announced.message), CallRefusal.ANSWERED)
        run = announced.request.messages_list[0].metadata.run_id
        kept = _StoredReply(message=announced.message, run=run, size=reply.size + REPLY_EXTRA)
        state.stored[kept.message] = kept
        head = await self._post("push-messages", announced.raw, call.headers)
        if head.status_code != httpx.codes.OK:
            return False
        awaited = PushMessagesResponse.FromString(head.content)
        missing = set(awaited.objects_to_push)
        if not missing <= set(reply.contents):
            return False
        # The coordinator deletes the reply as soon as it has the bytes, so these are sent last.
        for object_id in reversed(announced.objects):
            if object_id not in missing:
                continue
            part = PushObjectRequest(
                node=announced.request.node,
                run_id=run,
                object_id=object_id,
                object_content=reply.contents[object_id],
                session_id=awaited.session_id,
            )
            done = await self._post("push-object", part.SerializeToString(), call.headers)
            if done.status_code != httpx.codes.OK:
                return False
            if not PushObjectResponse.FromString(done.content).stored:
                return False
        state.answered[announced.question] = announced.message
        return True

    async def _demand_room(self, call: _Call, size: int, state: _State) -> None:
        """Raise if Flower holds too much of a plant's replies for another one of this size."""
        await self._release(call, state, most=RELEASED_AT_ONCE)
        if state.stored_bytes + size > self.limits.stored_bytes:
            await self._release(call, state, most=len(state.stored))
        demand(state.stored_bytes + size <= self.limits.stored_bytes, CallRefusal.QUOTA)

    async def _release(self, call: _Call, state: _State, *, most: int) -> None:
        """Forget replies that Flower no longer holds; the oldest ones are asked for."""
        for reply in list(state.stored.values())[:most]:
            request = PullObjectRequest(
                node=NodeName(node_id=call.node), run_id=reply.run, object_id=reply.message
            )
            answer = await self._post("pull-object", request.SerializeToString(), call.headers)
            held = answer.status_code == httpx.codes.OK and (
                PullObjectResponse.FromString(answer.content).object_found
            )
            if not held:
                state.stored.pop(reply.message, None)

    # -- the way to Flower --------------------------------------------------------------------

    async def _forward(self, call: _Call) -> _Response:
        answer = await self._post(call.name, call.body, call.headers)
        kind = answer.headers.get("content-type", PROTOBUF)
        return _Response(
            status=answer.status_code, body=answer.content, headers={"content-type": kind}
        )

    async def _post(self, name: str, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
        return await self.link.post(f"{PREFIX}{name}", content=body, headers=dict(headers))

    async def _within(self, reading: Awaitable[bytes]) -> bytes:
        try:
            return await asyncio.wait_for(reading, self.limits.body_s)
        except TimeoutError:
            raise CallRefusedError(CallRefusal.TOO_SLOW) from None

    async def _body(self, receive: Receive, largest: int) -> bytes:
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _CallerGoneError
            part = message.get("body", b"")
            size += len(part)
            demand(size <= largest, CallRefusal.TOO_LARGE)
            parts.append(part)
            more = message.get("more_body", False)
        return b"".join(parts)

    # -- its own life -------------------------------------------------------------------------

    async def _live(self, receive: Receive, send: Send) -> None:
        """Write counts and forget what is over, from the server's start to its end."""
        await receive()
        tidying = asyncio.create_task(self._tidy())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        tidying.cancel()
        self.refusals.save()
        await self.link.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(AGAIN_S)
            for state in self._states.values():
                state.forget(self.clock())
            await asyncio.to_thread(self.refusals.save)


class _CallerGoneError(Exception):
    """The caller has closed its connection."""


def _parsed(kind: type[Request], body: bytes) -> Request:
    request = kind()
    try:
        request.ParseFromString(body)
    except Exception:  # noqa: BLE001 - protobuf's own error, which Flower does not export
        raise CallRefusedError(CallRefusal.MALFORMED) from None
    return request


def _fits(length: str, largest: int) -> bool:
    digits = length.isascii() and length.isdecimal() and len(length) < len(str(1 << 62))
    return digits and int(length) <= largest


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that Flower reads: its own ones, each once."""
    own = {key: value for key, value in headers.items() if key.startswith("flwr-")}
    return {**own, "content-type": headers.get("content-type", ""), "accept": PROTOBUF}


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return b""


@lru_cache(maxsize=1_024)
def _public_key(raw: bytes) -> ec.EllipticCurvePublicKey:
    return bytes_to_public_key(raw)


def _protobuf(body: bytes) -> _Response:
    return _Response(status=200, body=body, headers={"content-type": PROTOBUF})


def _refusal(error: CallRefusedError) -> _Response:
    return _Response(
        status=error.status,
        body=f"refused: {error.refusal.value}\n".encode(),
        headers={"content-type": "text/plain", FILTER_HEADER: "refused"},
    )


async def _respond(send: Send, response: _Response) -> None:
    headers = {
        FILTER_HEADER: "passed",
        **response.headers,
        "content-length": str(len(response.body)),
    }
    pairs = [(key.encode("latin-1"), value.encode("latin-1")) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": pairs})
    await send({"type": "http.response.body", "body": response.body})
