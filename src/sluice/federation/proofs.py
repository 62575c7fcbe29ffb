"""The gate by proof: clients show a commitment and a proof, and no reading."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sluice.admission import Policy
from sluice.attestation.messages import COMMITS, PROOFS, Challenge, SigningKey
from sluice.attestation.protocol import (
    Committed,
    Examined,
    Pinned,
    Registered,
    Verifier,
    verify_together,
)
from sluice.attestation.systems import Circuit, System, circuit_for
from sluice.errors import RefusedError, VerificationError
from sluice.federation.admission_check import AdmissionCheck, Decision
from sluice.federation.messages import Attestation, Reply
from sluice.invariants import RuleSet
from sluice.telemetry import Record

__all__ = ["Attestor", "Keyless", "ProofGate", "Proofs"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attestor:
    """The clients' side in one process: each has a key of its own and proves its own batch.

    Where rows are drawn, `challenge` hands a commitment in and brings the nonce back; a commitment
    that is not taken (`VerificationError`) is not proven.
    """

    federation: str
    system: System
    circuit: Circuit
    keys: dict[str, SigningKey] = field(default_factory=dict, repr=False)
    challenge: Callable[[Committed], Challenge] | None = None

    def __call__(self, client: str, batch: Record) -> Attestation | None:
        """Commit and prove; what the circuit refuses cannot be proven, and nothing is sent."""
        registered = Registered(
            federation=self.federation,
            client=client,
            key=self.keys.setdefault(client, SigningKey.generate()),
            system=self.system,
            circuit=self.circuit,
        )
        try:
            committed = registered.commit(batch)
            if self.challenge is None:
                proven = committed.prove(batch)
            else:
                proven = committed.challenged(self.challenge(committed)).prove(batch)
        except (RefusedError, VerificationError):
            return None
        return Attestation(
            commit=COMMITS.write(committed.message), proof=PROOFS.write(proven.message)
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProofGate:
    """Verifies attestations; of a client it refuses it learns the step that failed, and no more.

    Without a log nothing says that a commitment was made before, or is used once (steps 5.3, 5.4):
    one process has no need of it, a coordinator between sites has.
    """

    federation: str
    system: System
    circuit: Circuit

    def decide(self, client: str, shown: Reply | None) -> Decision:
        """Admit who proves."""
        return self.decide_all({client: shown})[client]

    def decide_all(self, shown: Mapping[str, Reply | None]) -> Mapping[str, Decision]:
        """Admit who proves; all proofs are verified in one call."""
        verifier = Verifier(
            system=self.system, circuit=self.circuit, pinned=Pinned.of(self.circuit)
        )
        decided: dict[str, Decision] = {}
        examined: dict[str, Examined] = {}
        for client, reply in shown.items():
            if not isinstance(reply, Attestation):
                decided[client] = Decision(admitted=False, reasons=("it sent no proof",))
                continue
            try:
                examined[client] = verifier.examine(reply.proof, reply.commit)
            except VerificationError as refused:
                decided[client] = _failing(refused.step)
        found = verify_together(tuple(examined.values()))
        for (client, each), outcome in zip(examined.items(), found, strict=True):
            if isinstance(outcome, VerificationError):
                decided[client] = _failing(outcome.step)
            elif (each.commit.client, each.commit.federation) != (client, self.federation):
                decided[client] = _failing("5.2")
            else:
                decided[client] = Decision(admitted=True)
        return {client: decided[client] for client in shown}


def _failing(step: str) -> Decision:
    return Decision(admitted=False, reasons=(f"its proof fails step {step}",))


class Proofs(Protocol):
    """How batches are proven at a gate: both sides, once the longest batch is known."""

    def sides(
        self, federation: str, rules: RuleSet, policy: Policy, *, rows_max: int
    ) -> tuple[Attestor, AdmissionCheck]:
        """Return what clients prove with, and the door that verifies it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyless:
    """Proofs of a system that needs no keys and draws no rows."""

    system: System

    def sides(
        self, federation: str, rules: RuleSet, policy: Policy, *, rows_max: int
    ) -> tuple[Attestor, AdmissionCheck]:
        """Derive the circuit; there is nothing else to agree on."""
        circuit = circuit_for(self.system, rules, policy, rows_max=rows_max)
        attest = Attestor(federation=federation, system=self.system, circuit=circuit)
        return attest, ProofGate(federation=federation, system=self.system, circuit=circuit)
