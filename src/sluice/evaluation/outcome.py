"""What a detector made of one record, laid beside what the record's windows were."""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Bools, Floats, Ints
from sluice.errors import SettingError
from sluice.telemetry import Label

__all__ = ["Outcome", "Stretches", "Unlabelled"]


class Unlabelled(StrEnum):
    """What a window that nobody labelled counts as."""

    EXCLUDE = "exclude"  # neither attack nor normal: left out of every figure
    NORMAL = "normal"  # as the paper reads BATADAL


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stretches:
    """Runs of neighbouring windows, half open, in time order."""

    starts: Ints
    stops: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def lengths(self) -> Ints:
        """How many windows each holds."""
        lengths: Ints = self.stops - self.starts
        return lengths

    def counts(self, marked: Bools) -> Ints:
        """Return how many marked windows each holds."""
        total = np.concatenate(([0], np.cumsum(marked)))
        found: Ints = total[self.stops] - total[self.starts]
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """Scores, alarms and labels of a record's windows, each told at the window's last row.

    The alarms are those of a threshold that was set without this record.
    """

    scores: Floats
    alarms: Bools
    labels: NDArray[np.int8]  # Label of the whole window
    last_rows: Ints
    stride_s: float

    def __post_init__(self) -> None:
        told = {
            "alarms": self.alarms.shape,
            "labels": self.labels.shape,
            "last rows": self.last_rows.shape,
        }
        for what, shape in told.items():
            if shape != (len(self.scores),):
                raise SettingError(
                    f"an outcome has {len(self.scores)} scores but {what} of shape {shape}; give "
                    "one of each per window"
                )
        if not len(self.scores):
            raise SettingError("an outcome without windows cannot be evaluated")
        if self.alarms.dtype != np.bool_:
            raise SettingError(f"alarms are true or false, got an array of {self.alarms.dtype}")
        if not np.isfinite(self.scores).all():
            raise SettingError("scores must be finite; a window without a score is left out")
        if not np.isin(self.labels, list(Label)).all():
            raise SettingError(f"labels are {', '.join(f'{one} {one.name}' for one in Label)}")
        if (np.diff(self.last_rows) < 1).any():
            raise SettingError("windows come in time order; sort them by their last row")
        if not (np.isfinite(self.stride_s) and self.stride_s > 0):
            raise SettingError(f"a row lasts more than 0 s, got {self.stride_s}")

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def attack(self) -> Bools:
        """Which windows touch an attack."""
        attack: Bools = self.labels == Label.ATTACK
        return attack

    @property
    def attacks(self) -> Stretches:
        """The attacks as windows see them: two that are less than a window apart are one."""
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
        """Which windows have no neighbour before them, and which have none after."""
        apart = np.diff(self.last_rows) != 1
        return np.concatenate(([True], apart)), np.concatenate((apart, [True]))

    def settled(self, unlabelled: Unlabelled) -> "Outcome":
        """Return the windows that are attack or normal once the unlabelled ones are settled."""
        unknown = self.labels == Label.UNLABELLED
        if unlabelled is Unlabelled.NORMAL:
            labels = np.where(unknown, Label.NORMAL, self.labels).astype(np.int8)
            return replace(self, labels=labels)
        if unknown.all():
            raise SettingError(
                f"all {len(self)} windows are unlabelled and unlabelled ones are left out; give a "
                "labelled record, or count them as normal"
            )
        return self.at(~unknown)

    def at(self, which: Bools) -> "Outcome":
        """Return some of the windows."""
        return replace(
            self,
            scores=self.scores[which],
            alarms=self.alarms[which],
            labels=self.labels[which],
            last_rows=self.last_rows[which],
        )
