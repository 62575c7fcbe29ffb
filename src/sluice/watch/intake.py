"""What comes in: rows in the order of time, counted; late, repeated and broken ones are dropped."""

from dataclasses import dataclass, replace

import numpy as np

from sluice.arrays import Bools, Ints
from sluice.errors import RecordError
from sluice.watch.rows import StreamRows, microseconds

__all__ = ["RowCounts", "RowIntake"]

LARGEST_READING = 1e15  # no instrument shows more
FIRST_STEPS = 8  # between rows, that tell the source's stride


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """What came in so far."""

    rows: int = 0  # taken
    late: int = 0  # dropped: older than a row before them
    repeated: int = 0  # dropped: of the same time as a row before them
    gaps: int = 0  # steps in time that are not one stride
    missing: int = 0  # readings
    impossible: int = 0  # readings that no instrument shows; they count as missing
    last: int | None = None  # time of the last row, in microseconds


class RowIntake:
    """Takes rows from a source in whatever order they come."""

    def __init__(self, *, stride_s: float, counts: RowCounts | None = None) -> None:
        self.counts = counts or RowCounts()
        self._stride = microseconds(stride_s)
        self._first_steps: list[int] = []

    def take(self, rows: StreamRows) -> StreamRows:
        """Return the rows that are newer than all before them, and count the others."""
        counts = self.counts
        before = np.iinfo(np.int64).min if counts.last is None else counts.last
        newest = np.maximum.accumulate(np.concatenate(([before], rows.times)))[:-1]
        newer: Bools = rows.times > newest
        late = int(np.count_nonzero(rows.times < newest))
        repeated = int(np.count_nonzero(rows.times == newest))
        times, values = rows.times[newer], rows.values[newer]
        impossible = ~(np.abs(values) <= LARGEST_READING) & ~np.isnan(values)
        if impossible.any():
            values = np.where(impossible, np.nan, values)
        self.counts = replace(
            counts,
            rows=counts.rows + len(times),
            late=counts.late + late,
            repeated=counts.repeated + repeated,
            gaps=counts.gaps + self._gaps(times),
            missing=counts.missing + int(np.isnan(values).sum()),
            impossible=counts.impossible + int(impossible.sum()),
            last=int(times[-1]) if len(times) else counts.last,
        )
        return StreamRows(times=times, values=values, position=rows.position)

    def _refuse_other_stride(self) -> None:
        """Raise if rows come at another stride: none of them would ever be judged."""
        usual = float(np.median(self._first_steps)) if self._first_steps else self._stride
        if len(self._first_steps) == FIRST_STEPS and abs(usual - self._stride) > self._stride / 2:
            raise RecordError(
                f"a row comes every {usual / 1e6:g} s; the rules or the model read one every "
                f"{self._stride / 1e6:g} s: let the source send at that stride, or mine the rules "
                "and train the model at the source's"
            )

    def _gaps(self, times: Ints) -> int:
        last = self.counts.last
        steps = np.diff(times if last is None else np.concatenate(([last], times)))
        if len(self._first_steps) < FIRST_STEPS:
            self._first_steps += steps[: FIRST_STEPS - len(self._first_steps)].tolist()
            self._refuse_other_stride()
        return int(np.count_nonzero(np.abs(steps - self._stride) > self._stride / 2))
