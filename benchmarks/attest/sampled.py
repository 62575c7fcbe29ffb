"""`attest-sampled`: keys, proof and verification of the paper's system, at its size.

The simulated treatment plant has SWaT's channels; 32 rows of 1,024 are sampled by default. A proof
is timed twice: as a library call, and as a whole `sluice attest prove` process, which is compared
with the rival's processes.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.attest.rival import Step, run_measured
from sluice.admission import PaperPolicy
from sluice.attestation.messages import CHALLENGES, context_of, draw_challenge
from sluice.attestation.protocol import Committed, KeyFolder, Registered
from sluice.attestation.systems.sampled import SAMPLED_ROWS, Sampled, Sampling, make_sampled
from sluice.errors import ProverError, RefusedError
from sluice.invariants import Profile, RuleSet
from sluice.invariants.mining import mine
from sluice.lab.plants import simulate
from sluice.telemetry import Record
from sluice.telemetry.writers import FileLayout, write

__all__ = ["PAPER_CONSTRAINTS", "SampledBench", "SampledSubject", "bench_sampled", "subject"]

STARTUP_S = 21_600
THINNED = 5
SHARE = 0.15  # of the rows to fit on, and as many to calibrate on
PAPER_CONSTRAINTS = 297_736
LIMIT = 50
COMMAND = "from sluice.cli import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSubject:
    """The paper's rules of a plant, and clean rows that were not mined."""

    rules: RuleSet
    unseen: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledBench:
    """The cost of one circuit of 1,024 rows; of several times the least."""

    rows: int
    samples: int
    rules: int
    channels: int
    constraints: int
    setup_seconds: float
    commit_seconds: float
    prove_seconds: float  # the library call
    process: Step  # `sluice attest prove`
    verify_milliseconds: float
    proof_bytes: int
    proving_key_bytes: int

    @property
    def of_the_paper(self) -> float:
        """Constraints relative to the paper's circuit for 32 samples."""
        return self.constraints / PAPER_CONSTRAINTS


def subject() -> SampledSubject:
    """Simulate the treatment plant and mine the paper's wide rules."""
    plant = simulate("treatment", seed=0).without_first(STARTUP_S).every(THINNED)
    mined = int(SHARE * len(plant))
    rules = mine(plant.rows(0, mined), plant.rows(mined, 2 * mined), profile=Profile.PAPER_WIDE)
    return SampledSubject(rules=rules, unseen=plant.rows(2 * mined, len(plant)))


def bench_sampled(of: SampledSubject, *, repeats: int, samples: int = 32) -> SampledBench:
    """Make keys, commit, prove and verify."""
    with TemporaryDirectory() as temporary:
        folder, policy = Path(temporary), PaperPolicy()
        began = time.perf_counter()
        system = make_sampled(
            folder / "keys", of.rules, policy, Sampling(samples=samples), rows_max=SAMPLED_ROWS
        )
        setup = time.perf_counter() - began
        keys = KeyFolder.create(folder / "keys", system, of.rules, policy, rows_max=SAMPLED_ROWS)
        proven = _proven_batch(of, keys, folder)
        process = min((_process(folder) for _ in range(repeats)), key=lambda step: step.seconds)
        return _measured(of, system, keys, proven, setup, process, repeats=repeats)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProvenBatch:
    """A batch whose sampled rows satisfy the rules, its commitment and a proof."""

    batch: Record
    salt: bytes
    commitment: bytes
    context: bytes
    proof: bytes


def _proven_batch(of: SampledSubject, keys: KeyFolder, folder: Path) -> _ProvenBatch:
    """Commit and challenge until a proof succeeds: sampling refuses some clean batches."""
    for nth in range(LIMIT):
        batch = of.unseen.rows(nth * SAMPLED_ROWS, (nth + 1) * SAMPLED_ROWS)
        plant = Registered(
            federation="bench",
            client="plant",
            key=keys.ensure_client_key(),
            system=keys.system,
            circuit=keys.circuit,
        )
        committed: Committed = plant.commit(batch)
        commit = committed.message.content
        challenge = draw_challenge(commit)
        try:
            proven = committed.challenged(challenge).prove(batch)
        except RefusedError:
            continue
        write(batch, folder / "batch.parquet", FileLayout.PARQUET)
        committed.save(folder / "commit.json")
        (folder / "challenge.json").write_bytes(CHALLENGES.write(challenge))
        return _ProvenBatch(
            batch=batch,
            salt=bytes.fromhex(committed.opening.salt),
            commitment=bytes.fromhex(commit.commitment),
            context=context_of(commit, keys.circuit, challenge).digest(),
            proof=proven.message.content.proof,
        )
    raise ProverError(f"none of {LIMIT} clean batches could be proven")


def _process(folder: Path) -> Step:
    """Prove as a plant does: one command, from files to a proof."""
    files = ["--keys", "keys", "--commit", "commit.json", "--challenge", "challenge.json"]
    prove = ["attest", "prove", "batch.parquet", *files, "--out", "proof.json", "--quiet"]
    return run_measured([sys.executable, "-c", COMMAND, *prove], folder)


def _measured(  # noqa: PLR0913, PLR0917 - a measurement is these parts
    of: SampledSubject,
    system: Sampled,
    keys: KeyFolder,
    proven: _ProvenBatch,
    setup: float,
    process: Step,
    *,
    repeats: int,
) -> SampledBench:
    circuit, batch, salt, context = keys.circuit, proven.batch, proven.salt, proven.context
    return SampledBench(
        rows=SAMPLED_ROWS,
        samples=system.sampling.samples,
        rules=len(of.rules.invariants),
        channels=circuit.columns,
        constraints=circuit.constraints,
        setup_seconds=setup,
        commit_seconds=_least(repeats, lambda: system.commit(batch, circuit, salt=salt)),
        prove_seconds=_least(
            repeats, lambda: system.prove(batch, circuit, salt=salt, context=context)
        ),
        process=process,
        verify_milliseconds=1e3
        * _least(
            10 * repeats,
            lambda: system.verify(
                circuit,
                commitment=proven.commitment,
                rows=SAMPLED_ROWS,
                context=context,
                proof=proven.proof,
            ),
        ),
        proof_bytes=len(proven.proof),
        proving_key_bytes=system.proving_key.stat().st_size,
    )


def _least(repeats: int, work: Callable[[], object]) -> float:
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)
