"""Step 3: which commitments are challenged, and that each is challenged once."""

from sluice.attestation.messages import Challenge, Commit
from sluice.errors import VerificationError

__all__ = ["check_challenged", "needs_challenge"]

STEP = "3"
CHALLENGED = ("sampled",)
"""Systems by name whose commitments are challenged before they are attested."""


def needs_challenge(commit: Commit) -> bool:
    """Whether rows of this commitment are drawn."""
    return commit.system in CHALLENGED


def check_challenged(challenge: Challenge, commit: Commit, *, again: bool) -> None:
    """Raise a `VerificationError` unless the nonce may follow this logged commitment.

    A commitment has one nonce: who dislikes the rows gets no others.
    """
    if not challenge.answers(commit) or not needs_challenge(commit):
        raise VerificationError(STEP, f"{commit.client!r} awaits no such challenge")
    if again:
        raise VerificationError(STEP, "the commitment has its challenge already")
