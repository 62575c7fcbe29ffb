"""Cells: what a score is the mean of, and what a result says of its clients."""

from dataclasses import fields, replace
from statistics import fmean

import numpy as np
import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import PaperPolicy
from sluice.detector.model import DetectorKind
from sluice.errors import SettingError
from sluice.evaluation import Unlabelled
from sluice.federation.admission_check import Decision
from sluice.federation.federate import Federated
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.lab.plants.catalogue import simulate
from sluice.lab.results.cell import Score
from sluice.lab.trials import cell
from sluice.lab.trials.cell import measured, result_of, run_cell, score_of
from sluice.lab.trials.contributions import Contributions, NamedGate
from sluice.lab.trials.modes import MODES
from sluice.lab.trials.scenario import Setup, scenario
from sluice.lab.trials.trial import Trial
from sluice.telemetry.record import Label

SETUP = Setup(clients=3, malicious=1, rounds=1, detector=DetectorKind.SUBSPACE.value)


@pytest.fixture(scope="module")
def tried() -> Trial:
    clean = simulate("line", seed=0, days=5)
    test = simulate("line", seed=1, days=3, attacks=True)
    shared = scenario(clean, test, setup=SETUP, seed=0)
    rules = mine(shared.parts.fit, shared.parts.calibration, profile=Profile.PAPER_WIDE)
    gate = NamedGate(name="paper-wide", gate=Gate.of(rules, PaperPolicy()))
    return Trial(contributions=Contributions(shared), gate=gate)


@pytest.fixture(scope="module")
def clean(tried: Trial) -> Federated:
    (done,) = tried.run(tried.plan(MODES["clean"]), "fedavg")
    return done


@pytest.fixture(scope="module")
def alone(tried: Trial) -> tuple[Federated, ...]:
    return tried.run(tried.plan(MODES["local-only"]), "fedavg")


def test_targeted_recall_counts_the_windows_that_touch_a_target(
    tried: Trial, clean: Federated
) -> None:
    shared = tried.scenario
    quality = measured(clean.detector, shared)
    scored = clean.detector.score(shared.test)
    targeted = shared.framing.windows(shared.test).touching(shared.targets.rows)
    assert targeted.any()
    assert quality.targeted_recall == pytest.approx(scored.alarms[targeted].mean())
    attacked = scored.labels == Label.ATTACK
    assert quality.recall == pytest.approx(scored.alarms[attacked].mean())
    others = attacked & ~targeted
    assert quality.untargeted_recall == pytest.approx(scored.alarms[others].mean())


def test_the_score_of_one_federation_is_its_quality(tried: Trial, clean: Federated) -> None:
    quality = measured(clean.detector, tried.scenario)
    score = score_of((clean,), tried)
    for name in ("targeted_recall", "precision", "recall", "f1", "auc_pr", "oracle_best_f1"):
        assert getattr(score, name) == getattr(quality, name)
    assert score.etaf1 == quality.etapr.f1
    assert score.attacks == len(quality.attacks) == len(tried.scenario.test.attack_segments)
    assert score.detected_attacks == quality.detected_attacks
    assert score.influence == clean.influence
    assert score.passed == dict.fromkeys(tried.scenario.shards, 1.0)


def test_the_score_of_plants_alone_is_the_mean_over_plants(
    tried: Trial, alone: tuple[Federated, ...]
) -> None:
    assert len(alone) == 3
    scores = [score_of((done,), tried) for done in alone]
    together = score_of(alone, tried)
    for name in ("targeted_recall", "recall", "f1", "auc_pr", "etaf1", "detected_attacks"):
        assert getattr(together, name) == pytest.approx(fmean(getattr(s, name) for s in scores))
    assert len({score.auc_pr for score in scores}) == 3
    assert together.influence == dict.fromkeys(tried.scenario.shards, 1.0)
    assert list(together.passed) == list(tried.scenario.shards)


def test_a_figure_that_some_plants_lack_is_the_mean_over_the_others() -> None:
    assert cell._mean([None, 0.25, None, 0.75]) == 0.5
    assert cell._mean([None, None]) is None
    assert cell._mean([]) is None
    assert cell._mean([0.0]) == 0.0


def test_unlabelled_rows_count_as_they_are_asked_to(tried: Trial, clean: Federated) -> None:
    labels = np.where(
        tried.scenario.test.labels == Label.NORMAL, Label.UNLABELLED, tried.scenario.test.labels
    ).astype(np.int8)
    test = replace(tried.scenario.test, labels=labels)
    shared = replace(tried.scenario, labelled=replace(tried.scenario.targets, labelled=test))
    normal = measured(clean.detector, shared, unlabelled=Unlabelled.NORMAL)
    assert normal.false_alarms_per_day == pytest.approx(
        measured(clean.detector, tried.scenario).false_alarms_per_day
    )
    assert normal.f1 == measured(clean.detector, tried.scenario).f1
    with pytest.raises(SettingError, match="no window is normal once .* unlabelled ones are left"):
        measured(clean.detector, shared, unlabelled=Unlabelled.EXCLUDE)


def test_a_result_names_the_admitted_the_refused_and_the_malicious(tried: Trial) -> None:
    plan = tried.plan(MODES["gated"], "attest-clean")
    (liar,) = tried.scenario.malicious
    refused = {**plan.decisions, liar: Decision(admitted=False, reasons=("it is frozen",))}
    found = result_of(tried, replace(plan, decisions=refused), "median", SCORE)
    assert found.refused == {liar: ("it is frozen",)}
    assert found.admitted == tried.scenario.honest
    assert found.liars == (liar,)
    assert found.liars_admitted == 0
    assert (found.mode, found.attack, found.rule, found.seed) == (
        "gated",
        "attest-clean",
        "median",
        0,
    )
    assert found.score is SCORE


def test_without_a_memory_a_cell_is_its_federations_score(tried: Trial, clean: Federated) -> None:
    found = run_cell(tried, tried.plan(MODES["clean"]), "fedavg")
    assert found.score == score_of((clean,), tried)
    assert found.admitted == tuple(tried.scenario.shards)
    assert found.refused == {}


class Known:
    def __init__(self, score: Score | None) -> None:
        self.score = score
        self.asked: list[str] = []
        self.noted: list[tuple[str, Score]] = []

    def recall(self, key: str) -> Score | None:
        self.asked.append(key)
        return self.score

    def note(self, key: str, score: Score) -> None:
        self.noted.append((key, score))


def test_a_remembered_score_is_taken_and_not_noted_again(tried: Trial) -> None:
    memory, plan = Known(SCORE), tried.plan(MODES["clean"])
    assert run_cell(tried, plan, "fedavg", memory=memory).score is SCORE
    assert memory.asked == [f"fedavg: {plan.key}"]
    assert memory.noted == []


def test_a_new_score_is_noted_by_rule_and_plan(tried: Trial) -> None:
    memory, plan = Known(None), tried.plan(MODES["clean"])
    found = run_cell(tried, plan, "fedavg", memory=memory)
    assert memory.asked == [f"fedavg: {plan.key}"]
    assert memory.noted == [(f"fedavg: {plan.key}", found.score)]


SCORE = Score(
    **{one.name: 0 for one in fields(Score) if one.name not in ("influence", "passed")},
    influence={},
    passed={},
)
