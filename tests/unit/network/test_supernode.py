"""A plant's runner beside its SuperNode answers each question, gives it up or reports it."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.app.metadata import Metadata

from sluice.network.wire import supernode
from sluice.network.wire.flower_run import FIELD, RECORD
from sluice.network.wire.supernode import Node, serve

GHOST, GOOD = "a run that is over", "a question"


class Client:
    """What a runner has of a SuperNode for one question."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()

    def PushTaskOutput(self, _: object) -> None:  # noqa: N802 - Flower's word
        assert not self.closed.is_set()

    def SendTaskHeartbeat(self, _: object) -> None:  # noqa: N802 - Flower's word
        pass


class Echo:
    def answer(self, question: bytes) -> bytes:
        return b"an answer to " + question


class Broken:
    def answer(self, question: bytes) -> bytes:
        raise ZeroDivisionError(question)


class Away:
    def answer(self, question: bytes) -> bytes:
        raise ConnectionError(question)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(proxy="127.0.0.1:1", authority=tmp_path, key=tmp_path, port=1, folder=tmp_path)


@pytest.fixture
def pushed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is sent to a SuperNode that hands out these questions."""
    sent: list[bytes] = []

    def pull(client: Client) -> tuple[Message, None, None, None]:
        if client.token == GHOST:
            assert client.closed.wait(timeout=20), "the question was not given up"
            raise RuntimeError("the client has been closed")
        content = RecordDict({RECORD: ConfigRecord({FIELD: client.token.encode()})})
        metadata = Metadata(1, "m", 1, 2, "", "", 0.0, 60.0, "query.sluice")
        message = Message(metadata=metadata, content=content)  # type: ignore[call-overload]
        return message, None, None, None

    def push(client: Client, message: Message, _: None) -> None:
        assert not client.closed.is_set()
        record = message.content[RECORD]
        assert isinstance(record, ConfigRecord)
        answer = record[FIELD]
        assert isinstance(answer, bytes)
        sent.append(answer)

    monkeypatch.setattr(supernode, "pull_task_input", pull)
    monkeypatch.setattr(supernode, "push_message", push)
    monkeypatch.setattr(supernode, "_client", lambda _, token: Client(token))
    monkeypatch.setattr(supernode, "RuntimeTokenHttpInterceptor", lambda token: token)
    monkeypatch.setattr(supernode, "POLL_S", 0.01)
    return sent


@pytest.fixture
def hands_out(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def give(*tokens: str) -> None:
        left: Iterator[str] = iter(tokens)
        monkeypatch.setattr(supernode, "_acquire", lambda _: next(left, ""))

    return give


def test_a_question_of_a_run_that_is_over_is_given_up_for_the_next_one(
    node: Node, pushed: list[bytes], hands_out: Callable[..., None]
) -> None:
    hands_out(GHOST, GHOST, GOOD)
    serve(node, Echo(), alive=lambda: not pushed)
    assert pushed == [b"an answer to a question"]


def test_a_node_whose_question_failed_is_given_back_to_be_restarted(
    node: Node,
    pushed: list[bytes],
    hands_out: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    hands_out(GOOD)
    serve(node, Away(), alive=lambda: True)
    assert not pushed
    assert "a question got lost" in caplog.text


def test_a_bug_in_an_answer_is_raised_where_the_plant_is_run(
    node: Node,
    pushed: list[bytes],
    hands_out: Callable[..., None],
) -> None:
    hands_out(GOOD)
    with pytest.raises(ZeroDivisionError):
        serve(node, Broken(), alive=lambda: True)
    assert not pushed
