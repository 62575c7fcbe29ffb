"""What an intruder does to a network, and when: links forced, level readings forged."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from sluice.arrays import Floats, Run
from sluice.errors import SettingError
from sluice.lab.plants.distribution.controls import Override
from sluice.lab.plants.distribution.instruments import Meter
from sluice.seeding import stream
from sluice.telemetry import Note, Role

__all__ = ["DistributionAttack", "DistributionAttackKind", "forge", "plan"]

DAY_S = 86_400
DAYS_PER_ATTACK = 3
SHORTEST_S, LONGEST_S, REST_S = 3 * 3600, 36 * 3600, 6 * 3600
LIVELY_M = 0.1  # a tank that stays full all day looks the same when it replays yesterday


class DistributionAttackKind(StrEnum):
    """Forcing moves water; forging only changes what the control room is shown."""

    FORCED_OFF = "forced_off"  # a running pump is stopped, or an open valve shut
    LEVEL_OFFSET = "level_offset"  # a tank reads too high or too low by a constant
    FORCED_ON = "forced_on"  # a stopped pump is started, or a shut valve opened
    CONCEALED = "concealed"  # forced off, while the tank that would reveal it replays yesterday
    LEVEL_REPLAY = "level_replay"  # a tank replays yesterday

    @property
    def forces(self) -> bool:
        """Whether a link is forced."""
        return self in {self.FORCED_OFF, self.FORCED_ON, self.CONCEALED}


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionAttack:
    """One attack on the link or the tank that a meter (by column) watches."""

    kind: DistributionAttackKind
    rows: Run
    meter: Meter
    column: int
    offset_share: float  # of the range of the level

    @property
    def note(self) -> Note:
        """The note of this attack in the record."""
        return Note(
            what=f"attack {self.kind.value}",
            channel=self.meter.name,
            rows=self.rows.rows,
            first_row=self.rows.start,
        )

    def override(self, stride_s: int) -> Override:
        """Return the override of its link, from its first row to its last."""
        return Override(
            link=self.meter.element,
            is_open=self.kind is DistributionAttackKind.FORCED_ON,
            start_s=self.rows.start * stride_s,
            stop_s=self.rows.stop * stride_s,
        )


def plan(
    meters: tuple[Meter, ...],
    clean: Floats,
    *,
    seed: int,
    stride_s: int,
    unforceable: frozenset[str],
) -> tuple[DistributionAttack, ...]:
    """Place attacks with gaps between them, each where it changes something.

    The kind used least so far is next, unless it would change nothing (every pump is already off).
    No attack starts on the first day, because a replay needs the day before it.
    """
    random = stream(seed, "network", "attacks")
    attacks: list[DistributionAttack] = []
    for rows in _windows(random, len(clean), stride_s):
        used = [attack.kind for attack in attacks]
        for kind in sorted(DistributionAttackKind, key=used.count):
            targets = _targets(kind, meters, clean[rows.slice], unforceable)
            if targets:
                break
        else:
            raise SettingError(
                f"rows {rows.start} to {rows.stop - 1} have no moving tank and no link that an "
                "attack could force; simulate this network without attacks"
            )
        column = targets[int(random.integers(len(targets)))]
        share = float(random.uniform(0.15, 0.40) * random.choice((-1, 1)))
        attacks.append(
            DistributionAttack(
                kind=kind, rows=rows, meter=meters[column], column=column, offset_share=share
            )
        )
    return tuple(attacks)


def _windows(random: np.random.Generator, rows: int, stride_s: int) -> tuple[Run, ...]:
    length_s = rows * stride_s
    first_s, last_s = max(0.12 * length_s, DAY_S), 0.88 * length_s
    longest_s = int(np.clip(length_s // 20, 2 * SHORTEST_S, LONGEST_S))
    wanted = max(len(DistributionAttackKind), length_s // (DAYS_PER_ATTACK * DAY_S))
    rest = -(-REST_S // stride_s)
    lengths = -(-random.integers(SHORTEST_S, longest_s, wanted) // stride_s)
    first, last = int(first_s // stride_s), int(last_s // stride_s)
    fitting = int(np.searchsorted(np.cumsum(lengths + rest), last - first - wanted))
    if fitting == 0:
        raise SettingError(
            f"a record of {length_s / DAY_S:.3g} days is too short for attacks of "
            f"{SHORTEST_S // 3600} to {longest_s // 3600} h after its first day; "
            "simulate a longer one or none"
        )
    taken = lengths[:fitting] + rest
    spare = last - first - int(taken.sum())
    gaps = np.sort(random.choice(spare, fitting, replace=False))
    starts = first + gaps + np.cumsum(taken) - taken
    return tuple(
        Run(int(start), int(start + length))
        for start, length in zip(starts, lengths[:fitting], strict=True)
    )


def _targets(
    kind: DistributionAttackKind,
    meters: tuple[Meter, ...],
    clean: Floats,
    unforceable: frozenset[str],
) -> list[int]:
    """Return the columns such an attack can change, given the clean readings of its window."""
    tanks = [column for column, meter in enumerate(meters) if meter.role is Role.LEVEL]
    if not kind.forces:
        return [column for column in tanks if np.ptp(clean[:, column]) > LIVELY_M]
    if kind is DistributionAttackKind.CONCEALED and not tanks:
        return []
    states = clean.mean(axis=0)
    wrong = states < 0.5 if kind is DistributionAttackKind.FORCED_ON else states > 0.5
    return [
        column
        for column, meter in enumerate(meters)
        if meter.role is Role.ACTUATOR and wrong[column] and meter.element not in unforceable
    ]


def forge(
    shown: Floats,
    attacks: tuple[DistributionAttack, ...],
    *,
    clean: Floats,
    meters: tuple[Meter, ...],
    stride_s: int,
) -> None:
    """Overwrite the level readings that an intruder forges (in place, in order of time).

    A replay shows the last day before the attack, repeatedly if the attack is longer than a day.
    """
    day = DAY_S // stride_s
    levels = [column for column, meter in enumerate(meters) if meter.role is Role.LEVEL]
    for attack in attacks:
        rows, column = attack.rows.slice, attack.column
        recorded = attack.rows.start - day + np.arange(attack.rows.rows) % day
        match attack.kind:
            case DistributionAttackKind.LEVEL_OFFSET:
                offset_m = attack.offset_share * np.ptp(clean[:, column])
                shown[rows, column] = np.round(shown[rows, column] + offset_m, 3)
            case DistributionAttackKind.LEVEL_REPLAY:
                shown[rows, column] = shown[recorded, column]
            case DistributionAttackKind.CONCEALED:
                strayed_m = np.abs(shown[rows, levels] - clean[rows, levels]).max(axis=0)
                telltale = levels[int(strayed_m.argmax())]
                shown[rows, telltale] = shown[recorded, telltale]
