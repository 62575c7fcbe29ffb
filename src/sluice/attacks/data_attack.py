"""What every attack on telemetry looks like."""

from typing import Protocol

from sluice.telemetry import Record

__all__ = ["DataAttack"]


class DataAttack(Protocol):
    """Readings in, other readings out; channels, clock and labels stay as they were.

    A record that has nothing to attack (no actuator, no flow, too few rows) is an error: an attack
    that changes nothing would be counted as one that got through.
    """

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the attacked record; the same seed gives the same one."""
        ...
