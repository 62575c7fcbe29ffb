"""The rows of a batch as the rules see them: registers, codes, what is missing, where time jumps.

This is what a commitment is to; a system that reveals rows reveals these bytes.
"""

from dataclasses import dataclass, field

import numpy as np

from sluice.arrays import Floats, Ints
from sluice.errors import RulesFileError
from sluice.invariants import Encoding, RuleSet
from sluice.invariants.encoding import Register
from sluice.telemetry import Channel, Label, Record

__all__ = ["RevealedRows", "Table"]

FINE, MISSING, ILLEGAL = 0, 1, 2
BYTES_PER_REGISTER = 3  # register and mark
BYTES_PER_CODE = 5  # code and mark
JUMP_ROWS = 10  # how many strides a rebuilt time jump lasts; any jump is one
LARGEST_CODE = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RevealedRows:
    """Encoded rows, and a record that encodes to them."""

    raw: bytes = field(repr=False)
    record: Record = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Which channels are encoded, in which order."""

    rules: RuleSet
    registers: tuple[Register, ...]
    actuators: tuple[Channel, ...]

    @classmethod
    def of(cls, encoding: Encoding, rules: RuleSet) -> "Table":
        """Take every channel that a rule or a liveness fact reads."""
        read = {name for rule in rules.invariants for name in rule.relation.channels}
        read |= {fact.level for fact in rules.clean.liveness} if rules.clean else set()
        registers = tuple(found for found in encoding.registers if found.channel in read)
        known = {r.channel for r in registers} | {a.name for a in encoding.actuators}
        if not read <= known:
            raise RulesFileError(
                f"the rules of {rules.plant!r} read {', '.join(sorted(read - known))} without an "
                "instrument span; give one in the plant file"
            )
        return cls(rules=rules, registers=registers, actuators=encoding.actuators)

    @property
    def columns(self) -> int:
        """How many channels a row has, and one for the time jumps."""
        return len(self.registers) + len(self.actuators) + 1

    def reveal(self, batch: Record) -> RevealedRows:
        """Encode a batch."""
        planes: list[bytes] = []
        for register in self.registers:
            readings = batch.values[:, batch.index(register.channel, needed_by="the rules")]
            planes += (
                register.quantise(readings).astype(">u2").tobytes(),
                np.isnan(readings).astype(np.uint8).tobytes(),
            )
        for actuator in self.actuators:
            readings = batch.values[:, batch.index(actuator.name, needed_by="the rules")]
            planes += _codes(readings, actuator)
        starts = np.zeros(len(batch), np.uint8)
        starts[batch.segment_starts] = 1
        raw = b"".join([*planes, starts.tobytes()])
        revealed = self.read(raw, len(batch))
        assert revealed is not None
        return revealed

    def read(self, raw: bytes, rows: int) -> RevealedRows | None:
        """Read encoded rows; nothing where the bytes are not those of so many rows."""
        each = BYTES_PER_REGISTER * len(self.registers) + BYTES_PER_CODE * len(self.actuators) + 1
        if rows < 1 or len(raw) != each * rows:
            return None
        planes = _Planes(raw, rows)
        columns: list[Floats] = []
        for register in self.registers:
            readings = register.low + register.step * planes.take(">u2").astype(np.float64)
            columns.append(planes.marked(readings))
        for _ in self.actuators:
            columns.append(planes.marked(planes.take(">i4").astype(np.float64)))
        starts = planes.take("u1")
        if planes.wrong or starts[0] != 1 or starts.max() > 1:
            return None
        return RevealedRows(raw=raw, record=self._record(np.column_stack(columns), starts))

    def _record(self, values: Floats, starts: Ints) -> Record:
        rows = len(values)
        stride = np.timedelta64(round(self.rules.stride_s * 1e6), "us")
        ticks = np.arange(rows) + JUMP_ROWS * np.cumsum(starts, dtype=np.int64)
        names = [*(r.channel for r in self.registers), *(a.name for a in self.actuators)]
        return Record(
            name="revealed rows",
            channels=tuple(self.rules.channel(name) for name in names),
            values=values,
            times=np.datetime64("2000-01-01", "us") + ticks * stride,
            stride_s=self.rules.stride_s,
            labels=np.full(rows, Label.UNLABELLED, np.int8),
        )


class _Planes:
    """The planes of a table, one after the other."""

    def __init__(self, raw: bytes, rows: int) -> None:
        self._raw, self._rows, self._at = raw, rows, 0
        self.wrong = False

    def take(self, kind: str) -> Ints:
        found = np.frombuffer(self._raw, kind, self._rows, self._at)
        self._at += found.nbytes
        return found.astype(np.int64)

    def marked(self, readings: Floats) -> Floats:
        """Put back what is no reading: a missing one, and one that is no code."""
        marks = self.take("u1")
        self.wrong |= bool(marks.max() > ILLEGAL)
        marked = np.where(marks == ILLEGAL, readings + 0.25, readings)  # rounds to the same code
        return np.where(marks == MISSING, np.nan, marked)


def _codes(readings: Floats, actuator: Channel) -> tuple[bytes, bytes]:
    assert actuator.codes is not None
    missing = np.isnan(readings)
    rounded = np.clip(np.rint(np.where(missing, 0, readings)), -LARGEST_CODE, LARGEST_CODE)
    marks = np.where(readings == rounded, FINE, ILLEGAL)
    marks[missing] = MISSING
    return rounded.astype(">i4").tobytes(), marks.astype(np.uint8).tobytes()
