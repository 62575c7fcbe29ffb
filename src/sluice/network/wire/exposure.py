"""The self-check: a federation does not run while Flower's control interface can be reached.

It connects as an outsider would: to the ports of Flower and of the filter at every address of this
machine except loopback, and through the proxy with several spellings of the path. Any answer from
Flower, even a refusal, is exposure. Only the 404 that the proxy marks as its own passes the check.

It also checks that the proxy serves no caller without a certificate, and that a plant's calls reach
the filter. The filter refuses the coordinator's certificate and marks its refusal.
"""

import http.client
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from sluice.errors import RefusedError, SettingError
from sluice.network.wire.proxy import FILTER_HEADER, fleet_paths

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
CLOSED = "closed"
"""The value of the header X-Sluice-Proxy in the proxy's own 404."""
LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address where plants connect, the authority they trust, and the caller's certificate."""

    host: str
    port: int
    authority: Path
    certificate: Path | None = None
    certificate_key: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return the TLS settings of a connection to the proxy."""
        trust = ssl.create_default_context(cafile=str(self.authority))
        if self.certificate is not None:
            try:
                trust.load_cert_chain(self.certificate, self.certificate_key)
            except OSError as error:  # ssl.SSLError is one
                raise SettingError(
                    f"the certificate {self.certificate} cannot be used ({error}); install a new "
                    "one ('rotate')"
                ) from None
        return trust


def demand_unexposed(endpoint: Endpoint, ports: Mapping[str, int]) -> None:
    """Raise if an interface behind the proxy can be reached from outside, or past the filter.

    `ports` are the ports that must be reachable on loopback only, by the name of the program.
    """
    exposures = [
        f"{program} listens on {address}:{port}"
        for program, port in ports.items()
        for address in listening_addresses(port)
        if address not in LOOPBACK
    ]
    exposures += [
        f"the port of {program} answers at {address}:{port}"
        for program, port in ports.items()
        for address in own_addresses(endpoint.host)
        if _answers(address, port)
    ]
    exposures += [
        f"the proxy forwards {each.path} ({each})"
        for each in _asked(endpoint, FORBIDDEN, ("GET", "POST"))
        if not each.closed
    ]
    exposures += [
        f"the proxy forwards {each.path} past the filter ({each})"
        for each in _asked(endpoint, fleet_paths(), ("POST",))
        if not each.filtered
    ]
    exposures += [
        f"the proxy serves a caller without a certificate ({each})"
        for each in _asked_by_strangers(endpoint)
        if each.closed or each.filtered or each.status < http.client.BAD_REQUEST
    ]
    if exposures:
        more = f" (and {len(exposures) - 1} more)" if exposures[1:] else ""
        raise RefusedError(
            f"{exposures[0]}{more}: anyone who reaches Flower can run code at every plant. Bind "
            "Flower to 127.0.0.1 and use the proxy configuration that 'sluice coordinator init' "
            "wrote"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProxyAnswer:
    path: str
    status: int
    closed: bool  # the proxy's own answer to what it does not forward
    filtered: bool  # the filter's own refusal

    def __str__(self) -> str:
        return f"status {self.status}"


def _asked(
    endpoint: Endpoint, paths: Iterable[str], methods: Iterable[str]
) -> Iterator[_ProxyAnswer]:
    """Request each path from the proxy, spelt as given, and yield its answers."""
    trust = endpoint.context()
    for path, method in product(paths, methods):
        try:
            yield _ask(endpoint, trust, path, method)
        except OSError as error:
            raise RefusedError(
                f"the proxy does not answer at {endpoint.host}:{endpoint.port} ({error}); "
                "start it before the federation, or let 'sluice coordinator run' start it"
            ) from None


def _asked_by_strangers(endpoint: Endpoint) -> Iterator[_ProxyAnswer]:
    """Request paths without a certificate, and yield the answers; a broken connection is none."""
    stranger = replace(endpoint, certificate=None)
    for path in ("/", *fleet_paths()):
        with suppress(OSError):
            yield _ask(stranger, stranger.context(), path, "POST")


def _ask(endpoint: Endpoint, trust: ssl.SSLContext, path: str, method: str) -> _ProxyAnswer:
    connection = http.client.HTTPSConnection(
        endpoint.host, endpoint.port, timeout=TIMEOUT_S, context=trust
    )
    try:
        connection.request(method, path, body=b"" if method == "POST" else None)
        answer = connection.getresponse()
        marker, passed = answer.getheader("X-Sluice-Proxy"), answer.getheader(FILTER_HEADER)
        return _ProxyAnswer(
            path=path,
            status=answer.status,
            closed=(answer.status, marker) == (http.client.NOT_FOUND, CLOSED),
            filtered=passed == "refused",
        )
    finally:
        connection.close()
