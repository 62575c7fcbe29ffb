"""A cell: the combination that a grid asks for, its result and its score."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Asked", "CellResult", "Score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The score of a federation; if each plant trains alone, the mean over plants."""

    targeted_recall: float | None
    untargeted_recall: float | None
    targeted_auc_pr: float | None
    precision: float | None
    recall: float
    f1: float
    auc_pr: float
    oracle_best_f1: float
    detected_attacks: float
    attacks: int
    median_delay_s: float | None
    false_alarms_per_day: float | None
    etaf1: float
    influence: Mapping[str, float]
    passed: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """One cell of the table: the clients admitted and refused, and the score."""

    mode: str
    attack: str | None
    rule: str
    seed: int
    admitted: tuple[str, ...]
    refused: Mapping[str, tuple[str, ...]]  # client: reasons
    liars: tuple[str, ...]  # the malicious clients
    score: Score

    @property
    def liars_admitted(self) -> int:
        """How many malicious clients took part."""
        return sum(client in self.admitted for client in self.liars)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One cell as a grid names it; its result need not depend on every field."""

    study: str
    record: str
    stand_in: str | None  # the record used instead, if this one is absent
    clients: int
    liars: int  # how many clients are malicious
    rule: str
    attack: str | None
    mode: str
    invariants: str | None
    seed: int

    def __str__(self) -> str:
        parts = (
            self.record if self.stand_in is None else f"{self.stand_in} for {self.record}",
            f"{self.clients} plants",
            self.rule,
            self.mode,
            *([f"under {self.attack}"] if self.attack else []),
            *([f"by {self.invariants}"] if self.invariants else []),
            f"seed {self.seed}",
        )
        return ", ".join(parts)
