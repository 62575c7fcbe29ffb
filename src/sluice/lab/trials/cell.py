"""A cell: one mode, rule and attack of a scenario, and its result."""

from collections.abc import Callable, Iterable
from statistics import fmean
from typing import Protocol

from sluice.detector import Detector
from sluice.evaluation import DetectionQuality, Outcome, Unlabelled, evaluate
from sluice.federation import Federated
from sluice.lab.results import CellResult, Score
from sluice.lab.trials.scenario import Scenario
from sluice.lab.trials.trial import Trial, TrialPlan

__all__ = [
    "CellResult",
    "Score",
    "ScoreMemory",
    "admitted_and_refused",
    "measured",
    "result_of",
    "run_cell",
    "score_of",
]


def measured(
    detector: Detector, scenario: Scenario, *, unlabelled: Unlabelled = Unlabelled.EXCLUDE
) -> DetectionQuality:
    """Score the test record; a window is targeted if it touches a row that the attack hides."""
    scored = detector.score(scenario.test)
    outcome = Outcome.of(scored)
    targets = scenario.framing.windows(scenario.test).touching(scenario.targets.rows)
    return evaluate(outcome, targets=targets, unlabelled=unlabelled)


class ScoreMemory(Protocol):
    """Stores the scores of federations, so that no federation runs twice."""

    def recall(self, key: str) -> Score | None:
        """Return the score if this federation has run before."""
        ...

    def note(self, key: str, score: Score) -> None:
        """Store a score."""
        ...


def run_cell(
    trial: Trial, plan: TrialPlan, rule: str, *, memory: ScoreMemory | None = None
) -> CellResult:
    """Run the federation of a cell, or take its score from `memory`."""
    key = f"{rule}: {plan.key}"
    score = memory.recall(key) if memory else None
    if score is None:
        score = score_of(trial.run(plan, rule), trial)
        if memory:
            memory.note(key, score)
    return result_of(trial, plan, rule, score)


def result_of(trial: Trial, plan: TrialPlan, rule: str, score: Score) -> CellResult:
    """Assemble the result of a cell."""
    admitted, refused = admitted_and_refused(plan)
    return CellResult(
        mode=plan.mode.name,
        attack=plan.attack,
        rule=rule,
        seed=trial.scenario.seed,
        admitted=admitted,
        refused=refused,
        liars=trial.scenario.malicious,
        score=score,
    )


def admitted_and_refused(
    plan: TrialPlan,
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the clients that take part, and the others with the gate's reasons."""
    decisions = plan.decisions.items()
    return (
        tuple(client for client, decision in decisions if decision.admitted),
        {client: decision.reasons for client, decision in decisions if not decision.admitted},
    )


def score_of(
    finished: tuple[Federated, ...], trial: Trial, *, unlabelled: Unlabelled = Unlabelled.EXCLUDE
) -> Score:
    """Measure each federation's detector on the test record and return the mean scores."""
    qualities = [
        measured(done.detector, trial.scenario, unlabelled=unlabelled) for done in finished
    ]

    def mean(figure: Callable[[DetectionQuality], float | None]) -> float | None:
        return _mean(figure(quality) for quality in qualities)

    def whole(figure: Callable[[DetectionQuality], float]) -> float:
        return fmean(figure(quality) for quality in qualities)

    return Score(
        targeted_recall=mean(lambda quality: quality.targeted_recall),
        untargeted_recall=mean(lambda quality: quality.untargeted_recall),
        targeted_auc_pr=mean(lambda quality: quality.targeted_auc_pr),
        precision=mean(lambda quality: quality.precision),
        recall=whole(lambda quality: quality.recall),
        f1=whole(lambda quality: quality.f1),
        auc_pr=whole(lambda quality: quality.auc_pr),
        oracle_best_f1=whole(lambda quality: quality.oracle_best_f1),
        detected_attacks=whole(lambda quality: quality.detected_attacks),
        attacks=len(qualities[0].attacks),
        median_delay_s=mean(lambda quality: quality.median_delay_s),
        false_alarms_per_day=mean(lambda quality: quality.false_alarms_per_day),
        etaf1=whole(lambda quality: quality.etapr.f1),
        influence={c: share for done in finished for c, share in done.influence.items()},
        passed={c: share for done in finished for c, share in done.passed.items()},
    )


def _mean(figures: Iterable[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return fmean(known) if known else None
