from .alarms import Alarm, AlarmEvidence, Event, EventKind, Severity
from .health import Health
from .intake import RowCounts, RowIntake
from .judging import Judge
from .opening import opened_source
from .payloads import Page, alarm_payload
from .rows import StreamRows, clock
from .settings import WatchSettings
from .store import Store
from .subject import Subject, subject_of
from .timeline import (
    ShownAlarm,
    Timeline,
    attacks_found,
    timeline_of_store,
    write_timeline,
)
from .tracking import Tracker
from .watching import STDOUT, Watch, WatchParts, store_identity

__all__ = [
    "STDOUT",
    "Alarm",
    "AlarmEvidence",
    "Event",
    "EventKind",
    "Health",
    "Judge",
    "Page",
    "RowCounts",
    "RowIntake",
    "Severity",
    "ShownAlarm",
    "Store",
    "StreamRows",
    "Subject",
    "Timeline",
    "Tracker",
    "Watch",
    "WatchParts",
    "WatchSettings",
    "alarm_payload",
    "attacks_found",
    "clock",
    "opened_source",
    "store_identity",
    "subject_of",
    "timeline_of_store",
    "write_timeline",
]
