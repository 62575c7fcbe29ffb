"""What a plant checks before it shares: the helper's log, not the coordinator's word."""

from sluice.attestation.hidden.ledger import STEP, HelperLedger
from sluice.attestation.messages import Submission
from sluice.errors import VerificationError

__all__ = ["demand_group"]


def demand_group(ledger: HelperLedger, submission: Submission, *, malicious: int) -> None:
    """Raise unless the helper's log has this epoch, with a group as large as the plant agreed to.

    `malicious` is the number that the federation's terms name. A smaller one in the epoch would
    allow smaller groups.
    """
    epoch, key = ledger.epoch, submission.commit.content.key
    if epoch is None or epoch.epoch != submission.epoch:
        raise VerificationError(STEP, f"the helper has not opened epoch {submission.epoch}")
    if epoch.malicious < malicious:
        raise VerificationError(
            STEP,
            f"the epoch withstands {epoch.malicious} malicious members; the terms say {malicious}",
        )
    if ledger.key_of(submission.client) != key:
        raise VerificationError(STEP, "the helper knows this plant under another key")
    group = ledger.groups[ledger.group_of(submission.client)]
    if len(group) < malicious + 2:
        raise VerificationError(STEP, f"a group of {len(group)} members shows too much")
    if submission.sealed[16:48].hex() != epoch.settings:
        raise VerificationError(STEP, "the epoch sums other settings")
