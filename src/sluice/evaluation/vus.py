"""VUS-PR: the volume under precision and recall as the labels' edges are softened.

Paparrizos, Boniol, Palpanas, Tsay, Elmore and Franklin, "Volume under the surface" (PVLDB 2022),
as their TSB-AD benchmark computes it. The labelled start of an attack is uncertain, and a detector
that reads the last ten rows is late by some of them. So for a buffer length l

    label      1 on an attack; sqrt(1 - d/l) at a distance of d = 1 .. l/2 windows from one on
               either side; where two buffers overlap their sum, at most 1
    TP         the sum of labels over the windows that alarm
    wanted     the attack windows plus half the labels of alarms in buffers: the mean of the labels
               with and without the used buffers
    precision  TP / windows that alarm
    recall     min(TP / wanted, 1) x the share of attacks with an alarm on them or in their buffer

and the area is computed as in average precision: precision at each distinct score, weighted by the
recall it adds. VUS-PR is the mean of that area over buffer lengths from 0 to `longest`, by default
the median attack's length, as its authors recommend.

Where the sources differ: the paper counts all buffers in `wanted`, which keeps a perfect detector
below 1, and uses trapezoids, which overrate a score with few values; the benchmark and this code do
neither. The benchmark samples 250 thresholds; this code uses every score. The benchmark merges
attacks whose buffers overlap; this code keeps them separate, as in the paper's text. No buffer
crosses a time jump.
"""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.errors import SettingError
from sluice.evaluation.outcome import Outcome, Stretches

__all__ = ["vus_pr"]

MOST_LENGTHS = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Buffers:
    """The attacks, and the number of windows between each and the next time jump on either side."""

    attack: Bools
    attacks: Stretches
    room_before: Ints
    room_after: Ints

    @classmethod
    def of(cls, outcome: Outcome) -> "_Buffers":
        attacks = outcome.attacks
        if not len(attacks):
            raise SettingError("VUS-PR needs attacks; give a record with labelled attacks")
        first, last = (np.flatnonzero(edge) for edge in outcome.broken)
        part = np.searchsorted(first, attacks.starts, side="right") - 1
        return cls(
            attack=outcome.attack,
            attacks=attacks,
            room_before=attacks.starts - first[part],
            room_after=last[part] + 1 - attacks.stops,
        )

    def labels(self, length: int) -> Floats:
        """Return the labels softened by a buffer length."""
        labels = self.attack.astype(np.float64)
        away = np.arange(1, length // 2 + 1)
        soft = np.sqrt(1 - away / length) if length else np.empty(0)
        for edge, room, step in (
            (self.attacks.starts, self.room_before, -away),
            (self.attacks.stops - 1, self.room_after, away),
        ):
            inside = away <= room[:, np.newaxis]
            places = (edge[:, np.newaxis] + step)[inside]
            np.add.at(labels, places, np.broadcast_to(soft, inside.shape)[inside])
        return np.minimum(labels, 1.0)

    def reach(self, length: int) -> Ints:
        """Return start and stop of each attack with its buffers, as one flat array."""
        half = length // 2
        starts = self.attacks.starts - np.minimum(half, self.room_before)
        stops = self.attacks.stops + np.minimum(half, self.room_after)
        return np.column_stack((starts, stops)).ravel()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ranking:
    """Windows on or near an attack by descending score; others only add to the alarms."""

    scores: Floats  # of all windows, and -inf as one more
    order: Ints
    ends: Ints  # where in that order each distinct score has its last window
    alarms: Ints  # of all windows, at each distinct score
    attack_windows: Ints  # that alarm at each distinct score

    @classmethod
    def of(cls, outcome: Outcome, near: Bools) -> "_Ranking":
        places = np.flatnonzero(near)
        order = places[np.argsort(-outcome.scores[places], kind="stable")]
        ends = np.append(np.flatnonzero(np.diff(outcome.scores[order])), len(order) - 1)
        below = np.searchsorted(np.sort(outcome.scores), outcome.scores[order[ends]])
        return cls(
            scores=np.append(outcome.scores, -np.inf),
            order=order,
            ends=ends,
            alarms=len(outcome) - below,
            attack_windows=np.cumsum(outcome.attack[order])[ends],
        )

    def area(self, buffers: _Buffers, length: int) -> float:
        """Return the area under precision over recall at one buffer length."""
        true_positives = np.cumsum(buffers.labels(length)[self.order])[self.ends]
        wanted = self.attack_windows[-1] + (true_positives - self.attack_windows) / 2
        recall = np.minimum(true_positives / wanted, 1.0) * self._share_detected(
            buffers.reach(length)
        )
        return float((np.diff(recall, prepend=0.0) * true_positives / self.alarms).sum())

    def _share_detected(self, reach: Ints) -> Floats:
        """Return, per threshold, the share of attacks with an alarm in reach."""
        highest = np.maximum.reduceat(self.scores, reach)[::2]
        thresholds = self.scores[self.order[self.ends]]
        detected_at = np.searchsorted(-thresholds, -highest)
        share: Floats = np.cumsum(np.bincount(detected_at, minlength=len(thresholds))) / len(
            highest
        )
        return share


def vus_pr(outcome: Outcome, *, longest: int | None = None) -> float:
    """Return VUS-PR over buffer lengths from 0 to `longest` windows.

    Up to 100, every length is used; above, 101 evenly spaced lengths.
    """
    buffers = _Buffers.of(outcome)
    if longest is None:
        longest = int(np.median(buffers.attacks.lengths))
    if longest < 0:
        raise SettingError(f"a buffer must be at least 0 windows long, got {longest}")
    ranking = _Ranking.of(outcome, buffers.labels(longest) > 0)
    lengths = np.linspace(0, longest, min(longest, MOST_LENGTHS) + 1).round().astype(np.int64)
    return float(np.mean([ranking.area(buffers, int(length)) for length in lengths]))
