"""Ports of this machine: a port that another process uses is found before a server starts."""

import errno
import os
import socket
import time

from sluice.errors import SettingError

__all__ = ["demand_free_port"]

LOOK_S = 0.2


def demand_free_port(
    host: str, port: int, *, whose: str, remedy: str, patience_s: float = 0.0
) -> None:
    """Raise if no server can listen at this address; `whose` and `remedy` complete the sentence.

    With patience, wait for the port: the processes of a coordinator that was killed need a moment
    to end.
    """
    deadline = time.monotonic() + patience_s
    while (why := _unusable(host, port)) is not None:
        if why not in (errno.EADDRINUSE, errno.EACCES):
            return  # an address of another machine, or a name: the server itself says so
        if why == errno.EACCES or time.monotonic() >= deadline:
            cause = "another process uses it" if why == errno.EADDRINUSE else os.strerror(why)
            raise SettingError(f"{whose} cannot listen on port {port} at {host}: {cause}; {remedy}")
        time.sleep(LOOK_S)


def _unusable(host: str, port: int) -> int | None:
    """Return why a server cannot listen at an address, as an error number, or None if it can."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as every server does
            probe.bind(address)
            probe.listen(1)
    except OSError as error:  # also a name that does not resolve
        return error.errno or errno.EADDRNOTAVAIL
    return None
