"""The interface of proof systems: commit, prove, verify.

A system has no secrets and no state. The protocol around it (clients, signatures, log, context) is
the same for all systems. A system gets a batch, a salt and a context, and no client name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sluice.admission import Policy
from sluice.errors import VerificationError
from sluice.invariants import RuleSet
from sluice.telemetry import Record

__all__ = ["SALT_BYTES", "Circuit", "ProofClaim", "System", "each_alone", "refuse_statistic"]

SALT_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """What is proven about a batch: the statement that rules, policy and largest batch define.

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
    statistic: str | None = None  # the sums of the rows that a proof is bound to, by name
    statistic_bits: int = 0  # of soundness of the statistic by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofClaim:
    """A proof, and the committed batch that it must verify for."""

    commitment: bytes
    rows: int
    context: bytes
    proof: bytes = field(repr=False)
    statistic: bytes | None = field(default=None, repr=False)  # for a circuit that binds one


class System(Protocol):
    """A proof system: it commits to, proves and verifies one batch under one circuit."""

    @property
    def name(self) -> str:
        """Its value for `--system`."""
        ...

    @property
    def challenged(self) -> bool:
        """Whether a nonce, drawn after the commitment, decides what is proven about the batch."""
        ...

    def largest_proof(self, circuit: Circuit) -> int:
        """Return the largest proof under a circuit, in bytes; a longer one is refused unread."""
        ...

    def circuit(self, rules: RuleSet, policy: Policy, *, rows_max: int) -> Circuit:
        """Derive the circuit; raise `InputError` for rules or policies that it cannot state."""
        ...

    def commit(self, batch: Record, circuit: Circuit, *, salt: bytes) -> bytes:
        """Return the hiding commitment: a function of the encoded batch and the 32-byte salt.

        It may raise `RefusedError` for a batch that can never satisfy the circuit.
        """
        ...

    def prove(
        self,
        batch: Record,
        circuit: Circuit,
        *,
        salt: bytes,
        context: bytes,
        statistic: bytes | None = None,
    ) -> bytes:
        """Prove that the batch in `commit(batch, circuit, salt=salt)` satisfies the circuit.

        A circuit that binds a statistic needs that of the batch.

        The proof absorbs the 32-byte context and verifies under no other one. A batch that does
        not satisfy the circuit raises `RefusedError`.
        """
        ...

    def verify(  # noqa: PLR0913 - a claim and its parts
        self,
        circuit: Circuit,
        *,
        commitment: bytes,
        rows: int,
        context: bytes,
        proof: bytes,
        statistic: bytes | None = None,
    ) -> None:
        """Return if the proof is valid; raise `VerificationError` otherwise.

        Step "5.7" means that the proof does not have the shape the circuit demands, "5.8" that it
        is invalid. No bytes raise any other exception.
        """
        ...

    def verify_many(
        self, circuit: Circuit, claims: Sequence[ProofClaim]
    ) -> tuple[VerificationError | None, ...]:
        """Verify the proofs of one circuit; return for each None or the error of `verify`.

        Each proof has its own result: an invalid proof does not affect the others.
        """
        ...


def refuse_statistic(statistic: bytes | None) -> None:
    """Refuse a statistic, for systems that bind none: it must not pass as one that was proven."""
    if statistic is not None:
        raise VerificationError("5.7", "the circuit takes no statistic")


def each_alone(
    system: System, circuit: Circuit, claims: Sequence[ProofClaim]
) -> tuple[VerificationError | None, ...]:
    """Verify proofs one after the other, for systems that gain nothing from one call."""
    return tuple(_refusal(system, circuit, claim) for claim in claims)


def _refusal(system: System, circuit: Circuit, claim: ProofClaim) -> VerificationError | None:
    try:
        system.verify(
            circuit,
            commitment=claim.commitment,
            rows=claim.rows,
            context=claim.context,
            proof=claim.proof,
            statistic=claim.statistic,
        )
    except VerificationError as refused:
        return refused
    return None
