"""A webhook: one HTTP POST per event, tried again until the server answers with 2xx.

An event arrives at least once. `Idempotency-Key` is the same each time, so that a server can tell
a repetition. A bearer token comes from the environment, never from the command line.
"""

import os
import urllib.error
import urllib.request
from typing import final

from sluice.watch.sinks.sink import SinkError
from sluice.watch.store import Outgoing

__all__ = ["TOKEN", "Webhook"]

TIMEOUT_S = 10.0
TOKEN = "SLUICE_WEBHOOK_TOKEN"  # noqa: S105 - the variable's name


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST would become a GET, and could carry the token to another server."""

    def redirect_request(self, *_: object) -> None:
        """Follow nothing."""


@final
class Webhook:
    """Posts events to a server."""

    beats = False

    def __init__(self, address: str, *, name: str) -> None:
        self.name = name
        self._address = address
        self._opener = urllib.request.build_opener(_NoRedirects())

    def deliver(self, event: Outgoing) -> None:
        """Post one event."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": event.key}
        token = os.environ.get(TOKEN)
        if token:
            headers["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(  # noqa: S310 - http and https only, see `opened_sink`
            self._address, data=event.content.encode(), headers=headers, method="POST"
        )
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                answer.read(1 << 16)
        except urllib.error.HTTPError as error:
            error.close()
            raise SinkError(f"{self.name}: the server answers {error.code}") from None
        except OSError as error:
            reason = getattr(error, "reason", None) or error.strerror or error
            raise SinkError(f"{self.name}: {reason}") from None

    def beat(self, text: str) -> None:
        """Post nothing: a webhook is for alarms."""

    def close(self) -> None:
        """Nothing stays open."""
