"""The gate that verifies proofs: clients send a commitment and a proof, and no reading."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from sluice.admission import Policy
from sluice.attestation.messages import (
    COMMITS,
    PROOFS,
    Challenge,
    Commit,
    SigningKey,
    StatisticLimits,
)
from sluice.attestation.protocol import (
    Committed,
    Examined,
    Pinned,
    Registered,
    Verifier,
    verify_together,
)
from sluice.attestation.systems import Circuit, System, circuit_for
from sluice.attestation.systems.full import Full, StatisticName
from sluice.errors import RefusedError, VerificationError
from sluice.federation.admission_check import AdmissionCheck, Decision
from sluice.federation.messages import Attestation, Reply
from sluice.invariants import RuleSet
from sluice.telemetry import Record

__all__ = ["Attestor", "Keyless", "ProofGate", "Proofs"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attestor:
    """The clients' side in one process: each has a key of its own and proves its own batch.

    If the system draws rows, `challenge` submits a commitment and returns the nonce. A commitment
    that is refused (`VerificationError`) is not proven.
    """

    federation: str
    system: System
    circuit: Circuit
    keys: dict[str, SigningKey] = field(default_factory=dict, repr=False)
    challenge: Callable[[Committed], Challenge] | None = None

    def __call__(self, client: str, batch: Record) -> Attestation | None:
        """Commit and prove; return None if the batch or its commitment is refused."""
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
            commit=COMMITS.write(committed.message),
            proof=PROOFS.write(proven.message),
            statistic=committed.statistic,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProofGate:
    """Verifies attestations; it learns only the failed step of a client that it refuses.

    Without a log it cannot check that a commitment was logged before and is used once (steps 5.3,
    5.4). One process does not need these checks; a coordinator between sites does.

    If the circuit binds a statistic, the decision on an admitted client holds it, verified.
    """

    federation: str
    system: System
    circuit: Circuit
    limits: StatisticLimits | None = None  # of a batch whose statistic is shared

    def decide(self, client: str, shown: Reply | None) -> Decision:
        """Admit a client whose proof is valid."""
        return self.decide_all({client: shown})[client]

    def decide_all(self, shown: Mapping[str, Reply | None]) -> Mapping[str, Decision]:
        """Admit the clients whose proofs are valid; all proofs are verified in one call."""
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
                examined[client] = verifier.examine(
                    reply.proof, reply.commit, statistic=reply.statistic
                )
            except VerificationError as refused:
                decided[client] = _failing(refused.step)
        outcomes = verify_together(tuple(examined.values()))
        for (client, each), outcome in zip(examined.items(), outcomes, strict=True):
            if isinstance(outcome, VerificationError):
                decided[client] = _failing(outcome.step)
            elif (each.commit.client, each.commit.federation) != (client, self.federation):
                decided[client] = _failing("5.2")
            else:
                decided[client] = self._admitted(each.commit, each.claim.statistic)
        return {client: decided[client] for client in shown}

    def _admitted(self, commit: Commit, statistic: bytes | None) -> Decision:
        if self.limits is not None:
            objection = self.limits.objection(commit.rows, commit.interval)
            if objection:
                return Decision(admitted=False, reasons=(objection,))
        return Decision(admitted=True, rows=commit.rows, statistic=statistic)


def _failing(step: str) -> Decision:
    return Decision(admitted=False, reasons=(f"its proof fails step {step}",))


@runtime_checkable
class Proofs(Protocol):
    """How batches are proven: makes both sides of a gate once the longest batch is known."""

    def sides(
        self, federation: str, rules: RuleSet, policy: Policy, *, rows_max: int
    ) -> tuple[Attestor, AdmissionCheck]:
        """Return the clients' side, and the admission check that verifies its proofs."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyless:
    """Proofs of a system that needs no keys and draws no rows."""

    system: System
    limits: StatisticLimits | None = None  # of a batch whose statistic is shared

    @classmethod
    def bound(cls, limits: StatisticLimits) -> "Keyless":
        """Return proofs of `full` that bind the statistic of the detector `moments`."""
        return cls(system=Full(binds=StatisticName.MOMENTS), limits=limits)

    def sides(
        self, federation: str, rules: RuleSet, policy: Policy, *, rows_max: int
    ) -> tuple[Attestor, AdmissionCheck]:
        """Derive the circuit; nothing else has to be agreed on."""
        circuit = circuit_for(self.system, rules, policy, rows_max=rows_max)
        attest = Attestor(federation=federation, system=self.system, circuit=circuit)
        gate = ProofGate(
            federation=federation, system=self.system, circuit=circuit, limits=self.limits
        )
        return attest, gate
