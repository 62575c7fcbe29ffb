"""A detector's scores and alarms on one record, with the labels of the record's windows."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Bools, Floats, Ints
from sluice.errors import SettingError
from sluice.telemetry import Label

__all__ = ["Outcome", "Stretches", "Unlabelled"]


class Unlabelled(StrEnum):
    """How an unlabelled window is counted."""

    EXCLUDE = "exclude"  # neither attack nor normal: left out of every metric
    NORMAL = "normal"  # as the paper does for BATADAL


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretches:
    """Runs of consecutive windows, half open, in time order."""

    starts: Ints
    stops: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def lengths(self) -> Ints:
        """Number of windows in each run."""
        lengths: Ints = self.stops - self.starts
        return lengths

    def counts(self, marked: Bools) -> Ints:
        """Return the number of marked windows in each run."""
        total = np.concatenate(([0], np.cumsum(marked)))
        counts: Ints = total[self.stops] - total[self.starts]
        return counts


class ScoredWindows(Protocol):
    """A record's scored windows, as a detector returns them."""

    @property
    def scores(self) -> Floats:
        """One score per window."""
        ...

    @property
    def alarms(self) -> Bools:
        """Whether each window raises an alarm."""
        ...

    @property
    def labels(self) -> NDArray[np.int8]:
        """The label of each window."""
        ...

    @property
    def last_rows(self) -> Ints:
        """The last row of each window."""
        ...

    @property
    def stride_s(self) -> float:
        """Seconds from row to row."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """Scores, alarms and labels of a record's windows, each reported at the window's last row.

    The threshold of the alarms was set without this record.
    """

    scores: Floats
    alarms: Bools
    labels: NDArray[np.int8]  # Label of the whole window
    last_rows: Ints
    stride_s: float

    @classmethod
    def of(cls, scored: "ScoredWindows") -> "Outcome":
        """Return the outcome of a scored record: what `sluice.score` returns."""
        return cls(
            scores=scored.scores,
            alarms=scored.alarms,
            labels=scored.labels,
            last_rows=scored.last_rows,
            stride_s=scored.stride_s,
        )

    def __post_init__(self) -> None:
        shapes = {
            "alarms": self.alarms.shape,
            "labels": self.labels.shape,
            "last rows": self.last_rows.shape,
        }
        for what, shape in shapes.items():
            if shape != (len(self.scores),):
                raise SettingError(
                    f"an outcome has {len(self.scores)} scores but {what} of shape {shape}; give "
                    "one of each per window"
                )
        if not len(self.scores):
            raise SettingError(
                "an outcome without windows cannot be evaluated; give a longer record"
            )
        if self.alarms.dtype != np.bool_:
            raise SettingError(f"alarms must be true or false, got an array of {self.alarms.dtype}")
        if not np.isfinite(self.scores).all():
            raise SettingError("scores must be finite; leave out windows without a score")
        if not np.isin(self.labels, list(Label)).all():
            raise SettingError(f"labels must be {', '.join(f'{one} {one.name}' for one in Label)}")
        if (np.diff(self.last_rows) < 1).any():
            raise SettingError("windows must be in time order; sort them by their last row")
        if not (np.isfinite(self.stride_s) and self.stride_s > 0):
            raise SettingError(f"the stride must be more than 0 s, got {self.stride_s}")

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def attack(self) -> Bools:
        """Which windows contain an attack row."""
        attack: Bools = self.labels == Label.ATTACK
        return attack

    @property
    def attacks(self) -> Stretches:
        """The runs of attack windows; attacks less than a window apart count as one."""
        return self.stretches(self.attack)

    def stretches(self, marked: Bools) -> Stretches:
        """Return the maximal runs of marked windows; a time jump or a missing window ends one."""
        first, last = self.broken
        before = np.concatenate(([False], marked[:-1]))
        after = np.concatenate((marked[1:], [False]))
        return Stretches(
            starts=np.flatnonzero(marked & (~before | first)),
            stops=np.flatnonzero(marked & (~after | last)) + 1,
        )

    @property
    def broken(self) -> tuple[Bools, Bools]:
        """Which windows have no predecessor, and which have no successor."""
        apart = np.diff(self.last_rows) != 1
        return np.concatenate(([True], apart)), np.concatenate((apart, [True]))

    def settled(self, unlabelled: Unlabelled) -> "Outcome":
        """Return the outcome without unlabelled windows: excluded, or counted as normal."""
        unknown = self.labels == Label.UNLABELLED
        if unlabelled is Unlabelled.NORMAL:
            labels = np.where(unknown, Label.NORMAL, self.labels).astype(np.int8)
            return replace(self, labels=labels)
        if unknown.all():
            raise SettingError(
                f"all {len(self)} windows are unlabelled and would be left out; give a labelled "
                "record, or count them as normal"
            )
        return self.at(~unknown)

    def at(self, which: Bools) -> "Outcome":
        """Return the selected windows."""
        return replace(
            self,
            scores=self.scores[which],
            alarms=self.alarms[which],
            labels=self.labels[which],
            last_rows=self.last_rows[which],
        )
