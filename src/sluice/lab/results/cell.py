"""What a grid asks of a cell and what the cell came to."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Asked", "CellResult", "Score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a federation reached; where each plant was alone, the mean over plants."""

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
    """One cell of the table: who was let in, and what came of it."""

    mode: str
    attack: str | None
    rule: str
    seed: int
    admitted: tuple[str, ...]
    refused: Mapping[str, tuple[str, ...]]  # with the reasons
    liars: tuple[str, ...]
    score: Score

    @property
    def liars_admitted(self) -> int:
        """How many liars took part."""
        return sum(liar in self.admitted for liar in self.liars)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One cell as a grid names it, whether or not its outcome depends on every name."""

    study: str
    record: str
    stand_in: str | None  # what was run in the record's place, where it is absent
    clients: int
    liars: int
    rule: str
    attack: str | None
    mode: str
    invariants: str | None
    seed: int

    def __str__(self) -> str:
        told = (
            self.record if self.stand_in is None else f"{self.stand_in} for {self.record}",
            f"{self.clients} plants",
            self.rule,
            self.mode,
            *([f"under {self.attack}"] if self.attack else []),
            *([f"by {self.invariants}"] if self.invariants else []),
            f"seed {self.seed}",
        )
        return ", ".join(told)
