"""The clean record in blocks: rules are fitted without a block and judged on it."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from sluice.telemetry import Record

__all__ = ["Clean", "CleanFold", "clean_record"]

MOST_FOLDS = 6
FEWEST_FOLDS = 2
FOLD_ROWS = 300  # in a shorter block, hardly a batch can be judged
APART = 1_000  # strides between records that do not follow each other


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanFold:
    """A block of clean rows, and all other clean rows."""

    held_out: Record
    rest: Record


@dataclass(frozen=True, kw_only=True)
class Clean:
    """All clean rows of a plant."""

    record: Record
    jumps: int  # time jumps in the plant's own data, without those between records

    @property
    def jumps_per_row(self) -> float:
        """The share of rows that follow a time jump."""
        return self.jumps / len(self.record)

    def range_of(self, channel: str) -> tuple[float, float]:
        """Return the smallest and the largest reading of a channel."""
        readings = self.record.column(channel)
        return float(np.fmin.reduce(readings)), float(np.fmax.reduce(readings))

    @cached_property
    def folds(self) -> tuple[CleanFold, ...]:
        """The record in blocks of equal length, each beside all the others."""
        rows = len(self.record)
        count = int(np.clip(rows // FOLD_ROWS, FEWEST_FOLDS, MOST_FOLDS))
        edges = np.linspace(0, rows, count + 1).astype(int)
        return tuple(
            CleanFold(
                held_out=self.record.rows(int(start), int(stop)),
                rest=_without(self.record, int(start), int(stop)),
            )
            for start, stop in pairwise(edges)
        )


def clean_record(*records: Record) -> Clean:
    """Return records of one plant as one; where one does not follow another, time jumps."""
    jumps = sum(len(record.gaps) for record in records)
    whole = records[0]
    for record in records[1:]:
        stride = np.timedelta64(round(whole.stride_s * 1e6), "us")
        times = record.times
        follows = abs((times[0] - whole.times[-1]) - stride) < stride / 2
        if not follows:
            times = times - times[0] + whole.times[-1] + APART * stride
        whole = replace(
            whole,
            values=np.vstack([whole.values, record.values]),
            times=np.concatenate([whole.times, times]),
            labels=np.concatenate([whole.labels, record.labels]),
        )
    return Clean(record=whole, jumps=jumps)


def _without(record: Record, start: int, stop: int) -> Record:
    """Return a record without some rows; time jumps where they were."""
    kept = np.r_[0:start, stop : len(record)]
    return replace(
        record,
        values=record.values[kept],
        times=record.times[kept],
        labels=record.labels[kept],
    )
