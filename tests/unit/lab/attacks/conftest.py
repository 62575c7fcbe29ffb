"""A small plant, its rules and the attacks that liars would hide; files override what they vary."""

import pytest

from sluice.detector.calibration import Framing
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.attacks.replay import Targets, choose_targets
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record
from sluice.telemetry.windows import Scaler, Windows, feature_names


@pytest.fixture(scope="module")
def plant() -> Record:
    return simulate("line", seed=0, days=6)


@pytest.fixture(scope="module")
def shard(plant: Record) -> Record:
    return plant.rows(6_000, 7_000)


@pytest.fixture(scope="module")
def paper_rules(plant: Record) -> RuleSet:
    return mine(plant.rows(0, 3_000), plant.rows(3_000, 6_000), profile=Profile.PAPER_WIDE)


@pytest.fixture(scope="module")
def hardened_rules(plant: Record) -> RuleSet:
    return mine(plant.rows(0, 3_000), plant.rows(3_000, 6_000), profile=Profile.HARDENED)


@pytest.fixture(scope="module")
def rules(paper_rules: RuleSet) -> RuleSet:
    return paper_rules


@pytest.fixture(scope="module")
def targets() -> Targets:
    labelled = simulate("line", seed=1, days=3, attacks=True)
    return choose_targets(labelled, rows=250, seed=0)


@pytest.fixture(scope="module")
def framing(plant: Record) -> Framing:
    scaler = Scaler.fit([plant], feature_names(plant))
    return Framing(scaler=scaler, stride_s=plant.stride_s)


@pytest.fixture(scope="module")
def clean(plant: Record, framing: Framing) -> Windows:
    return framing.windows(plant)
