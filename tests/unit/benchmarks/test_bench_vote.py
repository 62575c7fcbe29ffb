"""The evidence on the vote, in small: every attack stays at or above the certificate."""

import warnings
from pathlib import Path

import pytest

from benchmarks.evidence.study import Study
from benchmarks.vote.page import page
from benchmarks.vote.run import case, votes
from benchmarks.vote.statistics import STATISTIC_ATTACKS
from benchmarks.vote.store import OR_RULES, VOTE, Result, Store
from sluice.admission import EmptyRulesWarning
from sluice.lab.plants import simulate
from sluice.lab.trials import Setup

ATTACKS = ("none", "replay", "attest-clean", *STATISTIC_ATTACKS)


@pytest.fixture(scope="module")
def results() -> list[Result]:
    study = Study(
        name="line",
        clean=simulate("line", seed=0, days=10),
        test=simulate("line", seed=1, days=3, attacks=True),
        setup=Setup(clients=5, malicious=2),
        seeds=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EmptyRulesWarning)
        return list(votes(case(study, 0, "moments"), ATTACKS))


@pytest.mark.parametrize("rule", [VOTE, OR_RULES])
def test_no_attack_is_worse_than_the_certificate(results: list[Result], rule: str) -> None:
    attacked = [result for result in results if result.rule == rule]
    assert [result.attack for result in attacked] == list(ATTACKS)
    for result in attacked:
        assert result.holds, result
        assert result.targeted_recall_certified is not None
        assert result.targeted_recall >= result.targeted_recall_certified


def test_a_wide_statistic_takes_from_the_sum_what_it_cannot_take_from_the_vote(
    results: list[Result],
) -> None:
    recall = {(result.rule, result.attack): result.figures.recall for result in results}
    lost = recall["sum", "none"] - recall["sum", "statistic: wide"]
    assert lost > recall["vote", "none"] - recall["vote", "statistic: wide"]


def test_rules_beside_the_vote_raise_what_is_certified(results: list[Result]) -> None:
    certified = {r.rule: r.certified for r in results if r.attack == "none" and r.certified}
    assert certified[OR_RULES].recall > certified[VOTE].recall


def test_results_are_stored_and_written(results: list[Result], tmp_path: Path) -> None:
    store = Store(tmp_path / "vote.jsonl")
    store.add("line", 0, "moments", results)
    again = Store(tmp_path / "vote.jsonl")
    assert again.results == results
    assert again.missing("line", 0, "moments", (*ATTACKS, "feasible")) == ("feasible",)
    assert again.missing("line", 1, "moments", ATTACKS) == ATTACKS
    written = page(
        again.results,
        plants=("line", "other"),
        attacks=("replay", "feasible"),
        rivals=("none", "replay"),
        seeds=1,
    )
    assert (
        "**Not run yet:** `feasible` on the moments of line (0 of 1 seeds), every attack on the "
        "autoencoder of line (0 of 1 seeds), every attack on the moments of other (0 of 1 seeds), "
        "every attack on the autoencoder of other (0 of 1 seeds)." in written
    )
    attacked = len(ATTACKS) - 1
    assert written.count(f"**{attacked} of {attacked} attacked votes") == len((VOTE, OR_RULES))
    assert "moments, sum, statistic: wide (n = 1)" in written
