"""The result of a projection."""

from dataclasses import dataclass, field

from sluice.admission import Verdict
from sluice.arrays import Ints
from sluice.lab.attacks.projection.certificate import Certificate
from sluice.telemetry import Record

__all__ = ["Conflict", "Projection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A row given up because the actuators stay fixed, and the rules that collide on its readings.

    If rules collide over many rows, another row could have been given up instead.
    """

    row: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The nearest record that obeys the rules, and how it was reached. Shifts are in spreads."""

    record: Record = field(repr=False)
    moved_rows: int
    mean_shift: float  # over all readings that may be moved
    max_shift: float
    frobenius: float  # norm of all shifts: what was minimised
    sacrificed: Ints = field(repr=False)  # rows that still violate, against the policy's budget
    budget: int  # rows that may violate; fewer than the sacrificed ones only if rules collide
    conflicts: tuple[Conflict, ...]
    violating_before: int
    violating_after: int
    certificate: Certificate
    feasible: bool  # by the attacker's model of the rules and budgets, without asking the gate
    verdict: Verdict = field(repr=False)  # of the gate whose policy was projected onto
