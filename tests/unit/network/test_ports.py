"""Ports: one that is used is found at once, and one that is being released is waited for."""

import errno
import socket
import threading
import time

import pytest

from sluice.errors import SettingError
from sluice.network import ports
from sluice.network.ports import demand_free_port


def demand(port: int, *, host: str = "127.0.0.1", patience_s: float = 0.0) -> None:
    demand_free_port(host, port, whose="the proxy", remedy="stop it", patience_s=patience_s)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(_: float) -> None:
        raise AssertionError("it waits")

    monkeypatch.setattr(time, "sleep", sleep)


@pytest.mark.usefixtures("impatient")
def test_a_port_that_another_process_uses_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SettingError) as refused:
            demand(port)
    assert str(refused.value) == (
        f"the proxy cannot listen on port {port} at 127.0.0.1: another process uses it; stop it"
    )
    demand(port)


@pytest.mark.usefixtures("impatient")
def test_a_port_that_is_bound_on_every_address_is_used() -> None:
    with socket.create_server(("0.0.0.0", 0)) as other, pytest.raises(SettingError):
        demand(other.getsockname()[1])


def test_a_port_that_is_released_in_a_moment_is_waited_for() -> None:
    other = socket.create_server(("127.0.0.1", 0))
    port = other.getsockname()[1]
    threading.Timer(0.5, other.close).start()
    started = time.monotonic()
    demand(port, patience_s=30.0)
    assert time.monotonic() - started < 10


def test_a_port_whose_last_connection_has_just_ended_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        caller = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()  # this side waits for late packets: TIME_WAIT
        caller.close()
    demand(port)


def test_an_address_of_another_machine_is_left_to_the_server() -> None:
    demand(48_443, host="192.0.2.1")
    demand(48_443, host="nowhere.invalid")


def test_a_port_that_is_not_allowed_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    answers = iter((errno.EACCES, None))
    monkeypatch.setattr(ports, "_unusable", lambda *_: next(answers))
    with pytest.raises(SettingError, match="cannot listen on port 443 .*: Permission denied"):
        demand(443, patience_s=30.0)
    assert waited == []
