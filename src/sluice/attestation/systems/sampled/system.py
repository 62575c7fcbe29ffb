"""The `sampled` system: the paper's Groth16 proof about a few rows, drawn after the commitment.

It proves less than `full`. Rows that are not drawn are not checked (guarantee.py gives the
probabilities), and the party that made its keys could forge proofs.
"""

import hashlib
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from sluice import _attest
from sluice.admission import PaperPolicy, Policy
from sluice.attestation.packing import digest, number, packed
from sluice.attestation.systems import system
from sluice.attestation.systems.sampled import worker
from sluice.attestation.systems.sampled.budgets import silent_budgets
from sluice.attestation.systems.sampled.rows import SampledRows
from sluice.attestation.systems.sampled.statement import SampledStatement, derive_sampled
from sluice.attestation.systems.system import Circuit
from sluice.errors import ProverError, RefusedError, SettingError, VerificationError
from sluice.invariants import RuleSet
from sluice.telemetry import Record

__all__ = [
    "SAMPLED_ROWS",
    "Sampled",
    "SampledClaim",
    "Sampling",
    "core_of",
    "draw_rows",
    "make_keys",
    "planes_of",
    "poseidon",
    "statement_of",
]


def poseidon(inputs: Sequence[int]) -> int:
    """Hash 1 to 16 field elements to one."""
    try:
        return int(_attest.poseidon_hash([str(element) for element in inputs]))
    except ValueError as refused:
        raise SettingError(str(refused)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How many rows are drawn, and how many of them may violate.

    The paper allows one of 32, which excludes a clean plant about once in 67 rounds. Two exclude it
    about once in ten thousand rounds, and batches that the paper detects are still detected.
    """

    samples: int = 32
    violations: int = 2

    def __post_init__(self) -> None:
        if not 0 <= self.violations < self.samples:
            raise SettingError(
                f"{self.violations} of {self.samples} drawn rows may violate; expected 0 to "
                f"{self.samples - 1}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledClaim:
    """The public inputs of a proof, recomputed by the verifier."""

    commitment: bytes
    rows: int
    drawn: tuple[int, ...]
    violations: int
    silent: tuple[int, ...]  # by coupling
    context: bytes

    @property
    def signals(self) -> tuple[int, ...]:
        """The field elements, in the circuit's order; the context is in two halves."""
        halves = (self.context[:16], self.context[16:])
        return (
            int.from_bytes(self.commitment, "big"),
            *self.drawn,
            self.violations,
            *self.silent,
            *(int.from_bytes(half, "big") for half in halves),
        )

    @property
    def core(self) -> _attest.SampledClaim:
        """The same claim in the core's format."""
        return _attest.SampledClaim(
            self.rows, list(self.drawn), self.violations, list(self.silent), self.context
        )


DRAW_BYTES = 8


def draw_rows(commitment: bytes, context: bytes, *, rows: int, samples: int) -> tuple[int, ...]:
    """Return distinct rows in 1..rows-1, each equally likely; row 0 has no row before it."""
    if not 1 <= samples < rows:
        raise SettingError(f"{samples} samples cannot be drawn from rows 1 to {rows - 1}")
    seed = digest("challenge", commitment, context)
    drawable = rows - 1
    even = (1 << 8 * DRAW_BYTES) // drawable * drawable  # above it some rows would be more likely
    drawn: dict[int, None] = {}
    counter = 0
    while len(drawn) < samples:
        block = hashlib.sha256(seed + number(counter)).digest()
        value = int.from_bytes(block[:DRAW_BYTES], "big")
        if value < even:
            drawn.setdefault(value % drawable + 1)
        counter += 1
    return tuple(drawn)


SAMPLED_ROWS = 1_024
"""Default for the largest batch: the paper's."""
MOST_ROWS = 1 << 17
PROOF_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """The system with the keys of one circuit; the proving key is needed by plants only."""

    sampling: Sampling
    verifying_key: bytes = field(repr=False)
    proving_key: Path

    @property
    def name(self) -> str:
        """Its value for `--system`."""
        return "sampled"

    @property
    def challenged(self) -> bool:
        """Rows are drawn after the commitment."""
        return True

    def largest_proof(self, circuit: Circuit) -> int:
        """Return the size of every proof, in bytes, whatever the circuit is."""
        del circuit
        return PROOF_BYTES

    def circuit(self, rules: RuleSet, policy: Policy, *, rows_max: int) -> Circuit:
        """Derive the circuit; raise `InputError` for rules or policies that it cannot state."""
        statement = self.statement(rules, policy, rows_max=rows_max)
        core = core_of(statement.content)
        _verifier(
            statement.content, self.verifying_key
        )  # raises unless this is a key of this circuit
        silent = silent_budgets(statement)
        parameters = {
            "depth": statement.depth,
            "parties": 1,
            "samples": statement.samples,
            "violating_max": self.sampling.violations,
        } | {f"silent_max_{at}": budget for at, budget in enumerate(silent)}
        identity = digest(
            "sampled circuit",
            core.identity,
            self.verifying_key,
            packed(*(number(budget) for budget in (self.sampling.violations, *silent))),
            number(rows_max),
        )
        return Circuit(
            system=self.name,
            identity=identity.hex(),
            parameters=tuple(sorted(parameters.items())),
            rows_max=rows_max,
            proven_bits=0,
            columns=len(statement.readings) + len(statement.actuators),
            constraints=sum(cost for _, cost in core.costs()),
            rules=rules,
            policy=policy,
        )

    def statement(self, rules: RuleSet, policy: Policy, *, rows_max: int) -> SampledStatement:
        """Derive what is proven about the drawn rows."""
        return statement_of(rules, policy, self.sampling, rows_max=rows_max)

    def commit(self, batch: Record, circuit: Circuit, *, salt: bytes) -> bytes:
        """Return the root of the tree of salted rows."""
        statement = self._statement(circuit)
        return core_of(statement.content).commit(planes_of(SampledRows.of(statement, batch)), salt)

    def prove(
        self,
        batch: Record,
        circuit: Circuit,
        *,
        salt: bytes,
        context: bytes,
        statistic: bytes | None = None,
    ) -> bytes:
        """Prove that the drawn rows obey the rules, except as many as the budgets allow."""
        system.refuse_statistic(statistic)
        statement = self._statement(circuit)
        planes = planes_of(SampledRows.of(statement, batch))
        commitment = core_of(statement.content).commit(planes, salt)
        claim = self.claim(circuit, commitment, len(batch), context)
        verifier = _verifier(statement.content, self.verifying_key)
        try:
            return verifier.prove(self.proving_key, planes, salt, claim.core)
        except OSError as error:
            raise SettingError(
                f"the proving key {self.proving_key} cannot be read: {error.strerror}"
            ) from None
        except _attest.RefusedBatchError as refused:
            raise RefusedError(
                f"batch {batch.name!r} does not satisfy its circuit: {refused}"
            ) from None
        except ValueError as unusable:
            raise SettingError(f"batch {batch.name!r} cannot be proven: {unusable}") from None

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
        system.refuse_statistic(statistic)
        statement = self._statement(circuit)
        if not statement.samples < rows <= circuit.rows_max:
            raise VerificationError("5.7", f"the circuit does not take {rows:,} rows")
        if len(commitment) != 32 or len(context) != 32:
            raise VerificationError("5.7", "commitment or context has the wrong length")
        claim = self.claim(circuit, commitment, rows, context)
        try:
            _verifier(statement.content, self.verifying_key).verify(commitment, claim.core, proof)
        except _attest.InvalidProofError as invalid:
            step, why = invalid.args
            raise VerificationError("5.7" if step == "shape" else "5.8", why) from None

    def verify_many(
        self, circuit: Circuit, claims: Sequence[system.ProofClaim]
    ) -> tuple[VerificationError | None, ...]:
        """Verify the proofs one after the other; each takes two milliseconds."""
        return system.each_alone(self, circuit, claims)

    def claim(self, circuit: Circuit, commitment: bytes, rows: int, context: bytes) -> SampledClaim:
        """Return the public inputs for a commitment, with the drawn rows and the budgets."""
        statement = self._statement(circuit)
        return SampledClaim(
            commitment=commitment,
            rows=rows,
            drawn=draw_rows(commitment, context, rows=rows, samples=statement.samples),
            violations=self.sampling.violations,
            silent=silent_budgets(statement),
            context=context,
        )

    def _statement(self, circuit: Circuit) -> SampledStatement:
        return self.statement(circuit.rules, circuit.policy, rows_max=circuit.rows_max)


def statement_of(
    rules: RuleSet, policy: Policy, sampling: Sampling, *, rows_max: int
) -> SampledStatement:
    """Derive the statement; refuse policies other than the paper's, and other batch sizes."""
    if not isinstance(policy, PaperPolicy):
        raise SettingError("the system 'sampled' states the paper policy only; use --policy paper")
    if not sampling.samples < rows_max <= MOST_ROWS:
        raise SettingError(
            f"the system 'sampled' takes batches of {sampling.samples + 1} to {MOST_ROWS:,} rows, "
            f"not {rows_max:,}"
        )
    return derive_sampled(rules, samples=sampling.samples, rows_max=rows_max)


@lru_cache(maxsize=16)
def core_of(content: bytes) -> _attest.SampledCircuit:
    """Return the circuit of a statement."""
    try:
        return _attest.SampledCircuit(content)
    except ValueError as malformed:
        raise SettingError(f"the circuit cannot state these rules: {malformed}") from None


@lru_cache(maxsize=16)
def _verifier(content: bytes, key: bytes) -> _attest.SampledVerifier:
    try:
        return _attest.SampledVerifier(core_of(content), key)
    except ValueError as malformed:
        raise SettingError(f"the verifying key is refused: {malformed}") from None


def make_keys(statement: SampledStatement) -> tuple[bytes, bytes]:
    """Make a proving and a verifying key as a single party; the forging secret is not kept.

    A separate process makes them, because the Rust core does not stop at Ctrl-C. Leaving this
    function by any exception ends that process.
    """
    core_of(statement.content)  # raises if the circuit cannot state the rules
    done = subprocess.run(  # noqa: S603 - our own interpreter and script
        [sys.executable, "-I", str(Path(worker.__file__))],
        input=statement.content,
        capture_output=True,
        check=False,
    )
    if done.returncode != 0 or not done.stdout:
        last = " ".join(done.stderr.decode(errors="replace").strip().splitlines()[-1:])
        raise ProverError(
            f"the process that makes keys ended with code {done.returncode} "
            f"({last or 'no error output'}); free memory and run the command again"
        )
    return worker.split(done.stdout)


def planes_of(rows: SampledRows) -> _attest.SampledBatch:
    """Return rows in the core's format."""
    return _attest.SampledBatch(rows.rows, rows.readings, rows.codes)
