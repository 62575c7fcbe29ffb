"""What a projection comes to."""

from dataclasses import dataclass, field

from sluice.admission import Verdict
from sluice.arrays import Ints
from sluice.lab.attacks.projection.certificate import Certificate
from sluice.telemetry import Record

__all__ = ["Conflict", "Projection"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A row given up because the actuators stand, and the rules that collide on its readings.

    Where rules collide over many rows, others might have been given up in its stead.
    """

    row: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The nearest record that obeys the rules, and what it took. Shifts are in spreads."""

    record: Record = field(repr=False)
    moved_rows: int
    mean_shift: float  # over all readings that might have been moved
    max_shift: float
    frobenius: float  # of all shifts: what was minimised
    sacrificed: Ints = field(repr=False)  # rows left to violate, against the policy's budget
    budget: int  # rows that may violate; fewer than the sacrificed ones only where rules collide
    conflicts: tuple[Conflict, ...]
    violating_before: int
    violating_after: int
    certificate: Certificate
    verdict: Verdict = field(repr=False)  # of the gate whose policy was projected onto
