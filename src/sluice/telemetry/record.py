"""The plant record: readings at a constant stride, with channels, labels and notes."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Bools, Floats, Run, Times, frozen, runs
from sluice.errors import MissingChannelError, RecordError, SettingError
from sluice.telemetry.channel import Channel, Role

__all__ = ["Gap", "Label", "Note", "Record"]

LARGEST_READING = 1e15
"""No instrument shows more; a larger number is a corrupt cell or a historian's error marker."""


class Label(IntEnum):
    """The label of a row. An unlabelled row is unknown; it does not count as normal."""

    NORMAL = 0
    ATTACK = 1
    UNLABELLED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something a loader observed, repaired or filled, with the affected rows."""

    what: str
    channel: str = ""
    rows: int = 0
    first_row: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A jump in time: the last row before it and the first row after it."""

    before: int
    after: int


@dataclass(frozen=True, kw_only=True)
class Record:
    """A table of readings at a constant stride.

    `values` has one column per channel (column-major). A missing reading is NaN in `values` and
    true in `missing`, never a number. A jump in time starts a new segment. Arrays are read-only.
    """

    name: str
    channels: tuple[Channel, ...]
    values: Floats  # rows x channels
    times: Times  # one per row, microseconds
    stride_s: float
    labels: NDArray[np.int8]  # Label, one per row
    notes: tuple[Note, ...] = ()

    def __post_init__(self) -> None:
        rows = len(self.values)
        shapes = (self.values.shape, len(self.times), len(self.labels))
        if shapes != ((rows, len(self.channels)), rows, rows):
            raise RecordError(
                f"record {self.name!r} is ragged: {len(self.channels)} channels, values "
                f"{shapes[0]}, {shapes[1]} times, {shapes[2]} labels"
            )
        repeated = {name for name, count in Counter(self.names).items() if count > 1}
        if repeated:
            raise RecordError(f"record {self.name!r} has channels named twice: {sorted(repeated)}")
        if not self.stride_s > 0:
            raise RecordError(
                f"record {self.name!r} has a stride of {self.stride_s} s; it must be > 0"
            )
        values = np.asfortranarray(self.values, dtype=np.float64)
        object.__setattr__(self, "values", frozen(values))
        object.__setattr__(self, "times", frozen(self.times.astype("datetime64[us]", copy=False)))
        object.__setattr__(self, "labels", frozen(self.labels.astype(np.int8, copy=False)))
        self._refuse_impossible_clock()
        self._refuse_impossible_readings()

    def _refuse_impossible_clock(self) -> None:
        backward = np.flatnonzero(np.diff(self.times) <= np.timedelta64(0))
        if backward.size:
            row = int(backward[0])
            earlier, later = self.times[row], self.times[row + 1]
            what = "repeats" if earlier == later else "goes backward"
            raise RecordError(
                f"record {self.name!r}: the clock {what} at row {row + 1} "
                f"({earlier} then {later}, {backward.size} such rows); sort or cut the file there"
            )

    def _refuse_impossible_readings(self) -> None:
        for column, channel in enumerate(self.channels):
            readings = self.values[:, column]
            worst = np.fmax.reduce(np.abs(readings), initial=0.0)
            if worst > LARGEST_READING:
                row = int(np.nanargmax(np.abs(readings)))
                raise RecordError(
                    f"record {self.name!r}: channel {channel.name!r} reads {readings[row]:g} at "
                    f"row {row}; readings are finite and below {LARGEST_READING:g}: correct the "
                    "cell or leave it empty"
                )

    # -- content ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Channel names in column order."""
        return tuple(channel.name for channel in self.channels)

    @cached_property
    def missing(self) -> Bools:
        """True where no reading exists."""
        return frozen(np.isnan(self.values))

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {name: column for column, name in enumerate(self.names)}

    def index(self, name: str, *, needed_by: str = "the caller") -> int:
        """Return the column of a channel; if it is missing, the error names `needed_by`."""
        try:
            return self._columns[name]
        except KeyError:
            raise MissingChannelError(
                self.name, name, needed_by=needed_by, known=self.names
            ) from None

    def channel(self, name: str) -> Channel:
        """Return a channel's description."""
        return self.channels[self.index(name)]

    def column(self, name: str) -> Floats:
        """Return a channel's readings."""
        return self.values[:, self.index(name)]

    def of_role(self, *roles: Role) -> tuple[Channel, ...]:
        """Return the channels of the given roles in column order."""
        return tuple(channel for channel in self.channels if channel.role in roles)

    # -- time and labels ----------------------------------------------------------------------

    @cached_property
    def segment_starts(self) -> NDArray[np.int64]:
        """First row of each stretch without a time jump (a step off by more than half a stride)."""
        if len(self) == 0:
            return np.empty(0, np.int64)
        steps = np.diff(self.times) / np.timedelta64(1, "s")
        jumps = np.flatnonzero(np.abs(steps - self.stride_s) > self.stride_s / 2) + 1
        return np.concatenate(([0], jumps))

    @property
    def segments(self) -> tuple[Run, ...]:
        """The stretches without a time jump."""
        stops = [*self.segment_starts[1:], len(self)]
        return tuple(
            Run(int(start), int(stop))
            for start, stop in zip(self.segment_starts, stops, strict=True)
        )

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The time jumps between segments."""
        return tuple(Gap(before=int(s) - 1, after=int(s)) for s in self.segment_starts[1:])

    @cached_property
    def attack_segments(self) -> tuple[Run, ...]:
        """The contiguous stretches labelled as attack, cut at time jumps."""
        attacked = self.labels == Label.ATTACK
        attacks: list[Run] = []
        for segment in self.segments:
            attacks += [
                Run(run.start + segment.start, run.stop + segment.start)
                for run in runs(attacked[segment.slice])
            ]
        return tuple(attacks)

    # -- subsets ------------------------------------------------------------------------------

    def rows(self, start: int, stop: int) -> "Record":
        """Return rows start..stop-1."""
        if not 0 <= start < stop <= len(self):
            raise SettingError(
                f"record {self.name!r} has rows 0:{len(self)}; cannot take {start}:{stop}"
            )
        return self._at(slice(start, stop), stride_s=self.stride_s)

    def without_first(self, seconds: float) -> "Record":
        """Drop a start-up transient, counted in rows at the record's stride."""
        return self.rows(round(seconds / self.stride_s), len(self))

    def every(self, step: int) -> "Record":
        """Keep every step-th row, counted over the whole record (not per segment)."""
        if step < 1:
            raise SettingError(f"a record is thinned by a step of at least 1 row, got {step}")
        return self._at(slice(None, None, step), stride_s=self.stride_s * step)

    def select(self, names: Iterable[str]) -> "Record":
        """Keep the named channels, in the order given."""
        columns = [self.index(name) for name in names]
        return replace(
            self,
            channels=tuple(self.channels[column] for column in columns),
            values=self.values[:, columns],
        )

    def without(self, *names: str) -> "Record":
        """Drop the named channels."""
        dropped = {self.index(name) for name in names}
        remaining = [name for column, name in enumerate(self.names) if column not in dropped]
        return self.select(remaining)

    def with_values(self, values: Floats) -> "Record":
        """Return a copy with other readings; channels, times and labels stay the same."""
        return replace(self, values=values)

    def _at(self, rows: slice, *, stride_s: float) -> "Record":
        return replace(
            self,
            values=self.values[rows],
            times=self.times[rows],
            labels=self.labels[rows],
            stride_s=stride_s,
        )
