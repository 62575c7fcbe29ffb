"""A federation between sites in one process: a coordinator's folder, plants' folders, no wire."""

import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sluice.attestation.log.entries import LogTerms
from sluice.attestation.messages.messages import REGISTRATIONS
from sluice.attestation.messages.orders import (
    APPROVALS,
    SHADOW_ORDERS,
    WAIVERS,
    ShadowOrder,
    Waiver,
    approve,
)
from sluice.attestation.messages.signing import SigningKey
from sluice.attestation.messages.statistic_limits import StatisticLimits
from sluice.detector.autoencoder import Descent
from sluice.federation.rounds import Checkpoint
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.invariants.rulesfile import load_rules, save_rules
from sluice.lab.plants.catalogue import simulate
from sluice.network.coordinator import service
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.founding import (
    FederationPlan,
    coordinator_service,
    found_federation,
)
from sluice.network.coordinator.importing import Taken, take_in
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder
from sluice.network.terms import JoinRequest, read_document
from sluice.network.training_rows import TrainingRows
from sluice.network.wire.wire import Answerer, Direct
from sluice.telemetry.reading import read_record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from sluice.template import Template

IDLE = ("S_PU4", "on standby, never ran")
START = datetime(2026, 5, 1, 12, tzinfo=UTC)
ROWS = 600


class Clock:
    """A clock that moves a second each time it is read."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@dataclass
class Consortium:
    """The coordinator and its plants, in folders beside each other."""

    folder: Path
    record: Path
    rules: Path
    site: CoordinatorFolder
    approvers: tuple[SigningKey, ...]
    clock: Clock = field(default_factory=Clock)
    plants: dict[str, Answerer] = field(default_factory=dict)

    @property
    def approver(self) -> SigningKey:
        """The first approver."""
        return self.approvers[0]

    def request(self, name: str, index: int, *, rows: int = ROWS) -> JoinRequest:
        """Let a plant answer an invitation; the request is not handed in."""
        start = 8_640 + index * ROWS
        invitation = self.site.invite(name, at=self.clock())
        membership = PlantFolder.create(
            self.folder / name,
            invitation,
            load_rules(self.rules),
            self.rules.read_text(encoding="utf-8"),
            TrainingRows(record=str(self.record), start=start, stop=start + rows),
            at=self.clock(),
            reveal_rows=True,
        )
        return read_document(JoinRequest, membership.folder / "request.json", private=True)

    def approval(self, request: JoinRequest, key: SigningKey | None = None) -> bytes:
        """Sign the rules of a request, as the approver does with a file."""
        rules = REGISTRATIONS.read(request.registration.encode()).content.rules
        return APPROVALS.write(approve(rules, key or self.approver, declared=[IDLE]))

    def enrol(self, request: JoinRequest) -> None:
        """Hand in a request with its approval."""
        self.site.enrol(request, approvals=[self.approval(request)], at=self.clock())

    def order(self, order: Waiver | ShadowOrder, *keys: SigningKey) -> Taken:
        """Hand in a waiver or a shadow order, with an approval by each key or by the approver."""
        path = self.folder / f"{secrets.token_hex(8)}.order"
        raw = WAIVERS.write(order) if isinstance(order, Waiver) else SHADOW_ORDERS.write(order)
        path.write_bytes(raw)
        approvals = [path.with_suffix(f".{at}") for at in range(len(keys) or 1)]
        for file, key in zip(approvals, keys or (self.approver,), strict=True):
            file.write_bytes(APPROVALS.write(approve(order, key)))
        return take_in(self.site.folder, path, approvals=approvals, at=self.clock())

    def join(self, name: str, index: int, *, rows: int = ROWS) -> Agent:
        """Let a plant join; it signs off a statistic at once, if no proof binds it."""
        self.enrol(self.request(name, index, rows=rows))
        if self.site.terms.statistic is not None and self.site.terms.binds is None:
            sign_off(self, name)
        agent = PlantFolder(self.folder / name).agent(reveal_rows=True)
        self.plants[name] = agent
        return agent

    def run(self, rounds: int = 2) -> Checkpoint:
        store = CoordinatorStore(self.site.base)
        try:
            service = coordinator_service(self.site, store, Direct(self.plants), clock=self.clock)
            return service.run(rounds=rounds, on_round=lambda _: None)
        finally:
            store.close()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round waits for plants by the test's clock, and by no other."""
    monkeypatch.setattr(service, "LOOK_S", 0.0)


@pytest.fixture(scope="session")
def line_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("line")
    record = folder / "line.csv"
    write(simulate("line", seed=0, days=8), record, FileLayout.CSV)
    line = read_record(record)
    rules = mine(line.rows(0, 4_320), line.rows(4_320, 8_640), profile=Profile.HARDENED)
    save_rules(rules, folder / "rules.json")
    return record, folder / "rules.json"


def sign_off(consortium: Consortium, name: str, operator: str = "A. Reader") -> None:
    plant = PlantFolder(consortium.folder / name)
    sharing = plant.statistic_sharing()
    assert sharing is not None
    sharing.sign_off(plant.share.read(), operator, at=consortium.clock())


POLICY = 'kind = "hardened"\n[acceptance.reasons]\nS_PU4 = "runs only if S_PU3 fails"\n'
LIMITS = StatisticLimits(rows_min=300, span_min_s=3_600)
Founder = Callable[..., Consortium]


def bound_plan(record: Path, key: SigningKey, **changes: object) -> FederationPlan:
    """Return the plan of a vote of bound statistics, with changes."""
    plan = FederationPlan(
        federation="water",
        host="127.0.0.1",
        port=18_443,
        link_port=18_000,
        reference=TrainingRows(record=str(record), start=4_320, stop=8_640),
        policy=POLICY,
        rows_max=1_024,
        detector="moments",
        rule="vote",
        members_min=3,
        bound=True,
        limits=LIMITS,
        log=LogTerms(history=True),
        approvers=(key.public,),
    )
    return replace(plan, **changes)  # type: ignore[arg-type]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def founder(line_files: tuple[Path, Path], tmp_path: Path) -> Founder:
    def make(
        rule: str = "fedavg",
        *,
        suspend_after: int = 5,
        log: LogTerms | None = None,
        approvers: int = 1,
        keep_rounds: int = 200,
        members_min: int = 1,
        detector: str = "autoencoder",
        malicious: int = 1,
        bound: bool = False,
        limits: StatisticLimits | None = None,
        system: str = "unsafe",
        batch_deadline_s: float = 600.0,
        overlap_min: float = 1.0,
        lends: bool = False,
        template: Template | None = None,
    ) -> Consortium:
        record, rules = line_files
        keys = tuple(SigningKey.generate() for _ in range(approvers))
        plan = FederationPlan(
            members_min=members_min,
            federation="water",
            host="127.0.0.1",
            port=18_443,
            link_port=18_000,
            reference=TrainingRows(record=str(record), start=4_320, stop=8_640),
            policy=POLICY,
            system=system,
            rows_max=4_096,
            rule=rule,
            descent=Descent(epochs=1, batch=256),
            suspend_after=suspend_after,
            log=log or LogTerms(history=True),
            approvers=tuple(key.public for key in keys),
            keep_rounds=keep_rounds,
            detector=detector,
            malicious=malicious,
            bound=bound,
            limits=limits,
            batch_deadline_s=batch_deadline_s,
            overlap_min=overlap_min,
            lends=lends,
            template=template,
        )
        site = found_federation(tmp_path / "coordinator", plan, at=START)
        return Consortium(tmp_path, record, rules, site, keys)

    return make


@pytest.fixture
def consortium(founder: Founder) -> Consortium:
    made = founder()
    for index, name in enumerate(("north", "south", "west")):
        made.join(name, index)
    return made
