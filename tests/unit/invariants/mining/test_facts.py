"""Facts about clean rows counted by hand, liveness, noise, tolerances and power."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.invariants.mining.candidates import Candidate, _drifting, judged
from sluice.invariants.mining.facts import _noise, clean_facts, liveness_of
from sluice.invariants.mining.folds import clean_record
from sluice.invariants.mining.hardened import with_power
from sluice.invariants.relations import ActuatorState, Evidence, Invariant
from sluice.invariants.ruleset import CleanShare
from sluice.telemetry.record import Record
from tests.unit.invariants.small_plant import (
    BALANCE,
    BAND,
    BOUNDED,
    COUPLING,
    EVERY_RULE,
    RATE,
    RATED,
    TIE,
    WINDOW,
    quiet_day,
    record_of,
    rule,
    rules_of,
)

SHARE = 1e-7


def levels(*readings: float) -> Record:
    return record_of({"L1": readings})


def test_facts_about_a_quiet_day_are_counted_by_hand() -> None:
    facts = clean_facts(EVERY_RULE, record_of(quiet_day()), liveness=())
    assert (facts.batch_rows, facts.batches) == (16, 0)
    assert (facts.refused_share, facts.refused_upper) == (1.0, 1.0)  # nothing is promised yet
    assert facts.violating_share == 1 / 16  # the first row
    assert facts.segments_per_row == 0.0
    severe = {fact.rule: fact.share for fact in facts.severe}
    assert (severe["P1~F1"], severe["dL1"], severe["L1 rate"]) == (0.0, 0.0, 50 / 128)
    # Three rows are in transition; a batch that starts elsewhere has one more at its start.
    assert facts.envelope == (CleanShare(rule="P1~F1", share=4 / 16),)
    assert facts.anchors == (CleanShare(rule="dL1/4", share=0.0),)
    assert facts.repeats == (CleanShare(rule="L1", share=0.0),)


def test_broken_windows_are_a_share_of_anchors_and_jumps_are_stated() -> None:
    record = record_of(quiet_day(), jumps=(9,))
    facts = clean_facts(EVERY_RULE, record, liveness=(), jumps_per_row=1 / 16)
    assert facts.segments_per_row == 1 / 16
    assert facts.violating_share == 2 / 16
    assert facts.anchors == (CleanShare(rule="dL1/4", share=2 / 6),)  # of 4, 6, 8, 10, 12, 14


def test_a_predicted_residual_counts_where_it_is_larger_than_any_shown() -> None:
    predicted = (CleanShare(rule="L1 rate", share=0.7), CleanShare(rule="dL1", share=0.0))
    facts = clean_facts(EVERY_RULE, record_of(quiet_day()), liveness=(), severe=predicted)
    severe = {fact.rule: fact.share for fact in facts.severe}
    assert (severe["L1 rate"], severe["dL1"]) == (0.7, 0.0)


def test_a_band_may_be_missed_by_three_switches_in_a_hundred() -> None:
    columns = quiet_day()
    switches = int(np.count_nonzero(np.diff(np.array(columns["P1"]) == 1)))
    wide = replace(BAND, on_low=0.0, on_high=1e5, off_low=0.0, off_high=1e5)
    facts = clean_facts(rules_of(rule(wide, 3.0)), record_of(columns), liveness=())
    assert switches > 0
    assert facts.switches == (CleanShare(rule="P1@L1", share=0.03 * switches / 16),)


def test_noise_is_estimated_from_bends_and_a_straight_line_has_none() -> None:
    assert _noise(np.array([0.0, 1.0, 2.0, 3.0])) == 0.0
    assert _noise(np.array([0.0, 1.0])) == 0.0
    bends = np.array([0.0, 1.0, 0.0, 1.0])
    assert _noise(bends) == pytest.approx(2 / (0.2533 * np.sqrt(6)))
    assert _noise(np.array([0.0, np.nan, 1.0, 0.0, 1.0])) == _noise(bends)


def test_a_level_that_always_moves_is_live_over_the_shortest_block() -> None:
    facts = liveness_of("L1", [levels(*(3.0 * at for at in range(200)))], share=SHARE)
    assert [fact.rows for fact in facts] == [9, 11]  # 8 and 10 rows, and an eighth
    assert [fact.smallest_range for fact in facts] == pytest.approx([21.0, 27.0])


def test_a_level_that_rests_may_rest_for_half_as_long_again() -> None:
    """It jitters for 20 rows and then rises for 40, again and again."""
    jitter = 0.01 * np.random.default_rng(5).normal(size=3_000)
    cycle = [0.0] * 20 + [3.0 * at for at in range(1, 41)]
    fact = liveness_of("L1", [levels(*(cycle * 50 + jitter))], share=SHARE)[-1]
    assert fact.smallest_range > 1
    assert fact.rows >= 30


def test_a_level_that_stood_still_longer_than_any_block_has_no_liveness() -> None:
    assert liveness_of("L1", [levels(*([600.0] * 200))], share=SHARE) == ()


def test_twenty_blocks_are_needed() -> None:
    assert liveness_of("L1", [levels(*(3.0 * at for at in range(159)))], share=SHARE) == ()
    (fact,) = liveness_of("L1", [levels(*(3.0 * at for at in range(160)))], share=SHARE)
    assert fact.rows == 9


def test_the_smallest_range_is_that_of_calmer_days_but_at_least_half_of_the_one_shown() -> None:
    draw = np.random.default_rng(3)
    walk = np.cumsum(np.abs(draw.normal(5.0, 2.0, 4_000)))
    record = levels(*walk)
    fact = liveness_of("L1", [record], share=SHARE)[0]
    shown = min(np.ptp(walk[at : at + 8]) for at in range(0, 3_992, 2))
    assert 0.5 * shown <= fact.smallest_range < shown


def test_a_tolerance_is_at_least_one_step_of_the_instrument() -> None:
    zigzag = clean_record(levels(*([0.0, 1.0] * 400)))
    coarse = judged(Candidate(relation=RATE, floor=3.0), zigzag.folds)
    assert coarse.invariant(None, share=1e-6).tolerance == 3.0
    fine = judged(Candidate(relation=RATE, floor=0.1), zigzag.folds)
    assert fine.invariant(None, share=1e-6).tolerance == 1.0
    assert fine.invariant(None, share=1e-6, slack=2.0).tolerance == 2.0
    assert fine.invariant(None, share=1e-6).evidence.judged_rows == 798


def test_a_fold_is_judged_by_numbers_that_do_not_know_it() -> None:
    """The flow is 0.2 m3/h per on-row in the first block and 0.4 later: only one fold is off."""
    rows = 1_200
    on = np.tile([0.0, 1.0], rows // 2)
    flow = on * np.where(np.arange(rows) < 300, 200.0, 400.0)
    clean = clean_record(record_of({"P1": on, "F1": flow}))
    tie = judged(Candidate(relation=TIE, floor=0.0), clean.folds)
    sizes = [float(np.abs(part).max()) for part in tie.residuals]
    assert sizes[0] == pytest.approx(200.0)
    assert max(sizes[1:]) == pytest.approx(400.0 - (200.0 + 2 * 400.0) / 3)


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
    assert power(rule(TIE, 7.0), rising) == Evidence(smallest_offset=7.0)
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
