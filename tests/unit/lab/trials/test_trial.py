"""Trials: modes that differ only in what they say they differ in."""

from collections.abc import Mapping

import numpy as np
import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import PaperPolicy
from sluice.detector.autoencoder import Descent
from sluice.detector.model import DetectorKind
from sluice.errors import SettingError
from sluice.federation.messages import Reply, Request, Train, Trained
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.lab.attacks.updates import SignFlip
from sluice.lab.plants.catalogue import simulate
from sluice.lab.trials.cell import Score, run_cell
from sluice.lab.trials.contributions import Contributions, NamedGate
from sluice.lab.trials.malicious import MaliciousTransport
from sluice.lab.trials.modes import MODES
from sluice.lab.trials.scenario import Setup, scenario
from sluice.lab.trials.trial import Trial

CLIENTS = 5


def trial(*, detector: DetectorKind = DetectorKind.AUTOENCODER, seed: int = 0) -> Trial:
    clean = simulate("line", seed=0, days=8)
    test = simulate("line", seed=1, days=4, attacks=True)
    setup = Setup(
        clients=CLIENTS,
        malicious=2,
        rounds=2,
        detector=detector,
        descent=Descent(epochs=1, batch=256),
    )
    shared = scenario(clean, test, setup=setup, seed=seed)
    rules = mine(shared.parts.fit, shared.parts.calibration, profile=Profile.PAPER_WIDE)
    gate = NamedGate(name="paper", gate=Gate.of(rules, PaperPolicy()))
    return Trial(contributions=Contributions(shared), gate=gate)


@pytest.fixture(scope="module")
def tried() -> Trial:
    return trial()


def test_honest_only_is_clean_without_the_liars(tried: Trial) -> None:
    clean, without = (tried.plan(MODES[name]) for name in ("clean", "honest-only"))
    assert set(clean.invited) - set(without.invited) == set(tried.scenario.malicious)
    for client, brought in without.invited.items():
        assert brought is clean.invited[client]


def test_poison_is_made_once_and_used_by_every_mode(tried: Trial) -> None:
    naive = tried.plan(MODES["naive"], "replay")
    again = tried.plan(MODES["naive"], "replay")
    client = tried.scenario.malicious[0]
    assert naive.invited[client] is again.invited[client]
    assert naive.key == again.key


def test_attest_clean_trains_what_the_replay_trains_and_shows_what_is_clean(tried: Trial) -> None:
    naive = tried.plan(MODES["naive"], "replay")
    shown = tried.plan(MODES["gated"], "attest-clean")
    assert shown.key == naive.key
    for client in tried.scenario.malicious:
        assert shown.decisions[client].admitted
        assert shown.invited[client].batch is tried.scenario.shards[client]


def test_a_non_adaptive_roll_is_refused_and_what_is_left_is_honest_only(tried: Trial) -> None:
    plan = tried.plan(MODES["naive"], "channel-roll")
    verdicts = [tried.gate.gate.judge(plan.invited[c].batch) for c in tried.scenario.malicious]  # type: ignore[union-attr]
    assert not any(verdict.admitted for verdict in verdicts)


def test_the_same_cell_run_twice_has_the_same_score(tried: Trial) -> None:
    plan = tried.plan(MODES["naive"], "replay")
    assert run_cell(tried, plan, "median") == run_cell(tried, plan, "median")


class Remembered:
    def __init__(self) -> None:
        self.scores: dict[str, Score] = {}
        self.asked = 0

    def recall(self, key: str) -> Score | None:
        self.asked += 1
        return self.scores.get(key)

    def note(self, key: str, score: Score) -> None:
        assert key not in self.scores
        self.scores[key] = score


def test_one_federation_serves_every_cell_that_comes_down_to_it(tried: Trial) -> None:
    memory = Remembered()
    naive = run_cell(tried, tried.plan(MODES["naive"], "replay"), "fedavg", memory=memory)
    shown = run_cell(tried, tried.plan(MODES["gated"], "attest-clean"), "fedavg", memory=memory)
    assert len(memory.scores) == 1
    assert memory.asked == 2
    assert naive.score == shown.score
    assert shown.liars_admitted == 2


def test_each_alone_is_a_federation_per_plant_and_pooling_is_one_of_one(tried: Trial) -> None:
    alone = tried.plan(MODES["local-only"])
    pooled = tried.plan(MODES["centralised"])
    assert len(alone.groups) == CLIENTS
    assert [len(group) for group in pooled.groups] == [1]
    windows = sum(len(brought.windows) for brought in alone.invited.values())
    assert len(pooled.groups[0]["pool"].windows) == windows


def test_the_subspace_detector_adds_sums_and_takes_no_other_rule() -> None:
    summed = trial(detector=DetectorKind.SUBSPACE)
    plan = summed.plan(MODES["clean"])
    (done,) = summed.run(plan, "fedavg")
    assert done.detector.model.kind == DetectorKind.SUBSPACE
    assert sum(done.influence.values()) == pytest.approx(1)
    with pytest.raises(SettingError, match="no updates to weigh"):
        summed.run(plan, "krum")
    with pytest.raises(SettingError, match="sends sums"):
        summed.run(summed.plan(MODES["naive"], "sign-flip"), "fedavg")


def test_an_attack_on_updates_shows_a_clean_batch_and_another_outcome(tried: Trial) -> None:
    plan = tried.plan(MODES["gated"], "sign-flip")
    client = tried.scenario.malicious[0]
    assert plan.invited[client].batch is tried.scenario.shards[client]
    assert plan.key != tried.plan(MODES["clean"]).key
    (flipped,) = tried.run(plan, "fedavg")
    (clean,) = tried.run(tried.plan(MODES["clean"]), "fedavg")
    one, other = flipped.detector.model.tensors(), clean.detector.model.tensors()
    assert (one["parameters"] != other["parameters"]).any()


def test_malicious_clients_see_the_other_updates_and_change_only_their_own() -> None:
    class Fixed:
        def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply]:
            return {c: Trained(vector=np.arange(1.0, 4.0)) for c in requests}

    asked = dict.fromkeys("abc", Train(round=1, parameters=np.zeros(3, np.float32)))
    transport = MaliciousTransport(inner=Fixed(), malicious=("b",), attack=SignFlip(), seed=0)
    replies = transport.exchange(asked)
    vectors = {c: reply.vector for c, reply in replies.items() if isinstance(reply, Trained)}
    np.testing.assert_array_equal(vectors["b"], -np.arange(1.0, 4.0))
    np.testing.assert_array_equal(vectors["a"], np.arange(1.0, 4.0))


@pytest.mark.parametrize("rule", ["fedavg", "krum", "fltrust", "foolsgold"])
def test_a_blend_is_as_good_as_unnoticed_and_shows_a_clean_batch(tried: Trial, rule: str) -> None:
    plan = tried.plan(MODES["gated"], "blend")
    assert all(plan.decisions[client].admitted for client in tried.scenario.malicious)
    (done,) = tried.run(plan, rule)
    (open_handed,) = tried.run(tried.plan(MODES["naive"], "replay"), rule)
    malicious = tried.scenario.malicious
    influence = sum(done.influence.get(client, 0) for client in malicious)
    assert influence >= sum(open_handed.influence.get(client, 0) for client in malicious) - 1e-9


@pytest.mark.parametrize(
    ("mode", "attack", "why"),
    [("naive", None, "needs an attack"), ("naive", "bribery", "unknown attack 'bribery'")],
)
def test_what_cannot_be_planned_is_said(
    tried: Trial, mode: str, attack: str | None, why: str
) -> None:
    with pytest.raises(SettingError, match=why):
        tried.plan(MODES[mode], attack)


def test_an_unknown_rule_is_said(tried: Trial) -> None:
    with pytest.raises(SettingError, match="unknown rule 'mode'"):
        tried.run(tried.plan(MODES["clean"]), "mode")
