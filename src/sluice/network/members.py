"""Plants that have joined, as the coordinator's store knows them."""

from dataclasses import dataclass

__all__ = ["SHADOW", "Member"]

SHADOW = "shadow"
"""The ground on which a plant takes part without a proof while the gate is in shadow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A plant that has joined."""

    name: str
    node_key: bytes
    rules: str  # the rules file's text
    failed: int  # rounds in a row without a part in them
    suspended: bool
    removed: bool
    seen: int  # entries of the log that it has countersigned
    step: str | None  # at which its batch was refused last
    attestation: str | None  # under which it takes part
    excuse: str | None  # why without a proof: SHADOW, or a waiver's digest
    renews: bool  # it says that another batch waits to be attested

    @property
    def active(self) -> bool:
        """Whether it is asked at all."""
        return not (self.suspended or self.removed)

    @property
    def state(self) -> str:
        """What operators read of it; of a refusal the step and no more."""
        if not self.active:
            return "removed" if self.removed else "suspended"
        if self.attestation is None:
            return f"left out at step {self.step or '4'}"
        if self.excuse is None:
            return "attested"
        if self.excuse == SHADOW:
            return "in shadow: would have been refused at step 4"
        return f"by waiver {self.excuse[:12]}, without a proof"
