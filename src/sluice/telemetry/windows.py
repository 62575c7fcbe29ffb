"""Sliding windows of standardised readings: the input of detectors."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sluice.arrays import Bools, Floats, Ints
from sluice.errors import RecordError, SettingError
from sluice.telemetry.channel import Role
from sluice.telemetry.record import Label, Record

__all__ = ["Scaler", "Windows", "feature_names", "windows"]

WINDOW_ROWS = 10
SPREAD_FLOOR = 1e-6


def feature_names(record: Record, *, analysers: bool = False) -> tuple[str, ...]:
    """Return a detector's channels, sorted by name; analysers drift and are left out by default."""
    names = (c.name for c in record.channels if analysers or c.role is not Role.QUALITY)
    return tuple(sorted(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaler:
    """Per-channel standardisation shared by all clients.

    A spread below the floor is replaced by 1, so that a constant actuator's first change is one
    unit, not a million (dividing by a tiny spread cost one detector two thirds of its F1). With a
    `resolution`, readings are rounded to its multiples first, so that a record with more digits
    scores the same.
    """

    names: tuple[str, ...]
    mean: Floats
    spread: Floats
    resolution: Floats = field(default_factory=lambda: np.empty(0))  # per channel; empty: as read

    @classmethod
    def fit(cls, records: Sequence[Record], names: Sequence[str]) -> "Scaler":
        """Fit on the pooled clean rows of all clients; every reading has the same weight."""
        pooled = np.concatenate([_columns(record, names) for record in records])
        if np.isnan(pooled).all(axis=0).any():
            raise RecordError("a channel without any reading cannot be scaled; drop it first")
        spread = np.nanstd(pooled, axis=0)
        return cls(
            names=tuple(names),
            mean=np.nanmean(pooled, axis=0),
            spread=np.where(spread < SPREAD_FLOOR, 1.0, spread),
        )

    def without(self, names: Collection[str]) -> "Scaler":
        """Return the scaler of all channels but these."""
        kept = [at for at, name in enumerate(self.names) if name not in names]
        return Scaler(
            names=tuple(self.names[at] for at in kept),
            mean=self.mean[kept],
            spread=self.spread[kept],
            resolution=self.resolution[kept] if len(self.resolution) else self.resolution,
        )

    def scale(self, record: Record) -> Floats:
        """Return the record's readings in units of spread, one column per scaled channel."""
        scaled: Floats = (self._readings(record) - self.mean) / self.spread
        return scaled

    def rounded(self, record: Record) -> Record:
        """Return the record with its readings at this resolution; other channels stay as read."""
        if not len(self.resolution):
            return record
        values = record.values.copy()
        values[:, [record.index(name) for name in self.names]] = self._readings(record)
        return record.with_values(values)

    def _readings(self, record: Record) -> Floats:
        readings = _columns(record, self.names)
        if len(self.resolution):
            readings = np.rint(readings / self.resolution) * self.resolution
        return readings


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """All windows of `length` consecutive rows without a time jump or a missing reading."""

    rows: NDArray[np.float32]  # rows x channels, scaled
    starts: Ints
    length: int
    labels: NDArray[np.int8]  # Label, one per window

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def last_rows(self) -> Ints:
        """The row at which each window is reported."""
        last: Ints = self.starts + self.length - 1
        return last

    def matrix(self, which: Ints | None = None) -> NDArray[np.float32]:
        """Return windows flattened row by row: (windows, length x channels)."""
        starts = self.starts if which is None else self.starts[which]
        channels = self.rows.shape[1]
        # A window's rows follow each other in memory, so it is copied as one piece.
        readings = np.ascontiguousarray(self.rows).ravel()
        if len(readings) < self.length * channels or not channels:
            return np.empty((0, self.length * channels), np.float32)
        return np.asarray(sliding_window_view(readings, self.length * channels)[starts * channels])

    def touching(self, rows: Bools) -> Bools:
        """Return which windows contain at least one marked row."""
        return _any_within(rows, self.length)[self.starts]

    def take(self, which: Ints | Bools) -> "Windows":
        """Return the selected windows, possibly repeated, over the same rows."""
        return replace(self, starts=self.starts[which], labels=self.labels[which])

    @classmethod
    def joined(cls, parts: Sequence["Windows"]) -> "Windows":
        """Concatenate the windows of several records; no window spans two records."""
        lengths = {part.length for part in parts}
        if len(lengths) != 1:
            raise SettingError(
                f"only windows of one length can be joined, got {sorted(lengths)} rows"
            )
        offsets = np.cumsum([0, *(len(part.rows) for part in parts[:-1])])
        return cls(
            rows=np.concatenate([part.rows for part in parts]),
            starts=np.concatenate(
                [part.starts + offset for part, offset in zip(parts, offsets, strict=True)]
            ),
            length=lengths.pop(),
            labels=np.concatenate([part.labels for part in parts]),
        )


def windows(record: Record, scaler: Scaler, *, length: int = WINDOW_ROWS) -> Windows:
    """Cut a record into windows of consecutive rows."""
    if length < 1:
        raise SettingError(f"a window holds at least one row, got {length}")
    scaled = np.ascontiguousarray(scaler.scale(record), np.float32)
    jumps = np.zeros(len(record), bool)
    jumps[record.segment_starts[1:]] = True
    broken = np.asarray(np.isnan(scaled).any(axis=1))
    if len(record) < length:
        starts = np.empty(0, np.int64)
    else:
        crossing = _any_within(jumps[1:], length - 1) if length > 1 else np.zeros(len(record), bool)
        usable = ~_any_within(broken, length)
        usable &= ~crossing[: len(usable)]
        starts = np.flatnonzero(usable)
    return Windows(
        rows=scaled, starts=starts, length=length, labels=_window_labels(record, length)[starts]
    )


def _columns(record: Record, names: Sequence[str]) -> Floats:
    return record.values[:, [record.index(name, needed_by="the scaler") for name in names]]


def _is(record: Record, label: Label) -> Bools:
    labelled: Bools = record.labels == label
    return labelled


def _any_within(marked: Bools, length: int) -> Bools:
    """Return for each start whether any of the next `length` rows is marked."""
    count = np.concatenate(([0], np.cumsum(marked)))
    marked_within: Bools = count[length:] > count[:-length]
    return marked_within


def _window_labels(record: Record, length: int) -> NDArray[np.int8]:
    """Label a window attack if any row is; else unlabelled if any row is; else normal."""
    attacked = _any_within(_is(record, Label.ATTACK), length)
    unknown = _any_within(_is(record, Label.UNLABELLED), length)
    labels = np.where(attacked, Label.ATTACK, np.where(unknown, Label.UNLABELLED, Label.NORMAL))
    return labels.astype(np.int8)
