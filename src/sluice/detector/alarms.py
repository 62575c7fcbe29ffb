"""A detector's result on a record: one score per window, alarms, and stretches of alarms."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Bools, Floats, Ints, Run, Times, runs
from sluice.detector.tails import alarm_events
from sluice.detector.threshold import AlarmThreshold
from sluice.telemetry import Label

__all__ = ["AlarmEvent", "AlarmStretch", "Scored"]

DAY_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmStretch:
    """Alarms of consecutive windows, from `first_row` to `last_row` (the windows' last rows)."""

    first_row: int
    last_row: int
    start: np.datetime64
    end: np.datetime64
    peak: float
    false: bool  # every window in it is labelled normal

    @property
    def rows(self) -> int:
        """Number of consecutive windows that alarmed."""
        return self.last_row - self.first_row + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmEvent:
    """Alarms that an operator is called for once: less than 10 rows apart from the next."""

    first_row: int
    last_row: int
    start: np.datetime64
    end: np.datetime64
    peak: float
    peak_row: int
    alarms: int  # windows that alarm


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """Scores and alarms, one per window, reported at the window's last row."""

    last_rows: Ints
    times: Times
    scores: Floats
    alarms: Bools
    labels: NDArray[np.int8]  # Label of the whole window
    threshold: AlarmThreshold
    stride_s: float

    def __len__(self) -> int:
        return len(self.last_rows)

    def stretches(self) -> tuple[AlarmStretch, ...]:
        """Return the maximal stretches of alarms, in time order; a time jump ends one."""
        return tuple(self._stretch(run) for run in self._alarm_runs())

    def events(self) -> tuple[AlarmEvent, ...]:
        """Return the alarm events, in time order."""
        alarmed = np.flatnonzero(self.alarms)
        return tuple(self._event(alarmed[e.slice]) for e in alarm_events(self.last_rows[alarmed]))

    def false_alarms_per_day(self) -> float | None:
        """Return alarm stretches entirely on normal windows, per day of normal windows.

        A stretch that touches an attack is not false, even if it lasts longer than the attack.
        None if no window is labelled normal, because false alarms are then unknown.
        """
        normal = int(np.sum(self.labels == Label.NORMAL))
        if not normal:
            return None
        false = sum(stretch.false for stretch in self.stretches())
        return false * DAY_S / (normal * self.stride_s)

    def _alarm_runs(self) -> list[Run]:
        edges = np.flatnonzero(np.diff(self.last_rows) != 1) + 1
        alarm_runs: list[Run] = []
        for part in np.split(np.arange(len(self)), edges):
            if part.size:
                start = int(part[0])
                alarm_runs += [Run(start + a, start + b) for a, b in runs(self.alarms[part])]
        return alarm_runs

    def _event(self, alarmed: Ints) -> AlarmEvent:
        first, last = int(alarmed[0]), int(alarmed[-1])
        peak = int(alarmed[np.argmax(self.scores[alarmed])])
        return AlarmEvent(
            first_row=int(self.last_rows[first]),
            last_row=int(self.last_rows[last]),
            start=self.times[first],
            end=self.times[last],
            peak=float(self.scores[peak]),
            peak_row=int(self.last_rows[peak]),
            alarms=len(alarmed),
        )

    def _stretch(self, run: Run) -> AlarmStretch:
        return AlarmStretch(
            first_row=int(self.last_rows[run.start]),
            last_row=int(self.last_rows[run.stop - 1]),
            start=self.times[run.start],
            end=self.times[run.stop - 1],
            peak=float(self.scores[run.slice].max()),
            false=bool(np.all(self.labels[run.slice] == Label.NORMAL)),
        )
