"""Metrics per event: each attack and each stretch of alarms counts once."""

from dataclasses import dataclass

import numpy as np

from sluice.errors import SettingError
from sluice.evaluation.outcome import Outcome, Stretches
from sluice.telemetry import Label

__all__ = [
    "MERGE_ROWS",
    "AttackOutcome",
    "alarm_events",
    "attacks_found",
    "false_alarms_per_day",
    "false_alarms_per_week",
    "per_week",
]

DAY_S = 86_400
WEEK_S = 7 * DAY_S
MERGE_ROWS = 10
"""Alarms less than this many rows apart are one event. The operator is called once for them."""


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


def alarm_events(outcome: Outcome, *, merge_rows: int = MERGE_ROWS) -> Stretches:
    """Return the alarm events, from the first alarm of each to its last.

    An alarm belongs to the event of the alarm before it if less than `merge_rows` rows lie from one
    to the other. This is causal: whether an alarm opens an event is known when it comes.
    """
    if merge_rows < 1:
        raise SettingError(f"alarms merge within at least 1 row, got {merge_rows}")
    alarmed = np.flatnonzero(outcome.alarms)
    opens = np.diff(outcome.last_rows[alarmed], prepend=-np.inf) >= merge_rows
    closes = np.append(opens[1:], True)[: len(alarmed)]
    return Stretches(starts=alarmed[opens], stops=alarmed[closes] + 1)


def false_alarms_per_week(outcome: Outcome, *, merge_rows: int = MERGE_ROWS) -> float | None:
    """Return alarm events without an alarm on a window that is not normal, per normal week.

    None if no window is labelled normal, because false alarms are then unknown.
    """
    normal = np.asarray(outcome.labels == Label.NORMAL)
    events = alarm_events(outcome, merge_rows=merge_rows)
    false = int((events.counts(outcome.alarms & ~normal) == 0).sum())
    return per_week(false, windows=int(normal.sum()), stride_s=outcome.stride_s)


def per_week(events: int, *, windows: int, stride_s: float) -> float | None:
    """Return events per week of windows; None if there is no window."""
    return events * WEEK_S / (windows * stride_s) if windows else None
