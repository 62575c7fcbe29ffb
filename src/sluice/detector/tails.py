"""How often clean operation reaches a score: alarm events a week, with a generalised Pareto tail.

Alarms less than `MERGE_ROWS` rows apart are one event: an operator is called once. A threshold for
so many events a week is read off the clean scores where they hold enough events. Beyond them, the
peaks of the highest events are extrapolated by a generalised Pareto distribution ("peaks over
threshold"), fitted by probability-weighted moments (Hosking and Wallis, Technometrics 1987).

A threshold that gives the asked number of events on these clean rows would give more on every
second set of other clean rows. So it is set for fewer events, by the sampling error of their number
at 90 % confidence.

No threshold is set for an event that is rarer than one in `FURTHEST` times the length of the clean
rows: minutes of rows do not say what a week reaches, and a tail that is carried so far gives a
threshold that no attack passes.
"""

import math
from bisect import bisect
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats, Ints, Run
from sluice.detector.threshold import RateThreshold
from sluice.errors import SettingError

__all__ = [
    "MERGE_ROWS",
    "WEEK_S",
    "Pareto",
    "ScoreTail",
    "alarm_events",
    "cautious_share",
    "fit_pareto",
    "fit_tail",
    "peaks_of",
    "rarest_rate",
    "threshold_for",
]

MERGE_ROWS = 10
WEEK_S = 604_800.0
ENOUGH_EVENTS = 10  # with as many, the clean scores alone set the threshold
FURTHEST = 20.0  # times the length of the clean rows
CONFIDENCE = 1.2816  # standard errors: nine of ten
PEAKS = 40  # events whose peaks the tail is fitted to
FEWEST_PEAKS = 8
SHAPES = (-0.5, 0.5)  # fits to a few peaks leave the range that scores of real plants show
BODY_POINTS = 65
SMALLEST_SHARE = 1e-300
LEAST = 1e-12  # a scale where all peaks are equal


def alarm_events(last_rows: Ints, *, merge_rows: int = MERGE_ROWS) -> tuple[Run, ...]:
    """Group alarms, given by their rows in order, into events; positions are half open."""
    if not len(last_rows):
        return ()
    edges = np.flatnonzero(np.diff(last_rows) >= merge_rows) + 1
    starts = np.concatenate(([0], edges))
    stops = np.append(edges, len(last_rows))
    return tuple(Run(int(a), int(b)) for a, b in zip(starts, stops, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pareto:
    """A generalised Pareto distribution of what exceeds a level."""

    scale: float
    shape: float

    def survival(self, excess: Floats) -> Floats:
        """Return the share that exceeds the level by more than `excess`."""
        if abs(self.shape) < 1e-9:
            return np.exp(-excess / self.scale)
        base = np.maximum(1 + self.shape * excess / self.scale, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(base ** (-1 / self.shape))

    def excess(self, share: float) -> float:
        """Return what a share of the excesses lies beyond."""
        if abs(self.shape) < 1e-9:
            return -self.scale * math.log(share)
        return self.scale / self.shape * (math.pow(share, -self.shape) - 1)


def fit_pareto(excesses: Floats) -> Pareto:
    """Fit by probability-weighted moments; the shape is limited to what real scores show."""
    ordered = np.sort(excesses)
    count = len(ordered)
    mean = float(ordered.mean())
    if mean <= 0:
        return Pareto(scale=LEAST, shape=0.0)
    weighted = float(((count - np.arange(1, count + 1)) / (count - 1) @ ordered) / count)
    shape = 2 - mean / (mean - 2 * weighted) if mean > 2 * weighted else SHAPES[0]
    shape = min(max(shape, SHAPES[0]), SHAPES[1])
    return Pareto(scale=mean * (1 - shape), shape=shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTail:
    """How rarely clean windows reach a score.

    Up to `level`, the shares are those of the clean windows. Above it, the peaks of clean events
    follow a generalised Pareto distribution of their excess over the level (of the logarithm's
    excess if the level is above 0).
    """

    points: tuple[float, ...]  # scores that ever fewer clean windows reach, from all to `share`
    share: float  # of clean windows above the last point
    pareto: Pareto

    def __post_init__(self) -> None:
        if (
            len(self.points) != BODY_POINTS
            or not np.isfinite(self.points).all()
            or (np.diff(self.points) < 0).any()
        ):
            raise SettingError(f"a tail needs {BODY_POINTS} finite scores in ascending order")
        if not (0 < self.share <= 1 and 0 < self.pareto.scale < math.inf):
            raise SettingError(
                f"a tail of a share of {self.share} and a scale of {self.pareto.scale} cannot be; "
                "a share lies above 0 and up to 1, a scale above 0"
            )

    @property
    def level(self) -> float:
        """The score above which peaks are extrapolated."""
        return self.points[-1]

    def surprise(self, scores: Floats) -> Floats:
        """Return -log10 of the share of clean windows that reach each score: 3 is one in 1,000."""
        shares = np.linspace(0.0, -math.log10(self.share), BODY_POINTS)
        surprise: Floats = np.interp(scores, self.points, shares)
        above = scores > self.level
        high = scores[above]
        excess = np.log(high / self.level) if self.level > 0 else high
        left = np.maximum(self.share * self.pareto.survival(excess), SMALLEST_SHARE)
        surprise[above] = -np.log10(left)
        return surprise


def fit_tail(scores: Floats, last_rows: Ints) -> ScoreTail:
    """Fit the tail of clean scores; the Pareto part never ends at a largest score.

    A fitted end would call every score beyond it impossible, on the word of a few dozen peaks.
    """
    level, peaks = peaks_of(scores, last_rows)
    excess = np.log(peaks / level) if level > 0 else peaks
    pareto = fit_pareto(excess)
    if pareto.shape < 0:
        pareto = Pareto(scale=max(float(excess.mean()), LEAST), shape=0.0)
    share = float(np.mean(scores > level))
    shares = share ** np.linspace(0.0, 1.0, BODY_POINTS)
    points = np.quantile(scores, 1 - shares)
    points[-1] = level
    return ScoreTail(points=tuple(np.minimum(points, level).tolist()), share=share, pareto=pareto)


def rarest_rate(clean_windows: int, *, stride_s: float) -> float:
    """Return the fewest false alarms a week for which so many clean windows set a threshold."""
    return WEEK_S / (FURTHEST * clean_windows * stride_s)


def threshold_for(
    scores: Floats,
    last_rows: Ints,
    *,
    stride_s: float,
    false_alarms_per_week: float,
) -> RateThreshold:
    """Return the threshold that clean operation passes in so many events a week.

    `scores` are those of clean windows that no model was fitted to, in the order of their rows. If
    they are too few for such rare events, it is the threshold of their `rarest_rate`.
    """
    if not (len(scores) and np.isfinite(scores).all()):
        raise SettingError("a threshold needs finite scores of at least one clean window")
    wanted = false_alarms_per_week * len(scores) * stride_s / WEEK_S
    if not 0 < wanted < math.inf:
        raise SettingError(
            f"the number of false alarms a week must be above 0, got {false_alarms_per_week}"
        )
    wanted = max(wanted, 1 / FURTHEST)
    if wanted >= ENOUGH_EVENTS:
        cautious = wanted * math.exp(-CONFIDENCE / math.sqrt(wanted))
        score = _level_with(scores, last_rows, int(cautious))
    else:
        score = _extrapolated(scores, last_rows, wanted)
    return RateThreshold(
        score=max(score, 0.0),
        false_alarms_per_week=false_alarms_per_week,
        clean_windows=len(scores),
        clean_events=_events_above(scores, last_rows, score),
    )


def _events_above(scores: Floats, last_rows: Ints, level: float) -> int:
    return len(alarm_events(last_rows[scores > level]))


def _level_with(scores: Floats, last_rows: Ints, events: int) -> float:
    """Return the lowest score such that no higher level has more than so many events above it.

    If none has as many, because events merge as the level falls, the level with the most of them.
    Windows are added from the highest score down. A row between two alarms replaces one distance
    by two, so the count of distances that separate events changes by what those three say.
    """
    alarmed: list[int] = []
    apart, most, level = 0, 0, float(scores.max())
    for at in np.argsort(-scores, kind="stable"):
        row = int(last_rows[at])
        place = bisect(alarmed, row)
        before = alarmed[place - 1] if place else -math.inf
        after = alarmed[place] if place < len(alarmed) else math.inf
        inner = math.isfinite(before) and math.isfinite(after)
        apart += math.isfinite(before) and row - before >= MERGE_ROWS
        apart += math.isfinite(after) and after - row >= MERGE_ROWS
        apart -= inner and after - before >= MERGE_ROWS
        alarmed.insert(place, row)
        if apart + 1 > events:
            return float(scores[at])
        if apart + 1 > most:
            most, level = apart + 1, float(np.nextafter(scores[at], -np.inf))
    return level


def _extrapolated(scores: Floats, last_rows: Ints, wanted: float) -> float:
    """Return the level that so many events pass, less than are needed to count them."""
    level, peaks = peaks_of(scores, last_rows)
    share = cautious_share(wanted, len(peaks))
    if level <= 0:
        return fit_pareto(peaks).excess(share)
    # Logarithms: squared distances have heavy tails, and the peaks of their logarithms do not.
    return level * math.exp(fit_pareto(np.log(peaks / level)).excess(share))


def cautious_share(wanted: float, peaks: int) -> float:
    """Return the share of so many peaks that may pass a threshold, for so many wanted events.

    It is lower by two errors: of the number of peaks, and of the scale that carries it on to the
    wanted number.
    """
    share = min(wanted / peaks, 1.0)
    error = math.hypot(1.0, math.log(share)) / math.sqrt(peaks)
    return share * math.exp(-CONFIDENCE * error)


def peaks_of(scores: Floats, last_rows: Ints) -> tuple[float, Floats]:
    """Return a level that a few dozen events pass, and the peak of each."""
    level = _level_with(scores, last_rows, PEAKS)
    events = alarm_events(last_rows[scores > level])
    if len(events) < FEWEST_PEAKS and (scores < level).any():  # many windows share the top score
        level = float(scores[scores < level].max())
        events = alarm_events(last_rows[scores > level])
    above = scores > level
    if len(events) < FEWEST_PEAKS:
        raise SettingError(
            f"{len(scores):,} clean windows hold {len(events)} separate peaks; a threshold by "
            f"false alarms a week needs at least {FEWEST_PEAKS}: calibrate on more clean rows"
        )
    return level, np.array([scores[above][event.slice].max() for event in events])
