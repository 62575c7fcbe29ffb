"""Mode `bound`: clients that share other sums than those of their proven batch are not admitted."""

import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy
from sluice.attestation.messages.statistic_limits import StatisticLimits
from sluice.attestation.systems.full import statistic_settings
from sluice.detector.moments.statistic import MomentStatistic
from sluice.errors import SettingError
from sluice.federation.proofs import Keyless
from sluice.federation.rounds import admit
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.lab.plants.catalogue import simulate
from sluice.lab.trials.contributions import Contributions, NamedGate
from sluice.lab.trials.forged import StatisticForger
from sluice.lab.trials.forgeries import STATISTIC_FORGERIES
from sluice.lab.trials.modes import MODES
from sluice.lab.trials.scenario import Setup, scenario
from sluice.lab.trials.trial import Trial

SHORT = StatisticLimits(rows_min=100, span_min_s=0)


@pytest.fixture(scope="module")
def trial() -> Trial:
    setup = Setup(clients=4, malicious=1, detector="moments")
    clean = simulate("line", seed=0, days=6)
    test = simulate("line", seed=1, days=2, attacks=True)
    shared = scenario(clean, test, setup=setup, seed=3)
    rules = mine(shared.parts.fit, shared.parts.calibration, profile=Profile.HARDENED)
    gate = NamedGate(name="hardened", gate=Gate.of(rules, HardenedPolicy()))
    return Trial(contributions=Contributions(shared), gate=gate, limits=SHORT)


def forged_by(trial: Trial, attack: str) -> dict[str, bytes]:
    assert trial.gate is not None
    rules, policy = trial.gate.gate.rules, trial.gate.gate.policy
    shards = trial.scenario.shards
    longest = max(len(shard) for shard in shards.values())
    attest, _ = Keyless.bound(SHORT).sides("lab", rules, policy, rows_max=longest)
    summed = statistic_settings(attest.circuit)
    assert summed is not None
    honest = {client: trial.contributions.honest(client) for client in shards}
    return trial._forged(attack, summed, honest)


@pytest.mark.parametrize("attack", STATISTIC_FORGERIES)
def test_a_forged_statistic_is_never_admitted(trial: Trial, attack: str) -> None:
    plan = trial.plan(MODES["bound"], attack)
    (malicious,) = trial.scenario.malicious
    assert {c for c, d in plan.decisions.items() if not d.admitted} == {malicious}
    assert plan.decisions[malicious].reasons == ("its proof fails step 5.8",)
    assert plan.decisions[malicious].statistic is None


@pytest.mark.parametrize("attack", STATISTIC_FORGERIES)
def test_a_forged_statistic_looks_like_one_of_the_batch(trial: Trial, attack: str) -> None:
    """Only the proof tells it from the true one: same channels, windows and weight."""
    assert trial.gate is not None
    rules, policy = trial.gate.gate.rules, trial.gate.gate.policy
    (malicious,) = trial.scenario.malicious
    batch = trial.contributions.honest(malicious).batch
    attest, _ = Keyless.bound(SHORT).sides("lab", rules, policy, rows_max=len(batch))
    own = attest(malicious, batch)
    assert own is not None
    assert own.statistic is not None
    summed = statistic_settings(attest.circuit)
    assert summed is not None
    true = MomentStatistic.from_canonical(own.statistic, summed)
    false = MomentStatistic.from_canonical(forged_by(trial, attack)[malicious], summed)
    assert (false.count, false.weight) == (true.count, true.weight)
    assert false != true


def test_a_statistic_that_is_swapped_after_committing_is_refused_before_the_proof(
    trial: Trial,
) -> None:
    assert trial.gate is not None
    rules, policy = trial.gate.gate.rules, trial.gate.gate.policy
    (malicious,) = trial.scenario.malicious
    batch = trial.contributions.honest(malicious).batch
    longest = max(len(shard) for shard in trial.scenario.shards.values())
    attest, admission = Keyless.bound(SHORT).sides("lab", rules, policy, rows_max=longest)
    forged = forged_by(trial, "statistic-scaled")
    forger = StatisticForger(honest=attest, forged=forged, signed=False)
    brought = {malicious: trial.contributions.honest(malicious)}
    decisions = admit((malicious,), trial._honest_transport(brought, forger), admission)
    assert len(batch) == len(brought[malicious].batch)
    assert decisions[malicious].reasons == ("its proof fails step 5.6.1",)


def test_the_vote_is_that_of_the_other_clients(trial: Trial) -> None:
    plan = trial.plan(MODES["bound"], "attest-clean")
    (done,) = trial.run(plan, "vote")
    (malicious,) = trial.scenario.malicious
    assert sorted(done.influence) == sorted(set(trial.scenario.shards) - {malicious})
    assert malicious not in done.detector.training.records


def test_without_an_attack_all_clients_are_honest(trial: Trial) -> None:
    plan = trial.plan(MODES["bound"])
    assert all(decision.admitted for decision in plan.decisions.values())
    with pytest.raises(SettingError, match="rule 'fedavg' is no vote"):
        trial.run(plan, "fedavg")


def test_attacks_that_do_not_fit_are_refused(trial: Trial) -> None:
    with pytest.raises(SettingError, match="falsifies updates"):
        trial.plan(MODES["bound"], "min-max")
    with pytest.raises(SettingError, match="use --mode bound"):
        trial.plan(MODES["gated"], "statistic-scaled")
