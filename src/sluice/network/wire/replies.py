"""A plant's reply to a question, collected and checked before Flower stores any part of it.

A node sends a reply in parts: a head, which names the objects of the reply, and then each object.
Flower stores the head first. The coordinator reads sender and question from an object that comes
later, and Flower does not compare them with the head. So the filter collects all parts before it
forwards any, and compares them with each other and with the question.
"""

import hashlib
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from flwr.app import ConfigRecord, Message
from flwr.app.metadata import Metadata
from flwr.common.constant import SUPERLINK_NODE_ID
from flwr.proto.fleet_pb2 import PushMessagesRequest
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.proto.message_pb2 import ObjectTree
from flwr.supercore.inflatable.inflatable_object import (
    get_object_head_values_from_object_content,
    iterate_object_tree,
)
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

from sluice.errors import DocumentError
from sluice.network.wire.objects import FIELD, RECORD
from sluice.network.wire.questions import ANSWERS
from sluice.network.wire.refusals import CallRefusal, CallRefusedError, demand

__all__ = ["Announcement", "OpenQuestion", "PartialReply"]

KINDS = ("ConfigRecord", "RecordDict", "Message")
"""The objects of a reply of ours: a record, in a dictionary of records, in a message."""
OBJECT_ID = re.compile(r"[0-9a-f]{64}")
SAME = (
    "run_id",
    "src_node_id",
    "dst_node_id",
    "reply_to_message_id",
    "group_id",
    "message_type",
)
"""What a reply's head and its message object must agree on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """A question that Flower handed to a node, as far as a reply must fit it."""

    message: str  # its id
    run: int
    kind: str
    objects: frozenset[str]
    until: float  # seconds since 1970

    @classmethod
    def of(cls, message: ProtoMessage, tree: ObjectTree) -> "OpenQuestion":
        """Read a question from Flower's response to a node."""
        metadata = message.metadata
        return cls(
            message=metadata.message_id,
            run=metadata.run_id,
            kind=metadata.message_type,
            objects=frozenset(each.object_id for each in iterate_object_tree(tree)),
            until=metadata.created_at + metadata.ttl,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """The head of a reply, which names the objects that are to come."""

    raw: bytes = field(repr=False)  # the call that announces it
    request: PushMessagesRequest = field(repr=False)

    @classmethod
    def read(cls, raw: bytes, request: PushMessagesRequest, *, node: int) -> "Announcement":
        """Read the head of one reply from a node; raise if it is not one from this node."""
        counts = len(request.messages_list), len(request.message_object_trees)
        demand(counts == (1, 1), CallRefusal.MALFORMED)
        announced = cls(raw=raw, request=request)
        metadata = request.messages_list[0].metadata
        sender = metadata.src_node_id, metadata.dst_node_id
        demand(sender == (node, SUPERLINK_NODE_ID), CallRefusal.SENDER)
        message, ids = request.messages_list[0], announced.objects
        demand(
            len(ids) == len(set(ids)) == len(KINDS)
            and all(OBJECT_ID.fullmatch(each) for each in ids)
            and ids[-1] == announced.message
            and not message.HasField("error")
            and not message.content.ByteSize(),  # the content comes as objects
            CallRefusal.NOT_AN_ANSWER,
        )
        return announced

    @property
    def message(self) -> str:
        """The reply's own id."""
        return str(self.request.messages_list[0].metadata.message_id)

    @property
    def question(self) -> str:
        """The id of the question that it answers."""
        return str(self.request.messages_list[0].metadata.reply_to_message_id)

    @property
    def objects(self) -> tuple[str, ...]:
        """The ids of its objects, each one the only child of the next; the last is the message."""
        return tuple(reversed(tuple(_chain(self.request.message_object_trees[0]))))

    def demand_fits(self, question: OpenQuestion) -> None:
        """Raise unless the reply is of the question's run and kind."""
        metadata = self.request.messages_list[0].metadata
        fits = (metadata.run_id, metadata.message_type) == (question.run, question.kind)
        demand(fits, CallRefusal.NO_QUESTION)


@dataclass(slots=True, kw_only=True)
class PartialReply:
    """A reply whose head has come, and those of its objects that have come so far."""

    announcement: Announcement
    until: float  # seconds since 1970; dropped then
    session: str = field(default_factory=lambda: secrets.token_hex(16))
    contents: dict[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """Bytes of the objects that have come."""
        return sum(map(len, self.contents.values()))

    @property
    def missing(self) -> tuple[str, ...]:
        """The ids of the objects that have not come."""
        return tuple(each for each in self.announcement.objects if each not in self.contents)

    def add(self, object_id: str, content: bytes) -> None:
        """Take one object; raise if the reply does not name it or its content is another one."""
        demand(object_id in self.announcement.objects, CallRefusal.NOT_ANNOUNCED)
        demand(hashlib.sha256(content).hexdigest() == object_id, CallRefusal.NOT_AN_ANSWER)
        self.contents[object_id] = content

    def demand_answer(self) -> None:
        """Raise unless the reply is an answer of ours, and its message is the one in its head."""
        try:
            answer, metadata = self._inflated()
        except CallRefusedError:
            raise
        except Exception:  # noqa: BLE001 - whatever Flower raises on such objects
            raise CallRefusedError(CallRefusal.NOT_AN_ANSWER) from None
        announced = self.announcement.request.messages_list[0].metadata
        same = all(getattr(announced, name) == getattr(metadata, name) for name in SAME)
        demand(same, CallRefusal.SENDER)
        demand(_is_an_answer(answer), CallRefusal.NOT_AN_ANSWER)

    def _inflated(self) -> tuple[bytes, Metadata]:
        """Return the answer and the metadata that the coordinator will find in the objects."""
        child: list[str] = []
        for kind, object_id in zip(KINDS, self.announcement.objects, strict=True):
            head = get_object_head_values_from_object_content(self.contents[object_id])
            demand(head[:2] == (kind, child), CallRefusal.NOT_AN_ANSWER)
            child = [object_id]
        # Flower's own code, which the coordinator will run on the same objects.
        message = inflate_object_from_contents(
            self.announcement.message, dict(self.contents), keep_object_contents=True
        )
        assert isinstance(message, Message)
        return _answer(message), message.metadata


def _chain(tree: ObjectTree) -> Iterator[str]:
    """Yield the ids of a tree from its root, as long as each object has one child."""
    while True:
        yield tree.object_id
        if not tree.children:
            return
        demand(len(tree.children) == 1, CallRefusal.NOT_AN_ANSWER)
        tree = tree.children[0]


def _answer(message: Message) -> bytes:
    """Return the bytes that a message carries as its only record's only field."""
    demand(not message.has_error() and list(message.content) == [RECORD], CallRefusal.NOT_AN_ANSWER)
    record = message.content[RECORD]
    assert isinstance(record, ConfigRecord)  # as its object's head says (`KINDS`)
    answer = record.get(FIELD) if len(record) == 1 else None
    if not isinstance(answer, bytes):
        raise CallRefusedError(CallRefusal.NOT_AN_ANSWER)
    return answer


def _is_an_answer(raw: bytes) -> bool:
    """Whether these bytes are an answer's document; the coordinator checks what it says."""
    try:
        ANSWERS.read(raw)
    except DocumentError:
        return False
    return True
