"""A relation with the tolerance calibrated for it, and why it is believed."""

from dataclasses import dataclass

from sluice.invariants.relations import Kind, Relation

__all__ = ["Evidence", "Invariant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a rule rests on. Numbers that a profile does not measure are absent, not zero."""

    r2: float | None = None  # on the rows it was fitted to
    r2_held_out: float | None = None  # on rows it never saw
    support: float | None = None  # share of rows in the rarer state
    variation: float | None = None  # spread over mean of the flow while on
    judged_rows: int | None = None  # clean hold-out rows that set the tolerance
    few_rows: bool = False  # too few of them for a 99.9th percentile
    smallest_offset: float | None = None  # power: constant offset it would catch, in its unit
    smallest_freeze_rows: int | None = None  # power: shortest freeze it would catch
    sees_contradiction: bool | None = None  # power: on read as off, and the reverse


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """A row violates it when the residual lies strictly beyond the tolerance (equation 3)."""

    relation: Relation
    tolerance: float
    evidence: Evidence = Evidence()

    @property
    def name(self) -> str:
        """The relation's name."""
        return self.relation.name

    @property
    def kind(self) -> Kind:
        """The relation's family."""
        return self.relation.kind
