"""A detector on a stream of rows: each row ends a window, which is scored at once."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from sluice.arrays import Bools, Floats
from sluice.detector import Detector, Fusion, RateThreshold, VotedModel, voted_model
from sluice.invariants import (
    Mean,
    RuleSet,
    Spectrum,
    Window,
)
from sluice.telemetry import Channel, Record, Role, Windows, windows
from sluice.watch.settings import WatchSettings
from sluice.watch.signals import Signal, SymptomKind
from sluice.watch.trailing import RecentRows
from sluice.watch.words import say_score, say_votes

__all__ = ["ByDetector", "channels_of"]

SEVERE_RATIO = 4.0  # times the threshold
SEVERE_SURPRISE = 2.0  # the same for a score that is a logarithm
LONGEST_STEP = 4_096  # rows
QUANTILE_WINDOWS = 3
MOST_TAGS = 3
ENOUGH_SHARE = 0.6  # of a score; further tags are not named


def channels_of(detector: Detector) -> tuple[str, ...]:
    """Return the channels that a detector reads, for its model and for its rules."""
    names = dict.fromkeys(detector.framing.scaler.names)
    if detector.fusion:
        rules = detector.fusion.physics.rules
        names |= dict.fromkeys(n for rule in rules.invariants for n in rule.relation.channels)
        if rules.clean:
            names |= dict.fromkeys(fact.level for fact in rules.clean.liveness)
    return tuple(names)


def _reach(rules: RuleSet | None, window_rows: int) -> tuple[int, int]:
    """Return how many rows the rules look back, and a step that keeps their windows in place."""
    if rules is None:
        return 0, 1
    longest = rules.rows_needed
    step = 1
    for rule in rules.invariants:
        if isinstance(rule.relation, Window | Spectrum | Mean):
            step = min(math.lcm(step, rule.relation.rows), LONGEST_STEP)
    return 2 * longest + window_rows, step


class ByDetector:
    """Judges rows by a calibrated detector."""

    def __init__(self, detector: Detector, names: tuple[str, ...], settings: WatchSettings) -> None:
        self.detector = detector
        column = {name: at for at, name in enumerate(names)}
        rules = detector.fusion.physics.rules if detector.fusion else None
        known = {channel.name: channel for channel in rules.channels} if rules else {}
        read = channels_of(detector)
        self._columns = [column[name] for name in read]
        self._channels = tuple(
            known.get(name) or Channel(name=name, role=Role.OTHER) for name in read
        )
        self._back, self._step = _reach(rules, detector.framing.window_rows)
        surprise = isinstance(detector.fusion, Fusion)
        self._severe = SEVERE_SURPRISE if surprise else SEVERE_RATIO
        # A quantile of single windows is exceeded often; a rate of events is what was asked for.
        usual = 1 if isinstance(detector.threshold, RateThreshold) else QUANTILE_WINDOWS
        needed = usual if settings.raise_windows is None else settings.raise_windows
        self._symptom = settings.symptom(
            SymptomKind.DETECTOR, "", stride_s=detector.framing.stride_s, needed=needed
        )

    @property
    def context(self) -> int:
        """How many rows before a row its window, or its rules, look back."""
        return max(self.detector.framing.window_rows - 1, self._back + self._step)

    def take(self, stretch: RecentRows) -> Iterator[Signal]:
        """Return the windows that end in the new rows and score above the threshold."""
        rows = self.detector.framing.window_rows
        short = stretch.last(rows - 1)
        cut = windows(self._record(short), self.detector.framing.scaler, length=rows)
        cut = cut.take(cut.starts + rows > short.fresh)
        if not len(cut):
            return
        ends = cut.starts + rows - 1
        scores, rules = self._scores(stretch, short, cut)
        above = np.flatnonzero(self.detector.threshold.alarms(scores))
        if not above.size:
            return
        shares, votes = self._blame(cut.take(above)), self._votes(cut.take(above))
        limit = max(self.detector.threshold.score, np.finfo(np.float64).tiny)
        for score, end, share, broken, votes_of in zip(
            scores[above], ends[above], shares, rules[above], votes, strict=True
        ):
            tags, parts = self._tags(share)
            ratio = float(score / limit)
            yield Signal(
                time=int(short.times[int(end)]),
                symptom=self._symptom,
                tags=tags,
                size=ratio,
                severe=ratio > self._severe,
                say=partial(self._say, ratio, tags, parts, votes_of, rules_first=bool(broken)),
            )

    def _record(self, stretch: RecentRows) -> Record:
        return Record(
            name="stream",
            channels=self._channels,
            values=stretch.raw[:, self._columns],
            times=stretch.times.view("datetime64[us]"),
            stride_s=self.detector.framing.stride_s,
            labels=np.zeros(len(stretch), np.int8),
        )

    def _scores(self, stretch: RecentRows, short: RecentRows, cut: Windows) -> tuple[Floats, Bools]:
        """Return the scores, and where the rules are more surprised than the model."""
        scores = self.detector.model.scores(cut)
        fusion, rows = self.detector.fusion, self.detector.framing.window_rows
        if fusion is None:
            return scores, np.zeros(len(scores), bool)
        # Windows and blocks of rules lie where they lie in a record that begins with the stream.
        first = stretch.row + stretch.fresh
        start = max(0, (first - self._back) // self._step * self._step - stretch.row)
        known = stretch.span(start, len(stretch))
        record = self.detector.framing.scaler.rounded(self._record(known))
        last = cut.starts + rows - 1 + (short.row - known.row)
        seen = fusion.surprises(scores, record, last, rows=rows)
        return seen.fused, np.asarray(seen.rules > seen.model)

    def _blame(self, alarmed: Windows) -> Floats:
        blame = getattr(self.detector.model, "blame", None)
        if blame is not None:
            return np.asarray(blame(alarmed), np.float64)
        # A model of a plug-in that cannot tell: how far each channel is from its clean mean.
        away = alarmed.matrix().astype(np.float64).reshape(len(alarmed), alarmed.length, -1) ** 2
        mean = away.mean(axis=1)
        return np.asarray(mean / np.maximum(mean.sum(axis=1, keepdims=True), 1e-12))

    def _votes(self, alarmed: Windows) -> tuple[Bools, ...]:
        """Return, for each window, who votes for an alarm; nothing for a detector without votes."""
        model = self.detector.model
        if not isinstance(model, VotedModel):
            return (np.empty(0, np.bool_),) * len(alarmed)
        return tuple(model.votes(alarmed).T)

    def _say(
        self,
        ratio: float,
        tags: tuple[str, ...],
        shares: tuple[float, ...],
        votes: Bools,
        *,
        rules_first: bool,
    ) -> str:
        text = say_score(ratio, tags, shares, rules_first=rules_first)
        if not votes.size:
            return text
        model = voted_model(self.detector)
        return f"{text}; {say_votes(model.named(votes), model.named(~votes, silent=True))}"

    def _tags(self, share: Floats) -> tuple[tuple[str, ...], tuple[float, ...]]:
        names = self.detector.framing.scaler.names
        order = np.argsort(-share, kind="stable")[:MOST_TAGS]
        enough = np.cumsum(share[order]) - share[order] < ENOUGH_SHARE
        chosen = [at for at in order[enough].tolist() if share[at] > 0]
        return tuple(names[at] for at in chosen), tuple(float(share[at]) for at in chosen)
