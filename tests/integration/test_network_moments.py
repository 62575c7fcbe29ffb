"""Statistics over real Flower processes: the vote that comes home is that of one process."""

import json
import os
import subprocess
from datetime import UTC, datetime
from functools import reduce
from operator import add
from pathlib import Path

import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import parse_policy
from sluice.attestation.log.chain import read_log
from sluice.attestation.messages.statistic_limits import StatisticLimits
from sluice.detector.modelfile import load_detector
from sluice.detector.moments.statistic import moment_statistic
from sluice.detector.vote import VotedModel
from sluice.federation.federate import FederationSettings, federate
from sluice.lab.plants.catalogue import simulate
from sluice.network.helper.folder import HelperFolder
from sluice.network.plant.folder import PlantFolder
from sluice.network.plant.model import last_statistics
from sluice.telemetry.reading import read_record

from .conftest import Ground
from .helper_process import HelperProcess
from .sites import SLUICE, Sites, free_port, running

pytestmark = pytest.mark.skipif(
    "SLUICE_NETWORK" not in os.environ, reason="make test-network runs it"
)

NAMES = ("east", "north", "south", "west")


def typed(sites: Sites, *words: str) -> str:
    """Return what a command of `sluice` prints in the folder of the sites."""
    done = subprocess.run(
        (*SLUICE, *words), cwd=sites.folder, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tensors(path: Path) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in load_detector(path).model.tensors().items()}


def test_a_vote_of_statistics_comes_home_and_is_that_of_one_process(
    tmp_path: Path, jax_cache: Path
) -> None:
    ground = Ground.make(tmp_path, simulate("line", seed=0, days=8), (4_320, 8_640))
    starts = {name: 8_640 + at * 600 for at, name in enumerate(NAMES)}
    shares = {name: ground.share(start, start + 600) for name, start in starts.items()}
    draft = ground.draft(
        tmp_path / "draft",
        shares,
        rounds=1,
        deadline_s=180.0,
        rows_max=1_024,
        detector="moments",
    )
    with running(draft, tmp_path / "sites", jax_cache) as sites:
        for name in NAMES:
            typed(sites, "plant", "check", name, "--sign-off", f"Operator of {name}")
        sites.start()
        ending = sites.end()
        assert (ending.members, ending.excluded) == ((NAMES,), ({},))
        assert [plant.wait(timeout=60) for plant in sites.plants.values()] == [0, 0, 0, 0]
        reference = read_record(ground.record).rows(*ground.calibration)
        clients = {name: PlantFolder(sites.folder / name).share.read() for name in NAMES}
        settings = FederationSettings(
            clients=clients, validation=reference, detector="moments", rule="vote"
        )
        alone = federate(settings).detector.model.tensors()
        wired = tensors(sites.site.folder / "model.safetensors")
        assert wired == {name: array.tobytes() for name, array in alone.items()}
        clean = f"{8_640 + 4 * 600}:{len(read_record(ground.record))}"
        typed(sites, "plant", "model", "north", "--out", "north.safetensors", "--clean", clean)
        detector = load_detector(sites.folder / "north.safetensors")
        assert isinstance(detector.model, VotedModel)
        assert detector.model.members == NAMES
        assert detector.training.model == ending.model
        typed(sites, "coordinator", "remove", "water", "west")
        sites.start()  # the plants that are left fetch the new model
        sites.end()
        typed(sites, "plant", "model", "north", "--out", "left.safetensors", "--clean", clean)
        for path in (sites.site.folder / "model.safetensors", sites.folder / "left.safetensors"):
            left = load_detector(path).model
            assert isinstance(left, VotedModel)
            assert left.members == ("east", "north", "south")
        verified = json.loads(typed(sites, "audit-log", "verify", "water/log.jsonl", "--json"))
        assert verified["clients"] == list(NAMES)


def test_a_bound_vote_comes_home_and_is_that_of_one_process(
    tmp_path: Path, jax_cache: Path
) -> None:
    ground = Ground.make(tmp_path, simulate("line", seed=0, days=8), (4_320, 8_640))
    starts = {name: 8_640 + at * 600 for at, name in enumerate(NAMES)}
    shares = {name: ground.share(start, start + 600) for name, start in starts.items()}
    limits = StatisticLimits(rows_min=600, span_min_s=3_600)
    draft = ground.draft(
        tmp_path / "draft",
        shares,
        rounds=1,
        deadline_s=180.0,
        rows_max=1_024,
        detector="moments",
        limits=limits,
    )
    with running(draft, tmp_path / "sites", jax_cache) as sites:
        for name in NAMES:
            typed(sites, "plant", "check", name, "--sign-off", f"Operator of {name}")
        sites.start()
        ending = sites.end()
        assert (ending.members, ending.excluded) == ((NAMES,), ({},))
        assert [plant.wait(timeout=60) for plant in sites.plants.values()] == [0, 0, 0, 0]
        settings = FederationSettings(
            clients={name: PlantFolder(sites.folder / name).share.read() for name in NAMES},
            validation=read_record(ground.record).rows(*ground.calibration),
            gate=Gate.of(ground.rules, parse_policy(ground.policy, name="of the test")),
            detector="moments",
            rule="vote",
            bound=limits,
        )
        alone = federate(settings).detector.model.tensors()
        wired = tensors(sites.site.folder / "model.safetensors")
        assert wired == {name: array.tobytes() for name, array in alone.items()}
        clean = f"{8_640 + 4 * 600}:{len(read_record(ground.record))}"
        typed(sites, "plant", "model", "north", "--out", "north.safetensors", "--clean", clean)
        detector = load_detector(sites.folder / "north.safetensors")
        assert isinstance(detector.model, VotedModel)
        assert detector.model.members == NAMES
        typed(sites, "coordinator", "remove", "water", "west")
        verified = json.loads(typed(sites, "audit-log", "verify", "water/log.jsonl", "--json"))
        assert verified["bound"] is True
        assert {each["plant"]: each["operator"] for each in verified["signed_off"]} == {
            name: f"Operator of {name}" for name in NAMES
        }


def test_nine_plants_and_a_helper_share_in_groups(tmp_path: Path, jax_cache: Path) -> None:
    now, folder = datetime.now(UTC), tmp_path / "helper"
    helper = HelperFolder.create(folder, "water", host="127.0.0.1", port=free_port(), at=now)
    ground = Ground.make(tmp_path, simulate("line", seed=0, days=10), (4_320, 8_640))
    shares = {f"plant-{at}": ground.share(8_640 + 300 * at, 8_940 + 300 * at) for at in range(9)}
    draft = ground.draft(
        tmp_path / "draft",
        shares,
        rounds=1,
        deadline_s=600.0,
        rows_max=512,
        detector="moments",
        limits=StatisticLimits(rows_min=300, span_min_s=3_600),
        helper=helper.card,
    )
    helping = HelperProcess(helper)
    with running(draft, tmp_path / "sites", jax_cache) as sites:
        for name in shares:
            typed(sites, "plant", "check", name, "--sign-off", f"Operator of {name}")
        typed(sites, "helper", "accept", str(folder), "--log", str(sites.site.log))
        helping.start()
        try:
            sites.start()
            ending = sites.end()
            assert (ending.members, ending.excluded) == ((tuple(shares),), ({},))
            assert {plant.wait(timeout=60) for plant in sites.plants.values()} == {0}
        finally:
            helping.kill()
        shown = json.loads(typed(sites, "helper", "show", str(folder), "--json"))
        assert [group["state"] for group in shown["groups"]] == ["released"] * 3
        groups = read_log(sites.site.log).groups.in_force
        kept = last_statistics(sites.folder / "plant-0", sites.site.terms)
        assert kept is not None
        for group in groups:
            voter = kept.shared.of(group.name)
            assert voter is not None
            rows = [PlantFolder(sites.folder / name).share.read() for name in group.members]
            own = (moment_statistic(batch, voter.statistic.settings) for batch in rows)
            assert voter.statistic == reduce(add, own)
        clean = f"{8_640 + 9 * 300}:{len(read_record(ground.record))}"
        typed(sites, "plant", "model", "plant-0", "--out", "0.safetensors", "--clean", clean)
        detector = load_detector(sites.folder / "0.safetensors")
        assert isinstance(detector.model, VotedModel)
        assert detector.model.members == tuple(group.name for group in groups)
