"""A plant's node answers each question, drops those that are lost, and never stays silent."""

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx
import pytest
from flwr.proto.message_pb2 import Metadata, ObjectTree

from sluice.network.wire import node as node_module
from sluice.network.wire.node import Incoming, serve
from sluice.network.wire.wire import LARGEST_ANSWER

REFUSED, UNKNOWN_NODE, BUSY = 403, 401, 503


def refused(status: int) -> httpx.HTTPStatusError:
    request = httpx.Request("POST", "https://water.example/v1/fleet")
    return httpx.HTTPStatusError(
        f"status {status}", request=request, response=httpx.Response(status, request=request)
    )


def asked(name: str) -> Incoming:
    return Incoming(metadata=Metadata(message_id=name), tree=ObjectTree(object_id=name))


@dataclass
class Coordinator:
    """What the nodes of one plant find at Flower."""

    questions: list[str]
    calls: dict[str, list[BaseException | None]] = field(default_factory=dict)  # outcomes to come
    answers: list[bytes] = field(default_factory=list)
    connections: list["Connected"] = field(default_factory=list)
    hangs: set[int] = field(default_factory=set)  # connections whose pull never returns
    missing: set[str] = field(default_factory=set)  # questions without content

    def connect(self) -> "Connected":
        self.connections.append(Connected(self, len(self.connections)))
        return self.connections[-1]

    def outcome(self, call: str) -> None:
        left = self.calls.get(call, [])
        error = left.pop(0) if left else None
        if error is not None:
            raise error


@dataclass
class Connected:
    at: Coordinator
    number: int
    signed_off: threading.Event = field(default_factory=threading.Event)

    def sign_in(self) -> None:
        self.at.outcome("sign_in")

    def heartbeat(self) -> None:
        self.at.outcome("heartbeat")

    def pull(self) -> Incoming | None:
        if self.number in self.at.hangs:
            assert self.signed_off.wait(timeout=20), "the loop that hangs was not replaced"
            raise RuntimeError("the client has been closed")
        self.at.outcome("pull")
        return asked(self.at.questions.pop(0)) if self.at.questions else None

    def content(self, question: Incoming) -> bytes | None:
        self.at.outcome("content")
        name = question.metadata.message_id
        return None if name in self.at.missing else name.encode()

    def confirm(self, question: Incoming) -> None:
        self.at.missing.add(question.metadata.message_id)  # Flower deletes what is confirmed
        self.at.outcome("confirm")

    def push(self, question: Incoming, answer: bytes) -> None:
        assert question.metadata.message_id
        self.at.outcome("push")
        self.at.answers.append(answer)

    def sign_off(self) -> None:
        self.signed_off.set()


class Echo:
    def answer(self, question: bytes) -> bytes:
        return b"an answer to " + question


class Failing:
    """Fails at the first question; answers the others."""

    def __init__(self, error: BaseException) -> None:
        self.error: BaseException | None = error

    def answer(self, question: bytes) -> bytes:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return b"an answer to " + question


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACTIVE_S", "IDLE_S", "TRY_AGAIN_S", "RECONNECT_S", "LOOK_S", "BEAT_S"):
        monkeypatch.setattr(node_module, name, 0.01)
    monkeypatch.setattr(node_module, "SIGN_OFF_S", 0.2)


def served(
    coordinator: Coordinator,
    plant: Echo | Failing,
    *,
    until: Callable[[], bool],
) -> None:
    """Serve until a condition holds; fail if it never does."""

    def connecting() -> None:
        if until():
            raise KeyboardInterrupt

    def end() -> None:
        deadline = time.monotonic() + 10
        while not until() and time.monotonic() < deadline:
            time.sleep(0.005)
        coordinator.calls.setdefault("pull", []).append(ConnectionError("the test is over"))

    threading.Thread(target=end, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        serve(coordinator.connect, plant, seconds=20, connecting=connecting)
    assert until()


def test_each_question_is_answered_once() -> None:
    coordinator = Coordinator(["one", "two"])
    served(coordinator, Echo(), until=lambda: len(coordinator.answers) == 2)
    assert coordinator.answers == [b"an answer to one", b"an answer to two"]
    assert len(coordinator.connections) == 1


def test_a_plant_ends_after_its_answer_when_the_federation_is_over() -> None:
    coordinator = Coordinator(["one", "two"])
    serve(coordinator.connect, Echo(), seconds=20, over=lambda: bool(coordinator.answers))
    assert coordinator.answers == [b"an answer to one"]
    assert coordinator.connections[0].signed_off.is_set()


@pytest.mark.parametrize("lost", [httpx.ReadError("the proxy was killed"), refused(404)])
def test_a_question_whose_confirmation_got_lost_is_answered_and_not_declined(
    lost: BaseException,
) -> None:
    coordinator = Coordinator(["one"], calls={"confirm": [lost]})
    served(coordinator, Echo(), until=lambda: bool(coordinator.answers))
    assert coordinator.answers == [b"an answer to one"]
    assert len(coordinator.connections) == 1


def test_a_loop_that_ended_is_replaced_by_a_new_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors: list[BaseException | None] = [httpx.ReadTimeout("no answer")] * node_module.TRIES
    coordinator = Coordinator(["one"], calls={"pull": errors})
    served(coordinator, Echo(), until=lambda: bool(coordinator.answers))
    assert len(coordinator.connections) == 2
    assert coordinator.connections[0].signed_off.is_set()
    assert "lost the coordinator (no answer)" in caplog.text


def test_a_proxy_that_limits_calls_is_asked_again_later() -> None:
    errors: list[BaseException | None] = [refused(429), refused(BUSY)]
    coordinator = Coordinator(["one"], calls={"pull": errors})
    served(coordinator, Echo(), until=lambda: bool(coordinator.answers))
    assert len(coordinator.connections) == 1


def test_a_node_that_the_proxy_refuses_does_not_go_on_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    coordinator = Coordinator(["one"], calls={"pull": [refused(REFUSED)]})
    served(coordinator, Echo(), until=lambda: bool(coordinator.answers))
    assert len(coordinator.connections) == 2
    assert f"lost the coordinator (status {REFUSED})" in caplog.text


def test_a_loop_that_hangs_while_its_process_lives_is_replaced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(node_module, "SILENT_S", 0.3)
    coordinator = Coordinator(["one"], hangs={0})
    served(coordinator, Echo(), until=lambda: bool(coordinator.answers))
    assert len(coordinator.connections) == 2
    assert "no call to the coordinator has ended for" in caplog.text


def test_a_plant_that_works_for_long_on_an_answer_is_not_taken_for_hanging(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_module, "SILENT_S", 0.1)

    class Slow(Echo):
        def answer(self, question: bytes) -> bytes:
            time.sleep(0.5)
            return super().answer(question)

    coordinator = Coordinator(["one"])
    served(coordinator, Slow(), until=lambda: bool(coordinator.answers))
    assert len(coordinator.connections) == 1


def test_a_node_that_the_coordinator_does_not_know_yet_tries_again() -> None:
    coordinator = Coordinator(["one"], calls={"sign_in": [refused(REFUSED), refused(REFUSED)]})
    served(coordinator, Echo(), until=lambda: bool(coordinator.answers))
    assert len(coordinator.connections) == 3


def test_a_node_that_a_restarted_flower_has_forgotten_signs_in_again() -> None:
    coordinator = Coordinator(["one"], calls={"push": [refused(UNKNOWN_NODE)]})
    coordinator.questions.append("one again")
    served(coordinator, Echo(), until=lambda: bool(coordinator.answers))
    assert len(coordinator.connections) == 2
    assert coordinator.answers == [b"an answer to one again"]


def test_a_question_of_a_run_that_is_over_is_given_up_for_the_next_one() -> None:
    coordinator = Coordinator(["over", "good"], calls={"content": [refused(REFUSED)]})
    served(coordinator, Echo(), until=lambda: bool(coordinator.answers))
    assert coordinator.answers == [b"an answer to good"]
    assert len(coordinator.connections) == 1


def test_a_question_whose_content_never_comes_is_given_up_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node_module, "CONTENT_S", 0.05)
    coordinator = Coordinator(["ghost", "good"], missing={"ghost"})
    served(coordinator, Echo(), until=lambda: bool(coordinator.answers))
    assert coordinator.answers == [b"an answer to good"]


def test_an_answer_is_sent_again_after_a_failure_of_the_network() -> None:
    errors: list[BaseException | None] = [httpx.ReadError("cut"), refused(BUSY)]
    coordinator = Coordinator(["one"], calls={"push": errors})
    served(coordinator, Echo(), until=lambda: bool(coordinator.answers))
    assert coordinator.answers == [b"an answer to one"]
    assert len(coordinator.connections) == 1


def test_a_plant_that_gives_no_answer_is_asked_the_next_question() -> None:
    coordinator = Coordinator(["one", "two"])
    plant = Failing(ConnectionError("the prover is away"))
    served(coordinator, plant, until=lambda: bool(coordinator.answers))
    assert coordinator.answers == [b"an answer to two"]


@pytest.mark.parametrize("bug", [ZeroDivisionError("a bug"), ValueError("a bug")])
def test_a_bug_in_an_answer_is_raised_where_the_plant_is_run(bug: Exception) -> None:
    coordinator = Coordinator(["one", "two"])
    with pytest.raises(type(bug), match="a bug"):
        serve(coordinator.connect, Failing(bug), seconds=10)
    assert not coordinator.answers
    assert coordinator.connections[0].signed_off.is_set()


def test_an_answer_that_is_too_long_is_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    class Long(Echo):
        def answer(self, question: bytes) -> bytes:
            return b"x" * (LARGEST_ANSWER + 1) if question == b"one" else b"short"

    coordinator = Coordinator(["one", "two"])
    served(coordinator, Long(), until=lambda: bool(coordinator.answers))
    assert coordinator.answers == [b"short"]
    assert "is not sent" in caplog.text


def test_a_failed_heartbeat_does_not_end_the_loop() -> None:
    errors: list[BaseException | None] = [httpx.ReadError("cut")] * 3
    coordinator = Coordinator([], calls={"heartbeat": errors})
    served(coordinator, Echo(), until=lambda: not errors)
    assert len(coordinator.connections) == 1


def test_a_plant_that_is_stopped_does_not_wait_for_its_answer() -> None:
    started = threading.Event()

    class Endless(Echo):
        def answer(self, question: bytes) -> bytes:
            started.set()
            time.sleep(60)
            return question

    def stopping() -> None:
        assert started.wait(timeout=10)
        signal.raise_signal(signal.SIGUSR1)

    def stop(*_: object) -> None:
        raise SystemExit

    before = signal.signal(signal.SIGUSR1, stop)
    coordinator = Coordinator(["one"])
    began = time.monotonic()
    threading.Thread(target=stopping, daemon=True).start()
    try:
        with pytest.raises(SystemExit):
            serve(coordinator.connect, Endless())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert time.monotonic() - began < 20
    assert coordinator.connections[0].signed_off.is_set()


def test_a_plant_whose_time_is_up_finishes_its_answer() -> None:
    class Slow(Echo):
        def answer(self, question: bytes) -> bytes:
            time.sleep(0.4)
            return super().answer(question)

    coordinator = Coordinator(["one", "two"])
    serve(coordinator.connect, Slow(), seconds=0.2)
    assert coordinator.answers == [b"an answer to one"]
