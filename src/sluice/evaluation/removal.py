"""The paper's removal ratio (equation 7): a secondary metric, reported with the runs behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sluice.errors import SettingError
from sluice.evaluation.paired import Unit

__all__ = ["Federation", "Reference", "Removal", "RemovalCase", "removal"]

LEAST_DAMAGE = 0.01  # one point of targeted recall, the paper's limit for an informative seed
ROUNDING = 1e-12  # 0.21 - 0.20 counts as one point despite float rounding


class Reference(StrEnum):
    """The federation that counts as undamaged.

    The paper's table uses honest-only, its sweep uses clean. The two differ by as much as the
    damage, because removing malicious clients also removes their honest data.
    """

    HONEST_ONLY = "honest-only"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Federation:
    """One federation's targeted recall, its clients, and which of them are malicious."""

    targeted_recall: float
    roster: frozenset[str]
    malicious: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not 0 <= self.targeted_recall <= 1:
            raise SettingError(f"a targeted recall of {self.targeted_recall}; expected 0 to 1")
        if strangers := self.malicious - self.roster:
            raise SettingError(
                f"{', '.join(sorted(strangers))} cannot be malicious in a federation without them; "
                "name only clients of the roster"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalCase:
    """The undamaged, the attacked and the defended federation of one unit."""

    unit: Unit
    reference: Federation
    naive: Federation
    defended: Federation

    @property
    def damage(self) -> float:
        """The targeted recall lost to the attack without a defence."""
        return self.reference.targeted_recall - self.naive.targeted_recall

    @property
    def remaining(self) -> float:
        """The targeted recall still lost with the defence."""
        return self.reference.targeted_recall - self.defended.targeted_recall

    @property
    def by_construction(self) -> bool:
        """Whether the defended federation is the reference: same clients, none malicious."""
        return self.defended.roster == self.reference.roster and not self.defended.malicious


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Equation 7, weighted by damage over the informative units."""

    reference: Reference
    share: float | None  # 1 is all damage; None if no unit is informative
    damage: float | None  # mean over the informative units
    informative: tuple[Unit, ...]
    by_construction: tuple[Unit, ...]  # informative, and removed by construction
    units: int

    @property
    def warning(self) -> str | None:
        """A caveat that a reader must know before quoting the share; None if there is none."""
        if not self.by_construction:
            return None
        return (
            f"on {len(self.by_construction)} of {len(self.informative)} informative units the "
            f"defence left exactly the clients of the {self.reference} reference, so all damage "
            "counts as removed by construction: "
            + "; ".join(str(unit) for unit in self.by_construction)
        )


def removal(cases: Sequence[RemovalCase], *, reference: Reference) -> Removal:
    """Return which share of the naive attack's damage a defence removes.

    Units with less than one point of damage are not informative and are left out, as in the paper.
    Without the weighting, a large ratio of two small numbers in one seed would decide the mean.
    """
    units = [case.unit for case in cases]
    if not units:
        raise SettingError("removal needs the runs of at least one seed")
    if len(set(units)) < len(units):
        raise SettingError("removal was given a unit twice; expected one case for each")
    informative = [case for case in cases if case.damage >= LEAST_DAMAGE - ROUNDING]
    damage = sum(case.damage for case in informative)
    return Removal(
        reference=reference,
        share=1 - sum(case.remaining for case in informative) / damage if informative else None,
        damage=damage / len(informative) if informative else None,
        informative=tuple(case.unit for case in informative),
        by_construction=tuple(case.unit for case in informative if case.by_construction),
        units=len(units),
    )
