"""Joint calibration: batches drawn, refused and counted by hand, and the rule that is widened."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.arrays import Bools
from sluice.invariants.encoding import encode
from sluice.invariants.integers import evaluate
from sluice.invariants.mining.hardened import _calibrated, _drifting, _high, with_power
from sluice.invariants.mining.joint import (
    _counts,
    _draws,
    _liveness,
    _loosened,
    _noise,
    _refused,
    clean_facts,
)
from sluice.invariants.relations import ActuatorState, Evidence, Invariant
from sluice.invariants.ruleset import CleanShare, Dropped, Liveness
from sluice.telemetry.record import Record
from tests.unit.invariants.small_plant import (
    BALANCE,
    BALANCED,
    BOUNDED,
    COUPLED,
    COUPLING,
    EVERY_RULE,
    RATE,
    RATED,
    WINDOW,
    quiet_day,
    record_of,
    rule,
    rules_of,
)


def levels(*readings: float) -> Record:
    return record_of({"L1": readings})


def marked(rows: int, *at: int) -> Bools:
    found = np.zeros(rows, bool)
    found[list(at)] = True
    return found


@pytest.mark.parametrize(
    ("rows", "batch"),
    [(50, 50), (200, 200), (201, 200), (800, 200), (804, 201), (4_000, 1_000), (9_999, 1_000)],
)
def test_a_batch_is_a_quarter_of_the_rows_within_200_and_1000(rows: int, batch: int) -> None:
    length, starts = _draws(levels(*([5.0] * rows)))
    assert length == batch
    assert len(starts) == 400
    assert 0 <= starts.min() <= starts.max() <= rows - batch


def test_draws_are_the_same_every_time() -> None:
    record = levels(*([5.0] * 900))
    assert list(_draws(record)[1]) == list(_draws(record)[1])


def test_rows_of_a_batch_are_counted_with_its_first_and_without_its_end() -> None:
    counts = _counts(marked(6, 0, 2, 3), np.array([0, 1, 2, 3]), 3)
    assert list(counts) == [2, 2, 2, 1]


@pytest.mark.parametrize(
    ("batch", "violating", "refused"),
    [(100, 1, False), (100, 2, True), (200, 1, False), (200, 2, True),
     (1_000, 9, False), (1_000, 10, True)],
)  # fmt: skip
def test_a_batch_is_refused_beyond_alpha_with_its_first_row_counted(
    batch: int,
    violating: int,
    refused: bool,  # noqa: FBT001
) -> None:
    found = _refused(marked(batch, *range(violating)), np.array([0]), batch)
    assert list(found) == [refused]


def loosened(*rules: Invariant, record: Record) -> tuple[dict[str, float], tuple[Dropped, ...]]:
    ruled = rules_of(*rules)
    judged = list(evaluate(encode(ruled), record))
    after = _loosened(ruled, judged, np.array([0]), len(record))
    return {one.name: one.tolerance for one in after.invariants}, after.dropped


def test_the_rule_with_most_violating_rows_is_widened_by_a_quarter() -> None:
    columns = quiet_day()
    columns["L1"][14:] = [2_400.0, 1_800.0]  # breaks the balance twice and the rate twice
    columns["F1"][13] = 30.0  # breaks the coupling once, and the balance a third time
    found, dropped = loosened(COUPLED, BALANCED, RATED, record=record_of(columns))
    assert found == {"P1~F1": 6.0, "dL1": 15.0, "L1 rate": 384.0}
    assert dropped == ()


@pytest.mark.parametrize(("tolerance", "kept"), [(119.9, True), (120.0, False)])
def test_a_coupling_that_would_reach_half_of_nominal_is_dropped(
    tolerance: float,
    kept: bool,  # noqa: FBT001
) -> None:
    record = record_of({"P1": [0, 0, 0], "F1": [0, 300, 300]})
    found, dropped = loosened(rule(COUPLING, tolerance), record=record)
    assert found == ({"P1~F1": tolerance * 1.25} if kept else {})
    why = "vacuous: wide enough for clean batches, it cannot tell on from off"
    assert dropped == (() if kept else (Dropped(name="P1~F1", why=why),))


def test_facts_about_a_quiet_day_are_counted_by_hand() -> None:
    facts = clean_facts(EVERY_RULE, record_of(quiet_day()), liveness=())
    assert (facts.batch_rows, facts.batches, facts.effective_batches) == (16, 400, 1.0)
    assert (facts.refused_share, facts.refused_upper) == (0.0, 1.0)  # 3 / 1 batch is above 1
    assert facts.violating_share == 1 / 16  # the first row
    assert facts.segments_per_row == 0.0
    assert facts.severe == (
        CleanShare(rule="P1~F1", share=0.0),
        CleanShare(rule="dL1", share=0.0),
        CleanShare(rule="L1 rate", share=50 / 128),
    )
    assert facts.envelope == (CleanShare(rule="P1~F1", share=3 / 16),)
    assert facts.anchors == (CleanShare(rule="dL1/4", share=0.0),)
    assert facts.repeats == (CleanShare(rule="L1", share=0.0),)


def test_jumps_and_broken_windows_are_shares_of_rows_and_of_anchors() -> None:
    facts = clean_facts(EVERY_RULE, record_of(quiet_day(), jumps=(9,)), liveness=())
    assert facts.segments_per_row == 1 / 16
    assert facts.violating_share == 2 / 16
    assert facts.anchors == (CleanShare(rule="dL1/4", share=2 / 6),)  # of 4, 6, 8, 10, 12, 14


def test_two_violating_rows_refuse_the_only_batch() -> None:
    columns = quiet_day()
    columns["L1"][14:] = [9.0, 9.0]
    facts = clean_facts(rules_of(BOUNDED), record_of(columns), liveness=())
    assert (facts.refused_share, facts.refused_upper) == (1.0, 1.0)


def test_noise_is_estimated_from_bends_and_a_straight_line_has_none() -> None:
    assert _noise(np.array([0.0, 1.0, 2.0, 3.0])) == 0.0
    assert _noise(np.array([0.0, 1.0])) == 0.0
    bends = np.array([0.0, 1.0, 0.0, 1.0])
    assert _noise(bends) == pytest.approx(2 / (0.2533 * np.sqrt(6)))
    assert _noise(np.array([0.0, np.nan, 1.0, 0.0, 1.0])) == _noise(bends)


def test_a_level_that_always_moves_is_live_over_the_shortest_block() -> None:
    facts = _liveness("L1", levels(*(3.0 * at for at in range(200))))
    assert facts == (
        Liveness(level="L1", rows=9, smallest_range=21.0),  # blocks of 8 rows, and an eighth more
        Liveness(level="L1", rows=11, smallest_range=27.0),
    )


def test_a_level_that_stood_still_longer_than_any_block_has_no_liveness() -> None:
    assert _liveness("L1", levels(*([600.0] * 200))) == ()


def test_twenty_blocks_are_needed() -> None:
    assert _liveness("L1", levels(*(3.0 * at for at in range(159)))) == ()
    (fact,) = _liveness("L1", levels(*(3.0 * at for at in range(160))))
    assert fact.rows == 9


def test_the_calmest_of_all_records_decides() -> None:
    steep, flat = (levels(*(slope * at for at in range(100))) for slope in (30.0, 3.0))
    assert _liveness("L1", steep, flat)[0].smallest_range == 21.0


def test_few_residuals_are_extrapolated_and_many_are_not() -> None:
    assert _high(np.array([4.0, 4.0, 4.0])) == 4.0
    sizes = np.array([1.0] * 9 + [2.0])
    base = float(np.quantile(sizes, 0.9))
    assert _high(sizes) == pytest.approx(base + (2.0 - base) * np.log(100))
    many = np.array([1.0] * 499 + [2.0])
    assert _high(many) == pytest.approx(float(np.quantile(many, 0.999)))


def test_a_tolerance_is_at_least_one_step_of_the_instrument() -> None:
    assert _calibrated(RATE, np.array([1.0, 1.0]), 3.0, Evidence()).tolerance == 3.0
    assert _calibrated(RATE, np.array([4.0, 4.0]), 3.0, Evidence()).tolerance == 6.0
    unseen = _calibrated(RATE, np.array([]), 3.0, Evidence(r2=0.7))
    assert (unseen.tolerance, unseen.evidence.judged_rows) == (3.0, 0)
    assert unseen.evidence == Evidence(r2=0.7, judged_rows=0, few_rows=True)
    assert _calibrated(RATE, np.array([0.0]), 0.0, Evidence()).tolerance == 1e-12


def test_drift_between_hours_widens_a_tolerance_once_there_are_enough_rows() -> None:
    hours = np.repeat([1.0, -1.0] * 10, 8)
    assert _drifting(hours[:159]) == 0.0
    assert _drifting(hours) == pytest.approx(3 * np.sqrt(20 / 19))
    assert _drifting(hours + 5.0) == pytest.approx(5 + 3 * np.sqrt(20 / 19))


def power(invariant: Invariant, record: Record) -> Evidence:
    (powered,) = with_power(rules_of(invariant), record).invariants
    return powered.evidence


def test_power_is_the_tolerance_and_the_shortest_freeze() -> None:
    rising = levels(*(12.0 * at for at in range(9)))
    assert power(RATED, rising) == Evidence(smallest_offset=384.0)
    assert power(rule(BALANCE, 12.0), rising) == Evidence(smallest_offset=12.0)
    frozen = power(rule(BALANCE, 11.9), rising)
    assert frozen == Evidence(smallest_offset=11.9, smallest_freeze_rows=1)
    assert power(rule(WINDOW, 48.0), rising) == Evidence(smallest_offset=12.0)
    slow = power(rule(WINDOW, 47.0), rising)
    assert slow == Evidence(smallest_offset=11.75, smallest_freeze_rows=4)
    assert power(BOUNDED, rising) == Evidence()


@pytest.mark.parametrize(("tolerance", "sees"), [(99.0, True), (100.0, False)])
def test_a_coupling_sees_a_contradiction_of_its_slowest_speed(
    tolerance: float,
    sees: bool,  # noqa: FBT001
) -> None:
    speeds = (ActuatorState(code=1, nominal=300.0), ActuatorState(code=2, nominal=100.0))
    found = power(rule(replace(COUPLING, states=speeds), tolerance), levels(1.0, 2.0))
    assert found == Evidence(smallest_offset=tolerance, sees_contradiction=sees)
