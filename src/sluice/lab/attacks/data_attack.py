"""What every attack on telemetry looks like."""

from dataclasses import dataclass
from typing import Protocol

from sluice.errors import SettingError
from sluice.telemetry import Record

__all__ = ["DataAttack", "InTurn"]


class DataAttack(Protocol):
    """Readings in, other readings out; channels, clock and labels stay as they were.

    A record that has nothing to attack (no actuator, no flow, too few rows) is an error: an attack
    that changes nothing would be counted as one that got through.
    """

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the attacked record; the same seed gives the same one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InTurn:
    """Several attacks as one: each falsifies what the one before it left."""

    attacks: tuple[DataAttack, ...]

    def __post_init__(self) -> None:
        if not self.attacks:
            raise SettingError("attacks in turn are at least one attack")

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the record after all of them, every one with the same seed."""
        for attack in self.attacks:
            record = attack(record, seed=seed)
        return record
