"""Attacks as data: which tags are affected, when, and what is forced or spoofed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np

from sluice.arrays import Bools, Floats, Ints, Times
from sluice.errors import SettingError
from sluice.lab.plants.treatment.compiled import compiled
from sluice.lab.plants.treatment.tags import CHANNELS, OFF, ON, TAGS

__all__ = ["Effect", "ForceActuator", "SpoofConstant", "SpoofRamp", "TreatmentAttack", "attacked"]


def _column(tag: str, *, actuator: bool) -> int:
    column = TAGS.index(tag) if tag in TAGS else None
    if column is None or (CHANNELS[column].codes is not None) != actuator:
        kind = "an actuator to force" if actuator else "an instrument to spoof"
        raise SettingError(f"{tag!r} is not {kind}; the plant's tags are {', '.join(TAGS)}")
    return column


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceActuator:
    """Keep an actuator in one state, whatever its controller commands."""

    tag: str
    code: int
    after_s: int = 0  # into the attack
    for_s: int | None = None  # to the attack's end unless given

    def __post_init__(self) -> None:
        _column(self.tag, actuator=True)
        if self.code not in (OFF, ON):
            raise SettingError(f"{self.tag} is forced {OFF} (off) or {ON} (on), got {self.code}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoofConstant:
    """Show a fixed value to the controllers and to the record."""

    tag: str
    value: float
    after_s: int = 0
    for_s: int | None = None

    def __post_init__(self) -> None:
        _column(self.tag, actuator=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoofRamp:
    """Show a value that leaves the last true reading at a constant rate, limited to the span."""

    tag: str
    per_s: float
    after_s: int = 0
    for_s: int | None = None

    def __post_init__(self) -> None:
        _column(self.tag, actuator=False)


Effect = ForceActuator | SpoofConstant | SpoofRamp


@dataclass(frozen=True, slots=True, kw_only=True)
class TreatmentAttack:
    """One attack of a campaign; `end` is its last second."""

    number: int
    targets: tuple[str, ...]
    start: datetime
    end: datetime
    what: str
    effects: tuple[Effect, ...]

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise SettingError(f"attack {self.number} ends at {self.end}, before {self.start}")

    def seconds_after(self, begins: datetime) -> tuple[int, int]:
        """Return its first and last second, counted from the first second of a record."""
        first = int((self.start - begins).total_seconds())
        return first, first + int((self.end - self.start).total_seconds())


def attacked(times: Times, attacks: Iterable[TreatmentAttack]) -> Bools:
    """Return which of the times lie within an attack."""
    within = np.zeros(len(times), dtype=np.bool_)
    for attack in attacks:
        within |= (times >= np.datetime64(attack.start)) & (times <= np.datetime64(attack.end))
    return within


FORCE: Final = 0
CONSTANT: Final = 1
RAMP: Final = 2

# Columns of the schedule that compiled code reads, one row per effect.
KIND, COLUMN, FIRST, LAST = range(4)


def schedule(attacks: Iterable[TreatmentAttack], *, begins: datetime) -> tuple[Ints, Floats]:
    """Return every effect's kind, column, first and last second; and its code, value or rate."""
    when: list[tuple[int, int, int, int]] = []
    strength: list[float] = []
    for attack in attacks:
        first, last = attack.seconds_after(begins)
        for effect in attack.effects:
            start = first + effect.after_s
            end = last if effect.for_s is None else min(last, start + effect.for_s - 1)
            match effect:
                case ForceActuator(tag=tag, code=code):
                    when.append((FORCE, _column(tag, actuator=True), start, end))
                    strength.append(float(code))
                case SpoofConstant(tag=tag, value=value):
                    when.append((CONSTANT, _column(tag, actuator=False), start, end))
                    strength.append(value)
                case SpoofRamp(tag=tag, per_s=per_s):
                    when.append((RAMP, _column(tag, actuator=False), start, end))
                    strength.append(per_s)
    return np.array(when, dtype=np.int64).reshape(-1, 4), np.array(strength, dtype=np.float64)


@compiled
def spoof(second: int, shown: Floats, when: Ints, strength: Floats, ramp_start: Floats) -> None:
    """Replace what spoofed instruments show; `ramp_start` stores the reading a ramp starts from."""
    for effect in range(len(when)):
        first = when[effect, FIRST]
        if first <= second <= when[effect, LAST]:
            column = when[effect, COLUMN]
            if when[effect, KIND] == CONSTANT:
                shown[column] = strength[effect]
            elif when[effect, KIND] == RAMP:
                if second == first:
                    ramp_start[effect] = shown[column]
                shown[column] = ramp_start[effect] + strength[effect] * (second - first)


@compiled
def force(second: int, command: Ints, when: Ints, strength: Floats) -> None:
    """Override the commands of the actuators that are forced in this second."""
    for effect in range(len(when)):
        if when[effect, KIND] == FORCE and when[effect, FIRST] <= second <= when[effect, LAST]:
            command[when[effect, COLUMN]] = int(strength[effect])
