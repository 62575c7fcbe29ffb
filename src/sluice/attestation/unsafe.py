"""A transparent system: its "proof" is the encoded rows themselves. For tests and for nothing else.

It shows every register of the batch to whoever reads the proof, so it must be asked for by name.
What it verifies is what `full` proves: the integer evaluator is run again on the revealed rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sluice.admission import HardenedPolicy, Policy
from sluice.admission.policy import policy_hash
from sluice.attestation.packing import digest, number
from sluice.attestation.revealed import RevealedRows, Table
from sluice.attestation.system import SALT_BYTES, Circuit, Claim, each_alone
from sluice.errors import RefusedError, SettingError, VerificationError
from sluice.invariants import RuleSet, budgets_for, encode, measure, rules_hash
from sluice.telemetry import Record

__all__ = ["Unsafe"]

CONTEXT_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsafe:
    """The system that hides nothing; `reveal_rows=True` says that this is known and meant."""

    reveal_rows: bool

    def __post_init__(self) -> None:
        if self.reveal_rows is not True:
            raise SettingError("the system 'unsafe' reveals every row; use 'full'")

    @property
    def name(self) -> str:
        """What `--system` calls it."""
        return "unsafe"

    @property
    def challenged(self) -> bool:
        """Every row is looked at, so none is drawn."""
        return False

    @property
    def largest_proof(self) -> int:
        """No proof has more bytes."""
        return 1 << 28

    def circuit(self, rules: RuleSet, policy: Policy, *, rows_max: int) -> Circuit:
        """Derive the statement; it has no constraints, only the evaluator's own arithmetic."""
        if not isinstance(policy, HardenedPolicy) or rules.clean is None:
            raise SettingError(
                f"the system {self.name!r} states the hardened policy on hardened rules only; the "
                f"rules of {rules.plant!r} are of profile {rules.profile.value!r}"
            )
        table = Table.of(encode(rules), rules)
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

    def prove(self, batch: Record, circuit: Circuit, *, salt: bytes, context: bytes) -> bytes:
        """Return salt, context and the encoded rows, if the rows satisfy the circuit."""
        rows = _table(circuit).reveal(batch)
        broken = next(_broken(circuit, rows), None)
        if broken:
            raise RefusedError(f"batch {batch.name!r} does not satisfy its circuit: {broken}")
        return salt + context + rows.raw

    def verify(
        self, circuit: Circuit, *, commitment: bytes, rows: int, context: bytes, proof: bytes
    ) -> None:
        """Evaluate the revealed rows again, in integers."""
        salt, told, raw = (
            proof[:SALT_BYTES],
            proof[SALT_BYTES : SALT_BYTES + CONTEXT_BYTES],
            proof[SALT_BYTES + CONTEXT_BYTES :],
        )
        revealed = _table(circuit).read(raw, rows)
        if revealed is None or not 1 <= rows <= circuit.rows_max:
            raise VerificationError("5.7", f"the proof does not have the shape of {rows:,} rows")
        if told != context:
            raise VerificationError("5.8", "the proof was made for another context")
        if _commitment(circuit, salt, raw) != commitment:
            raise VerificationError("5.8", "the revealed rows are not the committed ones")
        if next(_broken(circuit, revealed), None):
            raise VerificationError("5.8", "the revealed rows do not satisfy the circuit")

    def verify_many(
        self, circuit: Circuit, claims: Sequence[Claim]
    ) -> tuple[VerificationError | None, ...]:
        """Verify one after the other."""
        return each_alone(self, circuit, claims)


def _table(circuit: Circuit) -> Table:
    return Table.of(encode(circuit.rules), circuit.rules)


def _commitment(circuit: Circuit, salt: bytes, raw: bytes) -> bytes:
    return digest("unsafe commitment", bytes.fromhex(circuit.identity), salt, raw)


def _broken(circuit: Circuit, rows: RevealedRows) -> Iterator[str]:
    """Tell the budgets that the rows break: those of the statement, as docs/protocol.md has it."""
    rules, policy = circuit.rules, circuit.policy
    assert isinstance(policy, HardenedPolicy)
    assert rules.clean is not None
    measured = measure(rules, rows.record)
    budgets = budgets_for(rules, rules.clean, policy.margins, rows=measured.rows)
    if measured.segments > budgets.segments:
        yield "segments"
    if int(measured.violating.sum()) > budgets.violating_rows:
        yield "violating rows"
    severe = np.zeros(measured.rows, bool)
    for found in measured.judged:
        name = found.rule.name
        if found.anchors.size:
            if int(found.violating[found.anchors].sum()) > budgets.anchors[name]:
                yield f"windows of {name}"
            continue
        severe |= found.size > budgets.severe[name]
        most = budgets.envelope_rows.get(name, measured.rows)
        if int(found.envelope.sum()) > most:
            yield f"transitions of {name}"
    if int(severe.sum()) > budgets.severe_rows:
        yield "severe rows"
    for fact, ranges in measured.quietest:
        if (ranges < budgets.quietest[fact.level, fact.rows]).any():
            yield f"liveness of {fact.level}"
