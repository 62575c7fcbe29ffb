"""The `full` system: a zero-knowledge proof about every row of a batch, without trusted set-up.

docs/protocol.md defines what it proves. Proving runs in a separate process with a time limit;
verifying runs in this process.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
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
from sluice.attestation.systems.full.chaining import cut_of
from sluice.attestation.systems.full.statement import Statement, derive
from sluice.attestation.systems.full.witness import Witness
from sluice.attestation.systems.system import Circuit, ProofClaim
from sluice.detector import MomentSettings
from sluice.errors import ProverError, RefusedError, SettingError, VerificationError
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

MOST_ROWS = 1 << 17
LEAST_ROWS = 2
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

    @property
    def name(self) -> str:
        """Its value for `--system`."""
        return "full"

    @property
    def challenged(self) -> bool:
        """Every row is checked, so none is drawn."""
        return False

    @property
    def largest_proof(self) -> int:
        """The largest proof, in bytes."""
        return 1 << 23

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
        """Prove that the committed batch satisfies the circuit, in a separate process."""
        request = self.request(batch, circuit, salt=salt, context=context, statistic=statistic)
        answer = self._run_worker(request, self.patience_s + len(batch) / ROWS_PER_SECOND)
        kind, content = answer[:1], answer[1:]
        if kind == worker.PROVEN:
            return content
        why = content.decode(errors="replace")
        if kind == worker.REFUSED:
            raise RefusedError(f"batch {batch.name!r} does not satisfy its circuit: {why}")
        raise SettingError(f"batch {batch.name!r} cannot be proven: {why}")

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
        statement = _statement(circuit)
        if not LEAST_ROWS <= len(batch) <= circuit.rows_max:
            raise RefusedError(
                f"batch {batch.name!r} has {len(batch):,} rows; its circuit takes {LEAST_ROWS} to "
                f"{circuit.rows_max:,}"
            )
        if (circuit.statistic is None) != (statistic is None):
            raise SettingError("a statistic is proven if the circuit binds one, and only then")
        witness = Witness.of(statement, batch)
        cut = cut_of(witness.rows, circuit.columns, memory=self.memory)
        return worker.joined(
            (
                statement.content,
                statement.budget_content(witness.rows),
                number(witness.rows),
                witness.registers,
                witness.codes,
                witness.starts,
                witness.flagged,
                salt,
                context,
                number(cut.log_rows or 0),
                number(int(cut.frugal)),
                *(() if statistic is None else (statistic,)),
            )
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
        if lengths != (32, 32) or len(claim.proof) > self.largest_proof:
            return VerificationError("5.7", "commitment, context or proof has the wrong length")
        if (circuit.statistic is None) != (claim.statistic is None):
            needs = "takes no" if circuit.statistic is None else "needs a"
            return VerificationError("5.7", f"the circuit {needs} statistic")
        return None

    def _run_worker(self, request: bytes, patience_s: float) -> bytes:
        """Run a worker; if it hangs, stop it and try once more with a single thread."""
        for threads in (None, 1):
            try:
                done = subprocess.run(  # noqa: S603 - our own interpreter and script
                    [sys.executable, "-I", str(Path(worker.__file__))],
                    input=request,
                    capture_output=True,
                    timeout=patience_s,
                    check=False,
                    env=os.environ | ({"RAYON_NUM_THREADS": str(threads)} if threads else {}),
                )
            except subprocess.TimeoutExpired:
                continue
            if done.returncode == 0 and done.stdout:
                return done.stdout
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            why = " ".join(last) or "no error output"
            raise ProverError(f"the prover ended with code {done.returncode} ({why})")
        raise ProverError(f"the prover gave no proof within {patience_s:.0f} s, twice")


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
