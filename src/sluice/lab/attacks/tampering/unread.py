"""What the rules do not read: channels without a rule, meters and actuators that never move.

untied-replay   attack rows in the channels that no rule ties down
idle-flip       idle actuators that switch, constant meters that read something else
"""

from dataclasses import dataclass

import numpy as np

from sluice.admission import Gate
from sluice.arrays import Floats, Ints
from sluice.errors import RecordError, SettingError
from sluice.invariants import untied_channels
from sluice.lab.attacks.replay import Targets, choose_targets, target_rows
from sluice.lab.attacks.tampering.bounds import bounds_of
from sluice.lab.attacks.tampering.search import strongest
from sluice.seeding import stream
from sluice.telemetry import Record

__all__ = ["IdleFlip", "UntiedReplay"]

SHARES = (0.9, 0.5, 0.25, 0.1)  # of the rows


@dataclass(frozen=True, slots=True, kw_only=True)
class UntiedReplay:
    """Write attack rows into the channels that no rule ties to others, as many as are admitted.

    The attacker knows the rules. Its own rows remain in all other channels.
    """

    labelled: Record
    gate: Gate
    targets: Targets | None = None  # None: drawn by the seed
    shares: tuple[float, ...] = SHARES

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the record with attack rows in its untied channels."""
        names = [name for name in untied_channels(self.gate.rules) if name in record.names]
        targets = self.targets or choose_targets(
            self.labelled, rows=target_rows(len(record), share=max(self.shares)), seed=seed
        )
        attack = self._attack_rows(targets)
        parts = []
        for name in names:
            column = record.index(name)
            written = self.labelled.column(name)[attack]
            differs = not np.array_equal(np.unique(written), np.unique(record.values[:, column]))
            if np.isfinite(written).all() and differs:
                starts = _starts(len(record), self.shares, stream(seed, "untied-replay", name))
                parts.append(_Written(column, written, starts))
        if not parts:
            raise RecordError(
                f"the rules of {self.gate.rules.plant!r} tie every channel of {record.name!r} in "
                "which the attacks differ from it; there is no untied channel to replay into"
            )
        return strongest(record, parts, self.gate)

    @staticmethod
    def _attack_rows(targets: Targets) -> Ints:
        return np.concatenate([np.arange(run.start, run.stop) for run in targets.stretches])


@dataclass(frozen=True, slots=True, eq=False)
class _Written:
    """Readings written over a stretch of one channel; each variant is a shorter stretch."""

    column: int
    written: Floats
    stretches: tuple[tuple[int, int], ...]  # start and rows

    @property
    def variants(self) -> int:
        return len(self.stretches)

    def apply(self, values: Floats, variant: int) -> None:
        start, rows = self.stretches[variant]
        values[start : start + rows, self.column] = np.resize(self.written, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleFlip:
    """Switch idle actuators and move constant meters, on as many rows as is admitted.

    A channel is idle if it shows one value in the whole record. An actuator switches to another
    legal code. A meter shows noise in the upper half of its range or, if the gate holds it
    constant, of what the gate tolerates.
    """

    gate: Gate | None = None
    shares: tuple[float, ...] = SHARES

    def __post_init__(self) -> None:
        if not self.shares or not all(0 < share <= 1 for share in self.shares):
            raise SettingError(f"shares of rows are above 0 and at most 1, got {self.shares}")

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the record in which idle channels move."""
        parts = []
        for column, channel in enumerate(record.channels):
            readings = record.values[:, column]
            if not np.isfinite(readings).all() or np.ptp(readings) > 0:
                continue
            rng = stream(seed, "idle-flip", channel.name)
            if channel.codes is not None:
                others = sorted(channel.codes.legal - {int(readings[0])})
                if not others:
                    continue
                written = np.full(len(record), float(others[int(rng.integers(len(others)))]))
            else:
                written = self._noise(record, column, rng)
            parts.append(_Written(column, written, _starts(len(record), self.shares, rng)))
        if not parts:
            raise RecordError(
                f"record {record.name!r} has no idle channel: all actuators switch, and all "
                "meters move"
            )
        return strongest(record, parts, self.gate)

    def _noise(self, record: Record, column: int, rng: np.random.Generator) -> Floats:
        low, high = bounds_of(record, column, self.gate)
        noisy = rng.normal(low + 0.75 * (high - low), (high - low) / 20, len(record))
        return np.asarray(np.clip(noisy, low, high))


def _starts(
    rows: int, shares: tuple[float, ...], rng: np.random.Generator
) -> tuple[tuple[int, int], ...]:
    lengths = [max(1, round(share * rows)) for share in shares]
    return tuple((int(rng.integers(rows - length + 1)), length) for length in lengths)
