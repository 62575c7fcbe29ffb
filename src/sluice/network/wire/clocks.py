"""Checks whether a plant's clock is close enough to its coordinator's.

Flower's nodes sign the time with each call. A SuperLink refuses times that are a few seconds in its
future or minutes in its past. It answers only "unauthenticated", so the plant checks by itself.
"""

import http.client
import time
from email.utils import parsedate_to_datetime

from sluice.network.wire.exposure import Endpoint

__all__ = ["complaint", "seconds_ahead"]

TIMEOUT_S = 5.0
MOST_AHEAD_S = 5.0
MOST_BEHIND_S = 305.0


def seconds_ahead(endpoint: Endpoint) -> float | None:
    """Return how far this clock is ahead of the proxy's; None if the proxy does not answer."""
    connection = http.client.HTTPSConnection(
        endpoint.host, endpoint.port, timeout=TIMEOUT_S, context=endpoint.context()
    )
    try:
        connection.request("HEAD", "/")
        date = connection.getresponse().getheader("Date")
        return None if date is None else time.time() - parsedate_to_datetime(date).timestamp()
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def complaint(ahead_s: float | None) -> str:
    """Return a warning about a clock that Flower refuses; an empty string otherwise."""
    if ahead_s is None or -MOST_BEHIND_S < ahead_s < MOST_AHEAD_S:
        return ""
    how = f"{abs(ahead_s):,.0f} s {'ahead of' if ahead_s > 0 else 'behind'}"
    return (
        f"this machine's clock is {how} the coordinator's; Flower refuses a node that is more than "
        f"{MOST_AHEAD_S:.0f} s ahead or {MOST_BEHIND_S:.0f} s behind: set the clock (NTP)"
    )
