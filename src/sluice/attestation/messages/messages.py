"""The messages between plant and coordinator. Each is a document; all but the challenge are signed.

No message has a field for a reading, a residual or a reason. A message describes a batch by its
commitment, its number of rows, the time it covers, and the proof.
"""

import secrets
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import ConfigDict

from sluice.attestation.messages.context import Context, Interval
from sluice.attestation.messages.documents import (
    STRICT,
    Blob,
    Commitment,
    Count,
    Form,
    Hex32,
    Name,
    OptionalHash,
    OptionalOperator,
)
from sluice.attestation.messages.signing import Signed, content_digest
from sluice.attestation.packing import digest
from sluice.attestation.systems import Circuit

__all__ = [
    "CHALLENGES",
    "COMMITS",
    "PROOFS",
    "REGISTRATIONS",
    "Challenge",
    "Commit",
    "Proof",
    "Registration",
    "RegistrationTerms",
    "attestation_id",
    "context_of",
    "draw_challenge",
    "largest_proof_document",
]

ENVELOPE = 4_096
"""Maximum bytes of a proof document besides the proof."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationTerms:
    """What the coordinator requires of a client's commitments."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    rows_min: Count
    rows_max: Count
    stride_us: Count  # microseconds from row to row
    overlaps: bool  # whether the same time may be attested twice

    @classmethod
    def of(cls, circuit: Circuit, *, overlaps: bool = False) -> "RegistrationTerms":
        """Return what a circuit, its policy and its rules require."""
        return cls(
            rows_min=circuit.policy.least_rows(circuit.rules),
            rows_max=min(circuit.policy.rows_max, circuit.rows_max),
            stride_us=round(circuit.rules.stride_s * 1e6),
            overlaps=overlaps,
        )

    def objection(self, rows: int, interval: Interval) -> str:
        """Return why a batch of this size and interval is refused; empty if it is not refused.

        Rows are at least half a stride apart; closer rows are not rows of one record.
        """
        if not self.rows_min <= rows <= self.rows_max:
            return f"it has {rows:,} rows; the policy takes {self.rows_min:,} to {self.rows_max:,}"
        if 2 * interval.microseconds < (rows - 1) * self.stride_us:
            return (
                f"{rows:,} rows of {self.stride_us / 1e6:g} s each do not fit between "
                f"{interval.start} and {interval.end}"
            )
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """Step 1: a client, its key, and the rules and circuit that its batches are proven with."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "registration"

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    federation: Name
    client: Name
    key: Hex32
    system: Name
    circuit: Hex32
    rules: Hex32
    policy: Hex32
    terms: RegistrationTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Step 2: a hiding commitment to a batch, how many rows it has and what time it covers."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "commit"

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    federation: Name
    client: Name
    key: Hex32
    system: Name
    circuit: Hex32
    rules: Hex32
    policy: Hex32
    commitment: Commitment
    rows: Count
    interval: Interval
    statistic: OptionalHash = None  # of the statistic that the proof is bound to
    signed_off: OptionalOperator = None  # who agreed, at the plant, to share the statistic


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """Step 3: a nonce drawn after the commitment was logged. It is logged too, and not signed."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    federation: Name
    client: Name
    commitment: Commitment
    nonce: Hex32

    def answers(self, commit: Commit) -> bool:
        """Whether it was drawn for this commitment."""
        named = (self.federation, self.client, self.commitment)
        return named == (commit.federation, commit.client, commit.commitment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Step 4: the proof and the commitment it answers. It does not contain the context."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "proof"

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    federation: Name
    client: Name
    system: Name
    circuit: Hex32
    commitment: Commitment
    proof: Blob


REGISTRATIONS: Form[Signed[Registration]] = Form.of(
    Signed[Registration], "registration", largest=8_192
)
COMMITS: Form[Signed[Commit]] = Form.of(Signed[Commit], "commitment", largest=8_192)
CHALLENGES: Form[Challenge] = Form.of(Challenge, "challenge", largest=2_048)
PROOFS: Form[Signed[Proof]] = Form.of(Signed[Proof], "proof", largest=ENVELOPE)


def draw_challenge(commit: Commit) -> Challenge:
    """Draw a nonce for a commitment from the operating system."""
    return Challenge(
        federation=commit.federation,
        client=commit.client,
        commitment=commit.commitment,
        nonce=secrets.token_bytes(32).hex(),
    )


def largest_proof_document(proof_bytes: int) -> int:
    """Return the size limit of a proof document whose proof has at most `proof_bytes` bytes."""
    return ENVELOPE + 4 * (proof_bytes // 3 + 1)


def context_of(commit: Commit, circuit: Circuit, challenge: Challenge | None = None) -> Context:
    """Recompute the context from the commitment message, the nonce and the pinned circuit."""
    return Context(
        protocol=commit.protocol,
        system=circuit.system,
        federation=commit.federation,
        client_key=bytes.fromhex(commit.key),
        rules=bytes.fromhex(commit.rules),
        policy=bytes.fromhex(commit.policy),
        circuit=bytes.fromhex(circuit.identity),
        parameters=circuit.parameters,
        rows_max=circuit.rows_max,
        commitment=bytes.fromhex(commit.commitment),
        rows=commit.rows,
        interval=commit.interval,
        nonce=bytes.fromhex(challenge.nonce) if challenge else b"",
        statistic=bytes.fromhex(commit.statistic or ""),
    )


def attestation_id(commit: Commit, proof: bytes) -> str:
    """Return the identifier of a batch attestation in tokens and log."""
    return digest("attestation", bytes.fromhex(content_digest(commit)), proof).hex()
