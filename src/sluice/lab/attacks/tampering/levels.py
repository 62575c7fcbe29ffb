"""Levels that are wrong and still plausible: offset, smoothed, or with noise of their own.

offset     a level reads too high or too low by a constant, within its bounds
low-pass   levels are smoothed, as a simulation or a replay through a filter would be
ar-noise   levels carry slow noise of their own, as synthetic telemetry does
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sluice.admission import Gate
from sluice.arrays import Floats
from sluice.errors import RecordError, SettingError
from sluice.lab.attacks.tampering.bounds import bounds_of
from sluice.lab.attacks.tampering.search import strongest
from sluice.seeding import stream
from sluice.telemetry import Record, Role

__all__ = ["ArNoise", "LevelOffset", "LowPass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelOffset:
    """Move levels by a constant on all rows, within their bounds; each as far as is admitted.

    Sizes are shares of the range that the level shows in the record. Each level goes in the
    direction that has more room; with a gate both directions are tried.
    """

    gate: Gate | None = None
    sizes: tuple[float, ...] = (0.5, 0.25, 0.1)

    def __post_init__(self) -> None:
        _require_falling(self.sizes, "an offset's sizes")

    def __call__(self, record: Record, *, seed: int) -> Record:  # noqa: ARG002 - as every attack
        """Return the record with offset levels; the seed is not used."""
        parts = [
            _Offset(column, self._offsets(record, column)) for column in _lively_levels(record)
        ]
        return strongest(record, parts, self.gate)

    def _offsets(self, record: Record, column: int) -> tuple[float, ...]:
        readings = record.values[:, column]
        low, high = bounds_of(record, column, self.gate)
        room_up, room_down = high - np.nanmax(readings), np.nanmin(readings) - low
        roomier, other = (1.0, -1.0) if room_up >= room_down else (-1.0, 1.0)
        offsets = []
        for size in self.sizes:
            for direction in (roomier, other):
                room = room_up if direction > 0 else room_down
                wanted = size * float(np.nanmax(readings) - np.nanmin(readings))
                offsets.append(direction * min(wanted, max(0.9 * room, 0.02 * wanted)))
        return tuple(offsets)


@dataclass(frozen=True, slots=True)
class _Offset:
    column: int
    offsets: tuple[float, ...]

    @property
    def variants(self) -> int:
        return len(self.offsets)

    def apply(self, values: Floats, variant: int) -> None:
        values[:, self.column] += self.offsets[variant]


@dataclass(frozen=True, slots=True, kw_only=True)
class LowPass:
    """Smooth levels by a centred mean over rows; each over as many rows as is admitted."""

    gate: Gate | None = None
    rows: tuple[int, ...] = (61, 31, 15, 7, 3)

    def __post_init__(self) -> None:
        _require_falling(self.rows, "a low-pass filter's rows")
        if any(rows % 2 == 0 or rows < 3 for rows in self.rows):
            raise SettingError(
                f"a centred mean takes an odd number of rows, at least 3; got {self.rows}"
            )

    def __call__(self, record: Record, *, seed: int) -> Record:  # noqa: ARG002 - as every attack
        """Return the record with smooth levels; the seed is not used."""
        parts = [_Smooth(column, self.rows) for column in _lively_levels(record)]
        return strongest(record, parts, self.gate)


@dataclass(frozen=True, slots=True)
class _Smooth:
    column: int
    rows: tuple[int, ...]

    @property
    def variants(self) -> int:
        return len(self.rows)

    def apply(self, values: Floats, variant: int) -> None:
        rows = min(self.rows[variant], len(values) - (1 - len(values) % 2))
        ends = np.pad(values[:, self.column], rows // 2, mode="edge")
        values[:, self.column] = np.convolve(ends, np.full(rows, 1 / rows), mode="valid")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArNoise:
    """Add AR(1) noise to levels, as large as is admitted, within their bounds.

    Sizes are standard deviations of the noise in standard deviations of the level.
    """

    gate: Gate | None = None
    sizes: tuple[float, ...] = (0.3, 0.1, 0.03, 0.01)
    memory: float = 0.95  # correlation from row to row

    def __post_init__(self) -> None:
        _require_falling(self.sizes, "a noise's sizes")
        if not 0 <= self.memory < 1:
            raise SettingError(f"noise forgets: its memory is from 0 to below 1, got {self.memory}")

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the record with noisy levels."""
        parts = [
            _Noise(column, self._noises(record, column, seed), bounds_of(record, column, self.gate))
            for column in _lively_levels(record)
        ]
        return strongest(record, parts, self.gate)

    def _noises(self, record: Record, column: int, seed: int) -> tuple[Floats, ...]:
        shocks = stream(seed, "ar-noise", record.names[column]).normal(size=len(record))
        noise = np.empty(len(record))
        state = shocks[0]
        for row, shock in enumerate(shocks):
            state = self.memory * state + np.sqrt(1 - self.memory**2) * shock if row else shock
            noise[row] = state
        spread = float(np.nanstd(record.values[:, column]))
        return tuple(size * spread * noise for size in self.sizes)


@dataclass(frozen=True, slots=True, eq=False)
class _Noise:
    column: int
    noises: tuple[Floats, ...]
    bounds: tuple[float, float]

    @property
    def variants(self) -> int:
        return len(self.noises)

    def apply(self, values: Floats, variant: int) -> None:
        noisy = values[:, self.column] + self.noises[variant]
        values[:, self.column] = np.clip(noisy, *self.bounds)


def _lively_levels(record: Record) -> tuple[int, ...]:
    columns = tuple(
        column
        for column in (record.index(channel.name) for channel in record.of_role(Role.LEVEL))
        if np.nanmax(record.values[:, column]) > np.nanmin(record.values[:, column])
    )
    if not columns:
        raise RecordError(
            f"record {record.name!r} has no level that moves; declare one in a plant file"
        )
    return columns


def _require_falling(sizes: tuple[float, ...], what: str) -> None:
    falling = all(one > other for one, other in pairwise(sizes))
    if not sizes or min(sizes) <= 0 or not falling:
        raise SettingError(f"{what} are above 0 and each below the one before it, got {sizes}")
