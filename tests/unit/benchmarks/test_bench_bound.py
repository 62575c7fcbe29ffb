"""The benchmark of forged statistics, on a small plant."""

import pytest

from benchmarks import bound_damage
from benchmarks.bound import Outcomes, measure, page
from benchmarks.evidence.study import Study
from sluice.attestation.messages.statistic_limits import StatisticLimits
from sluice.lab.plants.catalogue import simulate
from sluice.lab.trials.forgeries import STATISTIC_FORGERIES
from sluice.lab.trials.scenario import Setup

SHORT = StatisticLimits(rows_min=100, span_min_s=0)


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(
        name="line",
        clean=simulate("line", seed=0, days=6),
        test=simulate("line", seed=1, days=2, attacks=True),
        setup=Setup(clients=4, malicious=1),
        seeds=2,
    )


@pytest.fixture(scope="module")
def outcomes(study: Study) -> Outcomes:
    return measure(study, (100, 101), SHORT)


def test_every_forgery_is_counted_and_none_is_admitted(outcomes: Outcomes) -> None:
    assert outcomes.forged == dict.fromkeys(STATISTIC_FORGERIES, 2)
    assert sum(outcomes.admitted.values()) == 0
    assert (outcomes.honest, outcomes.honest_refused) == (2 * 3 * len(STATISTIC_FORGERIES), 0)
    assert len(outcomes.certificates) == 2


def test_the_page_says_how_often_and_what_was_lowered(outcomes: Outcomes) -> None:
    text = page([outcomes])
    assert "| attest-clean | 0 of 2 | its proof fails step 5.8 (2) |" in text
    assert "2 seeds (100 to 101)" in text
    assert "statistic_rows_min is 100 (default 4,096)" in text
    outcomes.admitted["attest-clean"] += 1
    assert "| attest-clean | 1 of 2 |" in page([outcomes])


def test_the_damage_is_measured_in_every_mode_and_binding_admits_no_forger(study: Study) -> None:
    damage = bound_damage.measure(study, (100,), SHORT)
    assert set(damage.certificates) == set(bound_damage.ROWS)
    assert dict(damage.attacking) == {
        row: 1 for row in bound_damage.ROWS if row[0] in ("naive", "gated", "bound")
    }
    assert damage.admitted["gated", "vote"] == 1
    assert damage.admitted["bound", "vote"] == 0
    assert len(damage.certificates["bound", "vote"][0][0].members) == 3
    text = bound_damage.page([damage])
    assert "| gated | vote | 1 of 1 | recall |" in text
    assert "| bound | vote | 0 of 1 | recall |" in text
    assert "| clean | fedavg | - | recall |" in text
    assert "statistic_rows_min is 100 (default 4,096)" in text
