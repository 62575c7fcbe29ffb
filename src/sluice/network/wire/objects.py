"""A byte string as the objects of a Flower message, and back; both sides refuse any other form.

Flower stores a message as a tree of objects, each named by its hash. Sluice sends one form only: a
message with one record, and in the record one byte string. The receiver checks the tree before it
pulls an object, pulls only the object that holds the bytes, and stops reading a response that is
longer than its limit. So no sender decides how much memory the receiver uses.
"""

import hashlib
import json
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import httpx
from flwr.proto.message_pb2 import Message, Metadata, ObjectTree
from flwr.proto.recorddict_pb2 import RecordDict
from flwr.supercore.protobuf.client import ProtobufCall, ProtobufRequestContext

__all__ = [
    "HEAD_BYTES",
    "KIND",
    "LOST",
    "OBJECT_EXTRA",
    "Calls",
    "MessageObjects",
    "OversizedError",
    "leaf_of",
    "packed",
    "unpacked",
]

RECORD, FIELD, KIND = "sluice", "bytes", "query.sluice"
HEAD_BYTES = 16 * 1024
"""Bytes of a message without its objects, and of every other response that holds no content."""
OBJECT_EXTRA = 1024
"""Bytes that an object and its response have beyond the byte string."""

_KEY = b"\n" + bytes([len(FIELD)]) + FIELD.encode()  # of ConfigRecord.Item: its key
_ITEM, _VALUE, _BYTES = b"\n", b"\x12", b"2"  # the tags of an item, of its value, of its bytes


class OversizedError(ValueError):
    """A response is longer than its limit."""


LOST = (httpx.HTTPError, ConnectionError, ValueError)
"""Errors of a call: Flower is unreachable, refuses it, or answers something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageObjects:
    """A message as Flower takes it: its head, the tree of its objects, and their contents."""

    head: Message
    tree: ObjectTree
    objects: tuple[tuple[str, bytes], ...]  # id, content; the one with the bytes comes last


def packed(metadata: Metadata, content: bytes) -> MessageObjects:
    """Return the message with this content; its id is the hash of the outermost object."""
    leaf = _prefix(len(content)) + content
    record = _object("RecordDict", _id(leaf), json.dumps({RECORD: _id(leaf)}).encode())
    body = Message(metadata=metadata).SerializeToString(deterministic=True)
    root = _object("Message", _id(record), body)
    head = Message(metadata=metadata, content=RecordDict())
    head.metadata.message_id = _id(root)
    tree = ObjectTree(object_id=_id(leaf))
    for parent in (record, root):
        tree = ObjectTree(object_id=_id(parent), children=[tree])
    # The receiver deletes the message as soon as it has the bytes, so these are sent last.
    objects = tuple((_id(each), each) for each in (root, record, leaf))
    return MessageObjects(head=head, tree=tree, objects=objects)


def leaf_of(tree: ObjectTree) -> str | None:
    """Return the id of the object that holds the bytes; None if the tree has another form."""
    for _ in range(2):
        if len(tree.children) != 1:
            return None
        tree = tree.children[0]
    return None if tree.children else str(tree.object_id)


def unpacked(leaf: bytes) -> bytes | None:
    """Return the byte string of an object; None if the object has another form.

    The form is fixed except for the length, so the object is compared and never parsed.
    """
    least = len(leaf) - len(_prefix(len(leaf)))
    for size in range(max(0, least), len(leaf)):
        prefix = _prefix(size)
        if len(prefix) + size == len(leaf):
            return leaf[len(prefix) :] if leaf.startswith(prefix) else None
        if len(prefix) + size > len(leaf):
            return None
    return None


def _prefix(size: int) -> bytes:
    """Return what precedes a byte string of this size in its object."""
    value = _BYTES + _varint(size)
    item = _KEY + _VALUE + _varint(len(value) + size) + value
    body = _ITEM + _varint(len(item) + size) + item
    return f"ConfigRecord  {len(body) + size}".encode() + b"\0" + body


def _varint(number: int) -> bytes:
    septets = bytearray()
    while number > 0x7F:
        septets.append(number & 0x7F | 0x80)
        number >>= 7
    septets.append(number)
    return bytes(septets)


def _object(kind: str, child: str, body: bytes) -> bytes:
    return f"{kind} {child} {len(body)}".encode() + b"\0" + body


def _id(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@final
class Calls:
    """Sends Flower's calls, each with a time limit and a limit on the length of its response.

    It is the last interceptor of a Flower client, and sends in place of the client.
    """

    def __init__(
        self,
        trust: ssl.SSLContext,
        *,
        largest: Callable[[ProtobufRequestContext], int],
        seconds: float,
    ) -> None:
        self.seconds = seconds  # for each step of a call, and for reading its whole response
        self._largest = largest
        self._http = httpx.Client(verify=trust, headers={"accept-encoding": "identity"})

    def intercept(self, context: ProtobufRequestContext, _: ProtobufCall) -> httpx.Response:
        """Send a request and return the response, unless it is too long or takes too long."""
        request, largest = context.request, self._largest(context)
        request.headers["accept-encoding"] = "identity"
        request.extensions["timeout"] = httpx.Timeout(self.seconds).as_dict()
        response = self._http.send(request, stream=True)
        body, until = bytearray(), time.monotonic() + self.seconds
        too_long = OversizedError(f"{request.url.path} answers more than {largest:,} bytes")
        try:
            if int(response.headers.get("content-length", "0")) > largest:
                raise too_long
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > largest:
                    raise too_long
                if time.monotonic() > until:
                    raise httpx.ReadTimeout(
                        f"{request.url.path} took more than {self.seconds:.0f} s to answer",
                        request=request,
                    )
        finally:
            response.close()
        return httpx.Response(response.status_code, content=bytes(body), request=request)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
