"""Proofs about drawn rows in one process: commitments are logged before rows are drawn.

The federation's folder gets the keys (keys/) and a log that `sluice audit-log verify` verifies.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sluice.admission import Policy, policy_hash
from sluice.attestation.log import Log, LogOpened, LogTerms
from sluice.attestation.messages import (
    APPROVALS,
    COMMITS,
    REGISTRATIONS,
    Challenge,
    SigningKey,
    approve,
)
from sluice.attestation.protocol import Agreement, Committed, KeyFolder, ProtocolCoordinator
from sluice.attestation.systems import Circuit
from sluice.attestation.systems.sampled import Sampling, make_sampled
from sluice.errors import SettingError, VerificationError
from sluice.federation.admission_check import AdmissionCheck, Decision
from sluice.federation.messages import Attestation, Reply
from sluice.federation.proofs import Attestor
from sluice.invariants import RuleSet, rules_hash

__all__ = ["DrawnRows", "LoggedGate"]

KEYS = "keys"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoggedGate:
    """A coordinator with its log: it enrols, logs commitments, draws rows, and then verifies.

    One process has every role, including an approver of the clients' rules.
    """

    protocol: ProtocolCoordinator
    agreement: Agreement
    approver: SigningKey
    clock: Callable[[], datetime]

    @classmethod
    def begin(
        cls, path: Path, federation: str, agreement: Agreement, *, clock: Callable[[], datetime]
    ) -> "LoggedGate":
        """Create a log with new keys."""
        coordinator, approver = SigningKey.generate(), SigningKey.generate()
        opened = LogOpened(
            federation=federation,
            coordinator=coordinator.public,
            approvers=(approver.public,),
            terms=LogTerms(history=True),  # one process studies records of any time
        )
        log = Log.create(path, opened, coordinator, at=clock())
        return cls(
            protocol=ProtocolCoordinator(log=log),
            agreement=agreement,
            approver=approver,
            clock=clock,
        )

    def challenge(self, committed: Committed) -> Challenge:
        """Steps 1 to 3: enrol the client, log its commitment, then draw and log the nonce."""
        registration = committed.plant.registration()
        enrolled = self.protocol.register(
            REGISTRATIONS.write(registration),
            self.agreement,
            approvals=[APPROVALS.write(approve(registration.content.rules, self.approver))],
            at=self.clock(),
        )
        received = enrolled.receive(COMMITS.write(committed.message), at=self.clock())
        return received.challenge(at=self.clock())

    def decide(self, client: str, shown: Reply | None) -> Decision:
        """Step 5: admit a client that proves the drawn rows of its logged commitment."""
        if not isinstance(shown, Attestation):
            return Decision(admitted=False, reasons=("it sent no proof",))
        try:
            enrolled = self.protocol.enrolled(client, self.agreement)
            received = enrolled.receive(shown.commit, at=self.clock())
            received.attest(shown.proof, at=self.clock())
        except VerificationError as error:
            return Decision(admitted=False, reasons=(f"its proof fails step {error.step}",))
        return Decision(admitted=True, rows=received.commit.content.rows)

    def decide_all(self, shown: Mapping[str, Reply | None]) -> Mapping[str, Decision]:
        """Verify the proofs one after the other: each takes milliseconds and a log entry."""
        return {client: self.decide(client, reply) for client, reply in shown.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnRows:
    """Proofs of `sampled` with keys and log in a folder; existing keys are used again."""

    folder: Path
    sampling: Sampling
    clock: Callable[[], datetime]

    def sides(
        self, federation: str, rules: RuleSet, policy: Policy, *, rows_max: int
    ) -> tuple[Attestor, AdmissionCheck]:
        """Make keys, as the coordinator, and create a log."""
        folder = self._keys(rules, policy, rows_max=rows_max)
        system, circuit = folder.system, folder.circuit
        agreement = Agreement(system=system, circuit=circuit)
        gate = LoggedGate.begin(self._log(), federation, agreement, clock=self.clock)
        attest = Attestor(
            federation=federation, system=system, circuit=circuit, challenge=gate.challenge
        )
        return attest, gate

    def _keys(self, rules: RuleSet, policy: Policy, *, rows_max: int) -> KeyFolder:
        path = self.folder / KEYS
        if not path.exists():
            system = make_sampled(path, rules, policy, self.sampling, rows_max=rows_max)
            return KeyFolder.create(path, system, rules, policy, rows_max=rows_max)
        keys = KeyFolder.open(path)
        if not self._fits(keys.circuit, rules, policy, rows_max):
            raise SettingError(
                f"{path} is for other rules, another policy, or other draws; choose another folder"
            )
        return keys

    def _fits(self, circuit: Circuit, rules: RuleSet, policy: Policy, rows_max: int) -> bool:
        parameters = dict(circuit.parameters)
        return (
            (rules_hash(circuit.rules), policy_hash(circuit.policy))
            == (rules_hash(rules), policy_hash(policy))
            and circuit.rows_max == rows_max
            and parameters.get("samples") == self.sampling.samples
            and parameters.get("violating_max") == self.sampling.violations
        )

    def _log(self) -> Path:
        """Return the path of the next log; each call of `sides` gets its own."""
        taken = len(list(self.folder.glob("log*.jsonl")))
        return self.folder / (f"log-{taken + 1}.jsonl" if taken else "log.jsonl")
