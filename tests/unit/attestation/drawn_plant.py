"""A plant whose rows are drawn: two of at most 64, so that keys are made in a moment."""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from sluice.admission.policy import PaperPolicy
from sluice.attestation.log.chain import Log
from sluice.attestation.log.entries import LogOpened, LogTerms
from sluice.attestation.log.ledger import Ledger
from sluice.attestation.messages.messages import (
    CHALLENGES,
    COMMITS,
    PROOFS,
    REGISTRATIONS,
    Challenge,
)
from sluice.attestation.messages.orders import APPROVALS, approve
from sluice.attestation.messages.signing import SigningKey
from sluice.attestation.protocol.coordinator import (
    Agreement,
    Enrolled,
    ProtocolCoordinator,
    ReceivedBatch,
)
from sluice.attestation.protocol.key_folder import KeyFolder, Pinned
from sluice.attestation.protocol.plant import Committed, Proven, Registered
from sluice.attestation.protocol.verifier import Verification, Verifier
from sluice.attestation.systems.sampled.keys import make_sampled
from sluice.attestation.systems.sampled.system import Sampling
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
HISTORY = LogTerms(history=True)
"""The records are older than the log."""
ROWS = 60
SALT, CONTEXT = bytes(range(32)), b"c" * 32


@cache
def line() -> Record:
    return simulate("line", seed=0, days=8)


@cache
def paper_rules() -> RuleSet:
    return mine(line().rows(0, 4_320), line().rows(4_320, 8_640), profile=Profile.PAPER_WIDE)


def batch(nth: int = 0) -> Record:
    """One of the clean batches, each of its own time."""
    return line().rows(8_640 + nth * ROWS, 8_640 + (nth + 1) * ROWS)


def make_folder(path: Path, *, violations: int = 1) -> KeyFolder:
    rules, sampling = paper_rules(), Sampling(samples=2, violations=violations)
    system = make_sampled(path, rules, PaperPolicy(), sampling, rows_max=64)
    return KeyFolder.create(path, system, rules, PaperPolicy(), rows_max=64)


@dataclass
class Coordinator:
    """A coordinator with its log, and the approver of its plants' rules."""

    log: Log
    key: SigningKey
    approver: SigningKey

    @classmethod
    def at(cls, path: Path, terms: LogTerms = HISTORY) -> "Coordinator":
        key, approver = SigningKey.generate(), SigningKey.generate()
        opened = LogOpened(
            federation="water", coordinator=key.public, approvers=(approver.public,), terms=terms
        )
        return cls(Log.create(path, opened, key, at=NOW), key, approver)

    def approval(self, plant: Registered) -> bytes:
        """The approver signs the plant's rules."""
        return APPROVALS.write(approve(plant.registration().content.rules, self.approver))

    def enrol(
        self, plant: Registered, approval: bytes | None = None, *, again: bool = False
    ) -> Enrolled:
        """Register a plant; `again`: it is registered already, under the same rules."""
        return ProtocolCoordinator(log=self.log).register(
            REGISTRATIONS.write(plant.registration()),
            Agreement(system=plant.system, circuit=plant.circuit),
            approvals=[approval or self.approval(plant)],
            last=plant.circuit.rules if again else None,
            at=NOW,
        )


@dataclass
class SampledRun:
    """A plant that was challenged and has proven, and its coordinator."""

    coordinator: Coordinator
    plant: Registered
    committed: Committed
    received: ReceivedBatch
    challenge: Challenge
    proven: Proven

    @property
    def log(self) -> Log:
        return self.coordinator.log

    @property
    def documents(self) -> tuple[bytes, bytes, bytes]:
        return (
            PROOFS.write(self.proven.message),
            COMMITS.write(self.committed.message),
            CHALLENGES.write(self.challenge),
        )

    def verifier(self, ledger: Ledger | None = None) -> Verifier:
        circuit = self.plant.circuit
        return Verifier(
            system=self.plant.system, circuit=circuit, pinned=Pinned.of(circuit), ledger=ledger
        )

    def verify(self, challenge: Challenge | None = None, *, log: bool = True) -> Verification:
        proof, commit, drawn = self.documents
        verifier = self.verifier(self.log.ledger if log else None)
        return verifier.verify(proof, commit, CHALLENGES.write(challenge) if challenge else drawn)


def registered(folder: KeyFolder, client: str = "north") -> Registered:
    return Registered(
        federation="water",
        client=client,
        key=SigningKey.generate(),
        system=folder.system,
        circuit=folder.circuit,
    )


def run_plant(folder: KeyFolder, path: Path) -> SampledRun:
    """Register a plant, commit, challenge and prove; nothing is attested yet."""
    coordinator, plant = Coordinator.at(path), registered(folder)
    enrolled = coordinator.enrol(plant)
    committed = plant.commit(batch())
    received = enrolled.receive(COMMITS.write(committed.message), at=NOW)
    challenge = received.challenge(at=NOW)
    proven = committed.challenged(challenge).prove(batch())
    return SampledRun(coordinator, plant, committed, received, challenge, proven)
