"""A batch as the circuit of `sampled` takes it: fixed-point readings and places of codes."""

from dataclasses import dataclass, field

import numpy as np

from sluice.arrays import Floats, Ints
from sluice.attestation.systems.sampled.statement import SCALE, Reads, SampledStatement
from sluice.errors import RefusedError
from sluice.telemetry import Record

__all__ = ["SampledRows"]

BIAS = 1 << 31
"""What is added to a reading, so that thirty-two bits hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRows:
    """Planes of a batch, row after row. They are secret."""

    rows: int
    readings: bytes = field(repr=False)  # four bytes each, little-endian
    codes: bytes = field(repr=False)

    @classmethod
    def of(cls, statement: SampledStatement, batch: Record) -> "SampledRows":
        """Encode a batch; what the circuit has no place for is refused, and says where it is."""
        if len(batch.segment_starts) > 1:
            raise RefusedError(
                f"batch {batch.name!r} jumps in time before row {batch.segment_starts[1]:,}; "
                "sampled rows need the row before them: commit to each segment on its own"
            )
        needed = f"the commitment under the rules of {statement.rules.plant!r}"
        readings = [
            _reading(name, batch.values[:, batch.index(name, needed_by=needed)], batch)
            for name in statement.readings
        ]
        codes = [
            _places(found, batch.values[:, batch.index(found.channel, needed_by=needed)], batch)
            for found in statement.actuators
        ]
        return cls(
            rows=len(batch),
            readings=_plane(readings, len(batch), "<u4"),
            codes=_plane(codes, len(batch), "u1"),
        )


def _reading(name: str, values: Floats, batch: Record) -> Ints:
    scaled = np.rint(values * SCALE) + BIAS
    outside = ~((scaled >= 0) & (scaled < 2 * BIAS))  # a missing reading is neither
    if outside.any():
        row = int(np.argmax(outside))
        raise RefusedError(
            f"batch {batch.name!r} has {values[row]:g} in {name!r} on row {row:,}; readings are "
            "there and within +-32,768 units: fill it, or scale the channel"
        )
    return scaled.astype(np.int64)


def _places(found: Reads, values: Floats, batch: Record) -> Ints:
    """Return the place of each code; a fraction is no code, so it cannot silence a rule."""
    known = np.asarray(found.codes, np.float64)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    other = known[at] != values
    if other.any():
        row = int(np.argmax(other))
        raise RefusedError(
            f"batch {batch.name!r} shows {values[row]:g} for {found.channel!r} on row {row:,}; "
            f"its codes are {', '.join(map(str, found.codes))}"
        )
    return at.astype(np.int64)


def _plane(columns: list[Ints], rows: int, kind: str) -> bytes:
    plane = np.column_stack(columns) if columns else np.empty((rows, 0))
    return np.ascontiguousarray(plane.astype(kind)).tobytes()
