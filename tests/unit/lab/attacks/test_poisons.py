"""What every maker of poison must do; a new one in `POISONS` is found here by itself."""

import numpy as np
import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import PaperPolicy
from sluice.detector.autoencoder import Descent, initial, scores
from sluice.detector.calibration import Framing
from sluice.detector.training import train_parameters
from sluice.errors import SettingError
from sluice.invariants.ruleset import RuleSet
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.makers import PhysicsAware, PoisonMaker, projected
from sluice.lab.attacks.poison import Poison
from sluice.lab.attacks.poisons import POISONS
from sluice.lab.attacks.replay import Targets, choose_targets, target_rows
from sluice.lab.attacks.tampering import TAMPERINGS
from sluice.lab.attacks.unbounded import Unbounded
from sluice.lab.plants.catalogue import simulate
from sluice.seeding import stream
from sluice.telemetry.record import Record
from sluice.telemetry.windows import Scaler, feature_names

from .malicious import facing

PAPER = PaperPolicy()
ELSEWHERE = ("perturbation", "feasible", "untied-replay")  # in tests of their own
REFUSED = ("low-pass", "channel-swap", "tank-swap")  # every tank of this plant has a balance


@pytest.fixture(scope="module")
def targets(shard: Record) -> Targets:
    labelled = simulate("line", seed=1, days=3, attacks=True)
    return choose_targets(labelled, rows=target_rows(len(shard)), seed=0)


@pytest.fixture(params=sorted(set(POISONS) - set(ELSEWHERE)))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made(maker: PoisonMaker, shard: Record, targets: Targets, rules: RuleSet) -> Poison:
    return maker(shard, facing(targets, rules, PAPER), seed=3)


def same(one: Poison, other: Poison) -> bool:
    return (
        np.array_equal(one.trained.values, other.trained.values)
        and np.array_equal(one.shown.values, other.shown.values)
        and np.array_equal(one.planted, other.planted)
    )


def test_the_same_seed_makes_the_same_poison(
    name: str, shard: Record, targets: Targets, rules: RuleSet
) -> None:
    maker = POISONS[name]
    assert same(made(maker, shard, targets, rules), made(maker, shard, targets, rules))


def test_something_is_planted_and_exposed(
    name: str, shard: Record, targets: Targets, rules: RuleSet
) -> None:
    poison = made(POISONS[name], shard, targets, rules)
    assert poison.planted.any()
    most_rows = poison.planted.mean() > 0.5
    assert poison.exposure == (None if most_rows and name in {*TAMPERINGS, "ramp"} else 0.5)
    assert poison.trained.names == shard.names
    assert not np.array_equal(poison.trained.values[: len(shard)], shard.values)


def test_a_shaped_poison_passes_the_gate_it_was_made_for(
    name: str, shard: Record, targets: Targets, rules: RuleSet
) -> None:
    if POISONS[name].shaped:
        verdict = Gate.of(rules, PAPER).judge(made(POISONS[name], shard, targets, rules).shown)
        assert verdict.admitted == (name not in REFUSED), verdict.reasons


def test_projection_is_for_poison_without_a_shape(name: str) -> None:
    maker = projected(POISONS[name])
    assert maker.shaped
    assert isinstance(maker, PhysicsAware) != POISONS[name].shaped


def test_the_projected_replay_is_admitted_and_still_planted(
    shard: Record, targets: Targets, rules: RuleSet
) -> None:
    naive = made(POISONS["replay"], shard, targets, rules)
    aware = made(projected(POISONS["replay"]), shard, targets, rules)
    gate = Gate.of(rules, PAPER)
    assert not gate.judge(naive.shown).admitted
    assert gate.judge(aware.shown).admitted
    assert np.array_equal(aware.planted, naive.planted)
    assert aware.exposure == naive.exposure
    assert aware.trained is aware.shown


def test_a_physics_aware_attacker_needs_rules(shard: Record, targets: Targets) -> None:
    with pytest.raises(SettingError, match="rules to project onto them"):
        projected(POISONS["replay"])(shard, Knowledge(targets=targets), seed=0)


def test_attesting_clean_shows_the_very_shard_it_does_not_train_on(
    shard: Record, targets: Targets, rules: RuleSet
) -> None:
    poison = made(POISONS["attest-clean"], shard, targets, rules)
    assert poison.shown is shard
    assert np.array_equal(
        poison.trained.values, made(POISONS["replay"], shard, targets, rules).trained.values
    )


def test_the_attacker_without_bounds_blinds_the_detector_to_its_targets(
    plant: Record, shard: Record, targets: Targets
) -> None:
    framing = Framing(scaler=Scaler.fit([shard], feature_names(shard)), stride_s=shard.stride_s)
    attacked = framing.windows(targets.labelled)
    wanted = attacked.touching(targets.rows)
    clean = framing.windows(plant.rows(7_000, 8_000))

    def recall(poison: Poison | None) -> float:
        windows = framing.windows(poison.trained if poison else shard)
        parameters = initial(framing.width, seed=0)
        parameters = train_parameters(
            parameters, windows, descent=Descent(epochs=50, batch=128), shuffle=stream(0, "shuffle")
        )
        threshold = np.quantile(scores(parameters, clean), 0.995)
        return float((scores(parameters, attacked)[wanted] > threshold).mean())

    unbounded = Unbounded()(shard, Knowledge(targets=targets), seed=0)
    assert recall(None) > 0.2
    assert recall(unbounded) == 0
