"""The filter lets a plant act as itself and as no other; each test is an attack that it stops."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto.fab_pb2 import GetFabRequest
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    DeactivateNodeRequest,
    PullMessagesRequest,
    PushMessagesRequest,
    PushMessagesResponse,
    RegisterNodeFleetRequest,
    UnregisterNodeFleetRequest,
)
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.message_pb2 import (
    ConfirmMessageReceivedRequest,
    ObjectTree,
    PullObjectRequest,
    PushObjectRequest,
    PushObjectResponse,
)
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.proto.recorddict_pb2 import RecordDict as ProtoRecords
from flwr.proto.run_pb2 import GetRunRequest
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
)

from sluice.network.wire.filter import FleetLimits
from sluice.network.wire.proxy import LARGEST_CALL, LARGEST_OBJECT_CALL
from sluice.network.wire.questions import ANSWERS, Answer, Pledge
from sluice.network.wire.refusals import RefusalCounts, read_refusals

from .filtered_node import ANSWER, Answered, Bench, Node, Reply, digest, flower_object, ids_of

Limited = Callable[..., Bench]


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Limited]:
    """Make filters with these limits."""
    made: list[Bench] = []

    def make(**limits: Any) -> Bench:
        made.append(Bench(tmp_path, FleetLimits(**limits)))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def bench(limited: Limited) -> Bench:
    return limited()


def reached_flower(bench: Bench) -> list[str]:
    """Return the calls of plants that reached Flower."""
    return [call for call, _ in bench.link.calls if call != "list-nodes"]


# -- what an honest node does -----------------------------------------------------------------


def token_of(size: int) -> bytes:
    """Return an answer with a token of so many bytes."""
    return ANSWERS.write(Answer(instance="0" * 64, seen=0, answer=Pledge(token=b"x" * size)))


def test_a_node_answers_a_question(bench: Bench) -> None:
    north = bench.north
    interval = 30.0
    activate = ActivateNodeRequest(public_key=north.public, heartbeat_interval=interval)
    assert north.call("activate-node", activate).status == 200
    heartbeat = SendNodeHeartbeatRequest(node=north.own, heartbeat_interval=interval)
    assert north.call("send-node-heartbeat", heartbeat).status == 200
    question = north.asked()
    leaf = digest(question.message_id.encode())
    for name, request in (
        ("get-run", GetRunRequest(node=north.own, run_id=7)),
        ("get-fab", GetFabRequest(node=north.own, run_id=7, hash_str="f")),
        ("pull-object", PullObjectRequest(node=north.own, run_id=7, object_id=leaf)),
        (
            "confirm-message-received",
            ConfirmMessageReceivedRequest(
                node=north.own, run_id=7, message_object_id=question.message_id
            ),
        ),
    ):
        assert north.call(name, request).status == 200, name
    reply = north.reply(question)
    assert north.send(reply).status == 200
    assert bench.link.seen("push-messages") == [reply.request.SerializeToString()]
    stored = [PushObjectRequest.FromString(each) for each in bench.link.seen("push-object")]
    assert {each.object_id: each.object_content for each in stored} == reply.objects
    assert {each.session_id for each in stored} == {"flower"}
    assert north.call("deactivate-node", DeactivateNodeRequest(node_id=north.node)).status == 200
    assert bench.refused() == {}


def test_flower_gets_the_bytes_of_a_reply_last(bench: Bench) -> None:
    """The coordinator deletes a reply as soon as it has the bytes; an object that comes later is
    an error in Flower, which then keeps a record of the incomplete reply."""
    north = bench.north
    reply = north.reply(north.asked())
    assert north.send(reply).status == 200
    pushed = [PushObjectRequest.FromString(each) for each in bench.link.seen("push-object")]
    leaf_first = ids_of(reply.request.message_object_trees[0])
    assert [each.object_id for each in pushed] == leaf_first[::-1]


def test_a_reply_that_flowers_own_code_makes_passes(bench: Bench) -> None:
    question = bench.north.asked()
    asked = message_from_proto(ProtoMessage(metadata=question, content=ProtoRecords()))
    message = Message(RecordDict({"sluice": ConfigRecord({"bytes": ANSWER})}), reply_to=asked)
    message.metadata.__dict__["_message_id"] = message.object_id
    head = message_to_proto(message)
    head.content.Clear()
    request = PushMessagesRequest(
        node=bench.north.own,
        messages_list=[head],
        message_object_trees=[get_object_tree(message)],
    )
    objects = {each: of.deflate() for each, of in get_all_nested_objects(message).items()}
    assert bench.north.send(Reply(request, objects)).status == 200
    assert len(bench.link.seen("push-messages")) == 1


# -- who calls --------------------------------------------------------------------------------


def test_a_process_of_the_machine_that_is_not_the_proxy_is_refused(bench: Bench) -> None:
    for secret in ("", "wrong", "5ec2e"):
        assert bench.north.call("pull-messages", b"", {"x-sluice-proxy": secret}).status == 403
    assert bench.refused("") == {"not from the proxy": 3}
    assert bench.refused() == {}  # anyone could have named north
    assert reached_flower(bench) == []


def test_a_plant_that_has_not_joined_is_refused(bench: Bench) -> None:
    stranger = Node(bench, "east", 1_003)
    assert stranger.pull().status == 403
    assert bench.refused("east") == {"plant not enrolled or not active": 1}
    assert reached_flower(bench) == []


def test_a_plant_that_was_removed_is_refused_from_its_next_call(bench: Bench) -> None:
    assert bench.north.pull().status == 200
    del bench.roster["north"]
    assert bench.north.pull().status == 403
    assert reached_flower(bench) == ["pull-messages"]


def test_a_revoked_certificate_is_refused(bench: Bench) -> None:
    bench.roster["north"] = replace(bench.roster["north"], serials=frozenset(("FFFF",)))
    assert bench.north.pull().status == 403
    assert bench.refused() == {"certificate not valid for the plant": 1}


def test_a_certificate_of_another_plant_is_refused(bench: Bench) -> None:
    # The authority's thief could name any plant, but the coordinator has not issued the serial.
    assert bench.north.call("pull-messages", b"", {"x-sluice-serial": "0666"}).status == 403
    # South's certificate, with north's node key.
    south = {"x-sluice-plant": "south", "x-sluice-serial": bench.south.serial}
    assert bench.north.call("pull-messages", b"", south).status == 403
    assert bench.refused("south") == {"key of another node": 1}
    assert reached_flower(bench) == []


def test_a_thief_of_the_certificate_without_the_node_key_is_refused(bench: Bench) -> None:
    genuine, thief = bench.north, Node(bench, "north", 1_001)
    named = {"flwr-public-key": genuine.headers()["flwr-public-key"], "x-sluice-serial": "03E9"}
    assert thief.call("pull-messages", PullMessagesRequest(node=genuine.own)).status == 403
    assert thief.call("pull-messages", PullMessagesRequest(node=genuine.own), named).status == 401
    assert bench.refused() == {"key of another node": 1, "node signature": 1}
    assert reached_flower(bench) == []


@pytest.mark.parametrize("ahead_s", [-400.0, 60.0])
def test_a_call_signed_at_another_time_is_refused(bench: Bench, ahead_s: float) -> None:
    bench.north.ahead_s = ahead_s
    assert bench.north.pull().status == 401
    assert bench.refused() == {"clock": 1}


@pytest.mark.parametrize("timestamp", ["", "yesterday", "2026-13-01T00:00:00+00:00"])
def test_a_call_without_a_time_is_refused(bench: Bench, timestamp: str) -> None:
    answer = bench.north.call("pull-messages", b"", {"flwr-timestamp": timestamp})
    assert answer.status == 400


# -- which node -------------------------------------------------------------------------------


def calls_as(node: Node, other: Node, message: str) -> list[tuple[str, object]]:
    theirs = other.own
    return [
        ("deactivate-node", DeactivateNodeRequest(node_id=other.node)),
        ("send-node-heartbeat", SendNodeHeartbeatRequest(node=theirs, heartbeat_interval=30.0)),
        ("pull-messages", PullMessagesRequest(node=theirs)),
        ("get-run", GetRunRequest(node=theirs, run_id=7)),
        ("get-fab", GetFabRequest(node=theirs, run_id=7)),
        ("pull-object", PullObjectRequest(node=theirs, run_id=7, object_id=message)),
        ("push-object", PushObjectRequest(node=theirs, run_id=7, object_id=message)),
        ("push-messages", PushMessagesRequest(node=theirs)),
        (
            "confirm-message-received",
            ConfirmMessageReceivedRequest(node=theirs, message_object_id=message),
        ),
    ]


def test_a_node_that_acts_as_another_is_refused_in_every_call(bench: Bench) -> None:
    north, south = bench.north, bench.south
    question = north.asked()
    calls = calls_as(north, south, question.message_id)
    for name, request in calls:
        assert north.call(name, request).status == 403, name  # type: ignore[arg-type]
    assert bench.refused() == {"id of another node": len(calls)}
    activate = ActivateNodeRequest(public_key=south.public, heartbeat_interval=30.0)
    assert north.call("activate-node", activate).status == 403
    assert reached_flower(bench) == ["pull-messages"]


def test_a_plant_cannot_register_or_unregister_a_node(bench: Bench) -> None:
    own = ActivateNodeRequest(public_key=bench.north.public, heartbeat_interval=30.0)
    assert bench.north.call("activate-node", own).status == 200
    for name, request in (
        ("register-node", RegisterNodeFleetRequest(public_key=b"a key of its own")),
        ("unregister-node", UnregisterNodeFleetRequest(node_id=bench.south.node)),
    ):
        assert bench.north.call(name, request).status == 403
    assert bench.refused() == {"registration of a node": 2}
    assert reached_flower(bench) == ["activate-node"]


def test_a_node_cannot_count_as_online_for_half_an_hour(bench: Bench) -> None:
    north = bench.north
    for seconds in (1_800.0, 0.0, -1.0, float("nan"), float("inf")):
        heartbeat = SendNodeHeartbeatRequest(node=north.own, heartbeat_interval=seconds)
        assert north.call("send-node-heartbeat", heartbeat).status == 403, seconds
        activate = ActivateNodeRequest(public_key=north.public, heartbeat_interval=seconds)
        assert north.call("activate-node", activate).status == 403, seconds
    assert reached_flower(bench) == []


# -- replies ----------------------------------------------------------------------------------


def test_a_reply_that_names_another_sender_is_refused(bench: Bench) -> None:
    reply = bench.north.reply(bench.north.asked())
    reply.metadata.src_node_id = bench.south.node
    assert bench.north.send(reply).status == 403
    assert bench.refused() == {"sender of a message is another node": 1}
    assert bench.link.seen("push-messages") == []


def test_a_reply_in_the_name_of_another_node_is_refused(bench: Bench) -> None:
    # Head and objects agree; south sent it to north, or north has seen how south writes.
    reply = bench.south.reply(bench.north.asked())
    reply.request.node.node_id = bench.north.node
    assert bench.north.send(reply).status == 403
    assert bench.refused() == {"sender of a message is another node": 1}
    assert bench.link.seen("push-messages") == []


def test_a_message_to_another_node_is_refused(bench: Bench) -> None:
    reply = bench.north.reply(bench.north.asked(), dst_node_id=bench.south.node)
    reply.metadata.dst_node_id = bench.south.node
    assert bench.north.send(reply).status == 403
    assert bench.refused() == {"sender of a message is another node": 1}
    assert bench.link.seen("push-messages") == []


@pytest.mark.parametrize(
    "changed",
    [
        {"src_node_id": 1_002},
        {"reply_to_message_id": "another question"},
        {"run_id": 8},
        {"dst_node_id": 1_002},
        {"message_type": "train"},
        {"group_id": "9"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_reply_whose_content_answers_for_another_node_is_refused(
    bench: Bench, changed: dict[str, Any]
) -> None:
    # Its head is genuine. The coordinator would read the sender from the object behind it.
    if "reply_to_message_id" in changed:
        changed = {"reply_to_message_id": bench.south.asked().message_id}
    reply = bench.north.reply(bench.north.asked(), **changed)
    assert bench.north.send(reply).status == 403
    assert bench.refused() == {"sender of a message is another node": 1}
    assert bench.link.seen("push-messages") == []
    assert bench.link.seen("push-object") == []


def test_a_reply_to_a_question_of_another_node_is_refused(bench: Bench) -> None:
    theirs = bench.south.asked()
    assert bench.north.send(bench.north.reply(theirs)).status == 403
    assert bench.refused() == {"no open question": 1}
    assert bench.south.send(bench.south.reply(theirs)).status == 200


def test_a_reply_to_no_question_is_refused(bench: Bench) -> None:
    question = bench.north.asked()
    for changed in ("", digest(b"guessed")):
        reply = bench.north.reply(question)
        reply.metadata.reply_to_message_id = changed
        assert bench.north.send(reply).status == 403
    other_run = bench.north.reply(question)
    other_run.metadata.run_id = 8
    assert bench.north.send(other_run).status == 403
    assert bench.refused() == {"no open question": 3}
    assert bench.link.seen("push-messages") == []


def test_a_reply_after_the_questions_time_is_refused(bench: Bench) -> None:
    question = bench.north.asked(seconds=-1.0)
    assert bench.north.send(bench.north.reply(question)).status == 403
    assert bench.refused() == {"no open question": 1}


def test_a_second_reply_to_one_question_is_refused(bench: Bench) -> None:
    question = bench.north.asked()
    first = bench.north.reply(question)
    assert bench.north.send(first).status == 200
    assert bench.north.send(bench.north.reply(question, b"{}")).status == 409
    assert len(bench.link.seen("push-messages")) == 1
    # The same reply again is a repetition after a lost response: Flower needs nothing more.
    answer, session = bench.north.announce(first)
    assert (answer.status, session) == (200, "")
    assert not PushMessagesResponse.FromString(answer.body).objects_to_push


def test_two_replies_to_one_question_that_come_together_are_one(bench: Bench) -> None:
    question = bench.north.asked()
    replies = [bench.north.reply(question, ANSWER.replace(b"able", word)) for word in (b"a", b"b")]
    sessions = [bench.north.announce(reply)[1] for reply in replies]
    statuses = [
        [bench.north.push(reply, session, each).status for each in reply.objects]
        for reply, session in zip(replies, sessions, strict=True)
    ]
    assert statuses == [[200, 200, 200], [200, 200, 409]]
    assert len(bench.link.seen("push-messages")) == 1


def test_an_object_that_no_announced_reply_names_is_refused(bench: Bench) -> None:
    north = bench.north
    reply = north.reply(north.asked())
    other = north.reply(north.asked(run=8), b'{"answer":1}')
    _, session = north.announce(reply)
    foreign = next(each for each in other.objects if each not in reply.objects)
    assert north.push(other, session, foreign).status == 403
    assert north.push(reply, "a guessed session", next(iter(reply.objects))).status == 403
    _, theirs = bench.south.announce(bench.south.reply(bench.south.asked()))
    assert north.push(reply, theirs, next(iter(reply.objects))).status == 403
    assert bench.refused() == {"object of no announced message": 3}
    assert bench.link.seen("push-object") == []


def test_an_incomplete_reply_never_reaches_flower(bench: Bench) -> None:
    # The coordinator would wait for the missing object.
    north = bench.north
    reply = north.reply(north.asked())
    _, session = north.announce(reply)
    for object_id in list(reply.objects)[:-1]:
        assert north.push(reply, session, object_id).status == 200
    assert reached_flower(bench) == ["pull-messages"]


def test_an_object_with_other_content_than_its_hash_is_refused(bench: Bench) -> None:
    north = bench.north
    reply = north.reply(north.asked())
    leaf = next(iter(reply.objects))
    other = north.reply(north.asked(run=8), ANSWER.replace(b"able", b"sure"))
    reply.objects[leaf] = next(iter(other.objects.values()))
    assert north.send(reply).status == 403
    assert bench.refused() == {"message without an answer": 1}
    assert bench.link.seen("push-messages") == []


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"no document",
        b"[" * 100_000,
        b"[]",
        b'{"answer":{"kind":"token"},"protocol":1}',
        b'{"answer":"yes","protocol":1,"schema":1}',
        b'{"answer":{"word":"no"},"protocol":1,"schema":1}',
        ANSWER + b"\xff",
    ],
)
def test_a_reply_without_an_answer_of_ours_is_refused(bench: Bench, answer: bytes) -> None:
    assert bench.north.send(bench.north.reply(bench.north.asked(), answer)).status == 403
    assert bench.refused() == {"message without an answer": 1}
    assert bench.link.seen("push-messages") == []


def rebuilt(reply: Reply, *objects: bytes) -> Reply:
    """Return a reply with the same head and these objects, each the child of the next."""
    tree = ObjectTree(object_id=digest(objects[0]))
    for parent in objects[1:]:
        tree = ObjectTree(object_id=digest(parent), children=[tree])
    request = PushMessagesRequest()
    request.CopyFrom(reply.request)
    request.messages_list[0].metadata.message_id = tree.object_id
    request.message_object_trees[0].CopyFrom(tree)
    return Reply(request, {digest(each): each for each in objects})


def around(
    reply: Reply, leaf: bytes, kind: str = "RecordDict", names: bytes | None = None
) -> Reply:
    """Return a reply around another record."""
    body = list(reply.objects.values())[-1].split(b"\0", 1)[1]
    named = names if names is not None else json.dumps({"sluice": digest(leaf)}).encode()
    middle = flower_object(kind, (digest(leaf),), named)
    return rebuilt(reply, leaf, middle, flower_object("Message", (digest(middle),), body))


def on_top(reply: Reply, change: Callable[[bytes], bytes]) -> Reply:
    """Return a reply with another message object."""
    leaf, middle, root = reply.objects.values()
    return rebuilt(reply, leaf, middle, change(root))


def in_order(reply: Reply, order: tuple[int, ...]) -> Reply:
    """Return a reply whose head names its objects in another order; Flower would keep some."""
    objects = list(reply.objects.values())
    return rebuilt(reply, *(objects[at] for at in order))


def leaf_of(reply: Reply) -> bytes:
    return next(iter(reply.objects.values()))


def body_of(root: bytes) -> bytes:
    return root.split(b"\0", 1)[1]


MISSHAPEN: dict[str, Callable[[Reply], Reply]] = {
    "an array": lambda r: around(r, flower_object("Array", (), b"numpy")),
    "a metric record": lambda r: around(r, flower_object("MetricRecord", (), b"")),
    "a record that cannot be read": lambda r: around(r, flower_object("ConfigRecord", (), b"\xff")),
    "a record without fields": lambda r: around(r, flower_object("ConfigRecord", (), b"")),
    "a record with a second field": lambda r: around(
        r, ConfigRecord({"bytes": ANSWER, "more": 1}).deflate()
    ),
    "a record of another name": lambda r: around(
        r, leaf_of(r), names=json.dumps({"other": digest(leaf_of(r))}).encode()
    ),
    "a record under two names": lambda r: around(
        r, leaf_of(r), names=json.dumps(dict.fromkeys(("sluice", "b"), digest(leaf_of(r)))).encode()
    ),
    "another order than announced": lambda r: in_order(r, (1, 0, 2)),
    "names that are no dictionary": lambda r: around(r, leaf_of(r), names=b"[]"),
    "names that are no document": lambda r: around(r, leaf_of(r), names=b"{"),
    "a message in a message": lambda r: around(r, leaf_of(r), kind="Message"),
    "a message without its child": lambda r: on_top(
        r, lambda root: flower_object("Message", (), body_of(root))
    ),
    "a message with a child that is not there": lambda r: on_top(
        r, lambda root: flower_object("Message", (digest(b"nowhere"),), body_of(root))
    ),
    "a message that cannot be read": lambda r: on_top(
        r, lambda root: root.split(b" ")[0] + b" " + root.split(b" ")[1] + b" 1\0\xff"
    ),
    "an object without a head": lambda r: on_top(r, lambda _: b"nothing"),
    "two objects": lambda r: rebuilt(r, *list(r.objects.values())[1:]),
    "four objects": lambda r: rebuilt(r, b"one more", *r.objects.values()),
    "one object twice": lambda r: rebuilt(r, leaf_of(r), leaf_of(r), leaf_of(r)),
}


@pytest.mark.parametrize("case", MISSHAPEN)
def test_a_reply_that_would_crash_the_coordinator_is_refused(bench: Bench, case: str) -> None:
    reply = MISSHAPEN[case](bench.north.reply(bench.north.asked()))
    assert bench.north.send(reply).status == 403
    assert bench.refused() == {"message without an answer": 1}
    assert bench.link.seen("push-messages") == []


def test_a_head_that_is_not_the_one_of_a_reply_is_refused(bench: Bench) -> None:
    question = bench.north.asked()
    two = bench.north.reply(question)
    two.request.messages_list.append(two.request.messages_list[0])
    wide = bench.north.reply(question)
    wide.request.message_object_trees[0].children.append(ObjectTree(object_id=digest(b"more")))
    named = bench.north.reply(question)
    named.metadata.message_id = digest(b"another id")
    carried = bench.north.reply(question)
    carried.request.messages_list[0].content.items.add(key="content that Flower would keep")
    failed = bench.north.reply(question)
    failed.request.messages_list[0].error.code = 1
    odd = bench.north.reply(question)
    odd.request.message_object_trees[0].children[0].object_id = "../../etc/passwd"
    none = Reply(PushMessagesRequest(node=bench.north.own), {})
    for reply in (two, wide, named, carried, failed, odd, none):
        assert bench.north.send(reply).status in (400, 403)
    assert sum(bench.refused().values()) == 7
    assert bench.link.seen("push-messages") == []


# -- objects of questions ---------------------------------------------------------------------


def test_a_node_cannot_read_objects_of_anothers_questions(bench: Bench) -> None:
    theirs = digest(bench.south.asked().message_id.encode())
    bench.north.asked()
    request = PullObjectRequest(node=bench.north.own, run_id=7, object_id=theirs)
    assert bench.north.call("pull-object", request).status == 403
    assert bench.refused() == {"no open question": 1}


def test_a_node_cannot_delete_anothers_questions_or_answers(bench: Bench) -> None:
    # Flower deletes whatever object the call names.
    theirs = bench.south.asked()
    reply = bench.south.reply(theirs)
    bench.south.send(reply)
    for target in (theirs.message_id, reply.metadata.message_id):
        request = ConfirmMessageReceivedRequest(
            node=bench.north.own, run_id=7, message_object_id=target
        )
        assert bench.north.call("confirm-message-received", request).status == 403
    assert bench.link.seen("confirm-message-received") == []


# -- sizes, times, quotas ---------------------------------------------------------------------


def test_an_oversized_body_is_refused(bench: Bench) -> None:
    north = bench.north
    assert north.call("push-object", bytes(LARGEST_OBJECT_CALL + 1)).status == 413
    for name in ("push-messages", "pull-messages", "activate-node"):
        assert north.call(name, bytes(LARGEST_CALL + 1)).status == 413
    assert north.call("pull-messages", b"", {"content-length": "9" * 5_000}).status == 413
    assert bench.refused() == {"too large": 5}
    assert reached_flower(bench) == []


def test_a_body_longer_than_it_claims_is_refused(bench: Bench) -> None:
    status = asgi_call(bench, [bytes(LARGEST_CALL)] * 3, length="10")
    assert status == 413


def test_a_body_that_trickles_is_given_up(limited: Limited) -> None:
    bench = limited(body_s=0.2)
    assert asgi_call(bench, [b"x"] * 1_000, pause_s=0.05) == 408
    assert bench.refused() == {"too slow": 1}


def asgi_call(
    bench: Bench, parts: list[bytes], *, length: str | None = None, pause_s: float = 0.0
) -> int:
    """Send a body in parts; return the status."""
    started: list[int] = []
    left = iter(parts)

    async def receive() -> dict[str, object]:
        await asyncio.sleep(pause_s)
        part = next(left, None)
        return {"type": "http.request", "body": part or b"", "more_body": part is not None}

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        if message["type"] == "http.response.start":
            started.append(message["status"])

    async def ask() -> Answered:
        headers = bench.north.headers() | ({"content-length": length} if length else {})
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/fleet/pull-messages",
            "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
        }
        await bench.filter(scope, receive, send)
        return Answered(status=started[0], body=b"")

    return bench.run(ask()).status


def test_a_body_that_is_no_protocol_buffer_is_refused(bench: Bench) -> None:
    for name in ("pull-messages", "push-messages", "push-object", "activate-node"):
        assert bench.north.call(name, b"\xff\xff").status == 400, name
    assert bench.refused() == {"malformed call": 4}
    assert reached_flower(bench) == []


def test_calls_that_no_node_makes_are_not_there(bench: Bench) -> None:
    for path in ("/v1/control/list-nodes", "/v1/runtime/acquire-task", "/health", "/v1/fleet/x"):
        assert bench.post(path, b"", bench.north.headers()).status == 404, path
    assert bench.link.calls == []


def test_a_reply_that_grows_beyond_the_limit_is_dropped(limited: Limited) -> None:
    bench = limited(reply_bytes=2_000)
    large = token_of(3_000)
    assert bench.north.send(bench.north.reply(bench.north.asked(), large)).status == 429
    assert bench.refused() == {"quota": 1}
    assert bench.link.seen("push-messages") == []


def test_replies_that_are_never_completed_do_not_fill_the_memory(limited: Limited) -> None:
    bench = limited(replies=2, reply_bytes=3_000)
    north = bench.north
    large = token_of(1_000)
    replies = [north.reply(north.asked(run=run), large) for run in range(8)]
    sessions = [north.announce(reply)[1] for reply in replies]
    leaves = [next(iter(reply.objects)) for reply in replies]
    pushed = [
        north.push(reply, session, leaf).status
        for reply, session, leaf in zip(replies, sessions, leaves, strict=True)
    ]
    assert pushed == [403] * 6 + [200] * 2  # the last two announcements count
    state = bench.filter._states["north"]
    assert sum(reply.size for reply in state.replies.values()) <= 3_000
    assert bench.south.send(bench.south.reply(bench.south.asked())).status == 200


def test_an_incomplete_reply_is_forgotten(limited: Limited) -> None:
    bench = limited(reply_s=-1.0)
    north = bench.north
    reply = north.reply(north.asked())
    _, session = north.announce(reply)
    assert north.push(reply, session, next(iter(reply.objects))).status == 403
    assert bench.filter._states["north"].replies == {}


def test_a_plant_that_fills_flowers_queue_is_refused(limited: Limited) -> None:
    bench = limited(stored_bytes=20_000)
    north = bench.north
    statuses = [north.send(north.reply(north.asked(run=run))).status for run in range(6)]
    assert statuses == [200, 200, 200, 200, 429, 429]
    assert bench.south.send(bench.south.reply(bench.south.asked())).status == 200
    bench.link.held.clear()  # the coordinator has received them
    assert north.send(north.reply(north.asked(run=9))).status == 200
    assert bench.refused() == {"quota": 2}
    assert len(bench.link.seen("push-messages")) == 6


def test_a_reply_that_does_not_fit_beside_those_in_the_queue_is_refused(limited: Limited) -> None:
    bench = limited(stored_bytes=20_000)
    large = token_of(30_000)
    assert bench.north.send(bench.north.reply(bench.north.asked(), large)).status == 429
    assert bench.link.seen("push-messages") == []


def test_open_questions_of_one_node_are_limited(limited: Limited) -> None:
    bench = limited(questions=4)
    first = bench.north.asked(run=0)
    last = [bench.north.asked(run=run) for run in range(1, 5)][-1]
    assert bench.north.send(bench.north.reply(first)).status == 403
    assert bench.north.send(bench.north.reply(last)).status == 200


def test_a_plant_that_occupies_its_places_does_not_slow_another(limited: Limited) -> None:
    bench = limited(calls=2)
    release = asyncio.Event()

    def slow(node: Node) -> dict[str, object]:
        return {
            "type": "http",
            "method": "POST",
            "path": "/v1/fleet/pull-messages",
            "headers": [(key.encode(), value.encode()) for key, value in node.headers().items()],
        }

    async def never() -> dict[str, object]:
        await release.wait()
        return {"type": "http.disconnect"}

    async def quiet(_: object) -> None:
        """Say nothing."""

    async def at_once() -> Answered:
        body = PullMessagesRequest(node=bench.south.own).SerializeToString()
        statuses: list[int] = []

        async def whole() -> dict[str, object]:
            return {"type": "http.request", "body": body}

        async def note(message: object) -> None:
            assert isinstance(message, dict)
            statuses.append(message.get("status", 0))

        held = [
            asyncio.create_task(bench.filter(slow(bench.north), never, quiet)) for _ in range(50)
        ]
        await asyncio.sleep(0.05)
        await asyncio.wait_for(bench.filter(slow(bench.south), whole, note), 1.0)
        release.set()
        await asyncio.gather(*held)
        return Answered(status=statuses[0], body=b"")

    assert bench.run(at_once()).status == 200


# -- when Flower or the filter is away --------------------------------------------------------


def test_a_superlink_that_is_away_is_reported_as_such(bench: Bench) -> None:
    bench.north.pull()
    bench.link.fails = {"pull-messages"}
    assert bench.north.pull().status == 503  # a node tries again
    assert bench.refused() == {}


def test_a_reply_that_flower_lost_halfway_is_completed_by_a_repetition(bench: Bench) -> None:
    north = bench.north
    reply = north.reply(north.asked())
    _, session = north.announce(reply)
    *first, last = reply.objects
    for object_id in first:
        north.push(reply, session, object_id)
    bench.link.fails = {"push-object"}
    assert north.push(reply, session, last).status == 503
    bench.link.fails = set()
    assert PushObjectResponse.FromString(north.push(reply, session, last).body).stored
    assert PushObjectResponse.FromString(north.push(reply, session, last).body).stored
    assert len(bench.link.seen("push-messages")) == 2  # the second one changes nothing in Flower


def test_a_node_that_flower_does_not_know_yet_is_told_to_wait(bench: Bench) -> None:
    east = bench.enrol("east", 1_003)
    del bench.link.nodes[east.public]
    assert east.pull().status == 503
    assert bench.refused("east") == {}


def test_counts_outlive_the_filter_and_can_be_read(bench: Bench, tmp_path: Path) -> None:
    bench.north.call("register-node", b"")
    bench.counts.save()
    path = tmp_path / "refusals.json"
    assert read_refusals(path) == {"north": {"registration of a node": 1}}
    again = RefusalCounts(path)
    assert dict(again.of("north")) == {"registration of a node": 1}
    path.write_text("{", encoding="utf-8")
    assert read_refusals(path) == {}
    assert read_refusals(tmp_path / "none.json") == {}
