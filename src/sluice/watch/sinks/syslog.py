"""Syslog (RFC 5424) over UDP, TCP or a socket file; the message is a CEF line.

UDP and socket files confirm nothing. Over TCP, each message ends with a line feed (RFC 6587). So
an event arrives at least once over TCP, and at most once over UDP.
"""

import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from typing import final

from sluice.watch.sinks.cef import cef_line
from sluice.watch.sinks.sink import SinkError
from sluice.watch.store import Outgoing

__all__ = ["Syslog"]

FACILITY = 4  # security
LEVELS = {"high": 2, "medium": 4, "low": 5}  # critical, warning, notice
TIMEOUT_S = 5.0


@final
class Syslog:
    """Sends events to a syslog server."""

    beats = False

    def __init__(self, kind: str, address: tuple[str, int] | str, *, version: str) -> None:
        place = address if isinstance(address, str) else f"{address[0]}:{address[1]}"
        self.name = f"syslog+{kind}:{place}"
        self._kind = kind
        self._address = address
        self._version = version
        self._host = socket.gethostname() or "-"
        self._socket: socket.socket | None = None

    def deliver(self, event: Outgoing) -> None:
        """Send one message."""
        line = cef_line(event, version=self._version)
        severity = next(level for word, level in LEVELS.items() if f"cat={word}" in line)
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        text = (
            f"<{FACILITY * 8 + severity}>1 {now} {self._host} sluice {os.getpid()} alarm - {line}"
        )
        data = text.encode()
        try:
            self._send(data + b"\n" if self._kind == "tcp" else data)
        except OSError as error:
            self.close()
            raise SinkError(f"{self.name}: {error.strerror or error}") from None

    def _send(self, data: bytes) -> None:
        if self._socket is None:
            self._socket = self._connected()
        elif self._kind == "tcp":
            self._demand_open(self._socket)
        self._socket.sendall(data)

    def _connected(self) -> socket.socket:
        if isinstance(self._address, str):
            made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        elif self._kind == "tcp":
            return socket.create_connection(self._address, timeout=TIMEOUT_S)
        else:
            family, kind, protocol, _, _ = socket.getaddrinfo(
                *self._address, type=socket.SOCK_DGRAM
            )[0]
            made = socket.socket(family, kind, protocol)
        made.settimeout(TIMEOUT_S)
        made.connect(self._address)
        return made

    @staticmethod
    def _demand_open(connection: socket.socket) -> None:
        """Raise if the server has closed the connection: a write would still succeed once."""
        connection.setblocking(False)
        try:
            with suppress(BlockingIOError):
                if connection.recv(1) == b"":
                    raise ConnectionResetError("the server has closed the connection")
        finally:
            connection.settimeout(TIMEOUT_S)

    def beat(self, text: str) -> None:
        """Send nothing: security monitoring wants alarms."""

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
