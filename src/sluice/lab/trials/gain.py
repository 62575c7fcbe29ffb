"""The gain of a simulated consortium over training alone (`sluice plant check --simulate`)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from sluice.evaluation import Unlabelled
from sluice.lab.plants import simulate
from sluice.lab.trials.cell import score_of
from sluice.lab.trials.contributions import Contributions
from sluice.lab.trials.modes import MODES
from sluice.lab.trials.scenario import Setup, scenario
from sluice.lab.trials.trial import Trial

__all__ = ["SimulatedGain", "simulated_gain"]

CLIENTS, ROUNDS, DAYS = 5, 10, 12.0
FIGURES = ("recall", "auc_pr", "f1", "false_alarms_per_day")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedGain:
    """Each figure by name, for plants that train alone and for the same plants as a federation."""

    clients: int
    rounds: int
    alone: Mapping[str, float]
    federation: Mapping[str, float]


def simulated_gain() -> SimulatedGain:
    """Run a consortium of simulated plants, jointly and each alone."""
    clean = simulate("line", seed=0, days=DAYS)
    attacked = simulate("line", seed=1, days=DAYS, attacks=True)
    setup = Setup(clients=CLIENTS, malicious=1, rounds=ROUNDS)  # inactive in these modes
    shared = scenario(clean, attacked, setup=setup, seed=0)
    trial = Trial(contributions=Contributions(shared, own=None))

    def figures(mode: str) -> dict[str, float]:
        finished = trial.run(trial.plan(MODES[mode]), "fedavg")
        score = asdict(score_of(finished, trial, unlabelled=Unlabelled.NORMAL))
        return {name: score[name] for name in FIGURES}

    return SimulatedGain(
        clients=CLIENTS,
        rounds=ROUNDS,
        alone=figures("local-only"),
        federation=figures("clean"),
    )
