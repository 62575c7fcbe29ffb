"""The self-check: a federation does not run while Flower's control interface can be reached.

It connects as an outsider would: to Flower's port at every address of this machine except loopback,
and through the proxy with several spellings of the path. Any answer from Flower, even a refusal, is
exposure. Only the 404 that the proxy marks as its own passes the check.
"""

import http.client
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sluice.errors import RefusedError

__all__ = ["Endpoint", "demand_unexposed", "listening_addresses", "own_addresses"]

TIMEOUT_S = 3.0
FORBIDDEN = (
    "/v1/control/start-run",
    "/v1/control/list-nodes",
    "/v1/runtime/acquire-task",
    "/v1/fleet/../control/list-nodes",
    "/v1/fleet/%2e%2e/control/list-nodes",
    "/v1/fleet/pull-messages/../../control/list-nodes",
    "//v1/control/list-nodes",
    "/v1//control/list-nodes",
    "/health",
    "/docs",
    "/openapi.json",
)
CLOSED = "404, closed"
"""The proxy's own answer: its status, and the value of its header X-Sluice-Door."""
LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address where plants connect, and the certificate they trust."""

    host: str
    port: int
    authority: Path


def demand_unexposed(endpoint: Endpoint, link_port: int) -> None:
    """Raise if the control or the runtime interface can be reached from outside."""
    exposures = [
        f"Flower listens on {address}:{link_port}"
        for address in listening_addresses(link_port)
        if address not in LOOPBACK
    ]
    exposures += [
        f"Flower's port answers at {address}:{link_port}"
        for address in own_addresses(endpoint.host)
        if _answers(address, link_port)
    ]
    exposures += [
        f"the proxy forwards {path} ({answer})"
        for path, answer in _through(endpoint, FORBIDDEN)
        if answer != CLOSED
    ]
    if exposures:
        more = f" (and {len(exposures) - 1} more)" if exposures[1:] else ""
        raise RefusedError(
            f"{exposures[0]}{more}: anyone who reaches it can run code at every plant. Bind Flower "
            "to 127.0.0.1 and use the proxy configuration that 'sluice coordinator init' wrote"
        )


def own_addresses(host: str) -> tuple[str, ...]:
    """Return the addresses that this machine knows of itself, except loopback."""
    addresses: dict[str, None] = {}
    for name in (host, socket.gethostname()):
        try:
            entries = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except OSError:
            continue
        addresses |= {str(entry[4][0]): None for entry in entries}
    for family, far in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        # Connecting a datagram socket sends nothing; it only selects the local address.
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((far, 9))
            except OSError:
                continue
            addresses[str(probe.getsockname()[0])] = None
    return tuple(a for a in addresses if a not in LOOPBACK and not a.startswith("127."))


def listening_addresses(port: int) -> tuple[str, ...]:
    """Return the addresses on which a port of this machine listens; empty without /proc/net."""
    addresses: dict[str, None] = {}
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        try:
            lines = Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            local, state = line.split()[1], line.split()[3]
            address, _, local_port = local.partition(":")
            if state == "0A" and int(local_port, 16) == port:
                addresses[_address(address, family)] = None
    return tuple(addresses)


def _address(text: str, family: socket.AddressFamily) -> str:
    """Read an address of /proc/net: words of four bytes, each in the machine's byte order."""
    raw = bytes.fromhex(text)
    words = [raw[at : at + 4][::-1] for at in range(0, len(raw), 4)]
    return socket.inet_ntop(family, b"".join(words))


def _answers(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=TIMEOUT_S):
            return True
    except OSError:
        return False


def _through(endpoint: Endpoint, paths: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Request each path from the proxy, spelt as given, and yield its answers."""
    trust = ssl.create_default_context(cafile=str(endpoint.authority))
    for path in paths:
        for method in ("GET", "POST"):
            connection = http.client.HTTPSConnection(
                endpoint.host, endpoint.port, timeout=TIMEOUT_S, context=trust
            )
            try:
                connection.request(method, path, body=b"" if method == "POST" else None)
                answer = connection.getresponse()
                yield path, f"{answer.status}, {answer.getheader('X-Sluice-Door', 'open')}"
            except OSError as error:
                raise RefusedError(
                    f"the proxy does not answer at {endpoint.host}:{endpoint.port} ({error}); "
                    "start it before the federation, or let 'sluice coordinator run' start it"
                ) from None
            finally:
                connection.close()
