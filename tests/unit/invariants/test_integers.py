"""The integer evaluator on a few rows: each kind of rule at its tolerance and one unit beyond."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from sluice.arrays import Bools
from sluice.errors import MissingChannelError
from sluice.invariants.encoding import TOLERANCE, encode
from sluice.invariants.integers import Judged, evaluate
from sluice.invariants.relations import ActuatorState, Invariant, Term
from sluice.telemetry.channel import Codes
from sluice.telemetry.record import Record
from tests.unit.invariants.small_plant import (
    BALANCE,
    BALANCED,
    BOUNDED,
    COUPLED,
    COUPLING,
    EVERY_RULE,
    METER,
    PUMP,
    RATE,
    TANK,
    WINDOW,
    WINDOWED,
    quiet_day,
    record_of,
    rule,
    rules_of,
)

NAN = float("nan")
HALF = TOLERANCE // 2


def judged(invariant: Invariant, record: Record) -> Judged:
    (found,) = evaluate(encode(rules_of(invariant)), record)
    return found


def rows(marked: Bools) -> list[int]:
    return [int(row) for row in np.flatnonzero(marked)]


def level(*readings: float, jumps: tuple[int, ...] = ()) -> Record:
    return record_of({"L1": readings}, jumps=jumps)


def test_sixteen_quiet_rows_keep_every_rule() -> None:
    for found in evaluate(encode(EVERY_RULE), record_of(quiet_day())):
        assert rows(found.violating) == [], found.rule.name


@pytest.mark.parametrize(
    ("readings", "size"),
    [
        ((300.0, 303.0, 297.0), [0, TOLERANCE, 2 * TOLERANCE]),
        ((300.0, 297.0, 300.0), [0, TOLERANCE, TOLERANCE]),
        ((300.0, 301.4, 298.6), [0, 0, 0]),  # less than half a register is not seen
        ((300.0, 301.6, 300.0), [0, TOLERANCE, TOLERANCE]),
        ((196_605.0, 1e9, 0.0), [0, 0, 65_535 * TOLERANCE]),  # saturated
        ((300.0, NAN, 303.0), [0, 0, TOLERANCE]),  # held, then judged against the held reading
    ],
)
def test_a_rate_violates_strictly_beyond_its_tolerance(
    readings: Sequence[float], size: list[int]
) -> None:
    found = judged(rule(RATE, 3.0), level(*readings))
    assert list(found.size) == size
    assert list(found.violating) == [one > TOLERANCE for one in size]
    assert list(found.excess) == [one / TOLERANCE for one in size]


def test_a_rate_is_not_judged_over_a_time_jump() -> None:
    found = judged(rule(RATE, 3.0), level(300.0, 900.0, 1_500.0, jumps=(1,)))
    assert list(found.size) == [0, 0, 200 * TOLERANCE]


def test_a_bound_allows_both_ends() -> None:
    found = judged(BOUNDED, level(27.0, 30.0, 31.0, 3_000.0, 3_003.0, 28.4, 28.6))
    beyond = TOLERANCE + 1
    assert list(found.size) == [beyond, 0, 0, 0, beyond, beyond, 0]


def test_a_coupling_judges_flow_by_the_state() -> None:
    record = record_of({"P1": [0, 0, 1, 1, 1, 0, 0], "F1": [0, 9, 150, 300, 309, 0, 6]})
    found = judged(COUPLED, record)
    assert list(found.size) == [0, 3 * HALF, 0, 0, 3 * HALF, 0, TOLERANCE]
    assert rows(found.violating) == [1, 4]
    assert rows(found.envelope) == [0, 2, 5]


def test_in_transition_flow_lies_between_zero_and_nominal_give_or_take_the_tolerance() -> None:
    settling = rule(replace(COUPLING, settle=3), 6.0)
    record = record_of({"P1": [1, 1, 1, 1], "F1": [0, 306, 309, 0]})
    found = judged(settling, record)
    assert list(found.size) == [0, TOLERANCE, 3 * HALF, 100 * HALF]
    assert rows(found.violating) == [2, 3]
    assert rows(found.envelope) == [0, 1, 2]


def test_without_a_settle_time_the_row_of_a_switch_is_judged() -> None:
    found = judged(rule(replace(COUPLING, settle=0), 6.0), record_of({"P1": [0, 1], "F1": [0, 0]}))
    assert rows(found.violating) == [1]
    assert rows(found.envelope) == []


@pytest.mark.parametrize("code", [2.0, 7.0])
def test_a_code_that_is_neither_off_nor_on_counts_as_transition(code: float) -> None:
    found = judged(COUPLED, record_of({"P1": [0, 0, code, code, code], "F1": [0, 0, 150, 150, 0]}))
    assert rows(found.envelope) == [0, 2, 3, 4]
    assert rows(found.violating) == []


def test_each_on_state_has_its_own_nominal() -> None:
    pump = replace(PUMP, codes=Codes(off=0, on=(1, 2)))
    speeds = (ActuatorState(code=1, nominal=300.0), ActuatorState(code=2, nominal=600.0))
    rules = rules_of(rule(replace(COUPLING, states=speeds), 6.0), channels=(pump, METER, TANK))
    record = record_of({"P1": [1, 1, 2, 2, 1, 1], "F1": [300, 600, 450, 600, 300, 300]})
    (found,) = evaluate(encode(rules), record)
    assert rows(found.violating) == [1]


def test_a_running_standby_pump_suspends_the_coupling_and_counts_as_transition() -> None:
    spare = replace(PUMP, name="P2")
    guarded = rule(replace(COUPLING, standby=(("P2", 0),)), 6.0)
    columns = {"P1": [0, 0, 0, 0], "P2": [0, 0, 1, 0], "F1": [0, 300, 300, 300]}
    record = record_of(columns, channels=(PUMP, spare, METER))
    (found,) = evaluate(encode(rules_of(guarded, channels=(PUMP, spare, METER))), record)
    assert rows(found.violating) == [1, 3]
    assert rows(found.envelope) == [0, 2]


def test_a_missing_state_holds_the_last_one() -> None:
    found = judged(COUPLED, record_of({"P1": [1, 1, NAN, 1], "F1": [300, 300, 300, 0]}))
    assert rows(found.envelope) == [0]
    assert rows(found.violating) == [3]


@pytest.mark.parametrize(
    ("rise", "violates"),
    [(150.0, False), (162.0, False), (138.0, False), (165.0, True), (135.0, True)],
)
def test_a_balance_allows_its_tolerance_on_either_side(rise: float, violates: bool) -> None:  # noqa: FBT001
    record = record_of({"F1": [0, 300], "L1": [600, 600 + rise]})
    assert rows(judged(BALANCED, record).violating) == ([1] if violates else [])


def test_a_balance_reads_the_flow_of_the_later_row_or_the_mean_of_both() -> None:
    record = record_of({"F1": [300, 0, 0], "L1": [600, 675, 675]})
    assert rows(judged(BALANCED, record).violating) == [1]
    averaged = rule(replace(BALANCE, averaged=True), 12.0)
    found = judged(averaged, record)
    assert list(found.size) == [0, 0, 0]


def test_an_on_time_counts_one_per_row_in_which_the_actuator_is_on() -> None:
    pumped = replace(BALANCE, terms=(Term(channel="P1", coefficient=30.0, on=(1,)),))
    record = record_of({"P1": [0, 1, 2, 1], "L1": [600, 630, 630, 630]})
    found = judged(rule(pumped, 3.0), record)
    assert list(found.size) == [0, 0, 0, 10 * TOLERANCE]


def test_a_constant_is_lost_on_every_row_but_the_first_of_a_segment() -> None:
    leaking = rule(replace(BALANCE, terms=(), constant=-3.0), 3.0)
    found = judged(leaking, level(600, 597, 597, 597, 594, jumps=(3,)))
    assert list(found.size) == [0, 0, TOLERANCE, 0, 0]


def test_a_window_is_judged_at_anchors_half_a_window_apart() -> None:
    found = judged(WINDOWED, record_of({"F1": [0.0] * 11, "L1": [600.0] * 11}))
    assert list(found.anchors) == [4, 6, 8, 10]


def test_a_batch_shorter_than_the_window_has_no_anchor() -> None:
    found = judged(WINDOWED, record_of({"F1": [0.0] * 4, "L1": [0, 900, 0, 900]}))
    assert found.anchors.size == 0
    assert rows(found.violating) == []


def test_a_slow_ramp_adds_up_over_a_window() -> None:
    creeping = record_of({"F1": [0.0] * 9, "L1": [600 + 6 * at for at in range(9)]})
    assert rows(judged(BALANCED, creeping).violating) == []
    found = judged(WINDOWED, creeping)
    assert rows(found.violating) == [4, 6, 8]
    assert list(found.excess[found.anchors]) == [2.0, 2.0, 2.0]


def test_a_window_sums_the_flow_of_its_own_rows_only() -> None:
    record = record_of({"F1": [300, 0, 0, 0, 300, 0, 0], "L1": [600, 600, 600, 600, 750, 750, 750]})
    found = judged(WINDOWED, record)
    assert list(found.size) == [0] * 7


def test_a_window_across_a_time_jump_violates_by_one_unit() -> None:
    found = judged(WINDOWED, record_of({"F1": [0.0] * 11, "L1": [600.0] * 11}, jumps=(5,)))
    assert {int(at): int(found.size[at]) for at in found.anchors} == {
        4: 0,
        6: TOLERANCE + 1,
        8: TOLERANCE + 1,
        10: 0,
    }


def test_a_windows_constant_counts_once_per_row() -> None:
    leaking = rule(replace(WINDOW, terms=(), constant=-3.0), 3.0)
    found = judged(leaking, level(600, 597, 594, 591, 588))
    assert list(found.size) == [0, 0, 0, 0, 0]
    found = judged(leaking, level(600, 597, 594, 591, 591))
    assert list(found.size) == [0, 0, 0, 0, TOLERANCE]


def test_a_missing_channel_is_named_with_the_rule() -> None:
    with pytest.raises(MissingChannelError, match="'F1', which rule 'P1~F1' reads"):
        judged(COUPLED, record_of({"P1": [0.0]}))
