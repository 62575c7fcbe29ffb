"""From signals to alarms: hysteresis, merging and rate limiting, by the plant's own clock.

Nothing here reads a clock of the computer. The same rows give the same alarms with the same ids,
whether they come live, from history, or again after a restart.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from sluice.watch.alarms import Alarm, AlarmEvidence, Event, EventKind, alarm_id
from sluice.watch.rows import microseconds
from sluice.watch.settings import WatchSettings
from sluice.watch.signals import Signal

__all__ = ["Tracker"]

HOUR = 3_600_000_000
MOST_TAGS = 8  # of one symptom


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saved:
    streaks: dict[str, tuple[int, ...]]
    alarms: tuple[Alarm, ...]
    updated: dict[str, int]
    sent: tuple[int, ...]
    limited: bool


_SAVED = TypeAdapter(_Saved)


class Tracker:
    """Raises, extends and ends alarms."""

    def __init__(self, settings: WatchSettings, *, identity: str, stride_s: float) -> None:
        self.open: dict[str, Alarm] = {}
        self._settings = settings
        self._identity = identity
        self._clear = microseconds(settings.clear_rows * stride_s)
        self._streaks: dict[str, tuple[int, ...]] = {}
        self._updated: dict[str, int] = {}
        self._sent: tuple[int, ...] = ()
        self._limited = False

    def take(self, signals: list[Signal], *, now: int) -> list[Event]:
        """Take the signals of some rows, in the order of time; `now` is the last row's time."""
        events: list[Event] = []
        for signal in signals:
            events += self._end(before=signal.time)
            events += self._signal(signal)
        events += self._end(before=now, quiet=True)
        return events

    def finish(self) -> list[Event]:
        """End every alarm: there will be no more rows."""
        return [self._ended(alarm, alarm.last) for alarm in tuple(self.open.values())]

    # -- one signal ---------------------------------------------------------------------------

    def _signal(self, signal: Signal) -> Iterator[Event]:
        key = signal.symptom.key
        for alarm in self.open.values():
            for at, evidence in enumerate(alarm.evidence):
                if evidence.key == key:
                    yield from self._extend(alarm, at, signal)
                    return
        if signal.holds:
            return
        streak = (*self._streaks.get(key, ()), signal.time)[-signal.symptom.needed :]
        self._streaks[key] = streak
        enough = len(streak) == signal.symptom.needed
        lasting = enough and streak[-1] - streak[0] <= signal.symptom.within
        if not (signal.severe or lasting):
            return
        near = [t for t in streak if streak[-1] - t <= signal.symptom.within] or [signal.time]
        del self._streaks[key]
        evidence = AlarmEvidence(
            key=key,
            kind=signal.symptom.kind,
            name=signal.symptom.name,
            order=signal.symptom.order,
            tags=signal.tags,
            first=near[0],
            last=signal.time,
            rows=len(near),
            peak=signal.size,
            severe=signal.severe,
            sentence=signal.say(),
        )
        yield self._joined(evidence)

    def _joined(self, evidence: AlarmEvidence) -> Event:
        """Add evidence to the open alarm that shares most tags with it, or raise one."""
        shared = {
            alarm.id: len(set(alarm.tags) & set(evidence.tags)) for alarm in self.open.values()
        }
        best = max(shared, key=lambda name: shared[name], default="")
        if best and (shared[best] or not evidence.tags):
            alarm = self.open[best]
            alarm = replace(alarm, last=evidence.last, evidence=(*alarm.evidence, evidence))
            return self._update(alarm, evidence.last)
        alarm = Alarm(
            id=alarm_id(self._identity, evidence.key, evidence.first),
            start=evidence.first,
            last=evidence.last,
            ended=False,
            sent=True,
            evidence=(evidence,),
        )
        return self._raise(alarm, evidence.last)

    def _raise(self, alarm: Alarm, at: int) -> Event:
        self._sent = tuple(time for time in self._sent if at - time < HOUR)
        if len(self._sent) < self._settings.most_per_hour:
            self._sent = (*self._sent, at)
            self._limited = False
            kind = EventKind.RAISED
        else:
            alarm = replace(alarm, sent=False)
            kind = EventKind.RAISED if self._limited else EventKind.LIMITED
            self._limited = True
        self.open[alarm.id] = alarm
        return Event(kind=kind, at=at, alarm=alarm)

    def _update(self, alarm: Alarm, at: int) -> Event:
        self.open[alarm.id] = alarm
        self._updated[alarm.id] = at
        return Event(kind=EventKind.UPDATED, at=at, alarm=alarm)

    def _extend(self, alarm: Alarm, at: int, signal: Signal) -> Iterator[Event]:
        old = alarm.evidence[at]
        worse = signal.severe and not old.severe
        grown = signal.size > 2 * old.peak
        tags = tuple(dict.fromkeys((*old.tags, *signal.tags)))[:MOST_TAGS]
        evidence = replace(
            old,
            tags=tags,
            last=signal.time,
            rows=old.rows + 1,
            peak=max(old.peak, signal.size),
            severe=old.severe or signal.severe,
            sentence=signal.say() if worse or grown else old.sentence,
        )
        before = alarm.severity
        parts = (*alarm.evidence[:at], evidence, *alarm.evidence[at + 1 :])
        alarm = replace(alarm, last=signal.time, evidence=parts)
        self.open[alarm.id] = alarm
        due = signal.time - self._updated.get(alarm.id, alarm.start) >= self._clear
        if alarm.severity is not before or (tags != old.tags and due):
            yield self._update(alarm, signal.time)

    # -- ends ---------------------------------------------------------------------------------

    def _end(self, *, before: int, quiet: bool = False) -> list[Event]:
        """End the alarms that no row has shown for long enough.

        With `quiet`, the row at `before` itself shows nothing of them.
        """
        over = [
            alarm
            for alarm in self.open.values()
            if before - alarm.last > self._clear or (quiet and before - alarm.last == self._clear)
        ]
        return [self._ended(alarm, alarm.last + self._clear) for alarm in over]

    def _ended(self, alarm: Alarm, at: int) -> Event:
        del self.open[alarm.id]
        self._updated.pop(alarm.id, None)
        return Event(kind=EventKind.ENDED, at=at, alarm=replace(alarm, ended=True))

    # -- saving -------------------------------------------------------------------------------

    def saved(self) -> str:
        """Return what the tracker remembers."""
        saved = _Saved(
            streaks=self._streaks,
            alarms=tuple(self.open.values()),
            updated=self._updated,
            sent=self._sent,
            limited=self._limited,
        )
        return _SAVED.dump_json(saved).decode()

    def restore(self, text: str) -> None:
        """Continue where another tracker has stopped."""
        saved = _SAVED.validate_json(text)
        self._streaks = dict(saved.streaks)
        self.open = {alarm.id: alarm for alarm in saved.alarms}
        self._updated = dict(saved.updated)
        self._sent, self._limited = saved.sent, saved.limited
