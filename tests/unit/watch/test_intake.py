"""What comes in is put in order and counted."""

import numpy as np
import pytest

from sluice.errors import RecordError
from sluice.watch import RowIntake, StreamRows

SECOND = 1_000_000


def rows(*seconds: float) -> StreamRows:
    times = np.array([round(second * SECOND) for second in seconds], np.int64)
    return StreamRows(times=times, values=np.arange(len(times), dtype=float)[:, None])


def test_late_and_repeated_rows_are_dropped_and_counted() -> None:
    intake = RowIntake(stride_s=1.0)
    taken = intake.take(rows(1, 2, 2, 1.5, 3))
    assert taken.times.tolist() == [1 * SECOND, 2 * SECOND, 3 * SECOND]
    assert taken.values[:, 0].tolist() == [0.0, 1.0, 4.0]
    taken = intake.take(rows(3, 2, 4))
    assert taken.times.tolist() == [4 * SECOND]
    counts = intake.counts
    assert (counts.rows, counts.repeated, counts.late, counts.gaps) == (4, 2, 2, 0)
    assert counts.last == 4 * SECOND


def test_time_jumps_are_counted_also_between_two_parts() -> None:
    intake = RowIntake(stride_s=1.0)
    intake.take(rows(1, 2, 5))
    intake.take(rows(6, 6.2, 9))
    assert intake.counts.gaps == 3


def test_impossible_readings_become_missing() -> None:
    intake = RowIntake(stride_s=1.0)
    values = np.array([[1.0], [np.inf], [-2e15], [np.nan]])
    taken = intake.take(StreamRows(times=np.arange(1, 5) * SECOND, values=values))
    assert np.isnan(taken.values[1:, 0]).all()
    assert (intake.counts.missing, intake.counts.impossible) == (3, 2)


def test_rows_at_another_stride_are_refused_instead_of_never_judged() -> None:
    intake = RowIntake(stride_s=60.0)
    with pytest.raises(RecordError, match="a row comes every 1 s; .* one every 60 s"):
        intake.take(rows(*range(20)))


def test_a_few_close_rows_are_no_other_stride() -> None:
    intake = RowIntake(stride_s=60.0)
    intake.take(rows(0, 60, 61, 62, 120, 180, 240, 300, 360))
    assert intake.counts.rows == 9
