"""The coordinator's own servers: nothing starts on a used port, and nothing runs exposed."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from sluice.errors import RefusedError, SettingError
from sluice.network.coordinator import hosting
from sluice.network.coordinator.filter_process import enrolled_plants
from sluice.network.coordinator.hosting import Supervisor, hosted, wait_for_plants
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire.exposure import Endpoint
from sluice.network.wire.wire import Direct

from .conftest import Consortium


@contextmanager
def opened(consortium: Consortium) -> Iterator[CoordinatorStore]:
    with closing(CoordinatorStore(consortium.site.base)) as store:
        yield store


class Started:
    """Stands for a process that was started."""

    names: list[str]

    def __init__(self, what: str, _: object) -> None:
        self.names.append(what)

    def watch(self) -> None:
        self.names.append("watched")

    def stop(self) -> None:
        self.names.append("stopped")


class Wire:
    """Stands for the wire to Flower."""

    def __init__(self, _: object) -> None:
        self.enrolled: Mapping[str, bytes] = {}

    def enrol(self, keys: Mapping[str, bytes]) -> None:
        self.enrolled = keys

    def close(self) -> None:
        pass


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was started, without starting it; every port answers."""
    Started.names = []
    monkeypatch.setattr(hosting, "Supervisor", Started)
    monkeypatch.setattr(hosting, "FlowerWire", Wire)
    monkeypatch.setattr(hosting, "_await_port", lambda *_: None)
    monkeypatch.setattr(hosting, "demand_unexposed", lambda *_: None)
    monkeypatch.setattr(hosting, "ENDING_S", 0.0)
    return Started.names


def test_flower_filter_and_proxy_run_after_the_check_and_are_stopped(
    consortium: Consortium, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[Mapping[str, int]] = []
    monkeypatch.setattr(hosting, "demand_unexposed", lambda _, ports: checked.append(ports))
    with opened(consortium) as store, hosted(consortium.site, store, proxy=True) as wire:
        assert set(wire.enrolled) == {"north", "south", "west"}  # type: ignore[attr-defined]
        assert started[:3] == ["Flower's SuperLink", "the filter", "nginx"]
        assert started[3:] == ["watched"] * 3
    assert started[6:] == ["stopped"] * 3
    assert checked == [{"Flower": 18_000, "the filter": 18_001}]


def test_an_exposed_federation_is_stopped_before_a_plant_is_asked(
    consortium: Consortium, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def exposed(endpoint: Endpoint, _: object) -> None:
        raise RefusedError(f"Flower listens on {endpoint.host}")

    monkeypatch.setattr(hosting, "demand_unexposed", exposed)
    with (
        opened(consortium) as store,
        pytest.raises(RefusedError, match="Flower listens on"),
        hosted(consortium.site, store, proxy=True),
    ):
        pytest.fail("it runs")
    assert "watched" not in started
    assert started.count("stopped") == 3


@pytest.mark.parametrize(
    ("name", "whose"), [("link.port", "Flower"), ("filter.port", "the filter")]
)
def test_a_used_inner_port_is_found_before_anything_starts(
    consortium: Consortium, started: list[str], name: str, whose: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, opened(consortium) as store:
        (consortium.site.folder / name).write_text(f"{other.getsockname()[1]}\n")
        with (
            pytest.raises(SettingError, match=f"{whose} cannot listen .*{name}"),
            hosted(consortium.site, store, proxy=False),
        ):
            pytest.fail("it runs")
    assert started == []


def test_the_proxys_port_must_be_free_unless_the_proxy_is_the_operators_own(
    consortium: Consortium, started: list[str]
) -> None:
    terms = consortium.site.terms
    with socket.create_server((terms.host, terms.port)), opened(consortium) as store:
        with (
            pytest.raises(SettingError, match="the proxy cannot listen .* give --no-proxy"),
            hosted(consortium.site, store, proxy=True),
        ):
            pytest.fail("it runs")
        assert started == []
        with hosted(consortium.site, store, proxy=False):
            assert started[:2] == ["Flower's SuperLink", "the filter"]


def test_nginx_is_looked_for_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str | None] = []
    begun: list[list[str]] = []
    found: dict[str | None, str] = {}

    def which(_: str, path: str | None = None) -> str | None:
        looked.append(path)
        return found.get(path)

    monkeypatch.setattr(shutil, "which", which)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: begun.append(command))
    with pytest.raises(SettingError, match="nginx is not installed"):
        hosting._start_nginx(tmp_path / "nginx.conf")
    assert looked == [None, "/usr/sbin:/usr/local/sbin"]
    assert begun == []
    found["/usr/sbin:/usr/local/sbin"] = "/usr/sbin/nginx"
    hosting._start_nginx(tmp_path / "nginx.conf")
    found[None] = "/opt/nginx"
    hosting._start_nginx(tmp_path / "nginx.conf")
    assert ["/usr/sbin/nginx" in begun[0], "/opt/nginx" in begun[1]] == [True, True]


def test_only_active_plants_are_awaited_and_may_call(
    consortium: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    away = consortium.plants.pop("west")
    with opened(consortium) as store:
        store.absent("west", 1)
        store.suspend(1, after=1, at=consortium.clock())
        store.remove("south", at=consortium.clock())
        present = wait_for_plants(Direct({"north": away}), store, seconds=600.0)
        assert present == {"north"}  # at once
        assert set(enrolled_plants(store)) == {"north"}


def test_a_process_that_has_ended_is_seen_to_have_ended() -> None:
    def begin() -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    supervisor = Supervisor("the reader", begin)
    assert not supervisor.ended
    assert supervisor._process.stdin is not None
    supervisor._process.stdin.close()
    supervisor._process.wait(timeout=30)
    assert supervisor.ended
    supervisor.stop()


def test_a_server_that_never_answers_or_has_ended_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ended:
        ended = True

    class Living:
        ended = False

    monkeypatch.setattr(hosting, "START_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        hosting._await_port("127.0.0.1", port, Living(), "the filter")  # type: ignore[arg-type]
        with pytest.raises(SettingError, match="the filter does not answer"):
            hosting._await_port("127.0.0.1", port, Ended(), "the filter")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="the filter does not answer"):
        hosting._await_port("127.0.0.1", port, Living(), "the filter")  # type: ignore[arg-type]
