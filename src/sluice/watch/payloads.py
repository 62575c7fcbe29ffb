"""Alarms and events as JSON, the same on stdout, in files, on a broker and in a request."""

import json
from dataclasses import dataclass

from sluice.watch.alarms import Alarm, Event
from sluice.watch.rows import clock

__all__ = ["AlarmPayload", "Page", "alarm_payload", "event_text"]

AlarmPayload = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Where the page of alarms is, if there is one; a link to an alarm is a part of it."""

    address: str = ""

    def link(self, alarm: Alarm) -> str | None:
        """Return the address of an alarm on the page."""
        return f"{self.address}#section-{alarm.id.lower()}" if self.address else None


def alarm_payload(alarm: Alarm, page: Page) -> AlarmPayload:
    """Return an alarm as JSON shows it."""
    return {
        "id": alarm.id,
        "start": clock(alarm.start),
        "end": None if alarm.end is None else clock(alarm.end),
        "severity": alarm.severity.value,
        "rules": list(alarm.rules),
        "tags": list(alarm.tags),
        "sentence": alarm.sentence,
        "last": clock(alarm.last),
        "link": page.link(alarm),
        "sent": alarm.sent,
        "evidence": [
            {
                "kind": each.kind.value,
                "name": each.name or None,
                "tags": list(each.tags),
                "rows": each.rows,
                "peak": each.peak,
                "sentence": each.sentence,
            }
            for each in alarm.ranked
        ],
    }


def event_text(event: Event, page: Page, *, plant: str) -> str:
    """Return an event as one line of JSON."""
    payload = {
        "event": event.kind.value,
        "key": event.key,
        "plant": plant,
        "at": clock(event.at),
        **alarm_payload(event.alarm, page),
    }
    return json.dumps(payload, allow_nan=False, ensure_ascii=False)
