"""Who may read the page: requests that name a known host and, if there is one, carry the token.

A page of another server can make a browser send requests to this one under another host name (DNS
rebinding). Such requests are refused by their host.
"""

from dataclasses import dataclass
from hmac import compare_digest

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["LOOPBACK", "TokenGuard"]

LOOPBACK = ("127.0.0.1", "localhost")
COOKIE = "sluice-token"


@dataclass(frozen=True, slots=True)
class TokenGuard:
    """Lets a request pass that carries the token: as a bearer token, or in the page's cookie.

    A browser opens `/?token=...` once. The answer sets the cookie and removes the token from the
    address.
    """

    app: ASGIApp
    token: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self._is(bearer) or self._is(request.cookies.get(COOKIE, "")):
            await self.app(scope, receive, send)
            return
        await self._answer(request)(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        if not self._is(request.query_params.get("token", "")):
            text = "give the dashboard's token: open /?token=TOKEN, or send it as a bearer token\n"
            return PlainTextResponse(text, status_code=401)
        found = RedirectResponse(request.url.path, status_code=303)
        found.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
        return found

    def _is(self, given: str) -> bool:
        return compare_digest(given.encode(), self.token.encode())
