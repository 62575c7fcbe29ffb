"""The gain of a simulated consortium, on a plant of a few days."""

import pytest

from sluice.lab.plants.catalogue import simulate
from sluice.lab.trials import gain
from sluice.lab.trials.cell import run_cell, score_of
from sluice.lab.trials.contributions import Contributions
from sluice.lab.trials.gain import SimulatedGain, simulated_gain
from sluice.lab.trials.modes import MODES
from sluice.lab.trials.scenario import Setup, scenario
from sluice.lab.trials.trial import Trial


@pytest.fixture(scope="module")
def found() -> SimulatedGain:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gain, "DAYS", 3.0)
        patched.setattr(gain, "CLIENTS", 2)
        patched.setattr(gain, "ROUNDS", 1)
        return simulated_gain()


def test_the_gain_tells_the_same_figures_of_both_ways(found: SimulatedGain) -> None:
    assert (found.clients, found.rounds) == (2, 1)
    for figures in (found.alone, found.federation):
        assert tuple(figures) == ("recall", "auc_pr", "f1", "false_alarms_per_day")
    assert found.alone != found.federation


def test_the_federations_figures_are_those_of_the_clean_mode(found: SimulatedGain) -> None:
    clean = simulate("line", seed=0, days=3)
    test = simulate("line", seed=1, days=3, attacks=True)
    shared = scenario(clean, test, setup=Setup(clients=2, malicious=1, rounds=1), seed=0)
    trial = Trial(contributions=Contributions(shared))
    score = run_cell(trial, trial.plan(MODES["clean"]), "fedavg").score
    assert found.federation["recall"] == score.recall
    assert found.federation["auc_pr"] == score.auc_pr
    apart = score_of(trial.run(trial.plan(MODES["local-only"]), "fedavg"), trial)
    assert found.alone["recall"] == apart.recall
    assert found.alone["f1"] == apart.f1
