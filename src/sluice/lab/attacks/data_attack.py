"""The interface of every attack on telemetry."""

from dataclasses import dataclass
from typing import Protocol

from sluice.errors import SettingError
from sluice.telemetry import Record

__all__ = ["DataAttack", "InTurn"]


class DataAttack(Protocol):
    """Changes readings; channels, clock and labels stay the same.

    A record that has nothing to attack (no actuator, no flow, too few rows) is an error: an attack
    that changes nothing would be counted as one that passed the gate.
    """

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the attacked record; the same seed gives the same record."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InTurn:
    """Several attacks as one: each changes the result of the one before it."""

    attacks: tuple[DataAttack, ...]

    def __post_init__(self) -> None:
        if not self.attacks:
            raise SettingError("InTurn needs at least one attack, got none")

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the record after all attacks; each gets the same seed."""
        for attack in self.attacks:
            record = attack(record, seed=seed)
        return record
