"""The judge of a stream: rules and detector on every row, as soon as it is there."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from pydantic import TypeAdapter

from sluice.watch.by_detector import ByDetector
from sluice.watch.by_rules import BrokenWindow, ByRules
from sluice.watch.rows import StreamRows
from sluice.watch.settings import WatchSettings
from sluice.watch.signals import Signal, SymptomKind
from sluice.watch.subject import Subject
from sluice.watch.trailing import RecentRows, Trailing
from sluice.watch.words import say_missing

__all__ = ["Judge", "SavedJudge"]

_BROKEN = TypeAdapter(tuple[BrokenWindow, ...])


class Judge:
    """Judges rows in the order of time; what it returns does not depend on how they are cut."""

    def __init__(self, subject: Subject, settings: WatchSettings) -> None:
        self.subject = subject
        names, stride_s = subject.names, subject.stride_s
        self._rules = ByRules(subject.rules, names, settings) if subject.rules else None
        self._detector = ByDetector(subject.detector, names, settings) if subject.detector else None
        self._missing = tuple(
            settings.symptom(SymptomKind.MISSING, name, stride_s=stride_s) for name in names
        )
        contexts = [each.context for each in (self._rules, self._detector) if each is not None]
        self.trailing = Trailing(depth=max(contexts), channels=len(names), stride_s=stride_s)

    def take(self, rows: StreamRows) -> list[Signal]:
        """Return what the rows show, in the order of time."""
        signals: list[Signal] = []
        for stretch in self.trailing.segments(rows):
            if self._rules is not None:
                signals += self._rules.take(stretch)
            if self._detector is not None:
                signals += self._detector.take(stretch)
            signals += self._gone(stretch)
        return sorted(signals, key=lambda signal: (signal.time, signal.symptom.key))

    def _gone(self, stretch: RecentRows) -> Iterator[Signal]:
        missing = np.isnan(stretch.raw[stretch.fresh :])
        for row, column in zip(*(at.tolist() for at in np.nonzero(missing)), strict=True):
            tag = self.subject.names[column]
            yield Signal(
                time=int(stretch.times[stretch.fresh + row]),
                symptom=self._missing[column],
                tags=(tag,),
                size=1.0,
                severe=False,
                say=partial(say_missing, tag),
            )

    # -- saving -------------------------------------------------------------------------------

    def saved(self) -> "SavedJudge":
        """Return what the judge remembers."""
        broken = tuple(self._rules.broken.values()) if self._rules is not None else ()
        return self.trailing.saved(), _BROKEN.dump_json(broken).decode()

    def restore(self, saved: "SavedJudge") -> None:
        """Continue where another judge of the same subject has stopped."""
        rows, broken = saved
        self.trailing.restore(rows)
        if self._rules is not None:
            self._rules.broken = {each.rule: each for each in _BROKEN.validate_json(broken)}


SavedJudge = tuple[bytes, str]
