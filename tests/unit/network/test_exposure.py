"""Plants reach the fleet's calls through the proxy, and nothing else; a federation checks that."""

import http.client
import http.server
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sluice.errors import RefusedError, SettingError
from sluice.network.wire.certificates import issue
from sluice.network.wire.exposure import (
    FORBIDDEN,
    Endpoint,
    demand_unexposed,
    listening_addresses,
    own_addresses,
)
from sluice.network.wire.proxy import Proxy, fleet_paths

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


class Flower(http.server.BaseHTTPRequestHandler):
    """Replaces a SuperLink: answers every call, as a SuperLink without accounts does."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.path)))
        self.end_headers()
        self.wfile.write(self.path.encode())

    do_GET = do_POST  # noqa: N815 - the name http.server calls

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Coordinator:
    folder: Path
    proxy: Proxy

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(host=self.proxy.host, port=self.proxy.port, authority=self.proxy.authority)

    def ask(self, path: str, method: str = "POST", body: bytes = b"x") -> tuple[int, bytes]:
        trust = ssl.create_default_context(cafile=str(self.proxy.authority))
        line = http.client.HTTPSConnection(
            self.proxy.host, self.proxy.port, timeout=5, context=trust
        )
        line.request(method, path, body=body if method == "POST" else None)
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

    def begin(bind: str = "127.0.0.1", edit: Callable[[str], str] = str) -> Coordinator:
        paths = {name: tmp_path / f"{name}.pem" for name in ("authority", "server", "key")}
        issue("127.0.0.1", **paths, at=datetime.now(UTC))
        proxy = Proxy(
            host="127.0.0.1",
            port=free_port(),
            link_port=free_port(),
            certificate=paths["server"],
            key=paths["key"],
            authority=paths["authority"],
        )
        flower = http.server.ThreadingHTTPServer((bind, proxy.link_port), Flower)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(paths["server"], paths["key"])
        flower.socket = context.wrap_socket(flower.socket, server_side=True)
        threading.Thread(target=flower.serve_forever, daemon=True).start()
        stops.extend((flower.server_close, flower.shutdown))
        written = proxy.write(tmp_path / "proxy")
        written.write_text(edit(written.read_text(encoding="utf-8")), encoding="utf-8")
        nginx = subprocess.Popen([str(NGINX), "-c", written, "-p", written.parent])
        stops.extend((nginx.wait, nginx.terminate))
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", proxy.port)) == 0:
                    break
            time.sleep(0.05)
        return Coordinator(tmp_path, proxy)

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
    demand_unexposed(coordinator.endpoint, coordinator.proxy.link_port)


def test_a_proof_passes_where_nginx_may_write_nothing(start: Start) -> None:
    coordinator = start()  # the folder is its owner's alone; nginx started by root is another user
    assert coordinator.ask("/v1/fleet/push-object", body=bytes(4 << 20))[0] == 200


def test_an_oversized_message_is_refused_at_the_proxy(start: Start) -> None:
    coordinator = start()
    trust = ssl.create_default_context(cafile=str(coordinator.proxy.authority))
    line = http.client.HTTPSConnection("127.0.0.1", coordinator.proxy.port, context=trust)
    line.putrequest("POST", "/v1/fleet/push-object")
    line.putheader("Content-Length", str(64 << 20))
    line.endheaders()
    assert line.getresponse().status == 413
    line.close()


def test_a_proxy_that_passes_everything_on_is_found_out(start: Start) -> None:
    coordinator = start(
        edit=lambda text: text.replace(
            "location / {", "location /v1/ { include fleet.conf; }\n        location / {"
        )
    )
    with pytest.raises(RefusedError, match="the proxy forwards /v1/control/start-run"):
        demand_unexposed(coordinator.endpoint, coordinator.proxy.link_port)


def test_flower_on_all_addresses_is_found_out(start: Start) -> None:
    coordinator = start(bind="0.0.0.0")
    assert listening_addresses(coordinator.proxy.link_port) == ("0.0.0.0",)
    with pytest.raises(RefusedError, match="Flower listens on 0.0.0.0"):
        demand_unexposed(coordinator.endpoint, coordinator.proxy.link_port)


def test_a_proxy_that_is_not_there_is_found_out(start: Start) -> None:
    coordinator = start()
    absent = Endpoint(host="127.0.0.1", port=free_port(), authority=coordinator.proxy.authority)
    with pytest.raises(RefusedError, match="does not answer"):
        demand_unexposed(absent, coordinator.proxy.link_port)


def test_own_addresses_leave_loopback_out() -> None:
    assert not any(a.startswith("127.") or a == "::1" for a in own_addresses("localhost"))


def test_a_folder_that_nginx_would_misread_is_refused(tmp_path: Path) -> None:
    here = tmp_path / "with space"
    proxy = Proxy(host="127.0.0.1", port=1, link_port=2, certificate=here, key=here, authority=here)
    with pytest.raises(SettingError, match="nginx cannot take the path"):
        proxy.write(here)
