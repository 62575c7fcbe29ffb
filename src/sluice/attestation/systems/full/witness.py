"""A batch in the format of the `full` circuit: registers, code indices, starts and flags."""

from dataclasses import dataclass, field

import numpy as np

from sluice.arrays import Bools, Ints
from sluice.attestation.systems.full.lanes import Actuator
from sluice.attestation.systems.full.statement import Statement
from sluice.invariants import held, illegal_rows, missing_rows
from sluice.telemetry import Record

__all__ = ["Witness"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """Planes of a batch, row after row. They are secret."""

    rows: int
    registers: bytes = field(repr=False)  # two bytes each, little-endian
    codes: bytes = field(repr=False)
    starts: bytes = field(repr=False)
    flagged: bytes = field(repr=False)  # violating for a reason that is not in the registers

    @classmethod
    def of(cls, statement: Statement, batch: Record) -> "Witness":
        """Encode a batch; it must have every channel that its rules file names with a span."""
        rules = statement.rules
        needed = f"the commitment under the rules of {rules.plant!r}"
        registers = [
            register.quantise(batch.values[:, batch.index(register.channel, needed_by=needed)])
            for register in statement.encoding.registers
        ]
        codes = [
            _indices(actuator, batch, batch.index(actuator.channel.name, needed_by=needed))
            for actuator in statement.actuators
        ]
        flagged = missing_rows(rules, batch) | illegal_rows(statement.encoding, batch)
        starts = np.zeros(len(batch), bool)
        starts[batch.segment_starts] = True
        return cls(
            rows=len(batch),
            registers=_plane(registers, len(batch), "<u2"),
            codes=_plane(codes, len(batch), "u1"),
            starts=_flags(starts),
            flagged=_flags(flagged),
        )


def _indices(actuator: Actuator, batch: Record, column: int) -> Ints:
    """Return the index of each code; a missing one repeats the last, as in the evaluator."""
    states = np.rint(held(batch.values[:, column], empty=np.nan))
    known = np.asarray(actuator.codes)
    at = np.minimum(np.searchsorted(known, states), len(known) - 1)
    return np.where(known[at] == states, at, len(known))


def _plane(columns: list[Ints], rows: int, kind: str) -> bytes:
    plane = np.column_stack(columns) if columns else np.empty((rows, 0))
    return np.ascontiguousarray(plane.astype(kind)).tobytes()


def _flags(marked: Bools) -> bytes:
    return marked.astype(np.uint8).tobytes()
