"""A faulty network between plants and the proxy: it cuts, repeats, delays and reorders calls.

TLS protects calls from the network, so this one has the coordinator's own key, and each plant's
certificate. It receives each call separately and forwards it to the proxy, possibly late or twice.
"""

import http.client
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.plant.folder import PlantFolder
from sluice.network.terms import JoinRequest, read_document, write_document
from sluice.seeding import stream


class Relay:
    """The address at which plants reach the proxy through a faulty network."""

    def __init__(self, site: CoordinatorFolder, plants: list[Path], *, seed: int) -> None:
        self._site = site
        self._plants = {_node_key(folder): PlantFolder(folder) for folder in plants}
        self._random = stream(seed, "relay")
        self._lock = threading.Lock()
        self._arrived = 0
        self._last_passed = 0
        self.cut = False
        self.doubled = 0.0  # the share of calls that arrive twice
        self.latest_s = 0.0  # longest delay of a call
        self.repeated = 0
        self.overtaken = 0

    def ask(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        """Forward a call, late and perhaps twice.

        Of two answers one is returned. If it is the first, the second call was a stray copy. If it
        is the second, the first answer got lost.
        """
        with self._lock:
            self._arrived += 1
            mine, wait = self._arrived, float(self._random.uniform(0.0, self.latest_s or 1e-9))
            twice, stray = self._random.random() < self.doubled, self._random.random() < 0.5
        time.sleep(wait)
        with self._lock:
            self.overtaken += mine < self._last_passed
            self._last_passed = max(mine, self._last_passed)
        answer = self._forward(path, headers, body)
        if twice:
            again = self._forward(path, headers, body)
            self.repeated += 1
            return answer if stray else again
        return answer

    def _forward(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        terms = self._site.terms
        trust = ssl.create_default_context(cafile=str(self._site.authority))
        plant = self._plants[headers["flwr-public-key"]]
        trust.load_cert_chain(plant.certificate, plant.certificate_key)
        line = http.client.HTTPSConnection(terms.host, terms.port, timeout=60, context=trust)
        try:
            line.request("POST", path, body=body, headers=headers)
            answer = line.getresponse()
            return answer.status, answer.getheader("Content-Type", ""), answer.read()
        finally:
            line.close()


def _handler(relay: Relay) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            # The call signs its own content; hop-by-hop headers are not forwarded.
            dropped = {"host", "connection", "content-length", "accept-encoding"}
            headers = {k.lower(): v for k, v in self.headers.items() if k.lower() not in dropped}
            if relay.cut:
                self.close_connection = True
                return
            try:
                status, kind, answer = relay.ask(self.path, headers, body)
            except OSError:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore plants that close the connection."""


@contextmanager
def relayed(site: CoordinatorFolder, plants: list[Path], *, seed: int = 0) -> Iterator[Relay]:
    """Put a relay between these plants' folders and the proxy."""
    relay = Relay(site, plants, seed=seed)
    server = _Server(("127.0.0.1", 0), _handler(relay))
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(site.certificate, site.folder / "private" / "server.key")
    server.socket = trust.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    for folder in plants:
        _point(folder, int(server.server_address[1]))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield relay
    finally:
        with suppress(OSError):
            server.shutdown()
        server.server_close()
        thread.join()


def _node_key(folder: Path) -> str:
    """Return the public key of a plant's node, as its calls show it."""
    request = read_document(JoinRequest, folder / "request.json", private=True)
    return b64encode(request.node_key.encode()).decode()


def _point(folder: Path, port: int) -> None:
    """Point a plant to another port of its coordinator."""
    invitation = PlantFolder(folder).invitation
    moved = replace(invitation, terms=replace(invitation.terms, port=port))
    write_document(moved, folder / "invitation.json", private=True)
