"""A watch: rows from a source to the judge, alarms to the state and to the sinks."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from sluice.watch.alarms import Event, EventKind
from sluice.watch.health import Health, Pulse
from sluice.watch.intake import RowCounts, RowIntake
from sluice.watch.judging import Judge
from sluice.watch.payloads import Page, alarm_payload, event_text
from sluice.watch.rows import StreamRows
from sluice.watch.settings import WatchSettings
from sluice.watch.sinks import Delivery
from sluice.watch.sources import RowSource, no_rows
from sluice.watch.store import Outgoing, Store, StoredAlarm
from sluice.watch.subject import Subject
from sluice.watch.tracking import Tracker

__all__ = ["STDOUT", "Watch", "WatchParts", "store_identity"]

STDOUT = "stdout"  # a sink that the caller serves
REMEMBER_ROWS, REMEMBER_S = 5_000, 30.0

_COUNTS = TypeAdapter(RowCounts)


def store_identity(subject: Subject, settings: WatchSettings) -> str:
    """Return what a state belongs to: rules, model and settings."""
    return f"{subject.identity}/{settings}"


@dataclass(slots=True, kw_only=True)
class WatchParts:
    """What a watch is made of."""

    subject: Subject
    settings: WatchSettings
    store: Store
    delivery: Delivery
    page: Page = field(default_factory=Page)


class Watch:
    """Judges what a source gives, and keeps and sends what the judge finds."""

    def __init__(self, parts: WatchParts) -> None:
        subject = parts.subject
        self.parts = parts
        self.raised = 0
        self.judge = Judge(subject, parts.settings)
        self.tracker = Tracker(parts.settings, identity=subject.identity, stride_s=subject.stride_s)
        self.intake = RowIntake(stride_s=subject.stride_s)
        self.pulse = Pulse(stride_s=subject.stride_s)
        self.position = ""
        self._durable = parts.store.path is not None
        self._unsaved, self._saved_at = 0, time.monotonic()
        self._restore()

    def _restore(self) -> None:
        saved = self.parts.store.load()
        if saved is None:
            return
        self.position = saved.position
        if saved.text:
            memory = json.loads(saved.text)
            self.judge.restore((saved.rows, memory["broken"]))
            self.tracker.restore(memory["tracker"])
            self.intake = RowIntake(
                stride_s=self.parts.subject.stride_s,
                counts=_COUNTS.validate_json(memory["counts"]),
            )
        for rows in saved.journal:  # their events are in the store
            self._judged(rows)

    def _judged(self, rows: StreamRows) -> list[Event]:
        taken = self.intake.take(rows)
        if self.intake.counts.last is None:
            return []
        return self.tracker.take(self.judge.take(taken), now=self.intake.counts.last)

    # -- steps --------------------------------------------------------------------------------

    def step(self, source: RowSource, *, wait_s: float) -> list[Event]:
        """Take the rows that are there, judge them, and keep and send what they show."""
        rows = source.take(wait_s)
        began = time.perf_counter()
        events = self._judged(rows) if len(rows) else []
        self._keep(rows, events)
        source.confirm()
        self.pulse.count(len(rows), time.perf_counter() - began)
        return events

    def finish(self) -> list[Event]:
        """End all alarms: history is over."""
        events = self.tracker.finish()
        self._keep(self._nothing(), events)
        return events

    def _nothing(self) -> StreamRows:
        return no_rows(len(self.parts.subject.names))

    def _keep(self, rows: StreamRows, events: list[Event]) -> None:
        if self._durable and len(rows):
            self.position = rows.position or self.position
            self.parts.store.commit(rows, [self._kept(event) for event in events])
            self._unsaved += len(rows)
            due = time.monotonic() - self._saved_at > REMEMBER_S
            if self._unsaved >= REMEMBER_ROWS or due:
                self.remember()
        elif events:
            self.parts.store.commit(self._nothing(), [self._kept(event) for event in events])
        self.raised += sum(event.kind in (EventKind.RAISED, EventKind.LIMITED) for event in events)
        if events:
            self.parts.delivery.wake()

    def _kept(self, event: Event) -> tuple[Outgoing, StoredAlarm, tuple[str, ...]]:
        page, alarm = self.parts.page, event.alarm
        sinks: tuple[str, ...] = ()
        if alarm.sent or event.kind is EventKind.LIMITED:
            sinks = self.parts.delivery.names
            if event.kind in (EventKind.RAISED, EventKind.LIMITED):
                sinks = (*sinks, STDOUT)
        content = json.dumps(alarm_payload(alarm, page), allow_nan=False, ensure_ascii=False)
        return (
            Outgoing(
                number=0,
                key=event.key,
                alarm=alarm.id,
                content=event_text(event, page, plant=self.parts.subject.plant),
            ),
            StoredAlarm(id=alarm.id, start=alarm.start, content=content),
            sinks,
        )

    def remember(self) -> None:
        """Save the judge's memory, so that a restart is quick."""
        if not self._durable:
            return
        rows, broken = self.judge.saved()
        memory = {
            "broken": broken,
            "tracker": self.tracker.saved(),
            "counts": _COUNTS.dump_json(self.intake.counts).decode(),
        }
        self.parts.store.remember(rows, json.dumps(memory))
        self._unsaved, self._saved_at = 0, time.monotonic()

    # -- for the caller -----------------------------------------------------------------------

    def unprinted(self) -> Iterator[Outgoing]:
        """Yield the alarms that stdout still needs; each counts as printed when it is done."""
        store = self.parts.store
        while events := store.waiting(STDOUT):
            for event in events:
                yield event
                store.delivered(STDOUT, event.number)

    def health(self, source: RowSource) -> Health:
        """Return how the watch does."""
        counts, pulse = self.intake.counts, self.pulse
        return Health(
            state=pulse.state(source.state),
            source=source.name,
            rows_per_s=round(pulse.rows_per_s, 3),
            judged_ms=round(pulse.judged_ms, 3),
            lag_s=None if counts.last is None else round(time.time() - counts.last / 1e6, 3),
            silent_s=None if pulse.silent_s is None else round(pulse.silent_s, 3),
            counts=counts,
            unreadable=source.unreadable,
            open_alarms=len(self.tracker.open),
            raised=self.raised,
            dropped_events=self.parts.store.dropped,
            sinks=self.parts.delivery.health(),
            borrowed=self.parts.subject.borrowed,
        )
