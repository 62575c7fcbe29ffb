"""Metrics per event: each attack and each stretch of alarms counts once."""

from dataclasses import dataclass

import numpy as np

from sluice.evaluation.outcome import Outcome
from sluice.telemetry import Label

__all__ = ["AttackOutcome", "attacks_found", "false_alarms_per_day"]

DAY_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackOutcome:
    """One attack: the last rows of its first and last window, and its detection delay."""

    first_row: int
    last_row: int
    delay_s: float | None  # from its first window to the first alarm; None: not detected

    @property
    def detected(self) -> bool:
        """Whether any of its windows alarmed."""
        return self.delay_s is not None


def attacks_found(outcome: Outcome) -> tuple[AttackOutcome, ...]:
    """Return every attack with the delay of its first alarm.

    A window is reported at its last row, so an attack begins at the first window whose last row is
    an attack row. The alarm may also come from a later window that still contains attack rows.
    """
    attacks = outcome.attacks
    alarmed = np.append(np.flatnonzero(outcome.alarms), len(outcome))
    first = alarmed[np.searchsorted(alarmed, attacks.starts)]
    return tuple(
        AttackOutcome(
            first_row=int(outcome.last_rows[start]),
            last_row=int(outcome.last_rows[stop - 1]),
            delay_s=float((alarm - start) * outcome.stride_s) if alarm < stop else None,
        )
        for start, stop, alarm in zip(attacks.starts, attacks.stops, first, strict=True)
    )


def false_alarms_per_day(outcome: Outcome) -> float | None:
    """Return alarm stretches entirely on normal windows, per day of normal windows.

    A stretch that touches an attack is not false, even if it lasts longer than the attack. None if
    no window is labelled normal, because false alarms are then unknown.
    """
    normal = np.asarray(outcome.labels == Label.NORMAL)
    days = int(normal.sum()) * outcome.stride_s / DAY_S
    if not days:
        return None
    false = outcome.stretches(outcome.alarms).counts(~normal) == 0
    return int(false.sum()) / days
