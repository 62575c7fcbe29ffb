"""Alarms: evidence that something is wrong at a plant, its severity, and a sentence."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from sluice.watch.rows import clock
from sluice.watch.signals import SymptomKind

__all__ = ["Alarm", "AlarmEvidence", "Event", "EventKind", "Severity", "alarm_id"]

MOST_NAMED = 4


class Severity(StrEnum):
    """How urgent an alarm is."""

    LOW = "low"  # readings are missing
    MEDIUM = "medium"  # one kind of evidence
    HIGH = "high"  # far beyond what is allowed, or rules and detector agree


class EventKind(StrEnum):
    """What happened to an alarm."""

    RAISED = "raised"
    UPDATED = "updated"  # more evidence, other tags or a higher severity
    ENDED = "ended"
    LIMITED = "limited"  # it and further ones are recorded, but not sent for a while


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmEvidence:
    """One symptom in an alarm."""

    key: str
    kind: SymptomKind
    name: str  # of the rule or of the tag; empty for the detector
    order: int  # among evidence of the same row, the most direct one first
    tags: tuple[str, ...]
    first: int  # microseconds
    last: int
    rows: int
    peak: float  # in multiples of what is allowed
    severe: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One incident: from the first row that shows it to the last."""

    id: str
    start: int  # microseconds
    last: int  # the last row that showed it
    ended: bool
    sent: bool  # false if it is held back because too many were sent
    evidence: tuple[AlarmEvidence, ...]  # in the order in which it came

    @property
    def end(self) -> int | None:
        """The last row that showed it; None while it lasts."""
        return self.last if self.ended else None

    @property
    def ranked(self) -> tuple[AlarmEvidence, ...]:
        """The evidence in the order of the sentence: rules first, and what came first."""
        return tuple(
            sorted(
                self.evidence,
                key=lambda each: (each.kind.rank, each.first, each.order, -each.peak),
            )
        )

    @property
    def severity(self) -> Severity:
        """How urgent it is."""
        kinds = {each.kind for each in self.evidence}
        if (
            any(each.severe for each in self.evidence)
            or {
                SymptomKind.RULE,
                SymptomKind.DETECTOR,
            }
            <= kinds
        ):
            return Severity.HIGH
        return Severity.LOW if kinds == {SymptomKind.MISSING} else Severity.MEDIUM

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules to blame, worst first."""
        return tuple(each.name for each in self.ranked if each.kind is SymptomKind.RULE)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags to blame, worst first."""
        return tuple(dict.fromkeys(tag for each in self.ranked for tag in each.tags))

    @property
    def sentence(self) -> str:
        """The strongest evidence in words, and the names of the other."""
        worst, *others = self.ranked
        rules = [each.name for each in others if each.kind is SymptomKind.RULE]
        parts = [worst.sentence]
        if rules:
            more = f" and {len(rules) - MOST_NAMED} more" if len(rules) > MOST_NAMED else ""
            parts.append(f"also broken: {', '.join(rules[:MOST_NAMED])}{more}")
        if worst.kind is not SymptomKind.DETECTOR and any(
            each.kind is SymptomKind.DETECTOR for each in others
        ):
            parts.append("the detector sees it too")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change of an alarm, at the row that shows it."""

    kind: EventKind
    at: int  # microseconds, the plant's clock
    alarm: Alarm

    @property
    def key(self) -> str:
        """Its name among all events; the same row gives the same key after a restart."""
        return f"{self.alarm.id}/{self.kind}/{self.at}"


def alarm_id(identity: str, symptom: str, start: int) -> str:
    """Return an id that depends only on the rules and model, the first symptom and its time."""
    digest = hashlib.sha256(f"{identity}\x1f{symptom}\x1f{start}".encode()).hexdigest()
    stamp = clock(start)[:19].replace("-", "").replace(":", "")
    return f"{stamp}-{digest[:8]}"
