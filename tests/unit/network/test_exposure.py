"""Plants reach the fleet's calls through the proxy, and nothing else; a federation checks that."""

import http.client
import http.server
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pytest

from sluice.errors import RefusedError, SettingError
from sluice.network.wire import exposure
from sluice.network.wire.certificates import Authority, write_certificate
from sluice.network.wire.exposure import (
    FORBIDDEN,
    Endpoint,
    _ProxyAnswer,
    demand_unexposed,
    listening_addresses,
    own_addresses,
)
from sluice.network.wire.proxy import FILTER_HEADER, Proxy, fleet_paths

from .conftest import free_port

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


class Filter(http.server.BaseHTTPRequestHandler):
    """Replaces the filter: answers every call with its path, and with the filter's mark."""

    seen: ClassVar[list[dict[str, str]]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.seen.append({key.lower(): value for key, value in self.headers.items()})
        self.send_response(200)
        self.send_header(FILTER_HEADER, "refused")
        self.send_header("Content-Length", str(len(self.path)))
        self.end_headers()
        self.wfile.write(self.path.encode())

    do_GET = do_POST  # noqa: N815 - the name http.server calls

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@dataclass
class Coordinator:
    folder: Path
    proxy: Proxy
    authority: Authority
    link_port: int

    @property
    def endpoint(self) -> Endpoint:
        return self.seen_by("coordinator")

    @property
    def ports(self) -> dict[str, int]:
        return {"Flower": self.link_port, "the filter": self.proxy.filter_port}

    def seen_by(self, name: str, authority: Authority | None = None) -> Endpoint:
        """Return the proxy's address, with a certificate for this name."""
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        if not certificate.exists():
            issued = (authority or self.authority).client(name, at=datetime.now(UTC))
            write_certificate(issued, certificate=certificate, key=key)
        return Endpoint(
            host=self.proxy.host,
            port=self.proxy.port,
            authority=self.proxy.authority,
            certificate=certificate,
            certificate_key=key,
        )

    def ask(
        self,
        path: str,
        method: str = "POST",
        body: bytes = b"x",
        *,
        caller: Endpoint | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, bytes]:
        line = http.client.HTTPSConnection(
            self.proxy.host,
            self.proxy.port,
            timeout=5,
            context=(caller or self.seen_by("north")).context(),
        )
        line.request(method, path, body=body if method == "POST" else None, headers=headers or {})
        answer = line.getresponse()
        found = answer.status, answer.read()
        line.close()
        return found


Start = Callable[..., Coordinator]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    if NGINX is None:
        pytest.skip("nginx is not installed")
    stops: list[Callable[[], object]] = []

    def begin(
        bind: str = "127.0.0.1", edit: Callable[[str], str] = str, revoked: tuple[str, ...] = ()
    ) -> Coordinator:
        now = datetime.now(UTC)
        authority = Authority.found(tmp_path / "authority.pem", tmp_path / "authority.key", at=now)
        certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
        issued = authority.server("127.0.0.1", at=now)
        write_certificate(issued, certificate=certificate, key=key)
        proxy = Proxy(
            host="127.0.0.1",
            port=free_port(),
            filter_port=free_port(),
            certificate=certificate,
            key=key,
            authority=authority.bundle,
            secret="5ec2e7",
        )
        link_port = free_port()
        Filter.seen.clear()
        filter_ = http.server.ThreadingHTTPServer(("127.0.0.1", proxy.filter_port), Filter)
        threading.Thread(target=filter_.serve_forever, daemon=True).start()
        stops.extend((filter_.server_close, filter_.shutdown))
        flower = socket.create_server((bind, link_port))
        stops.append(flower.close)
        written = proxy.write(tmp_path / "proxy", revoked=revoked)
        written.write_text(edit(written.read_text(encoding="utf-8")), encoding="utf-8")
        nginx = subprocess.Popen([str(NGINX), "-c", written, "-p", written.parent])
        stops.extend((nginx.wait, nginx.terminate))
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", proxy.port)) == 0:
                    break
            time.sleep(0.05)
        return Coordinator(tmp_path, proxy, authority, link_port)

    yield begin
    for stop in reversed(stops):
        stop()


def test_the_calls_of_a_node_pass_and_no_other_does(start: Start) -> None:
    coordinator = start()
    for path in fleet_paths():
        assert coordinator.ask(path) == (200, path.encode())
    for path in FORBIDDEN:
        assert coordinator.ask(path)[0] == 404, path
    assert coordinator.ask("/v1/fleet/start-run")[0] == 404
    assert coordinator.ask(fleet_paths()[0], method="GET")[0] == 403


def test_an_unexposed_federation_may_run(start: Start) -> None:
    coordinator = start()
    demand_unexposed(coordinator.endpoint, coordinator.ports)


def test_a_proof_passes_where_nginx_may_write_nothing(start: Start) -> None:
    coordinator = start()  # the folder is its owner's alone; nginx started by root is another user
    assert coordinator.ask("/v1/fleet/push-object", body=bytes(4 << 20))[0] == 200


def test_an_oversized_message_is_refused_at_the_proxy(start: Start) -> None:
    coordinator = start()
    for path, size in (("push-object", 64 << 20), ("push-messages", 1 << 20)):
        line = http.client.HTTPSConnection(
            "127.0.0.1", coordinator.proxy.port, context=coordinator.endpoint.context()
        )
        line.putrequest("POST", f"/v1/fleet/{path}")
        line.putheader("Content-Length", str(size))
        line.endheaders()
        assert line.getresponse().status == 413
        line.close()


def test_a_caller_without_a_certificate_reaches_nothing(start: Start) -> None:
    coordinator = start()
    stranger = replace(coordinator.endpoint, certificate=None)
    for path in ("/", *fleet_paths(), *FORBIDDEN):
        status, body = coordinator.ask(path, caller=stranger)
        assert status == 400
        assert b"No required SSL certificate" in body
    assert Filter.seen == []


def test_a_certificate_of_another_authority_reaches_nothing(start: Start) -> None:
    coordinator = start()
    folder = coordinator.folder
    other = Authority.found(folder / "other.pem", folder / "other.key", at=datetime.now(UTC))
    status, body = coordinator.ask(fleet_paths()[0], caller=coordinator.seen_by("evil", other))
    assert status == 400
    assert b"SSL certificate error" in body
    assert Filter.seen == []


def test_a_revoked_certificate_reaches_nothing(start: Start) -> None:
    coordinator = start()
    caller = coordinator.seen_by("north")
    assert caller.certificate is not None
    assert coordinator.ask(fleet_paths()[0], caller=caller)[0] == 200
    serial = Filter.seen[-1]["x-sluice-serial"]
    coordinator.proxy.write(coordinator.folder / "proxy", revoked=[serial])
    pid = int((coordinator.folder / "proxy" / "nginx.pid").read_text(encoding="ascii"))
    os.kill(pid, signal.SIGHUP)
    deadline = time.monotonic() + 5
    while coordinator.ask(fleet_paths()[0], caller=caller)[0] != 403:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    south = coordinator.seen_by("south")
    assert coordinator.ask(fleet_paths()[0], caller=south)[0] == 200


def test_a_caller_cannot_set_the_headers_by_which_the_filter_knows_it(start: Start) -> None:
    coordinator = start()
    forged = {"X-Sluice-Plant": "south", "X-Sluice-Serial": "00", "X-Sluice-Proxy": "forged"}
    coordinator.ask(fleet_paths()[0], headers=forged | {"X_Sluice_Plant": "south"})
    seen = Filter.seen[-1]
    assert seen["x-sluice-plant"] == "north"
    assert seen["x-sluice-proxy"] == "5ec2e7"
    assert seen["x-sluice-serial"] not in ("", "00")
    assert "south" not in seen.values()


def test_a_serial_number_is_written_as_nginx_writes_it(start: Start) -> None:
    coordinator = start()
    for _ in range(4):
        issued = coordinator.authority.client("west", at=datetime.now(UTC))
        certificate, key = coordinator.folder / "west.pem", coordinator.folder / "west.key"
        write_certificate(issued, certificate=certificate, key=key)
        coordinator.ask(fleet_paths()[0], caller=coordinator.seen_by("west"))
        assert Filter.seen[-1]["x-sluice-serial"] == issued.serial


def test_a_proxy_that_asks_for_no_certificate_is_found_out(start: Start) -> None:
    coordinator = start(
        edit=lambda text: text.replace(
            "ssl_verify_client on", "ssl_verify_client optional"
        ).replace('if ($plant = "") { return 403; }', "")
    )
    with pytest.raises(RefusedError, match="serves a caller without a certificate"):
        demand_unexposed(coordinator.endpoint, coordinator.ports)


def test_a_proxy_that_goes_past_the_filter_is_found_out(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = start()
    monkeypatch.setitem(globals(), "FILTER_HEADER", "x-flower")  # as Flower itself would answer
    with pytest.raises(RefusedError, match="past the filter"):
        demand_unexposed(coordinator.endpoint, coordinator.ports)


def test_a_proxy_that_passes_everything_on_is_found_out(start: Start) -> None:
    coordinator = start(
        edit=lambda text: text.replace(
            "location / {", "location /v1/ { include fleet.conf; }\n        location / {"
        )
    )
    with pytest.raises(RefusedError, match="the proxy forwards /v1/control/start-run"):
        demand_unexposed(coordinator.endpoint, coordinator.ports)


def test_flower_on_all_addresses_is_found_out(start: Start) -> None:
    coordinator = start(bind="0.0.0.0")
    assert listening_addresses(coordinator.link_port) == ("0.0.0.0",)
    with pytest.raises(RefusedError, match="Flower listens on 0.0.0.0"):
        demand_unexposed(coordinator.endpoint, coordinator.ports)


def test_a_proxy_that_is_not_there_is_found_out(start: Start) -> None:
    coordinator = start()
    absent = replace(coordinator.endpoint, port=free_port())
    with pytest.raises(RefusedError, match="does not answer"):
        demand_unexposed(absent, coordinator.ports)


def answer(path: str, *, status: int = 404, by: str = "") -> _ProxyAnswer:
    return _ProxyAnswer(
        path=path, status=status, closed=by == "the proxy", filtered=by == "the filter"
    )


@pytest.fixture
def replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The check of a machine that answers as it should, except in what a test changes."""

    def check(**changes: object) -> None:
        def asked(_: Endpoint, paths: tuple[str, ...], __: object) -> list[_ProxyAnswer]:
            by = {FORBIDDEN: "the proxy", fleet_paths(): "the filter"}[paths]
            return [answer(path, by="" if path in changes.values() else by) for path in paths]

        for name, found in {
            "listening_addresses": lambda _: changes.get("listens", ("127.0.0.1", "::1")),
            "own_addresses": lambda _: ("192.0.2.7",),
            "_answers": lambda _, port: port == changes.get("answers"),
            "_asked": asked,
            "_asked_by_strangers": lambda _: [changes.get("stranger", answer("/", status=400))],
        }.items():
            monkeypatch.setattr(exposure, name, found)
        endpoint = Endpoint(host="plants.test", port=8_443, authority=tmp_path)
        demand_unexposed(endpoint, {"Flower": 9_092, "the filter": 9_093})

    return check


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"listens": ("127.0.0.1", "0.0.0.0")}, "Flower listens on 0.0.0.0:9092 "),
        ({"answers": 9_093}, "the port of the filter answers at 192.0.2.7:9093"),
        ({"forwards": "/health"}, "the proxy forwards /health "),
        ({"forwards": fleet_paths()[-1]}, f"forwards {fleet_paths()[-1]} past the filter"),
        ({"stranger": answer("/", by="the proxy")}, "serves a caller without a certificate"),
        ({"stranger": answer("/", by="the filter")}, "serves a caller without a certificate"),
        ({"stranger": answer("/", status=399)}, "serves a caller without a certificate"),
    ],
)
def test_every_exposure_alone_is_found_out(
    replaced: Callable[..., None], changes: dict[str, object], found: str
) -> None:
    replaced()
    with pytest.raises(RefusedError, match=found):
        replaced(**changes)


def test_own_addresses_leave_loopback_out() -> None:
    assert not any(a.startswith("127.") or a == "::1" for a in own_addresses("localhost"))


def test_a_folder_that_nginx_would_misread_is_refused(tmp_path: Path) -> None:
    here = tmp_path / "with space"
    proxy = Proxy(
        host="127.0.0.1",
        port=1,
        filter_port=2,
        certificate=here,
        key=here,
        authority=here,
        secret="5ec2e7",
    )
    with pytest.raises(SettingError, match="nginx cannot take the path"):
        proxy.write(here)
