"""A plant gets a warning about a clock that Flower does not accept."""

import ssl
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from sluice.network.wire.certificates import Authority, write_certificate
from sluice.network.wire.clocks import complaint, seconds_ahead
from sluice.network.wire.exposure import Endpoint


class Proxy(BaseHTTPRequestHandler):
    """Answers as a proxy whose clock is an hour behind."""

    def do_HEAD(self) -> None:
        self.send_response(404)
        self.end_headers()

    def date_time_string(self, timestamp: float | None = None) -> str:
        assert timestamp is None
        return f"{datetime.now(UTC) - timedelta(hours=1):%a, %d %b %Y %H:%M:%S GMT}"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


def test_a_clock_an_hour_ahead_is_seen(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    authority = Authority.found(tmp_path / "a.pem", tmp_path / "a.key", at=now)
    for name, issued in (
        ("s", authority.server("127.0.0.1", at=now)),
        ("north", authority.client("north", at=now)),
    ):
        certificate, key = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
        write_certificate(issued, certificate=certificate, key=key)
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(tmp_path / "s.pem", tmp_path / "s.key")
    trust.load_verify_locations(authority.bundle)
    trust.verify_mode = ssl.CERT_REQUIRED  # as the proxy
    with HTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        proxy.socket = trust.wrap_socket(proxy.socket, server_side=True)
        answering = threading.Thread(target=proxy.handle_request)
        answering.start()
        endpoint = Endpoint(
            host="127.0.0.1",
            port=proxy.server_port,
            authority=authority.bundle,
            certificate=tmp_path / "north.pem",
            certificate_key=tmp_path / "north.key",
        )
        ahead = seconds_ahead(endpoint)
        answering.join()
    assert ahead == pytest.approx(3_600, abs=3)
    assert "3,60" in complaint(ahead)
    assert "ahead of the coordinator's" in complaint(ahead)
    assert seconds_ahead(endpoint) is None  # the proxy is gone; another check reports that


@pytest.mark.parametrize(
    ("ahead", "wrong"),
    [
        (0.0, ""),
        (4.9, ""),
        (5.0, "5 s ahead of"),
        (-304.9, ""),
        (-305.0, "305 s behind"),
        (-400.0, "400 s behind"),
        (None, ""),
    ],
)
def test_only_what_flower_refuses_is_complained_of(ahead: float | None, wrong: str) -> None:
    assert wrong in complaint(ahead)
    assert bool(complaint(ahead)) == bool(wrong)
