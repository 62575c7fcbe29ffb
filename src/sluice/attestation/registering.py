"""Step 1: who may be registered, and with whose approval."""

from collections.abc import Iterable

from sluice.attestation.entries import ClientRegistered, LogOpened
from sluice.attestation.heads import COORDINATOR
from sluice.attestation.messages import Registration
from sluice.attestation.signed import content_digest
from sluice.errors import VerificationError

__all__ = ["check_registered"]

STEP = "1"


def check_registered(
    body: ClientRegistered, opened: LogOpened, clients: Iterable[Registration]
) -> None:
    """Raise a `VerificationError` unless the client may stand in the log with these rules."""
    registration = body.registration.content
    body.registration.verify(registration.key, step=STEP)
    if registration.federation != opened.federation or registration.client == COORDINATOR:
        raise VerificationError(
            STEP,
            f"{registration.client!r} cannot register with {registration.federation!r} in the log "
            f"of {opened.federation!r}",
        )
    for other in clients:
        if (other.client == registration.client) != (other.key == registration.key):
            raise VerificationError(
                STEP,
                f"client {other.client!r} is registered; a name has one key and a key one name",
            )
    known, needed = len(_approvers(body, opened)), 2 if body.looser else 1
    if known < needed:
        raise VerificationError(
            STEP,
            f"the rules of {registration.client!r} have {known} approvals; "
            f"{'looser rules need' if body.looser else 'they need'} {needed}",
        )


def _approvers(body: ClientRegistered, opened: LogOpened) -> set[str]:
    """Return the known approvers who signed this very registration, as loose as it is."""
    found = set()
    for signed in body.approvals:
        approval = signed.content
        signed.verify(approval.approver, step=STEP)
        told = (approval.registration, approval.looser)
        if told == (content_digest(body.registration.content), body.looser):
            found.add(approval.approver)
    return found & set(opened.approvers)
