"""Federations to run as processes of their own: founded and joined once, copied for each test."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from sluice.admission.objections import ObjectionKind
from sluice.admission.policy import HardenedPolicy, accept
from sluice.attestation.log.entries import LogTerms
from sluice.attestation.messages.groups import members_needed
from sluice.attestation.messages.hidden_sums import HelperCard
from sluice.attestation.messages.statistic_limits import StatisticLimits
from sluice.detector.autoencoder import Descent
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.invariants.rulesfile import save_rules
from sluice.lab.plants.catalogue import simulate
from sluice.network.coordinator.founding import FederationPlan
from sluice.network.terms import GRACE_S
from sluice.network.training_rows import TrainingRows
from sluice.telemetry.record import Record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write

from .sites import APPROVER, Draft, free_port


@pytest.fixture(scope="session")
def jax_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jax")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A plant's clean record with rules mined from it, as files."""

    record: Path
    rules: RuleSet
    rules_file: Path
    policy: str
    calibration: tuple[int, int]  # rows

    @classmethod
    def make(cls, folder: Path, record: Record, cuts: tuple[int, int]) -> "Ground":
        """Fit rules before the first cut, calibrate them before the second, and accept them."""
        fit, calibrate = cuts
        path, rules_file = folder / "record.parquet", folder / "rules.json"
        write(record, path, FileLayout.PARQUET)
        rules = mine(record.rows(0, fit), record.rows(fit, calibrate), profile=Profile.HARDENED)
        save_rules(rules, rules_file)
        # Channels that no rule reads are declared, as an approver would do after asking why.
        named = dict.fromkeys(
            each.found if each.kind is ObjectionKind.UNEXPLAINED_STANDBY else each.subject
            for each in accept(rules, HardenedPolicy())
        )
        reasons = "".join(f'{name} = "nothing meters it"\n' for name in named)
        return cls(
            record=path,
            rules=rules,
            rules_file=rules_file,
            policy=f'kind = "hardened"\n[acceptance.reasons]\n{reasons}',
            calibration=cuts,
        )

    def share(self, start: int, stop: int) -> TrainingRows:
        return TrainingRows(record=str(self.record), start=start, stop=stop)

    def draft(
        self,
        folder: Path,
        shares: dict[str, TrainingRows],
        *,
        rounds: int,
        deadline_s: float,
        batch_deadline_s: float | None = None,
        rows_max: int,
        suspend_after: int = 50,
        quorum: float = 1.0,  # plants that are killed and started again are waited for
        grace_s: float = GRACE_S,
        detector: str = "autoencoder",
        limits: StatisticLimits | None = None,  # with them, statistics are bound
        helper: HelperCard | None = None,  # with it, plants share in groups
    ) -> Draft:
        moments = detector == "moments"
        plan = FederationPlan(
            # tests leave out plants on purpose
            members_min=members_needed(1) if helper else 3 if moments else 1,
            detector=detector,
            rule="vote" if moments else "fedavg",
            federation="water",
            host="127.0.0.1",
            port=free_port(),
            link_port=free_port(),
            filter_port=free_port(),
            reference=self.share(*self.calibration),
            policy=self.policy,
            rows_max=rows_max,
            rounds=rounds,
            descent=Descent(epochs=1, batch=256),
            batch_deadline_s=batch_deadline_s or deadline_s,
            round_deadline_s=deadline_s,
            suspend_after=suspend_after,
            log=LogTerms(history=True),
            approvers=(APPROVER.public,),
            quorum=quorum,
            grace_s=grace_s,
            bound=limits is not None,
            limits=limits,
            helper=helper,
        )
        return Draft.make(folder, plan, self.rules, self.rules_file, shares)


@pytest.fixture(scope="session")
def line_draft(tmp_path_factory: pytest.TempPathFactory) -> Draft:
    """Three plants on `line`, three short rounds, full proofs of 600 rows."""
    folder = tmp_path_factory.mktemp("line")
    ground = Ground.make(folder, simulate("line", seed=0, days=8), (4_320, 8_640))
    starts = {name: 8_640 + at * 600 for at, name in enumerate(("north", "south", "west"))}
    shares = {name: ground.share(start, start + 600) for name, start in starts.items()}
    return ground.draft(folder / "draft", shares, rounds=3, deadline_s=180.0, rows_max=1_024)


@pytest.fixture(scope="session")
def treatment(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """A treatment plant, a row every 10 s, of which the last 10,368 rows are the plants'."""
    folder = tmp_path_factory.mktemp("treatment")
    record = simulate("treatment", seed=0, days=3).every(10)
    return Ground.make(folder, record, (7_776, 15_552))
