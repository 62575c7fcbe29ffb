"""The predicted refusal rate: its interval, the rules to blame, and agreement with the gate."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from sluice.admission import Gate, HardenedPolicy
from sluice.invariants import Margins, RuleSet, budgets_for
from sluice.invariants.mining.hardened import TYING_KINDS, mine_hardened
from sluice.invariants.mining.slack import Slack, slackened
from sluice.invariants.mining.trial import (
    Blamed,
    HonestRefusal,
    RefusedShare,
    exceeded,
    tried,
)
from sluice.lab.plants import simulate
from sluice.telemetry import Record
from tests.unit.invariants.small_plant import (
    BALANCED,
    BAND,
    BOUND,
    COUPLED,
    SPECTRUM,
    rule,
    rules_of,
)


@pytest.mark.parametrize(("refused", "batches"), [(0, 24), (1, 24), (7, 90), (24, 24)])
def test_the_interval_is_that_of_clopper_and_pearson(refused: int, batches: int) -> None:
    share = RefusedShare(rows=300, batches=batches, refused=refused)
    exact = binomtest(refused, batches).proportion_ci(method="exact")
    assert (share.low, share.high) == pytest.approx((exact.low, exact.high))
    assert share.rate == refused / batches


def test_no_batch_means_that_nothing_is_promised() -> None:
    honest = HonestRefusal(by_rows=(RefusedShare(rows=300, batches=0, refused=0),))
    assert (honest.worst.rate, honest.worst.low, honest.worst.high) == (1.0, 0.0, 1.0)
    assert not honest.kept


def test_the_worst_length_decides_and_of_equal_ones_the_one_with_most_batches() -> None:
    short = RefusedShare(rows=300, batches=90, refused=0)
    long = RefusedShare(rows=1_000, batches=24, refused=0)
    assert HonestRefusal(by_rows=(short, long)).worst is short
    worse = RefusedShare(rows=1_000, batches=24, refused=1)
    assert HonestRefusal(by_rows=(short, worse)).worst is worse


@pytest.mark.parametrize(("refused", "kept"), [(1, True), (2, False)])
def test_the_target_is_kept_up_to_its_share(refused: int, kept: bool) -> None:  # noqa: FBT001
    share = RefusedShare(rows=300, batches=200, refused=refused)
    assert HonestRefusal(by_rows=(share,)).kept is kept


@pytest.mark.parametrize(
    ("batches", "refused", "shown"),
    [(12, 0, False), (145, 0, False), (146, 0, True), (146, 1, False)],
)
def test_a_kept_target_is_shown_only_by_enough_batches(
    batches: int, refused: int, *, shown: bool
) -> None:
    few = RefusedShare(rows=1_000, batches=6, refused=0)
    many = RefusedShare(rows=300, batches=batches, refused=refused)
    assert HonestRefusal(by_rows=(many, few)).shown is shown


def test_missing_rows_are_those_until_the_interval_ends_at_2_5_percent() -> None:
    honest = HonestRefusal(by_rows=(RefusedShare(rows=300, batches=100, refused=0),))
    enough = 100 + honest.rows_missing // 300
    assert RefusedShare(rows=300, batches=enough, refused=0).high <= 0.025
    assert RefusedShare(rows=300, batches=enough - 1, refused=0).high > 0.025


def test_slack_grows_for_the_checks_to_blame_alone() -> None:
    blamed = (Blamed(check="own budget", rule="dL1/4", batches=2),)
    slack = Slack().widened(blamed, 1.5).widened(blamed, 1.5)
    assert slack.of("own budget", "dL1/4") == 2.25
    assert slack.of("violating rows", "dL1/4") == 1.0


def test_slack_widens_each_kind_of_limit_in_its_own_way() -> None:
    band, noise, bound = rule(BAND, 3.0), rule(SPECTRUM, 3.0), rule(BOUND, 3.0)
    rules = rules_of(COUPLED, BALANCED, band, noise, bound)
    checks = (
        ("violating rows", "dL1"),
        ("severe rows", "dL1"),
        ("violating rows", "P1~F1"),
        ("own budget", "P1@L1"),
        ("own budget", "L1 noise"),
        ("severe rows", "L1 in range"),
        ("standing still", "L1"),
    )
    blamed = tuple(Blamed(check=check, rule=name, batches=1) for check, name in checks)
    wider = slackened(rules, Slack().widened(blamed, 2.0))
    by_name = {one.name: one for one in wider.invariants}
    assert by_name["dL1"].tolerance == 24.0
    assert by_name["P1~F1"].tolerance == 12.0
    assert by_name["P1@L1"].relation == replace(
        BAND, on_low=150.0, on_high=750.0, off_low=1_350.0, off_high=1_950.0
    )
    assert by_name["L1 noise"].relation == replace(
        SPECTRUM, first_low=45.0, first_high=9_000.0, second_low=90.0, second_high=18_000.0
    )
    assert by_name["L1 in range"].relation == replace(BOUND, low=-1_455.0, high=4_485.0)
    assert wider.clean is not None
    assert wider.clean.liveness[0].smallest_range == 30.0
    assert slackened(rules, Slack()) is rules


def test_a_coupling_never_widens_to_half_of_its_flow() -> None:
    blamed = (Blamed(check="violating rows", rule="P1~F1", batches=1),)
    (wide,) = slackened(rules_of(COUPLED), Slack().widened(blamed, 99.0)).invariants
    assert 149.9 < wide.tolerance < 150.0


@pytest.fixture(scope="module")
def plant() -> Record:
    return simulate("line", seed=7, days=9)


@pytest.fixture(scope="module")
def rules(plant: Record) -> RuleSet:
    return mine_hardened(plant.rows(0, 8_640), kinds=TYING_KINDS).rules


def test_the_prediction_judges_batches_as_the_gate_does(plant: Record, rules: RuleSet) -> None:
    """Readings are disturbed more and more, so that both verdicts occur."""
    gate = Gate.of(rules, HardenedPolicy())
    assert rules.clean is not None
    verdicts = set()
    for at, strength in enumerate(np.linspace(0, 0.5, 24)):
        batch = plant.rows(8_640 + 10 * at, 8_640 + 10 * at + 600)
        values = batch.values.copy()
        column = at % values.shape[1]
        values[200:210, column] += strength * np.ptp(values[:, column])
        batch = batch.with_values(values)
        verdict = gate.judge(batch)
        budgets = budgets_for(rules, rules.clean, Margins(), rows=600)
        assert (not any(exceeded(verdict.measured.integers, budgets))) == verdict.admitted
        verdicts.add(verdict.admitted)
    assert verdicts == {True, False}


def test_a_plant_that_changed_is_refused_and_the_rule_is_named(
    plant: Record, rules: RuleSet
) -> None:
    values = plant.values.copy()
    values[:, plant.index("F_PU1")] *= 1.5
    honest = tried([(rules, plant.with_values(values).rows(0, 3_000))], Margins())
    assert honest.worst.rate == 1.0
    assert not honest.kept
    assert any("PU1" in blamed.rule for blamed in honest.blamed)
