"""Rows in order of time, one per time, and at a constant stride if they are not."""

from dataclasses import dataclass
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sluice.arrays import Floats, Ints, Times
from sluice.errors import RecordError, SettingChoice, UnclearRecordError
from sluice.telemetry.limits import ReadLimits
from sluice.telemetry.plantfile import Duplicates, PlantFile, Resample, Unsorted
from sluice.telemetry.record import Label, Note

__all__ = ["Rows", "demand_order", "in_order", "merged_rows", "resampled", "usual_stride_s"]

MOST_STATES = 6
LARGEST_CODE = 9
HOUR_US = 3_600_000_000
COMMON_STRIDES_S = (0.1, 1, 5, 10, 30, 60, 300, 600, 900, 1_800, 3_600, 86_400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Readings with their times and labels."""

    frame: pl.DataFrame
    times: Times
    labels: NDArray[np.int8]
    notes: tuple[Note, ...] = ()

    def take(self, rows: Ints, *notes: Note) -> "Rows":
        """Return some of the rows, in the order given."""
        return Rows(
            frame=self.frame[pl.Series(rows)] if self.frame.width else self.frame,
            times=self.times[rows],
            labels=self.labels[rows],
            notes=(*self.notes, *notes),
        )


def merged_rows(rows: Rows, name: str) -> Rows:
    """Make one row of all rows of the same time, if no cell then has two readings."""
    time, label = "\x1ftime", "\x1flabel"
    frame = rows.frame.with_columns(pl.Series(time, rows.times), pl.Series(label, rows.labels))
    if not frame[time].is_duplicated().any():
        return rows
    readings = rows.frame.columns
    counts = frame.group_by(time).agg(pl.col(readings).count())
    twice = [column for column in readings if cast("int", counts[column].max()) > 1]
    if twice:
        return rows  # the policy for duplicates decides
    labelled = pl.col(label).filter(pl.col(label) != Label.UNLABELLED)
    merged = (
        frame.group_by(time)
        .agg(
            pl.col(readings).drop_nulls().first(),
            labelled.max().alias(label),
            labelled.n_unique().alias("\x1flabels"),
        )
        .sort(time)
    )
    if cast("int", merged["\x1flabels"].max()) > 1:
        raise RecordError(
            f"record {name!r}: its files label the same time as normal and as attack; give files "
            "whose labels agree"
        )
    return Rows(
        frame=merged.select(readings),
        times=merged[time].to_numpy(),
        labels=merged[label].fill_null(int(Label.UNLABELLED)).to_numpy().astype(np.int8),
        notes=(*rows.notes, Note(what="files joined by time", rows=len(merged))),
    )


def usual_stride_s(rows: Rows) -> float:
    """Return the usual time between two readings of a tag, rounded to a common stride."""
    us = rows.times.astype(np.int64)
    strides = [
        float(np.median(np.diff(us[column.is_not_null().to_numpy()]))) / 1e6
        for column in rows.frame.get_columns()
        if column.count() > 1
    ]
    usual = float(np.median(strides)) if strides else 60.0
    return float(min(COMMON_STRIDES_S, key=lambda stride: abs(np.log(stride / max(usual, 1e-3)))))


# -- order and duplicates ---------------------------------------------------------------------


def in_order(rows: Rows, *, name: str, plant: PlantFile) -> Rows:
    """Apply the policies for unsorted and duplicate rows; by default both are refused."""
    us = rows.times.astype(np.int64)
    steps = np.diff(us)
    if not (steps <= 0).any():
        return rows
    demand_order(rows.times, name=name, plant=plant)
    if (steps < 0).any():
        order = np.argsort(us, kind="stable")
        moved = int((order != np.arange(len(order))).sum())
        rows = rows.take(order, Note(what="rows sorted by time", rows=moved))
        us = rows.times.astype(np.int64)
        steps = np.diff(us)
    repeats = np.flatnonzero(steps == 0)
    if not repeats.size:
        return rows
    if plant.duplicates == Duplicates.REFUSE:
        raise _repeated(rows.times, repeats, name)
    kept = np.ones(len(us), np.bool_)
    kept[repeats + (plant.duplicates == Duplicates.FIRST)] = False
    which = "last" if plant.duplicates == Duplicates.LAST else "first"
    note = Note(
        what=f"several rows of one time: the {which} one kept",
        rows=int(repeats.size),
        first_row=int(repeats[0]),
    )
    return rows.take(np.flatnonzero(kept), note)


def demand_order(times: Times, *, name: str, plant: PlantFile) -> None:
    """Raise an error if times step back, unless the plant file allows to sort them."""
    us: Ints = times.astype(np.int64)
    steps: Ints = np.diff(us)
    if plant.unsorted != Unsorted.SORT and (steps < 0).any():
        raise _backward(times, steps, name)


def _backward(times: Times, steps: Ints, name: str) -> UnclearRecordError:
    back = np.flatnonzero(steps <= 0)
    row = int(back[0])
    zone = SettingChoice(
        setting="time_zone",
        value="Europe/Berlin",
        meaning="the clock follows this zone, and daylight saving time ends there",
    )
    ordered = SettingChoice(
        setting="unsorted", value="sort", meaning="put the rows in order of time"
    )
    folded = len(back) == 1 and -HOUR_US <= steps[row] < 0
    return UnclearRecordError(
        f"the clock {'goes backward' if steps[row] < 0 else 'repeats'} at row "
        f"{row + 1} ({times[row]} then {times[row + 1]}, {back.size} such rows)",
        file=f"record {name!r}",
        cure='[record] unsorted = "sort", or time_zone = "Europe/Berlin" (or another zone) if '
        "daylight saving time ends there,",
        choices=(zone, ordered) if folded else (ordered, zone),
        free=True,
    )


def _repeated(times: Times, repeats: Ints, name: str) -> UnclearRecordError:
    row = int(repeats[0])
    return UnclearRecordError(
        f"the clock repeats at row {row + 1} ({times[row]} then "
        f"{times[row + 1]}, {repeats.size} such rows)",
        file=f"record {name!r}",
        cure='[record] duplicates = "keep-last" or duplicates = "keep-first"',
        choices=(
            SettingChoice(setting="duplicates", value="keep-last", meaning="the last row counts"),
            SettingChoice(setting="duplicates", value="keep-first", meaning="the first row counts"),
        ),
    )


# -- a constant stride ------------------------------------------------------------------------


def resampled(rows: Rows, *, plant: PlantFile, limits: ReadLimits) -> Rows:
    """Return rows at multiples of the stride; a row knows only readings up to its own time.

    Null is no reading at this time, so an earlier one holds. NaN is a reading that the historian
    marks as bad, which ends an earlier one.
    """
    stride = max(round(plant.stride_s * 1e6), 1)
    us = rows.times.astype(np.int64)
    start, stop = -(-int(us[0]) // stride), -(-int(us[-1]) // stride)
    limits.demand_cells(stop - start + 1, max(rows.frame.width, 1))
    grid: Ints = np.arange(start, stop + 1, dtype=np.int64) * stride
    columns = [
        pl.Series(
            column.name,
            _mean(us, column, grid, stride)
            if plant.resample == Resample.MEAN and not _is_states(column)
            else _last(us, column, grid, plant.max_age_s),
        )
        for column in rows.frame.get_columns()
    ]
    age = f"at most {plant.max_age_s:g} s old" if plant.max_age_s else "of any age"
    what = "mean of each stride" if plant.resample == Resample.MEAN else f"last value, {age}"
    return Rows(
        frame=pl.DataFrame(columns),
        times=grid.astype("datetime64[us]"),
        labels=_labels(us, rows.labels, grid),
        notes=(
            *rows.notes,
            Note(
                what=f"{len(us):,} times resampled to {plant.stride_s:g} s ({what})",
                rows=len(grid),
            ),
        ),
    )


def _is_states(column: pl.Series) -> bool:
    """Return whether readings are codes, of which a mean is none."""
    present = column.drop_nulls().drop_nans().unique()
    if not 0 < len(present) <= MOST_STATES:
        return False
    codes = present.to_numpy()
    return bool(((codes == np.rint(codes)) & (codes >= 0) & (codes <= LARGEST_CODE)).all())


def _last(us: Ints, column: pl.Series, grid: Ints, max_age_s: float) -> Floats:
    at = column.is_not_null().to_numpy()
    times, values = us[at], column.drop_nulls().to_numpy()
    taken = np.full(len(grid), np.nan)
    if not len(times):
        return taken
    before = np.searchsorted(times, grid, side="right") - 1
    known = before >= 0
    if max_age_s:
        known &= grid - times[np.maximum(before, 0)] <= round(max_age_s * 1e6)
    taken[known] = values[before[known]]
    return taken


def _mean(us: Ints, column: pl.Series, grid: Ints, stride: int) -> Floats:
    present = column.fill_nan(None)
    at = present.is_not_null().to_numpy()
    rows = -(-us[at] // stride) - grid[0] // stride
    values = present.drop_nulls().to_numpy()
    counts = np.bincount(rows, minlength=len(grid)).astype(np.float64)
    sums = np.bincount(rows, weights=values, minlength=len(grid))
    with np.errstate(invalid="ignore"):
        means: Floats = sums / counts
    return means


def _labels(us: Ints, labels: NDArray[np.int8], grid: Ints) -> NDArray[np.int8]:
    """Give each row the label of the last one before it, and every attack to a row."""
    before = np.maximum(np.searchsorted(us, grid, side="right") - 1, 0)
    taken = labels[before]
    taken[grid < us[0]] = Label.UNLABELLED
    # An attack that is over at the time of the row was still an attack.
    attacks = us[labels == Label.ATTACK]
    rows = np.searchsorted(grid, attacks, side="left")
    taken[rows[rows < len(grid)]] = Label.ATTACK
    return taken
