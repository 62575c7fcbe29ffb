"""Sizes and deadlines of calls, to the byte and to the second."""

import errno
import ssl
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from flwr.proto.message_pb2 import PullObjectRequest
from flwr.proto.runtime_pb2 import PullAppMessagesRequest

from sluice.errors import SettingError
from sluice.network import ports
from sluice.network.ports import demand_free_port
from sluice.network.wire import flower_run, node, objects, superlink
from sluice.network.wire.flower_run import FlowerRun
from sluice.network.wire.objects import Calls, OversizedError
from sluice.network.wire.superlink import FlowerWire, Link

MOST = 1_000


class Clock:
    """A clock that shows given times, the last one for ever."""

    def __init__(self, *times: float) -> None:
        self.times = list(times)
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.times.pop(0) if len(self.times) > 1 else self.times[0]

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        assert len(self.slept) < 10, "it waits for ever"


def answer(body: bytes, *, length: int | None = None, chunks: int = 1) -> httpx.Response:
    """Send one call to a server that answers like this."""

    def stream() -> Iterator[bytes]:
        step = -(-len(body) // chunks)
        for start in range(0, len(body), step):
            yield body[start : start + step]

    headers = {} if length is None else {"content-length": str(length)}
    calls = Calls(ssl.create_default_context(), largest=lambda _: MOST, seconds=10.0)
    calls._http = httpx.Client(
        transport=httpx.MockTransport(
            lambda _: httpx.Response(200, headers=headers, content=stream())
        )
    )
    context = SimpleNamespace(request=httpx.Request("POST", "https://flower/call"))
    try:
        return calls.intercept(context, None)  # type: ignore[arg-type]
    finally:
        calls.close()


@pytest.mark.parametrize("length", [MOST, None])
def test_a_response_of_exactly_the_limit_is_read(length: int | None) -> None:
    body = b"x" * MOST
    assert answer(body, length=length, chunks=3).content == body


def test_a_response_of_one_byte_more_is_refused() -> None:
    with pytest.raises(OversizedError, match="answers more than 1,000 bytes"):
        answer(b"x", length=MOST + 1)
    with pytest.raises(OversizedError, match="answers more than 1,000 bytes"):
        answer(b"x" * (MOST + 1), chunks=3)


def test_a_response_has_until_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "time", Clock(100.0, 110.0))
    assert answer(b"xy", chunks=2).content == b"xy"
    monkeypatch.setattr(objects, "time", Clock(100.0, 110.001))
    with pytest.raises(httpx.ReadTimeout, match="took more than 10 s to answer"):
        answer(b"xy", chunks=2)


def test_a_response_of_flower_is_as_long_as_what_was_asked_for_can_be() -> None:
    def largest(message: object) -> int:
        return flower_run._largest_response(SimpleNamespace(message=message))  # type: ignore[arg-type]

    assert largest(PullAppMessagesRequest()) == 16 * 1_024
    assert largest(PullAppMessagesRequest(message_ids=["a"])) == 16 * 1_024
    assert largest(PullAppMessagesRequest(message_ids=["a", "b", "c"])) == 3 * 16 * 1_024
    assert largest(PullObjectRequest()) == 7 * 2**20 + 1_024
    assert largest(object()) == flower_run.SETTINGS_BYTES


def test_a_response_to_a_plant_is_as_long_as_a_question_can_be() -> None:
    def largest(method: str) -> int:
        return node._largest_response(SimpleNamespace(rpc_method=method))  # type: ignore[arg-type]

    assert largest("/flwr.proto.Fleet/PullObject") == 32 * 2**20 + 1_024
    assert largest("/flwr.proto.Fleet/PullMessages") == 16 * 1_024


def demand(patience_s: float) -> None:
    demand_free_port("127.0.0.1", 443, whose="the proxy", remedy="stop it", patience_s=patience_s)


def test_a_port_that_needs_rights_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(0.0)
    monkeypatch.setattr(ports, "time", clock)
    monkeypatch.setattr(ports, "_unusable", lambda *_: errno.EACCES)
    with pytest.raises(SettingError, match="Permission denied; stop it"):
        demand(30.0)
    assert clock.slept == []


def test_a_used_port_is_waited_for_until_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(0.0, 29.9, 30.0)
    monkeypatch.setattr(ports, "time", clock)
    monkeypatch.setattr(ports, "_unusable", lambda *_: errno.EADDRINUSE)
    with pytest.raises(SettingError, match="another process uses it; stop it"):
        demand(30.0)
    assert len(clock.slept) == 1


@pytest.fixture
def wire(tmp_path: Path) -> FlowerWire:
    pem = tmp_path / "authority.pem"
    pem.write_bytes(b"")
    return FlowerWire(Link(port=1, folder=tmp_path, certificate=pem, key=pem, authority=pem))


def test_a_superlink_has_two_minutes_to_answer(
    wire: FlowerWire, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> frozenset[str]:
        raise ConnectionError

    clock = Clock(1_000.0, 1_119.9, 1_120.0, 1_120.1)
    monkeypatch.setattr(superlink, "time", clock)
    monkeypatch.setattr(wire, "_online", lost)
    with pytest.raises(SettingError, match="SuperLink does not answer"):
        wire.present()
    assert len(clock.slept) == 2


def test_a_run_that_flower_has_ended_is_not_used(wire: FlowerWire) -> None:
    wire._run = SimpleNamespace(lost=False)  # type: ignore[assignment]
    assert wire._running() is wire._run
    wire._run = SimpleNamespace(lost=True)  # type: ignore[assignment]
    with pytest.raises(ConnectionError, match="has ended the run"):
        wire._running()


def test_the_task_of_another_run_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Flower that was killed may hand out the task of a run from before."""
    closed = []
    task = SimpleNamespace(run=SimpleNamespace(run_id=8))
    client = SimpleNamespace(PullTaskInput=lambda _: task)
    monkeypatch.setattr(flower_run, "ssl", SimpleNamespace(create_default_context=lambda **_: None))
    monkeypatch.setattr(flower_run, "Calls", lambda *_, **__: None)
    monkeypatch.setattr(FlowerRun, "_acquire", lambda _: "token")
    monkeypatch.setattr(FlowerRun, "_connected", lambda *_: client)
    monkeypatch.setattr(FlowerRun, "_beat", lambda _: None)
    monkeypatch.setattr(FlowerRun, "close", lambda run: closed.append(run.number))
    pem = tmp_path / "authority.pem"
    link = Link(port=1, folder=tmp_path, certificate=pem, key=pem, authority=pem)
    with pytest.raises(ConnectionError, match="the task of run 8, not of 7"):
        FlowerRun(link, 7)
    assert closed == [7]
    assert FlowerRun(link, 8).number == 8
