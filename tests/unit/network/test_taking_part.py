"""A plant's node presents its certificate, checks the coordinator's, and bounds what it reads."""

import http.server
import logging
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from flwr.proto.fleet_pb2 import ActivateNodeResponse

from sluice.errors import SettingError
from sluice.network.plant import participation
from sluice.network.plant.participation import take_part
from sluice.network.wire.node import FleetConnection, Node
from sluice.network.wire.objects import HEAD_BYTES, OversizedError


@dataclass
class Authority:
    """An authority that signs a server's and clients' certificates."""

    folder: Path
    name: str
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def __post_init__(self) -> None:
        self._write(self.name, self.key, ca=True)

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}.pem"

    def issue(self, name: str) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        self._write(name, key, ca=False)
        raw = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (self.folder / f"{name}.key").write_bytes(raw)
        return self.folder / f"{name}.pem", self.folder / f"{name}.key"

    def _write(self, name: str, key: ec.EllipticCurvePrivateKey, *, ca: bool) -> None:
        now = datetime.now(UTC)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .add_extension(
                identifier
                if ca
                else x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
                critical=False,
            )
            .sign(self.key, hashes.SHA256())
        )
        (self.folder / f"{name}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))


@dataclass
class Proxy:
    """A coordinator's proxy that demands client certificates, and what it answers."""

    port: int = 0
    body: bytes = ActivateNodeResponse(node_id=7).SerializeToString()
    announced: int | None = None  # the length that it announces; None: the body's
    pause_s: float = 0.0  # between two bytes
    sent: int = 0
    seen: list[str] = field(default_factory=list)  # the names of the clients
    calls: list[str] = field(default_factory=list)

    def handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert isinstance(self.connection, ssl.SSLSocket)
                raw = self.connection.getpeercert(binary_form=True)
                subject = x509.load_der_x509_certificate(raw or b"").subject
                proxy.seen.append(subject.rfc4514_string())
                proxy.calls.append(self.path.rpartition("/")[2])
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                length = proxy.announced if proxy.announced is not None else len(proxy.body)
                if length >= 0:
                    self.send_header("Content-Length", str(length))
                self.end_headers()
                step = 1 if proxy.pause_s else 65_536
                for at in range(0, len(proxy.body), step):
                    self.wfile.write(proxy.body[at : at + step])
                    self.wfile.flush()
                    proxy.sent += step
                    time.sleep(proxy.pause_s)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Say nothing."""

        return Handler


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that close the connection."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"), "authority")


@pytest.fixture
def proxy(authority: Authority) -> Iterator[Proxy]:
    answering = Proxy()
    server = Server(("127.0.0.1", 0), answering.handler())
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(*authority.issue("server"))
    trust.load_verify_locations(authority.path)
    trust.verify_mode = ssl.CERT_REQUIRED
    server.socket = trust.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    answering.port = int(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield answering
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def node(authority: Authority, proxy: Proxy, tmp_path: Path) -> Node:
    key = tmp_path / "node.key"
    private = ec.generate_private_key(ec.SECP384R1())
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    certificate, certificate_key = authority.issue("north")
    return Node(
        proxy=f"localhost:{proxy.port}",
        authority=authority.path,
        key=key,
        certificate=certificate,
        certificate_key=certificate_key,
    )


Connect = Callable[[Node], FleetConnection]


@pytest.fixture
def connected() -> Iterator[Connect]:
    with ExitStack() as stack:

        def connect(node: Node) -> FleetConnection:
            return stack.enter_context(closing(FleetConnection(node)))

        yield connect


def test_a_node_presents_the_certificate_of_its_plant(
    connected: Connect, node: Node, proxy: Proxy
) -> None:
    fleet = connected(node)
    fleet.sign_in()
    fleet.sign_off()
    assert set(proxy.seen) == {"CN=north"}


def test_a_node_without_a_certificate_is_turned_away_by_a_proxy_that_demands_one(
    connected: Connect, node: Node, proxy: Proxy
) -> None:
    fleet = connected(replace(node, certificate=None, certificate_key=None))
    with pytest.raises(httpx.TransportError):
        fleet.sign_in()
    fleet.sign_off()
    assert not proxy.seen


def test_a_node_does_not_talk_to_a_coordinator_of_another_authority(
    connected: Connect, node: Node, proxy: Proxy, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "impostor")
    fleet = connected(replace(node, authority=other.path))
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        fleet.sign_in()
    fleet.sign_off()
    assert not proxy.seen


def test_a_node_remembers_the_number_that_flower_gave_it(
    connected: Connect, node: Node, proxy: Proxy, tmp_path: Path
) -> None:
    remembering = replace(node, memory=tmp_path / "node.number")
    connected(remembering).sign_in()
    connected(remembering).sign_in()
    assert (tmp_path / "node.number").read_text(encoding="ascii") == "7\n"
    assert proxy.calls == ["activate-node", "send-node-heartbeat"]


def test_a_node_whose_number_is_unreadable_signs_in_as_new(
    connected: Connect, node: Node, proxy: Proxy, tmp_path: Path
) -> None:
    (tmp_path / "node.number").write_text("seven", encoding="ascii")
    connected(replace(node, memory=tmp_path / "node.number")).sign_in()
    assert proxy.calls == ["activate-node"]


def test_a_response_that_announces_too_many_bytes_is_not_read(
    connected: Connect, node: Node, proxy: Proxy
) -> None:
    proxy.body, proxy.announced = b"x" * 65_536, 400 * 2**20
    fleet = connected(node)
    with pytest.raises(OversizedError, match=f"more than {HEAD_BYTES:,} bytes"):
        fleet.sign_in()


def test_a_response_without_end_is_read_only_up_to_its_limit(
    connected: Connect, node: Node, proxy: Proxy
) -> None:
    proxy.body, proxy.announced = b"x" * 64 * 2**20, -1  # it announces no length
    fleet = connected(node)
    with pytest.raises(OversizedError):
        fleet.sign_in()
    fleet.sign_off()
    assert proxy.sent < 16 * 2**20  # what fits into the buffers of the sockets


def test_a_response_that_drips_does_not_hold_up_the_node(
    connected: Connect, node: Node, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.network.wire.node.CALL_S", 0.5)
    proxy.body, proxy.pause_s = b"x" * 1_000, 0.1
    began = time.monotonic()
    with pytest.raises(httpx.ReadTimeout, match="took more than"):
        connected(node).sign_in()
    assert time.monotonic() - began < 5


def test_a_key_that_cannot_be_read_is_named(node: Node, tmp_path: Path) -> None:
    broken = tmp_path / "broken.key"
    broken.write_bytes(b"no key")
    with pytest.raises(SettingError, match=r"cannot read the node's key .*broken\.key"):
        FleetConnection(replace(node, key=broken))


def test_a_clock_that_is_wrong_is_reported_once_a_minute(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Silent:
        def answer(self, question: bytes) -> bytes:
            raise AssertionError(question)

    # The proxy does not answer the first question about its time.
    answers = chain([None], repeat(3_600.0))
    monkeypatch.setattr(participation, "seconds_ahead", lambda _: next(answers))
    monkeypatch.setattr("sluice.network.wire.node.RECONNECT_S", 0.05)
    unreachable = replace(node, proxy="localhost:1")
    with caplog.at_level(logging.WARNING):
        take_part(unreachable, Silent(), seconds=1.0)
    assert caplog.text.count("this machine's clock is 3,600 s ahead") == 1
    assert caplog.text.count("lost the coordinator") == 1  # the same trouble is reported once
