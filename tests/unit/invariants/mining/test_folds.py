"""The clean record in blocks: joined, cut, and without a block."""

from dataclasses import replace

import numpy as np

from sluice.invariants.mining.folds import clean_record
from sluice.telemetry.record import Record
from tests.unit.invariants.small_plant import record_of


def rising(rows: int, start: float = 0.0) -> Record:
    return record_of({"L1": [start + at for at in range(rows)]})


def test_records_that_follow_each_other_become_one_without_a_jump() -> None:
    record = rising(900)
    clean = clean_record(record.rows(0, 400), record.rows(400, 900))
    assert np.array_equal(clean.record.values, record.values)
    assert len(clean.record.gaps) == 0
    assert clean.jumps == 0


def test_records_of_other_days_are_joined_by_a_jump_that_is_not_the_plants() -> None:
    clean = clean_record(rising(400), rising(500))
    assert [gap.after for gap in clean.record.gaps] == [400]
    assert clean.jumps == 0


def test_jumps_of_the_plant_count() -> None:
    record = record_of({"L1": list(range(600))}, jumps=(100, 300))
    assert clean_record(record.rows(0, 300), record.rows(300, 600)).jumps == 1
    assert clean_record(record).jumps_per_row == 2 / 600


def test_every_row_is_held_out_once_and_never_in_its_own_rest() -> None:
    clean = clean_record(rising(1_000))
    assert len(clean.folds) == 3
    held = np.concatenate([fold.held_out.column("L1") for fold in clean.folds])
    assert np.array_equal(held, clean.record.column("L1"))
    for fold in clean.folds:
        rest = set(fold.rest.column("L1"))
        assert rest.isdisjoint(fold.held_out.column("L1"))
        assert len(rest) + len(fold.held_out) == 1_000


def test_a_block_that_is_left_out_leaves_a_jump() -> None:
    middle = clean_record(rising(900)).folds[1]
    assert [gap.after for gap in middle.rest.gaps] == [300]


def test_the_range_of_a_channel_ignores_missing_readings() -> None:
    record = rising(3)
    values = record.values.copy()
    values[1] = np.nan
    assert clean_record(replace(record, values=values)).range_of("L1") == (0.0, 2.0)
