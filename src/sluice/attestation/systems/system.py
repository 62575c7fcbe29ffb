"""The seam behind which proof systems stand: commit, prove, verify.

A system holds no secrets and no state. The protocol around it (clients, signatures, log, context)
is the same for all of them; a system sees a batch, a salt and a context, and nobody's name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sluice.admission import Policy
from sluice.errors import VerificationError
from sluice.invariants import RuleSet
from sluice.telemetry import Record

__all__ = ["SALT_BYTES", "Circuit", "ProofClaim", "System", "each_alone"]

SALT_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """What is proven of a batch: the statement that rules, policy and largest batch fix.

    `identity` is a SHA-256, as hex, over everything that decides which proofs verify: the derived
    integers, the constraints and every parameter. A verifier derives it from rules and policy and
    never takes it from a proof.
    """

    system: str
    identity: str  # 64 lower-case hex digits
    parameters: tuple[tuple[str, int], ...]  # by name: field, blow-up, queries, ...; sorted
    rows_max: int  # the largest batch
    proven_bits: int  # of soundness; 0 where rows are revealed, or a set-up must be trusted
    columns: int
    constraints: int
    rules: RuleSet = field(repr=False)
    policy: Policy = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofClaim:
    """A proof, and the committed batch that it is to hold for."""

    commitment: bytes
    rows: int
    context: bytes
    proof: bytes = field(repr=False)


class System(Protocol):
    """A proof system: what it commits to, proves and verifies is one batch under one circuit."""

    @property
    def name(self) -> str:
        """What `--system` calls it."""
        ...

    @property
    def challenged(self) -> bool:
        """Whether a nonce, drawn after the commitment, decides what is proven of the batch."""
        ...

    @property
    def largest_proof(self) -> int:
        """No proof of this system has more bytes; a longer one is refused unread."""
        ...

    def circuit(self, rules: RuleSet, policy: Policy, *, rows_max: int) -> Circuit:
        """Derive the circuit; rules or policies it cannot state are an `InputError`."""
        ...

    def commit(self, batch: Record, circuit: Circuit, *, salt: bytes) -> bytes:
        """Return the hiding commitment: a function of the encoded batch and the 32-byte salt.

        A batch that could never satisfy the circuit may be a `RefusedError` here already.
        """
        ...

    def prove(self, batch: Record, circuit: Circuit, *, salt: bytes, context: bytes) -> bytes:
        """Prove that the batch in `commit(batch, circuit, salt=salt)` satisfies the circuit.

        The 32-byte context is absorbed, so that the proof verifies under no other one. A batch
        that does not satisfy the circuit is a `RefusedError`.
        """
        ...

    def verify(
        self, circuit: Circuit, *, commitment: bytes, rows: int, context: bytes, proof: bytes
    ) -> None:
        """Return where the proof holds, and raise `VerificationError` otherwise.

        Step "5.7" is a proof that has not the shape the circuit demands, "5.8" one that fails.
        Whatever the bytes are, nothing else is raised.
        """
        ...

    def verify_many(
        self, circuit: Circuit, claims: Sequence[ProofClaim]
    ) -> tuple[VerificationError | None, ...]:
        """Verify the proofs of one circuit: for each none, or the refusal that `verify` raises.

        Every proof is answered for by itself: one that fails changes nothing about the others.
        """
        ...


def each_alone(
    system: System, circuit: Circuit, claims: Sequence[ProofClaim]
) -> tuple[VerificationError | None, ...]:
    """Verify proofs one after the other, for systems that gain nothing by taking them together."""
    return tuple(_refusal(system, circuit, claim) for claim in claims)


def _refusal(system: System, circuit: Circuit, claim: ProofClaim) -> VerificationError | None:
    try:
        system.verify(
            circuit,
            commitment=claim.commitment,
            rows=claim.rows,
            context=claim.context,
            proof=claim.proof,
        )
    except VerificationError as refused:
        return refused
    return None
