"""Contributions: what each client shows and trains on, made once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy, PaperPolicy
from sluice.detector.autoencoder import Descent
from sluice.errors import SettingError
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.lab.attacks.feasible import Feasible
from sluice.lab.attacks.poisons import POISONS
from sluice.lab.attacks.updates import UPDATE_ATTACKS
from sluice.lab.plants.catalogue import simulate
from sluice.lab.trials.artifact_cache import ArtifactCache
from sluice.lab.trials.contributions import Contributions, NamedGate, pooled
from sluice.lab.trials.scenario import Scenario, Setup, scenario

SETUP = Setup(clients=4, malicious=2, rounds=3, descent=Descent(epochs=1, batch=64))


@pytest.fixture(scope="module")
def shared() -> Scenario:
    clean = simulate("line", seed=0, days=5)
    test = simulate("line", seed=1, days=3, attacks=True)
    return scenario(clean, test, setup=SETUP, seed=0)


@pytest.fixture(scope="module")
def made(shared: Scenario) -> Contributions:
    return Contributions(shared)


@pytest.fixture(scope="module")
def paper(shared: Scenario) -> NamedGate:
    rules = mine(shared.parts.fit, shared.parts.calibration, profile=Profile.PAPER_WIDE)
    return NamedGate(name="paper-wide", gate=Gate.of(rules, PaperPolicy()))


@pytest.fixture(scope="module")
def liar(shared: Scenario) -> str:
    return shared.malicious[0]


def test_an_honest_client_shows_and_trains_its_own_rows_once(
    shared: Scenario, made: Contributions
) -> None:
    for client, shard in shared.shards.items():
        brought = made.honest(client)
        assert brought.batch is shard
        assert len(brought.windows) == len(shard) - 9
        assert made.honest(client) is brought
        assert brought.falsified_by is None


def test_with_a_gate_of_its_own_a_client_drops_windows_that_violate(shared: Scenario) -> None:
    rules = mine(shared.parts.fit, shared.parts.calibration, profile=Profile.HARDENED)
    own = Gate.of(rules, HardenedPolicy())
    screened = Contributions(shared, own=own)
    client, shard = next(iter(shared.shards.items()))
    violating = own.judge(shard).violating
    brought = screened.honest(client)
    assert violating.any()
    assert not brought.windows.touching(violating).any()
    assert brought.batch is shard


def test_a_replay_is_shown_as_it_is_trained_with_half_of_its_windows_planted(
    shared: Scenario, made: Contributions, liar: str
) -> None:
    brought = made.malicious(liar, "replay", onto=None, project=False)
    planted = (brought.batch.values != shared.shards[liar].values).any(axis=1)
    touching = brought.windows.touching(planted)
    assert touching.mean() == pytest.approx(0.5, abs=0.01)
    assert len(brought.windows) == len(made.honest(liar).windows)


def test_two_malicious_clients_do_not_plant_alike(shared: Scenario, made: Contributions) -> None:
    keys = {
        made.malicious(client, "replay", onto=None, project=False).key
        for client in shared.malicious
    }
    assert len(keys) == 2


def test_poison_that_ignores_the_gate_is_the_same_for_every_gate(
    made: Contributions, paper: NamedGate, liar: str
) -> None:
    alone = made.malicious(liar, "replay", onto=None, project=False)
    assert made.malicious(liar, "replay", onto=paper, project=False) is alone


def test_projected_poison_is_another_one_for_every_gate(
    made: Contributions, paper: NamedGate, liar: str
) -> None:
    plain = made.malicious(liar, "channel-roll", onto=paper, project=False)
    projected = made.malicious(liar, "channel-roll", onto=paper, project=True)
    assert projected.key != plain.key
    judged = [paper.gate.judge(one.batch).violating.mean() for one in (plain, projected)]
    assert judged[1] < judged[0]
    renamed = replace(paper, name="other")
    again = made.malicious(liar, "channel-roll", onto=renamed, project=True)
    assert again is not projected
    assert again.key == projected.key


def test_poison_cannot_be_projected_onto_no_rules(shared: Scenario, liar: str) -> None:
    with pytest.raises(SettingError, match="needs a gate's rules to project onto them"):
        Contributions(shared).malicious(liar, "replay", onto=None, project=True)


@pytest.mark.parametrize("attack", ["sign-flip", "min-max"])
def test_an_attack_on_updates_brings_honest_rows_under_another_key(
    made: Contributions, liar: str, attack: str
) -> None:
    honest = made.honest(liar)
    brought = made.malicious(liar, attack, onto=None, project=False)
    assert brought.batch is honest.batch
    assert brought.windows is honest.windows
    assert brought.key == f"{honest.key}+{attack}"


def test_a_blend_shows_clean_rows_and_trains_on_the_replay(made: Contributions, liar: str) -> None:
    blend = made.malicious(liar, "blend", onto=None, project=False)
    replayed = made.malicious(liar, "replay", onto=None, project=False)
    assert blend.batch is made.honest(liar).batch
    assert blend.key == f"{replayed.key}+blend"


def test_an_unknown_attack_is_refused_with_the_known_ones(made: Contributions, liar: str) -> None:
    with pytest.raises(SettingError) as refused:
        made.malicious(liar, "bribery", onto=None, project=False)
    names = ", ".join((*POISONS, *UPDATE_ATTACKS, "blend"))
    assert str(refused.value) == f"unknown attack 'bribery'; choose one of {names}"


def test_a_key_is_of_the_windows_and_their_order(made: Contributions) -> None:
    brought = made.honest("plant-0")
    windows = brought.windows
    turned = replace(brought, windows=windows.take(np.arange(len(windows))[::-1]))
    fewer = replace(brought, windows=windows.take(np.arange(len(windows) - 1)))
    moved = replace(brought, windows=replace(windows, rows=windows.rows + np.float32(1e-6)))
    same = replace(brought, batch=made.honest("plant-1").batch)
    assert len({one.key for one in (brought, turned, fewer, moved)}) == 4
    assert same.key == brought.key


def test_a_rehearsed_attack_rehearses_this_federation(made: Contributions) -> None:
    maker = POISONS["feasible"]
    assert isinstance(maker, Feasible)
    rehearsed = made._rehearsed(maker)
    assert rehearsed.framing is made.scenario.framing
    training = rehearsed.training
    assert training is not None
    assert training.share == pytest.approx(maker.exposure * 2 / 4)
    assert (training.rounds, training.descent) == (3, SETUP.descent)


def test_poison_from_the_cache_is_the_poison_that_was_made(
    shared: Scenario, made: Contributions, liar: str, tmp_path: Path
) -> None:
    cache = ArtifactCache(folder=tmp_path, code="this")
    keys = {
        Contributions(shared, cache=cache).malicious(liar, "replay", onto=None, project=False).key
        for _ in range(2)
    }
    assert keys == {made.malicious(liar, "replay", onto=None, project=False).key}
    assert len(list((tmp_path / "poison").iterdir())) == 1
    other = replace(shared, seed=1)
    Contributions(other, cache=cache).malicious(liar, "replay", onto=None, project=False)
    assert len(list((tmp_path / "poison").iterdir())) == 2


def test_a_pool_has_every_window_of_its_clients_in_their_order(
    shared: Scenario, made: Contributions
) -> None:
    parts = {client: made.honest(client) for client in shared.shards}
    pool = pooled(parts)
    expected = np.concatenate([part.windows.matrix() for part in parts.values()])
    np.testing.assert_array_equal(pool.windows.matrix(), expected)
    assert pool.batch is shared.shards["plant-0"]
    assert pool.falsified_by is None
