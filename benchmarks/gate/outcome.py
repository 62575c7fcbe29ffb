"""What an evaluation of the gate measures on one plant."""

from dataclasses import dataclass

from sluice.lab.audits import Fabricated, Freeze, Honest, RampAudit

__all__ = ["CHANCE", "Covered", "Outcome", "SeasonOutcome"]

CHANCE = 0.05  # of clean stretches that may look as bad before an attack's cover says little


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """One rule set on one plant's labelled attacks, and its suspect share of clean rows."""

    profile: str
    rules: int
    rules_hash: str
    covered: int
    attacks: int
    beyond_chance: int  # covered, while fewer than 5 % of clean stretches as long look as bad
    missed: tuple[str, ...]
    honest_share: float
    honest_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonOutcome:
    """Honest batches of one season."""

    season: str
    batch_rows: int
    honest: Honest


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Everything that was measured on one plant."""

    plant: str
    mined_on: str
    labelled_as: str
    clean_as: str
    fabricated_from: str
    rules_hash: str
    batch_rows: int
    coverage: tuple[Covered, ...]  # hardened, then paper-wide
    seasons: tuple[SeasonOutcome, ...]
    originals: int  # honest batches that fabrications, freezes and ramps start from
    originals_refused: int
    fabrications: tuple[Fabricated, ...]
    freezes: tuple[Freeze, ...]
    ramps: tuple[RampAudit, ...]
    unwatched: tuple[str, ...]  # levels without a window rule
