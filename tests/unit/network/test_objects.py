"""A message's objects are those that Flower makes; a receiver takes no other form."""

import pytest
from flwr.app import ConfigRecord, RecordDict
from flwr.app.message import make_message
from flwr.app.metadata import Metadata as FlowerMetadata
from flwr.common.serde_utils import metadata_to_proto
from flwr.proto.message_pb2 import ObjectTree
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree
from hypothesis import example, given
from hypothesis import strategies as st

from sluice.network.wire.objects import FIELD, RECORD, leaf_of, packed, unpacked

METADATA = FlowerMetadata(
    run_id=3,
    message_id="",
    src_node_id=1,
    dst_node_id=7,
    reply_to_message_id="",
    group_id="",
    created_at=1.8e9,
    ttl=60.0,
    message_type="query.sluice",
)


@pytest.mark.parametrize("size", [0, 1, 90, 112, 113, 127, 128, 16_300, 16_384, 100_000, 2**21])
def test_the_objects_are_those_of_flowers_own_message(size: int) -> None:
    content = b"\n" * size
    message = make_message(
        metadata=METADATA, content=RecordDict({RECORD: ConfigRecord({FIELD: content})})
    )
    ours = packed(metadata_to_proto(METADATA), content)
    theirs = {name: each.deflate() for name, each in get_all_nested_objects(message).items()}
    assert dict(ours.objects) == theirs
    assert ours.tree == get_object_tree(message)
    assert ours.head.metadata.message_id == message.object_id
    assert unpacked(theirs[leaf_of(ours.tree) or ""]) == content


@given(st.binary(max_size=400))
@example(b"")
def test_an_object_gives_back_its_bytes(content: bytes) -> None:
    ours = packed(metadata_to_proto(METADATA), content)
    assert unpacked(ours.objects[-1][1]) == content


@given(st.binary(max_size=300))
def test_bytes_of_another_form_are_no_answer(raw: bytes) -> None:
    assert unpacked(raw) is None


def test_a_record_with_a_second_value_is_no_answer() -> None:
    assert unpacked(ConfigRecord({FIELD: b"x"}).deflate()) == b"x"
    assert unpacked(ConfigRecord({FIELD: b"x", "more": 1}).deflate()) is None
    assert unpacked(ConfigRecord({"more": b"x"}).deflate()) is None
    assert unpacked(ConfigRecord({FIELD: [b"x", b"y"]}).deflate()) is None


def test_a_record_whose_length_is_wrong_is_no_answer() -> None:
    raw = ConfigRecord({FIELD: b"x" * 50}).deflate()
    assert unpacked(raw[:-1]) is None
    assert unpacked(raw + b"x") is None


def test_a_tree_with_more_or_fewer_objects_is_no_answer() -> None:
    leaf = ObjectTree(object_id="c")
    record = ObjectTree(object_id="b", children=[leaf])
    assert leaf_of(ObjectTree(object_id="a", children=[record])) == "c"
    assert leaf_of(leaf) is None
    assert leaf_of(record) is None
    assert leaf_of(ObjectTree(object_id="a", children=[record, record])) is None
    wide = ObjectTree(object_id="b", children=[leaf] * 100_000)
    assert leaf_of(ObjectTree(object_id="a", children=[wide])) is None
    deep = ObjectTree(object_id="b", children=[ObjectTree(object_id="c", children=[leaf])])
    assert leaf_of(ObjectTree(object_id="a", children=[deep])) is None
