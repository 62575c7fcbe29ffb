"""What an intruder does to the `line` plant, and when."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from sluice.arrays import Run
from sluice.errors import SettingError
from sluice.lab.plants.line.design import TANKS
from sluice.seeding import stream
from sluice.telemetry import Note

__all__ = ["LineAttack", "LineAttackKind", "schedule"]

ROWS_PER_ATTACK = 3600  # one attack in two and a half days
FEWEST_ATTACKS = 8
REST_ROWS = 45  # between attacks, so that two never merge into one labelled stretch


class LineAttackKind(StrEnum):
    """What is done to one stage (a tank and the pump that fills it)."""

    LEVEL_FREEZE = "level_freeze"  # the reading holds its first value; the controller believes it
    LEVEL_OFFSET = "level_offset"  # the reading is too high; the controller believes it
    PUMP_STUCK_OFF = "pump_stuck_off"  # the pump stands still while its status follows the command
    FLOW_SCALE = "flow_scale"  # the flow reading is scaled down; nothing acts on it


CHANNEL_STRUCK = {
    LineAttackKind.LEVEL_FREEZE: "L_T",
    LineAttackKind.LEVEL_OFFSET: "L_T",
    LineAttackKind.PUMP_STUCK_OFF: "S_PU",
    LineAttackKind.FLOW_SCALE: "F_PU",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LineAttack:
    """One attack on one stage (0 to 2)."""

    kind: LineAttackKind
    rows: Run
    stage: int
    offset_m: float
    scale: float

    @property
    def note(self) -> Note:
        """The note of this attack in the record."""
        return Note(
            what=f"attack {self.kind.value}",
            channel=f"{CHANNEL_STRUCK[self.kind]}{self.stage + 1}",
            rows=self.rows.rows,
            first_row=self.rows.start,
        )


def schedule(*, seed: int, rows: int) -> tuple[LineAttack, ...]:
    """Place attacks of each kind in turn, with gaps, in the middle 76 % of the record."""
    random = stream(seed, "line", "attacks")
    first, last = round(0.12 * rows), round(0.88 * rows)
    shortest, longest = min(max(30, rows // 200), 216), min(max(60, rows // 60), 720)
    wanted = max(FEWEST_ATTACKS, rows // ROWS_PER_ATTACK)
    taken = random.integers(shortest, longest, wanted) + REST_ROWS
    fitting = int(np.searchsorted(np.cumsum(taken), last - first - wanted))
    if fitting == 0:
        raise SettingError(
            f"a record of {rows} rows is too short for an attack of {shortest} to {longest} rows; "
            "simulate a longer one or none"
        )
    taken = taken[:fitting]
    spare = last - first - int(taken.sum())
    starts = (
        first + np.sort(random.choice(spare, fitting, replace=False)) + np.cumsum(taken) - taken
    )
    kinds = tuple(LineAttackKind)
    return tuple(
        LineAttack(
            kind=kinds[number % len(kinds)],
            rows=Run(int(start), int(start + rows_taken - REST_ROWS)),
            stage=int(random.integers(TANKS)),
            offset_m=float(random.uniform(0.4, 1.1)),
            scale=float(random.uniform(0.3, 0.6)),
        )
        for number, (start, rows_taken) in enumerate(zip(starts, taken, strict=True))
    )
