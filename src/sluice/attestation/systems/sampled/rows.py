"""A batch in the format of the `sampled` circuit: fixed-point readings and code indices."""

from dataclasses import dataclass, field

import numpy as np

from sluice.arrays import Floats, Ints
from sluice.attestation.systems.sampled.statement import SCALE, Reads, SampledStatement
from sluice.errors import RefusedError
from sluice.telemetry import Record

__all__ = ["SampledRows"]

BIAS = 1 << 31
"""Added to a reading, so that it fits in 32 unsigned bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRows:
    """Planes of a batch, row after row. They are secret."""

    rows: int
    readings: bytes = field(repr=False)  # four bytes each, little-endian
    codes: bytes = field(repr=False)

    @classmethod
    def of(cls, statement: SampledStatement, batch: Record) -> "SampledRows":
        """Encode a batch; refuse one that the circuit cannot represent, and name the row."""
        if len(batch.segment_starts) > 1:
            raise RefusedError(
                f"batch {batch.name!r} jumps in time before row {batch.segment_starts[1]:,}; "
                "sampled rows need the row before them; commit to each segment separately"
            )
        needed = f"the commitment under the rules of {statement.rules.plant!r}"
        readings = [
            _reading(name, batch.values[:, batch.index(name, needed_by=needed)], batch)
            for name in statement.readings
        ]
        codes = [
            _indices(each, batch.values[:, batch.index(each.channel, needed_by=needed)], batch)
            for each in statement.actuators
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
            f"batch {batch.name!r} has {values[row]:g} in {name!r} on row {row:,}; readings must "
            "be present and within +-32,768 units; fill it, or scale the channel"
        )
    return scaled.astype(np.int64)


def _indices(actuator: Reads, values: Floats, batch: Record) -> Ints:
    """Return the index of each code; a fraction is refused, so it cannot silence a rule."""
    known = np.asarray(actuator.codes, np.float64)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    other = known[at] != values
    if other.any():
        row = int(np.argmax(other))
        raise RefusedError(
            f"batch {batch.name!r} shows {values[row]:g} for {actuator.channel!r} on row {row:,}; "
            f"its codes are {', '.join(map(str, actuator.codes))}"
        )
    return at.astype(np.int64)


def _plane(columns: list[Ints], rows: int, kind: str) -> bytes:
    plane = np.column_stack(columns) if columns else np.empty((rows, 0))
    return np.ascontiguousarray(plane.astype(kind)).tobytes()
