"""What a row shows: a broken rule, a high score, a missing reading or an unknown code."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Signal", "Symptom", "SymptomKind"]


class SymptomKind(StrEnum):
    """The kinds of evidence, the strongest first."""

    RULE = "rule"
    DETECTOR = "detector"
    CODE = "code"  # an actuator shows a code that it does not have
    MISSING = "missing"  # a tag has no reading

    @property
    def rank(self) -> int:
        """Its place in the order of strength."""
        return list(SymptomKind).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """One thing that can be wrong, and how often a row must show it to raise an alarm."""

    kind: SymptomKind
    name: str  # of the rule or of the tag; empty for the detector
    needed: int  # signals
    within: int  # microseconds between the first and the last of them
    order: int = 0  # among symptoms of the same row, the most direct one first

    @property
    def key(self) -> str:
        """Its name among all symptoms."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A symptom that one row shows."""

    time: int  # microseconds
    symptom: Symptom
    tags: tuple[str, ...]  # to blame, worst first
    size: float  # in multiples of what is allowed; 1 where it has no size
    severe: bool  # raises an alarm at once
    say: Callable[[], str]  # the sentence; only called where it is needed
    holds: bool = False  # continues an alarm of its symptom, but raises none
