"""What a batch shows, counted by hand: blocks, repeats, missing and illegal rows."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.arrays import Bools
from sluice.errors import MissingChannelError
from sluice.invariants.encoding import encode
from sluice.invariants.measure import (
    block_ranges,
    block_starts,
    illegal_rows,
    measure,
    missing_rows,
)
from sluice.invariants.repeats import repeated_rows
from sluice.invariants.ruleset import Liveness
from tests.unit.invariants.small_plant import (
    BOUNDED,
    COUPLED,
    EVERY_RULE,
    RATED,
    WINDOWED,
    quiet_day,
    record_of,
    rules_of,
)

NAN = float("nan")
DOZEN = [float(at * at % 37) for at in range(1, 13)]  # no two neighbours are equal


def rows(marked: Bools) -> list[int]:
    return [int(row) for row in np.flatnonzero(marked)]


@pytest.mark.parametrize(
    ("length", "block", "starts"),
    [
        (7, 8, []),
        (8, 8, [0]),
        (9, 8, [0]),
        (10, 8, [0, 2]),
        (16, 8, [0, 2, 4, 6, 8]),
        (5, 3, [0, 1, 2]),
        (0, 1, []),
        (3, 1, [0, 1, 2]),
        (12, 9, [0, 2]),
    ],
)
def test_blocks_begin_a_quarter_block_apart(length: int, block: int, starts: list[int]) -> None:
    assert list(block_starts(length, block)) == starts


def test_a_blocks_range_is_its_largest_minus_its_smallest_reading() -> None:
    readings = np.array([1.0, 5.0, 3.0, 3.0, 3.0, 3.0, 2.0, 3.0, 3.0, 9.0])
    assert list(block_ranges(readings, 8)) == [4.0, 7.0]


def test_missing_readings_do_not_widen_a_block_and_an_empty_block_stands_still() -> None:
    assert list(block_ranges(np.array([1.0, NAN, 4.0, NAN]), 4)) == [3.0]
    assert list(block_ranges(np.array([NAN, NAN, NAN, NAN, 5.0]), 4)) == [0.0, 0.0]


def test_a_record_shorter_than_the_block_has_no_range() -> None:
    assert block_ranges(np.array([1.0, 2.0]), 4).size == 0


def test_the_later_copy_of_a_dozen_readings_is_marked() -> None:
    assert rows(repeated_rows(np.array(DOZEN * 2))) == list(range(12, 24))
    apart = [*DOZEN, 100.0, 101.0, 102.0, *DOZEN]
    assert rows(repeated_rows(np.array(apart))) == list(range(15, 27))


def test_of_three_copies_the_first_is_spared() -> None:
    apart = [*DOZEN, 100.0, *DOZEN, 101.0, *DOZEN]
    assert rows(repeated_rows(np.array(apart))) == [*range(13, 25), *range(26, 38)]


def test_eleven_equal_readings_are_not_a_repeat() -> None:
    assert rows(repeated_rows(np.array([*DOZEN, *DOZEN[:11], 99.0, 98.0]))) == []


def test_a_copy_that_differs_in_its_last_bit_is_not_a_repeat() -> None:
    copy = [*DOZEN[:-1], np.nextafter(DOZEN[-1], 100.0)]
    assert rows(repeated_rows(np.array([*DOZEN, *copy]))) == []


@pytest.mark.parametrize("length", [0, 1, 23])
def test_fewer_than_two_dozen_rows_cannot_repeat(length: int) -> None:
    assert not repeated_rows(np.array((DOZEN * 2)[:length])).any()


def test_rows_miss_a_reading_only_where_a_rule_needs_it() -> None:
    columns = {"P1": [0, NAN, 0, 0], "F1": [0, 0, NAN, 0], "L1": [600, 600, 600, NAN]}
    record = record_of(columns)
    assert rows(missing_rows(rules_of(COUPLED), record)) == [1, 2]
    assert rows(missing_rows(rules_of(RATED), record)) == [3]
    assert rows(missing_rows(rules_of(COUPLED, RATED), record)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("code", "illegal"),
    [(0.0, False), (1.0, False), (2.0, False), (3.0, True), (-1.0, True), (0.9, True)],
)
def test_a_code_the_actuator_does_not_have_is_illegal(code: float, illegal: bool) -> None:  # noqa: FBT001
    record = record_of({"P1": [0, code, NAN], "F1": [0, 0, 0]})
    assert rows(illegal_rows(encode(rules_of(COUPLED)), record)) == ([1] if illegal else [])


def test_an_actuator_that_no_rule_reads_may_show_anything() -> None:
    record = record_of({"P1": [9.0], "L1": [600.0]})
    assert rows(illegal_rows(encode(rules_of(RATED)), record)) == []


def test_quiet_rows_violate_on_their_first_row_alone() -> None:
    found = measure(EVERY_RULE, record_of(quiet_day()))
    assert (found.rows, found.segments) == (16, 1)
    assert rows(found.violating) == [0]
    assert [one.rule.name for one in found.judged] == [
        "P1~F1", "dL1", "dL1/4", "L1 in range", "L1 rate",
    ]  # fmt: skip


def test_violating_rows_are_broken_missing_illegal_or_first_of_a_segment() -> None:
    columns = quiet_day()
    columns["F1"][3] = 300.0  # P1 is off: breaks the coupling, and the balance of row 3
    columns["P1"][14] = 9.0
    columns["L1"][9] = NAN
    record = record_of(columns, jumps=(13,))
    found = measure(rules_of(COUPLED, BOUNDED), record)
    assert rows(found.missing) == [9]
    assert rows(found.illegal) == [14]
    assert found.segments == 2
    assert rows(found.violating) == [0, 3, 9, 13, 14]


def test_a_windows_anchors_do_not_count_as_violating_rows() -> None:
    columns = quiet_day()
    columns["L1"][12:] = [2_400.0] * 4
    found = measure(rules_of(WINDOWED), record_of(columns))
    assert rows(found.judged[0].violating) == [12, 14]
    assert rows(found.violating) == [0]


def test_a_levels_range_is_measured_in_registers() -> None:
    found = measure(EVERY_RULE, record_of(quiet_day()))
    ((fact, ranges),) = found.quietest
    assert fact == Liveness(level="L1", rows=8, smallest_range=60.0)
    assert list(ranges) == [200, 300, 350, 250, 150]  # blocks at rows 0, 2, 4, 6, 8


def test_a_missing_reading_holds_the_last_register_of_a_block() -> None:
    columns = quiet_day()
    columns["L1"][:8] = [600.0, NAN, NAN, NAN, NAN, NAN, NAN, NAN]
    ((_, ranges),) = measure(EVERY_RULE, record_of(columns)).quietest
    assert ranges[0] == 0


def test_repeats_are_looked_for_in_every_level() -> None:
    found = measure(EVERY_RULE, record_of(quiet_day()))
    ((level, repeated),) = found.repeated
    assert level == "L1"
    assert not repeated.any()


def test_rules_without_clean_facts_measure_no_blocks() -> None:
    assert measure(replace(EVERY_RULE, clean=None), record_of(quiet_day())).quietest == ()


def test_a_batch_without_a_needed_channel_is_not_measured() -> None:
    columns = quiet_day()
    del columns["F1"]
    with pytest.raises(MissingChannelError, match="'F1', which rule 'P1~F1' reads"):
        measure(EVERY_RULE, record_of(columns))


def test_a_batch_that_lacks_a_channel_is_refused_with_the_rule_that_reads_it() -> None:
    day = quiet_day()
    for name in sorted(
        {each for found in EVERY_RULE.invariants for each in found.relation.channels}
    ):
        rest = record_of({tag: readings for tag, readings in day.items() if tag != name})
        with pytest.raises(MissingChannelError, match=f"'{name}', which rule '"):
            measure(EVERY_RULE, rest)
