"""Results of evaluating the gate on one plant."""

from dataclasses import dataclass

from sluice.lab.audits import Fabricated, Freeze, Honest, RampAudit

__all__ = ["CHANCE", "Covered", "Outcome", "SeasonOutcome"]

CHANCE = 0.05  # coverage counts beyond chance if fewer clean stretches have as many suspect rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """Coverage of one plant's labelled attacks by one rule set, and the suspect clean rows."""

    profile: str
    rules: int
    rules_hash: str
    covered: int
    attacks: int
    beyond_chance: int  # covered, and fewer than 5 % of clean stretches have as many suspect rows
    missed: tuple[str, ...]
    honest_share: float
    honest_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonOutcome:
    """Verdicts on the honest batches of one season."""

    season: str
    batch_rows: int
    honest: Honest


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All measurements on one plant."""

    plant: str
    mined_on: str
    labelled_as: str
    clean_as: str
    fabricated_from: str
    rules_hash: str
    batch_rows: int
    coverage: tuple[Covered, ...]  # hardened, paper-wide, hardened with jitter where it is asked
    seasons: tuple[SeasonOutcome, ...]
    originals: int  # honest batches that fabrications, freezes and ramps start from
    originals_refused: int
    fabrications: tuple[Fabricated, ...]
    freezes: tuple[Freeze, ...]
    ramps: tuple[RampAudit, ...]
    unwatched: tuple[str, ...]  # levels without a window rule
