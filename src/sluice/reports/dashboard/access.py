"""Who may read the page: requests that name a known host and, if there is one, carry the token.

A page of another server can make a browser send requests to this one under another host name (DNS
rebinding). Such requests are refused by their host.
"""

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any

from fastapi import Request
from fastapi.responses import PlainTextResponse, RedirectResponse, Response

from sluice.errors import SettingError

__all__ = ["LOOPBACK", "Guard", "demand_hosts"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
"""The interface of web servers in Python (ASGI)."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "sluice-token"
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-")


def demand_hosts(names: Iterable[str]) -> frozenset[str]:
    """Return host names as requests write them; a pattern, a port or an address of many raises."""
    hosts = set()
    for name in names:
        host = name.lower().removeprefix("[").removesuffix("]")
        try:
            ipaddress.ip_address(host)
        except ValueError:
            if not host or set(host) - LETTERS:
                raise SettingError(
                    f"{name!r} is not a host name; give the name or address under which browsers "
                    "open the page, without port and without '*'"
                ) from None
        hosts.add(host)
    return frozenset(hosts)


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets a request pass that names one of the hosts and, if there is a token, carries it.

    A request carries the token as a bearer token or in the page's cookie. A browser opens
    `/?token=...` once. The answer sets the cookie and removes the token from the address.
    """

    app: Application
    hosts: frozenset[str]
    token: str | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        answer = self._refusal(Request(scope)) if scope["type"] == "http" else _NOT_HTTP
        await (self.app if answer is None else answer)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        """Return what a request gets instead of the page; None if it may have the page."""
        if _name_of(request.headers.get("host", "")) not in self.hosts:
            text = "unknown host name: give it to 'sluice dashboard' by --allow-host\n"
            return PlainTextResponse(text, status_code=400)
        if self.token is None:
            return None
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        carried = bearer.strip() if scheme.lower() == "bearer" else ""
        if self._is(carried) or self._is(request.cookies.get(COOKIE, "")):
            return None
        if not self._is(request.query_params.get("token", "")):
            text = "give the dashboard's token: open /?token=TOKEN, or send it as a bearer token\n"
            headers = {"www-authenticate": "Bearer"}
            return PlainTextResponse(text, status_code=401, headers=headers)
        found = RedirectResponse("/", status_code=303)  # never to a path that the request names
        found.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
        return found

    def _is(self, given: str) -> bool:
        return self.token is not None and compare_digest(given.encode(), self.token.encode())


_NOT_HTTP = PlainTextResponse("only HTTP is served\n", status_code=400)


def _name_of(header: str) -> str:
    """Return the name in a `Host` header, without its port; an IPv6 address without brackets."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()
