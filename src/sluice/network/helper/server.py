"""The helper's server: signed documents in, lines of its log out, over TLS.

    GET  /log?from=N   lines of the helper's log, from entry N on
    POST /epochs       the coordinator opens an epoch
    POST /shares       a plant hands in its share
    POST /releases     the coordinator asks for the sum of a whole group; the answer is that sum
    POST /retirements  the coordinator gives up a group

Every request is a signed document, and the signature decides who asks. A refusal is answered with
its reason. The log is public: it holds no share.
"""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sluice.attestation.hidden import Helper
from sluice.attestation.messages import EPOCHS, RELEASES, RETIREMENTS, SUBMISSIONS, Form
from sluice.errors import SluiceError
from sluice.network.helper.folder import HelperFolder
from sluice.network.ports import demand_free_port

__all__ = ["serve_helper"]

PATIENCE_S = 30
"""How long a connection may be silent."""
CONNECTIONS = 64
"""How many requests are served at the same time; others wait."""


@contextmanager
def serve_helper(folder: HelperFolder, *, host: str | None = None) -> Iterator[int]:
    """Serve a helper in a thread until the block ends; yield its port."""
    card = folder.card
    listen = card.host if host is None else host
    if card.port:
        demand_free_port(
            listen,
            card.port,
            whose="the helper",
            remedy="stop the other server",
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(folder.certificate, folder.tls_key)
    helper = Helper(folder.state, folder.key)
    try:
        server = _Server((listen, card.port), _handler(helper, threading.Lock()))
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        thread = threading.Thread(target=server.serve_forever, name="helper", daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
    finally:
        helper.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = CONNECTIONS

    def __init__(self, address: tuple[str, int], handler: type["_Handler"]) -> None:
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        self._expire = handler.expire
        super().__init__(address, handler)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection, if there is room."""
        with self._free:
            super().process_request_thread(request, client_address)

    def service_actions(self) -> None:
        """Check deadlines, between requests."""
        self._expire()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections that break are no errors of the helper."""


class _Handler(BaseHTTPRequestHandler):
    helper: Helper
    lock: threading.Lock
    timeout = PATIENCE_S
    protocol_version = "HTTP/1.0"

    @classmethod
    def expire(cls) -> None:
        """Retire incomplete groups after their deadline."""
        with cls.lock:
            cls.helper.expire(at=datetime.now(UTC))

    def do_GET(self) -> None:
        """Answer with lines of the log."""
        parts = urlsplit(self.path)
        start = parse_qs(parts.query).get("from", ["0"])[0]
        if parts.path != "/log" or not start.isascii() or not start.isdigit():
            self._answer(HTTPStatus.NOT_FOUND, b"ask for /log?from=N\n")
            return
        with self.lock:
            lines = self.helper.lines(int(start))
        self._answer(HTTPStatus.OK, b"".join(line + b"\n" for line in lines))

    def do_POST(self) -> None:
        """Take a signed document."""
        now = datetime.now(UTC)

        def epoch(document: Any) -> None:
            self.helper.open_epoch(document, at=now)

        def share(document: Any) -> None:
            self.helper.take(document, at=now)

        def release(document: Any) -> bytes:
            return self.helper.release(document, at=now)[1]

        def retirement(document: Any) -> None:
            self.helper.retire(document, at=now)

        routes: dict[str, tuple[Form[Any], Callable[[Any], bytes | None]]] = {
            "/epochs": (EPOCHS, epoch),
            "/shares": (SUBMISSIONS, share),
            "/releases": (RELEASES, release),
            "/retirements": (RETIREMENTS, retirement),
        }
        if self.path not in routes:
            self._answer(HTTPStatus.NOT_FOUND, b"there is no such request\n")
            return
        form, act = routes[self.path]
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > form.largest:
            self._answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"the document is too large\n")
            return
        raw = self.rfile.read(int(length))
        try:
            document = form.read(raw)
            with self.lock:
                content = act(document)
        except SluiceError as refused:
            self._answer(HTTPStatus.FORBIDDEN, f"{refused}\n".encode())
            return
        self._answer(HTTPStatus.OK, content or b"")

    def log_message(self, *_: object) -> None:
        """The helper's own log says what happened; requests are not printed."""

    def _answer(self, status: HTTPStatus, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _handler(helper: Helper, lock: threading.Lock) -> type[_Handler]:
    return type("_Bound", (_Handler,), {"helper": helper, "lock": lock})
