"""`attest-sampled`: keys, proof and verification of the paper's system, at its size.

The simulated treatment plant has SWaT's channels; so many rows of 1,024 are drawn. A proof is timed
twice: as a library call, and as `sluice attest prove` from its start to its end, which is what the
rival's processes are held against.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.attest.rival import Step, weighed
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
    """The paper's rules of a plant, and clean rows that none was mined from."""

    rules: RuleSet
    unseen: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledBench:
    """One circuit of 1,024 rows; the least of several times counts."""

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
        """Constraints over those of the paper's circuit, for 32 samples."""
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
        shown = _shown(of, keys, folder)
        process = min((_process(folder) for _ in range(repeats)), key=lambda step: step.seconds)
        return _measured(of, system, keys, shown, setup, process, repeats=repeats)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """A batch whose drawn rows keep the rules, its commitment, and a proof of it."""

    batch: Record
    salt: bytes
    commitment: bytes
    context: bytes
    proof: bytes


def _shown(of: SampledSubject, keys: KeyFolder, folder: Path) -> _Shown:
    """Commit and draw until a proof is found: sampling excludes a clean batch now and then."""
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
        return _Shown(
            batch=batch,
            salt=bytes.fromhex(committed.opening.salt),
            commitment=bytes.fromhex(commit.commitment),
            context=context_of(commit, keys.circuit, challenge).digest(),
            proof=proven.message.content.proof,
        )
    raise ProverError(f"none of {LIMIT} clean batches could be proven")


def _process(folder: Path) -> Step:
    """Prove as a plant does: one command, from files to a proof."""
    told = ["--keys", "keys", "--commit", "commit.json", "--challenge", "challenge.json"]
    prove = ["attest", "prove", "batch.parquet", *told, "--out", "proof.json", "--quiet"]
    return weighed([sys.executable, "-c", COMMAND, *prove], folder)


def _measured(  # noqa: PLR0913, PLR0917 - a measurement is these parts
    of: SampledSubject,
    system: Sampled,
    keys: KeyFolder,
    shown: _Shown,
    setup: float,
    process: Step,
    *,
    repeats: int,
) -> SampledBench:
    circuit, batch, salt, context = keys.circuit, shown.batch, shown.salt, shown.context
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
                commitment=shown.commitment,
                rows=SAMPLED_ROWS,
                context=context,
                proof=shown.proof,
            ),
        ),
        proof_bytes=len(shown.proof),
        proving_key_bytes=system.proving_key.stat().st_size,
    )


def _least(repeats: int, work: Callable[[], object]) -> float:
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)
