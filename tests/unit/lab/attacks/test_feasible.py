"""The poison that is optimised inside the rules, and the replay bent until it passes."""

import numpy as np
import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy, PaperPolicy
from sluice.detector.autoencoder import Descent
from sluice.errors import SettingError
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.attacks.feasible import Feasible, Slope
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.makers import Replayed, projected
from sluice.lab.attacks.poison import Poison
from sluice.lab.attacks.poisons import POISONS
from sluice.lab.attacks.rehearsal import RehearsedTraining
from sluice.lab.attacks.replay import Targets, choose_targets
from sluice.lab.attacks.shaping import shape
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record

from .malicious import facing

PAPER = PaperPolicy()
SMALL = Feasible(
    restarts=2,
    rounds=2,
    slope=Slope(steps=2, unrolled=3, batch=64, midway=(1, 3)),
    training=RehearsedTraining(rounds=8, descent=Descent(batch=64)),
)


@pytest.fixture(scope="module")
def shard(plant: Record) -> Record:
    return plant.rows(6_000, 6_500)


@pytest.fixture(scope="module")
def targets() -> Targets:
    labelled = simulate("line", seed=1, days=3, attacks=True)
    return choose_targets(labelled, rows=125, seed=0)


@pytest.fixture(scope="module")
def poison(shard: Record, rules: RuleSet, targets: Targets) -> Poison:
    return SMALL(shard, facing(targets, rules, PAPER), seed=0)


def test_the_gate_it_was_made_for_admits_it(poison: Poison, rules: RuleSet) -> None:
    assert Gate.of(rules, PAPER).judge(poison.shown).admitted
    assert poison.shown is poison.trained


def test_it_hides_no_fewer_targets_than_the_projected_replay(
    poison: Poison, shard: Record, rules: RuleSet, targets: Targets
) -> None:
    plain = projected(POISONS["replay"])(shard, facing(targets, rules, PAPER), seed=0)
    rehearsal = SMALL.rehearsal(shard, targets, seed=0)
    assert rehearsal(poison).rank > rehearsal(plain).rank


def test_actuators_are_left_to_the_replay(poison: Poison, shard: Record) -> None:
    for channel in shard.channels:
        if channel.role.discrete:
            column = poison.trained.column(channel.name)
            assert set(np.unique(column)) <= set(channel.codes.legal if channel.codes else ())


def test_the_same_seed_makes_the_same_poison(
    poison: Poison, shard: Record, rules: RuleSet, targets: Targets
) -> None:
    again = SMALL(shard, facing(targets, rules, PAPER), seed=0)
    assert np.array_equal(again.trained.values, poison.trained.values)


def test_without_rules_there_is_no_inside(shard: Record, targets: Targets) -> None:
    with pytest.raises(SettingError, match="rules to make a poison within them"):
        SMALL(shard, Knowledge(targets=targets), seed=0)


def test_a_slope_is_followed_in_steps() -> None:
    with pytest.raises(SettingError, match="at least 1 step, .* and round midway"):
        Slope(midway=())
    with pytest.raises(SettingError, match="step size above 0"):
        Slope(size=0.0)


def test_shaping_gives_back_only_what_stands_in_the_way(
    plant: Record, shard: Record, targets: Targets
) -> None:
    rules = mine(plant.rows(0, 3_000), plant.rows(3_000, 6_000), profile=Profile.HARDENED)
    gate = Gate.of(rules, HardenedPolicy())
    replay = Replayed()(shard, Knowledge(targets=targets, gate=gate), seed=0)
    found = shape(replay, shard, gate, seed=0)
    assert found.admitted == gate.judge(found.poison.shown).admitted
    assert np.array_equal(found.poison.planted, replay.planted)
    for name in found.restored:
        if shard.channel(name).role.discrete:
            assert np.array_equal(found.poison.trained.column(name), shard.column(name))
