"""Probes: tiny federations that show how the present code trains, aggregates and measures.

Two versions of the code that give the same figures here give the same scores for the same rows, as
far as anything that a probe uses is concerned. Probes need no plant and no record.
"""

from collections.abc import Iterable

import numpy as np

from sluice.detector import Descent, DetectorKind
from sluice.evaluation import Outcome, evaluate
from sluice.lab.results import Behaviour
from sluice.lab.trials.cell import score_of
from sluice.lab.trials.contributions import Contributions
from sluice.lab.trials.modes import MODES
from sluice.lab.trials.scenario import Setup, scenario
from sluice.lab.trials.trial import Trial
from sluice.seeding import stream
from sluice.telemetry import Channel, Label, Record, Role

__all__ = ["behaviour"]

ROWS, CHANNELS, STRIDE_S = 3_000, 4, 60
ATTACKS = ((400, 460), (1_200, 1_240), (2_000, 2_100))
SHIFT = 2.0
DIGITS = 7
ALARM = 0.98
SHARES = (0.05, 0.5, 0.95)
CROWDED = "min-max"
"""An attack whose malicious clients send the same update: every rule meets equal updates."""
START = np.datetime64("2020-01-01T00:00:00", "us")
SETUP = Setup(
    clients=5,
    malicious=2,
    rounds=3,
    detector=DetectorKind.AUTOENCODER.value,
    descent=Descent(epochs=1, batch=64),
)


def behaviour(rules: Iterable[str], attacks: Iterable[str]) -> Behaviour:
    """Train the autoencoder under each rule, and under `fedavg` with each attack on updates."""
    clean, attacked = _record(seed=0), _record(seed=1, attacked=True)
    trial = Trial(contributions=Contributions(scenario(clean, attacked, setup=SETUP, seed=0)))
    found = {"measures": _measures(trial)}
    for rule in sorted(set(rules)):
        found[rule] = _trained(trial, rule, None)
        found[f"{rule}, {CROWDED}"] = _trained(trial, rule, CROWDED)
    for attack in sorted(set(attacks)):
        found[f"fedavg, {attack}"] = _trained(trial, "fedavg", attack)
    return found


def _trained(trial: Trial, rule: str, attack: str | None) -> tuple[float, ...]:
    """Return scores, threshold, precision over all thresholds, and each client's influence."""
    plan = trial.plan(MODES["naive" if attack else "clean"], attack)
    (done,) = finished = trial.run(plan, rule)
    scored, score = done.detector.score(trial.scenario.test), score_of(finished, trial)
    return _rounded(
        *np.quantile(scored.scores, SHARES).tolist(),
        done.detector.threshold.score,
        score.auc_pr,
        *(score.influence.get(client, 0.0) for client in trial.scenario.shards),
        *(score.passed.get(client, 0.0) for client in trial.scenario.shards),
    )


def _measures(trial: Trial) -> tuple[float, ...]:
    """Measure scores that are drawn, because alarms of trained ones may differ by processor."""
    test = trial.scenario.test
    windows = trial.scenario.framing.windows(test)
    drawn = stream(0, "probe", "scores").uniform(0, 1, len(windows))
    scores = drawn + 0.3 * (windows.labels == Label.ATTACK)
    outcome = Outcome(
        scores=scores,
        alarms=scores > ALARM,
        labels=windows.labels,
        last_rows=windows.last_rows,
        stride_s=test.stride_s,
    )
    quality = evaluate(outcome, targets=windows.touching(trial.scenario.targets.rows))
    return _rounded(
        quality.targeted_recall,
        quality.untargeted_recall,
        quality.targeted_auc_pr,
        quality.precision,
        quality.recall,
        quality.f1,
        quality.auc_pr,
        quality.oracle_best_f1,
        quality.detected_attacks,
        quality.median_delay_s,
        quality.false_alarms_per_day,
        quality.etapr.f1,
    )


def _rounded(*figures: float | None) -> tuple[float, ...]:
    return tuple(-1.0 if figure is None else float(f"{figure:.{DIGITS}g}") for figure in figures)


def _record(*, seed: int, attacked: bool = False) -> Record:
    """Return slow waves with noise; under attack one channel is shifted."""
    at = np.arange(ROWS)[:, np.newaxis]
    waves = np.sin(2 * np.pi * at / np.array([97.0, 131.0, 211.0, 307.0]))
    values = waves + 0.1 * stream(seed, "probe").standard_normal((ROWS, CHANNELS))
    labels = np.full(ROWS, Label.NORMAL, np.int8)
    for first, last in ATTACKS if attacked else ():
        values[first:last, 1] += SHIFT
        labels[first:last] = Label.ATTACK
    return Record(
        name=f"probe {seed}",
        channels=tuple(Channel(name=f"F{at}", role=Role.FLOW) for at in range(CHANNELS)),
        values=values,
        times=START + (STRIDE_S * np.arange(ROWS)).astype("timedelta64[s]"),
        stride_s=STRIDE_S,
        labels=labels,
    )
