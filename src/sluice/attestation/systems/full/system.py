"""The `full` system: a zero-knowledge proof about every row of a batch, without trusted set-up.

docs/protocol.md defines what it proves. Proving runs in a separate process with a time limit;
verifying runs in this process.
"""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from sluice import _attest
from sluice.admission import HardenedPolicy, Policy, policy_hash
from sluice.attestation.packing import digest, number, packed
from sluice.attestation.systems.full import worker
from sluice.attestation.systems.full.bound import (
    StatisticName,
    demand_sums,
    settings_of,
    statistic_of,
)
from sluice.attestation.systems.full.chaining import USUAL_LOG, Cut, cut_of
from sluice.attestation.systems.full.proving import open_state, run_worker
from sluice.attestation.systems.full.statement import Statement, derive
from sluice.attestation.systems.full.witness import Witness
from sluice.attestation.systems.system import Circuit, ProofClaim
from sluice.detector import MomentSettings
from sluice.errors import RefusedError, SettingError, VerificationError
from sluice.invariants import RuleSet, rules_hash
from sluice.telemetry import Record

__all__ = [
    "Full",
    "batch_masks",
    "batch_statistic",
    "core_identity",
    "demand_statistic",
    "statistic_settings",
]

MOST_ROWS = 1 << 19
LEAST_ROWS = 2
LARGEST_PROOF = 1 << 23
"""The largest proof, in bytes, unless the longest chain of a circuit has more."""
ROWS_PER_SECOND = 50
"""A prover that is slower than this, after `patience_s`, is considered to hang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """The default system."""

    patience_s: float = (
        60.0  # until a prover that does not answer is stopped, plus the time for its rows
    )
    binds: StatisticName | None = None  # the statistic that its circuits bind to the rows
    memory: int | None = None  # bytes that a prover may use, as far as they can be estimated
    under_way: Path | None = None  # the file from which a proof in segments goes on after a crash
    progress: Callable[[int, int], None] | None = field(default=None, compare=False)
    """Called with the rows that are proven and all rows: at first, and after each segment."""

    @property
    def name(self) -> str:
        """Its value for `--system`."""
        return "full"

    @property
    def challenged(self) -> bool:
        """Every row is checked, so none is drawn."""
        return False

    def largest_proof(self, circuit: Circuit) -> int:
        """Return the largest proof, in bytes: that of the largest batch, in usual segments."""
        if circuit.rows_max < 1 << USUAL_LOG:
            return LARGEST_PROOF
        core = _core(_statement(circuit).content)
        return max(LARGEST_PROOF, core.largest_chain(circuit.rows_max, USUAL_LOG))

    def circuit(self, rules: RuleSet, policy: Policy, *, rows_max: int) -> Circuit:
        """Derive the circuit; raise `InputError` for rules or policies that it cannot state."""
        if not isinstance(policy, HardenedPolicy):  # the statement contains its margins
            raise SettingError(f"the system {self.name!r} states the hardened policy only")
        if not LEAST_ROWS <= rows_max <= MOST_ROWS:
            raise SettingError(
                f"the system {self.name!r} proves {LEAST_ROWS} to {MOST_ROWS:,} rows, not "
                f"{rows_max:,}"
            )
        statement = _derived(_Terms(rules, policy), self.binds)
        core = _core(statement.content)
        parameters = tuple(sorted(_attest.full_parameters()))
        identity = digest(
            "full circuit",
            core.identity,
            bytes.fromhex(rules_hash(rules)),  # budgets follow from rules, policy and rows
            bytes.fromhex(policy_hash(policy)),
            packed(*(packed(name.encode(), number(value)) for name, value in parameters)),
            number(rows_max),
        )
        return Circuit(
            system=self.name,
            identity=identity.hex(),
            parameters=parameters,
            rows_max=rows_max,
            proven_bits=core.proven_bits(rows_max),
            columns=core.columns,
            constraints=core.constraints,
            rules=rules,
            policy=policy,
            statistic=self.binds,
            statistic_bits=core.statistic_bits or 0,
        )

    def commit(self, batch: Record, circuit: Circuit, *, salt: bytes) -> bytes:
        """Return the salted digest of the encoded batch.

        Raise `RefusedError` for a reading beyond a limit that no row may break, and for a time
        jump if the policy allows none: no proof can be made for such a batch.
        """
        statement = _statement(circuit)
        witness = Witness.of(statement, batch)
        try:
            return _core(statement.content).commit(_planes(witness), salt)
        except _attest.RefusedBatchError as refused:
            raise RefusedError(f"batch {batch.name!r} cannot be committed to: {refused}") from None

    def prove(
        self,
        batch: Record,
        circuit: Circuit,
        *,
        salt: bytes,
        context: bytes,
        statistic: bytes | None = None,
    ) -> bytes:
        """Prove that the committed batch satisfies the circuit, in a separate process.

        With a file for proofs `under_way`, a proof in segments goes on after the last segment that
        was proven. The caller removes the file when it has saved the proof.
        """
        cut = self.cut(len(batch), circuit)
        fields = self._fields(batch, circuit, salt=salt, context=context, statistic=statistic)
        chained = cut.log_rows is not None
        bound = _hash([*fields, number(cut.log_rows or 0), statistic or b""])
        path = self.under_way if chained else None
        largest = 2 * self.largest_proof(circuit)
        patience_s = self.patience_s + len(batch) / ROWS_PER_SECOND
        with open_state(path, bound, largest=largest) as state:
            tail = _tail(cut, state.seed, statistic)

            def segment_done() -> None:
                if self.progress is not None:
                    self.progress(cut.rows_in(len(state.records), len(batch)), len(batch))

            segment_done()
            answer = run_worker(
                [*fields, *tail], state, patience_s=patience_s, segment_done=segment_done
            )
            kind, content = answer[:1], answer[1:]
            if kind == worker.PROVEN and cut.log_rows is not None:
                return content + _attest.full_chain(cut.log_rows, state.records)
        if kind == worker.PROVEN:
            return content
        if path is not None and not state.records:  # nothing to go on with
            path.unlink(missing_ok=True)
        why = content.decode(errors="replace")
        if kind == worker.REFUSED:
            raise RefusedError(f"batch {batch.name!r} does not satisfy its circuit: {why}")
        remedy = f"; remove {path} to start again" if path and state.records else ""
        raise SettingError(f"batch {batch.name!r} cannot be proven: {why}{remedy}")

    def cut(self, rows: int, circuit: Circuit) -> Cut:
        """Return how a batch of so many rows is proven within the memory."""
        return cut_of(rows, circuit.columns, memory=self.memory)

    def request(
        self,
        batch: Record,
        circuit: Circuit,
        *,
        salt: bytes,
        context: bytes,
        statistic: bytes | None = None,
    ) -> bytes:
        """Return the request for a prover. It is as secret as the batch."""
        cut = self.cut(len(batch), circuit)
        fields = self._fields(batch, circuit, salt=salt, context=context, statistic=statistic)
        return worker.joined([*fields, *_tail(cut, secrets.token_bytes(32), statistic)])

    def _fields(
        self,
        batch: Record,
        circuit: Circuit,
        *,
        salt: bytes,
        context: bytes,
        statistic: bytes | None,
    ) -> tuple[bytes, ...]:
        """Return what is proven: the first fields of a request."""
        statement = _statement(circuit)
        if not LEAST_ROWS <= len(batch) <= circuit.rows_max:
            raise RefusedError(
                f"batch {batch.name!r} has {len(batch):,} rows; its circuit takes {LEAST_ROWS} to "
                f"{circuit.rows_max:,}"
            )
        if (circuit.statistic is None) != (statistic is None):
            raise SettingError("a statistic is proven if the circuit binds one, and only then")
        witness = Witness.of(statement, batch)
        return (
            statement.content,
            statement.budget_content(witness.rows),
            number(witness.rows),
            witness.registers,
            witness.codes,
            witness.starts,
            witness.flagged,
            salt,
            context,
        )

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
        """Return if the proof is valid; raise `VerificationError` otherwise."""
        claim = ProofClaim(
            commitment=commitment, rows=rows, context=context, proof=proof, statistic=statistic
        )
        refused = self._objection(circuit, claim)
        if refused:
            raise refused
        statement = _statement(circuit)
        try:
            _core(statement.content).verify(
                statement.budget_content(rows), rows, commitment, context, proof, statistic
            )
        except _attest.InvalidProofError as invalid:
            raise _refusal(invalid.args) from None

    def verify_many(
        self, circuit: Circuit, claims: Sequence[ProofClaim]
    ) -> tuple[VerificationError | None, ...]:
        """Verify in parallel on all cores; return for each None or the error of `verify`."""
        answers = [self._objection(circuit, claim) for claim in claims]
        well_formed = [at for at, refused in enumerate(answers) if refused is None]
        statement = _statement(circuit)
        budgets = {
            rows: statement.budget_content(rows) for rows in {claims[at].rows for at in well_formed}
        }
        refusals = _core(statement.content).verify_many(
            [
                (
                    budgets[claim.rows],
                    claim.rows,
                    claim.commitment,
                    claim.context,
                    claim.proof,
                    claim.statistic,
                )
                for claim in (claims[at] for at in well_formed)
            ]
        )
        for at, invalid in zip(well_formed, refusals, strict=True):
            answers[at] = _refusal(invalid) if invalid else None
        return tuple(answers)

    def _objection(self, circuit: Circuit, claim: ProofClaim) -> VerificationError | None:
        """Return the error of a malformed claim, before the proof is checked."""
        if not LEAST_ROWS <= claim.rows <= circuit.rows_max:
            return VerificationError("5.7", f"the circuit does not take {claim.rows:,} rows")
        lengths = (len(claim.commitment), len(claim.context))
        if lengths != (32, 32) or len(claim.proof) > self.largest_proof(circuit):
            return VerificationError("5.7", "commitment, context or proof has the wrong length")
        if (circuit.statistic is None) != (claim.statistic is None):
            needs = "takes no" if circuit.statistic is None else "needs a"
            return VerificationError("5.7", f"the circuit {needs} statistic")
        return None


def _tail(cut: Cut, seed: bytes, statistic: bytes | None) -> tuple[bytes, ...]:
    """Return how a batch is proven, and its statistic: the other fields of a request."""
    return number(cut.log_rows or 0), seed, statistic or b""


def _hash(fields: Sequence[bytes]) -> bytes:
    hashed = hashlib.sha256()
    for each in fields:
        hashed.update(len(each).to_bytes(8, "big"))
        hashed.update(each)
    return hashed.digest()


@lru_cache(maxsize=16)
def _core(content: bytes) -> _attest.FullCircuit:
    try:
        return _attest.FullCircuit(content)
    except ValueError as malformed:
        raise SettingError(f"the circuit cannot state these rules: {malformed}") from None


def _refusal(invalid: tuple[str, str]) -> VerificationError:
    step, why = invalid
    return VerificationError("5.7" if step == "shape" else "5.8", why)


def batch_masks(batch: Record, circuit: Circuit, *, salt: bytes) -> tuple[int, ...]:
    """Return the masks of hidden sums: the commitment of this batch and salt fixes them."""
    statement = _statement(circuit)
    return tuple(_core(statement.content).masks(_planes(Witness.of(statement, batch)), salt))


def core_identity(circuit: Circuit) -> bytes:
    """Return the identity from which the weights of a form are drawn."""
    return _core(_statement(circuit).content).identity


def batch_statistic(batch: Record, circuit: Circuit) -> bytes | None:
    """Return the sums of a batch in their canonical form; None if the circuit binds none.

    If the circuit hides its sums, they are as secret as the batch: see `sluice.attestation.hidden`.
    """
    return None if circuit.statistic is None else statistic_of(_statement(circuit), batch)


def statistic_settings(circuit: Circuit) -> MomentSettings | None:
    """Return what the circuit's statistic sums; None if it binds none."""
    return _statement(circuit).statistic


def demand_statistic(circuit: Circuit, content: bytes, *, rows: int) -> None:
    """Raise a `SettingError` unless this is a statistic of so many rows under the circuit."""
    demand_sums(_statement(circuit), content, rows=rows)


class _Terms:
    """The rules and policy of a circuit, compared by identity: nothing changes them."""

    __slots__ = ("policy", "rules")

    def __init__(self, rules: RuleSet, policy: HardenedPolicy) -> None:
        self.rules, self.policy = rules, policy

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Terms):
            return NotImplemented
        return self.rules is other.rules and self.policy is other.policy

    def __hash__(self) -> int:
        return hash((id(self.rules), id(self.policy)))


def _statement(circuit: Circuit) -> Statement:
    assert isinstance(circuit.policy, HardenedPolicy)
    return _derived(_Terms(circuit.rules, circuit.policy), circuit.statistic)


@lru_cache(maxsize=16)
def _derived(terms: _Terms, statistic: str | None) -> Statement:
    """Derive once: it takes half as long as verifying a proof."""
    return derive(
        terms.rules,
        terms.policy,
        statistic=settings_of if statistic else None,
        masked=statistic == StatisticName.HIDDEN,
    )


def _planes(witness: Witness) -> _attest.FullBatch:
    return _attest.FullBatch(
        witness.rows, witness.registers, witness.codes, witness.starts, witness.flagged
    )
