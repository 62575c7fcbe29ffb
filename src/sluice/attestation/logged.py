"""A commitment in the log, and what its client was registered with there."""

from dataclasses import dataclass

from sluice.attestation.messages import Commit, Registration
from sluice.attestation.signed import Signed

__all__ = ["Logged", "under"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """A commitment in the log: its place, and the registration that was in force there."""

    index: int
    registration: Registration
    commit: Signed[Commit]


def under(commit: Commit, registration: Registration) -> bool:
    """Whether a commitment is for what its client is registered with."""
    return (
        commit.client == registration.client
        and commit.federation == registration.federation
        and commit.system == registration.system
        and commit.circuit == registration.circuit
        and commit.rules == registration.rules
        and commit.policy == registration.policy
    )
