from .alarms import Alarm, Event, EventKind, Evidence, Severity
from .intake import Counts, Intake
from .judging import Judge
from .rows import Rows
from .settings import WatchSettings
from .subject import Subject, subject_of
from .tracking import Tracker

__all__ = [
    "Alarm",
    "Counts",
    "Event",
    "EventKind",
    "Evidence",
    "Intake",
    "Judge",
    "Rows",
    "Severity",
    "Subject",
    "Tracker",
    "WatchSettings",
    "subject_of",
]
