"""A transparent system: its "proof" is the encoded rows themselves. For tests only.

A proof shows every register of the batch to its readers, so the system must be requested by name.
It verifies what `full` proves: it runs the integer evaluator again on the revealed rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from sluice.admission import Policy, policy_hash
from sluice.arrays import Floats, Ints
from sluice.attestation.packing import digest, number
from sluice.attestation.systems.system import (
    SALT_BYTES,
    Circuit,
    ProofClaim,
    each_alone,
    refuse_statistic,
)
from sluice.errors import RefusedError, RulesFileError, SettingError, VerificationError
from sluice.invariants import (
    Coupling,
    Encoding,
    Register,
    RelationKind,
    RuleSet,
    encode,
    measure,
    rules_hash,
)
from sluice.telemetry import Channel, Label, Record

__all__ = ["RevealedRows", "RevealedTable", "Unsafe"]

FINE, MISSING, ILLEGAL = 0, 1, 2
BYTES_PER_REGISTER = 3  # register and mark
BYTES_PER_CODE = 5  # code and mark
JUMP_ROWS = 10  # strides that a rebuilt time jump lasts; the length does not matter
LARGEST_CODE = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RevealedRows:
    """Encoded rows, and a record that encodes to them."""

    raw: bytes = field(repr=False)
    record: Record = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevealedTable:
    """Which channels are encoded, in which order."""

    rules: RuleSet
    registers: tuple[Register, ...]
    actuators: tuple[Channel, ...]

    @classmethod
    def of(cls, encoding: Encoding, rules: RuleSet) -> "RevealedTable":
        """Take every channel that a rule or a liveness fact reads."""
        read = {name for rule in rules.invariants for name in rule.relation.channels}
        read |= {fact.level for fact in rules.clean.liveness} if rules.clean else set()
        registers = tuple(each for each in encoding.registers if each.channel in read)
        known = {r.channel for r in registers} | {a.name for a in encoding.actuators}
        if not read <= known:
            raise RulesFileError(
                f"the rules of {rules.plant!r} read {', '.join(sorted(read - known))} without an "
                "instrument span; give one in the plant file"
            )
        return cls(rules=rules, registers=registers, actuators=encoding.actuators)

    @property
    def columns(self) -> int:
        """The number of channels in a row, and one for the time jumps."""
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
        """Read encoded rows; return None if the bytes do not encode `rows` rows."""
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
    """Reads the planes of a table, one after the other."""

    def __init__(self, raw: bytes, rows: int) -> None:
        self._raw, self._rows, self._at = raw, rows, 0
        self.wrong = False

    def take(self, kind: str) -> Ints:
        plane = np.frombuffer(self._raw, kind, self._rows, self._at)
        self._at += plane.nbytes
        return plane.astype(np.int64)

    def marked(self, readings: Floats) -> Floats:
        """Restore missing readings, and readings that are not a code."""
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


CONTEXT_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsafe:
    """The system that hides nothing; `reveal_rows=True` confirms that this is intended."""

    reveal_rows: bool

    def __post_init__(self) -> None:
        if self.reveal_rows is not True:
            raise SettingError(
                "the system 'unsafe' reveals every row; consent with --reveal-rows, or use 'full'"
            )

    @property
    def name(self) -> str:
        """Its value for `--system`."""
        return "unsafe"

    @property
    def challenged(self) -> bool:
        """Every row is checked, so none is drawn."""
        return False

    def largest_proof(self, circuit: Circuit) -> int:
        """Return the largest proof, in bytes, whatever the circuit is."""
        del circuit
        return 1 << 28

    def circuit(self, rules: RuleSet, policy: Policy, *, rows_max: int) -> Circuit:
        """Derive the statement; it has no constraints, only the evaluator's own arithmetic."""
        if not policy.integers:
            raise SettingError(f"the system {self.name!r} states the hardened policy only")
        policy.budgets(rules, rows=rows_max)  # refuses rules from which none follow
        table = RevealedTable.of(encode(rules), rules)
        identity = digest(
            "unsafe circuit",
            bytes.fromhex(rules_hash(rules)),
            bytes.fromhex(policy_hash(policy)),
            number(rows_max),
        )
        return Circuit(
            system=self.name,
            identity=identity.hex(),
            parameters=(("register_bits", 16),),
            rows_max=rows_max,
            proven_bits=0,
            columns=table.columns,
            constraints=0,
            rules=rules,
            policy=policy,
        )

    def commit(self, batch: Record, circuit: Circuit, *, salt: bytes) -> bytes:
        """Return a salted hash of the encoded rows."""
        rows = _table(circuit).reveal(batch)
        return _commitment(circuit, salt, rows.raw)

    def prove(
        self,
        batch: Record,
        circuit: Circuit,
        *,
        salt: bytes,
        context: bytes,
        statistic: bytes | None = None,
    ) -> bytes:
        """Return salt, context and the encoded rows, if the rows satisfy the circuit."""
        refuse_statistic(statistic)
        rows = _table(circuit).reveal(batch)
        broken = next(_broken(circuit, rows), None)
        if broken:
            raise RefusedError(f"batch {batch.name!r} does not satisfy its circuit: {broken}")
        return salt + context + rows.raw

    def verify(  # noqa: PLR0913 - a claim and its parts
        self,
        circuit: Circuit,
        *,
        commitment: bytes,
        rows: int,
        context: bytes,
        proof: bytes,
        statistic: bytes | None = None,
    ) -> None:
        """Evaluate the revealed rows again, in integers."""
        refuse_statistic(statistic)
        salt, proof_context, raw = (
            proof[:SALT_BYTES],
            proof[SALT_BYTES : SALT_BYTES + CONTEXT_BYTES],
            proof[SALT_BYTES + CONTEXT_BYTES :],
        )
        revealed = _table(circuit).read(raw, rows)
        if revealed is None or not 1 <= rows <= circuit.rows_max:
            raise VerificationError("5.7", f"the proof does not have the shape of {rows:,} rows")
        if proof_context != context:
            raise VerificationError("5.8", "the proof was made for another context")
        if _commitment(circuit, salt, raw) != commitment:
            raise VerificationError("5.8", "the revealed rows are not the committed ones")
        if next(_broken(circuit, revealed), None):
            raise VerificationError("5.8", "the revealed rows do not satisfy the circuit")

    def verify_many(
        self, circuit: Circuit, claims: Sequence[ProofClaim]
    ) -> tuple[VerificationError | None, ...]:
        """Verify the proofs one after the other."""
        return each_alone(self, circuit, claims)


_COUNTED = {
    RelationKind.WINDOW: "windows",
    RelationKind.SWITCH_BAND: "switches",
    RelationKind.SPECTRUM: "blocks",
    RelationKind.MEAN: "windows",
}


def _table(circuit: Circuit) -> RevealedTable:
    return RevealedTable.of(encode(circuit.rules), circuit.rules)


def _commitment(circuit: Circuit, salt: bytes, raw: bytes) -> bytes:
    return digest("unsafe commitment", bytes.fromhex(circuit.identity), salt, raw)


def _broken(circuit: Circuit, rows: RevealedRows) -> Iterator[str]:
    """Yield the budgets of the statement (docs/protocol.md) that the rows break."""
    measured = measure(circuit.rules, rows.record)
    budgets = circuit.policy.budgets(circuit.rules, rows=measured.rows)
    if measured.segments > budgets.segments:
        yield "segments"
    if int(measured.violating.sum()) > budgets.violating_rows:
        yield "violating rows"
    severe = np.zeros(measured.rows, bool)
    for judged in measured.judged:
        name = judged.rule.name
        if judged.own_budget:
            if int(judged.violating.sum()) > budgets.own[name]:
                yield f"{_COUNTED[judged.rule.kind]} of {name}"
            continue
        severe |= judged.size > budgets.severe[name]
        coupled = isinstance(judged.rule.relation, Coupling)
        if coupled and int(judged.envelope.sum()) > budgets.envelope_rows[name]:
            yield f"transitions of {name}"
    if int(severe.sum()) > budgets.severe_rows:
        yield "severe rows"
    for fact, ranges in measured.quietest:
        if (ranges < budgets.quietest[fact.level, fact.rows]).any():
            yield f"liveness of {fact.level}"
