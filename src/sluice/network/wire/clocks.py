"""Whether a plant's clock is near enough to its coordinator's.

Flower's nodes sign the time with each call, and a SuperLink refuses what is a few seconds in its
future or minutes in its past. It says no more than "unauthenticated", so a plant looks for itself.
"""

import http.client
import ssl
import time
from email.utils import parsedate_to_datetime

from sluice.network.wire.exposure import Endpoint

__all__ = ["complaint", "seconds_ahead"]

TIMEOUT_S = 5.0
MOST_AHEAD_S = 5.0
MOST_BEHIND_S = 305.0


def seconds_ahead(endpoint: Endpoint) -> float | None:
    """Return by how much this machine's clock is ahead of the proxy's; None where it is away."""
    trust = ssl.create_default_context(cafile=str(endpoint.authority))
    line = http.client.HTTPSConnection(
        endpoint.host, endpoint.port, timeout=TIMEOUT_S, context=trust
    )
    try:
        line.request("HEAD", "/")
        told = line.getresponse().getheader("Date")
        return None if told is None else time.time() - parsedate_to_datetime(told).timestamp()
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        line.close()


def complaint(ahead_s: float | None) -> str:
    """Say what is wrong with a clock that Flower will not accept; nothing where it will."""
    if ahead_s is None or -MOST_BEHIND_S < ahead_s < MOST_AHEAD_S:
        return ""
    how = f"{abs(ahead_s):,.0f} s {'ahead of' if ahead_s > 0 else 'behind'}"
    return (
        f"this machine's clock is {how} the coordinator's; Flower refuses a node that is more than "
        f"{MOST_AHEAD_S:.0f} s ahead or {MOST_BEHIND_S:.0f} s behind: set the clock (NTP)"
    )
