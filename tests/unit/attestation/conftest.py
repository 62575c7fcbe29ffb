"""A federation in a folder: a coordinator at its log, approvers, and plants with one rule set."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sluice.admission.acceptance import Acceptance
from sluice.admission.policy import HardenedPolicy
from sluice.attestation.log.chain import Log
from sluice.attestation.log.entries import LogOpened
from sluice.attestation.log.ledger import Ledger
from sluice.attestation.messages.messages import APPROVALS, COMMITS, PROOFS, REGISTRATIONS, approve
from sluice.attestation.messages.signing import SigningKey
from sluice.attestation.protocol.coordinator import (
    Agreement,
    Enrolled,
    ProtocolCoordinator,
    ReceivedBatch,
)
from sluice.attestation.protocol.key_folder import KeyFolder, Pinned
from sluice.attestation.protocol.plant import Committed, Proven, Registered
from sluice.attestation.protocol.verifier import Verifier
from sluice.attestation.systems.full.system import Full
from sluice.attestation.systems.registry import circuit_for
from sluice.attestation.systems.system import Circuit, System
from sluice.attestation.systems.unsafe import Unsafe
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record

from . import drawn_plant

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SYSTEM = Unsafe(reveal_rows=True)
ROWS = 600
POLICY = HardenedPolicy(acceptance=Acceptance(reasons={"S_PU4": "runs only if S_PU3 fails"}))


@dataclass
class World:
    """All parties of one federation, with their keys and log."""

    line: Record
    circuit: Circuit
    path: Path
    system: System = SYSTEM
    federation: str = "water"
    coordinator: SigningKey = field(default_factory=SigningKey.generate)
    approvers: tuple[SigningKey, SigningKey] = field(
        default_factory=lambda: (SigningKey.generate(), SigningKey.generate())
    )

    def __post_init__(self) -> None:
        opened = LogOpened(
            federation=self.federation,
            coordinator=self.coordinator.public,
            approvers=tuple(key.public for key in self.approvers),
        )
        self.log = Log.create(self.path, opened, self.coordinator, at=NOW)
        self.protocol = ProtocolCoordinator(log=self.log)

    @property
    def ledger(self) -> Ledger:
        return self.log.ledger

    def batch(self, index: int = 0) -> Record:
        """One of the clean batches, each of its own time."""
        return self.line.rows(8_640 + index * ROWS, 8_640 + (index + 1) * ROWS)

    def forged(self) -> Record:
        """A clean batch with a pump's status turned round for a while."""
        batch = self.batch()
        values = batch.values.copy()
        pump = batch.index("S_PU1")
        values[100:300, pump] = 1 - values[100:300, pump]
        return batch.with_values(values)

    def plant(self, client: str = "north", *, key: SigningKey | None = None) -> Registered:
        return Registered(
            federation=self.federation,
            client=client,
            key=key or SigningKey.generate(),
            system=self.system,
            circuit=self.circuit,
        )

    def enrol(self, plant: Registered, *, overlaps: bool = False) -> Enrolled:
        signed = plant.registration(overlaps=overlaps)
        return self.protocol.register(
            REGISTRATIONS.write(signed),
            Agreement(system=plant.system, circuit=plant.circuit, overlaps=overlaps),
            approvals=[APPROVALS.write(approve(signed, self.approvers[0]))],
            at=NOW,
        )

    def verifier(self, ledger: Ledger | None = None) -> Verifier:
        return Verifier(
            system=self.system, circuit=self.circuit, pinned=Pinned.of(self.circuit), ledger=ledger
        )


@dataclass
class PlantRun:
    """A plant that has registered, committed and proven, with its documents."""

    world: World
    plant: Registered
    enrolled: Enrolled
    committed: Committed
    received: ReceivedBatch
    proven: Proven

    @property
    def commit(self) -> bytes:
        return COMMITS.write(self.committed.message)

    @property
    def proof(self) -> bytes:
        return PROOFS.write(self.proven.message)


@pytest.fixture(scope="session")
def drawn_folder(tmp_path_factory: pytest.TempPathFactory) -> KeyFolder:
    """Keys of the `sampled` system, made once."""
    return drawn_plant.make_folder(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def line() -> Record:
    return simulate("line", seed=0, days=8)


@pytest.fixture(scope="session")
def rules(line: Record) -> RuleSet:
    return mine(line.rows(0, 4_320), line.rows(4_320, 8_640), profile=Profile.HARDENED)


@pytest.fixture(scope="session")
def circuit(rules: RuleSet) -> Circuit:
    return circuit_for(SYSTEM, rules, POLICY, rows_max=4_096)


@pytest.fixture
def world(line: Record, circuit: Circuit, tmp_path: Path) -> World:
    return World(line, circuit, tmp_path / "log.jsonl")


def run_plant(world: World, client: str = "north", batch: int = 0) -> PlantRun:
    """Register a plant, commit and prove; the proof is not yet verified."""
    plant = world.plant(client)
    enrolled = world.enrol(plant)
    committed = plant.commit(world.batch(batch))
    received = enrolled.receive(COMMITS.write(committed.message), at=NOW)
    proven = committed.prove(world.batch(batch))
    return PlantRun(world, plant, enrolled, committed, received, proven)


@pytest.fixture
def run(world: World) -> PlantRun:
    return run_plant(world)


def again(run: PlantRun, log: Log) -> PlantRun:
    """The same plant at a coordinator with another log."""
    enrolled = ProtocolCoordinator(log=log).enrolled(run.plant.client, run.enrolled.agreement)
    received = enrolled.received(run.committed.message.content.commitment)
    return replace(run, enrolled=enrolled, received=received)


def copied(world: World, path: Path) -> Log:
    """Return a copy of the log that can be written to on its own."""
    path.write_bytes(world.path.read_bytes())
    return Log.open(path, world.coordinator)


@pytest.fixture(scope="session")
def proven_in_full(
    line: Record, rules: RuleSet, tmp_path_factory: pytest.TempPathFactory
) -> tuple[PlantRun, PlantRun]:
    """Two plants with proofs of the default system, neither of them verified yet."""
    system = Full()
    circuit = circuit_for(system, rules, POLICY, rows_max=1_024)
    path = tmp_path_factory.mktemp("full") / "log.jsonl"
    world = World(line, circuit, path, system=system)
    return run_plant(world, "north"), run_plant(world, "south", batch=1)


@pytest.fixture
def pair_in_full(
    proven_in_full: tuple[PlantRun, PlantRun], tmp_path: Path
) -> tuple[PlantRun, PlantRun]:
    """The two plants with a log that only this test uses."""
    north, south = proven_in_full
    log = copied(north.world, tmp_path / "log.jsonl")
    return again(north, log), again(south, log)


def later(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)
