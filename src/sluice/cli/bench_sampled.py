"""`sluice bench attest-sampled`: keys, proof and verification of the paper's system, at its size.

The simulated treatment plant has SWaT's channels; 32 rows of 1,024 are drawn. What stock circom and
snarkjs take for the paper's circuit is not measured here: its constraints are quoted for scale.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sluice.admission import PaperPolicy
from sluice.attestation.sampled import SAMPLED_ROWS, Sampling
from sluice.attestation.sampled_keys import make_sampled
from sluice.cli.console import out, table
from sluice.cli.proofs import peak_mb
from sluice.errors import RefusedError
from sluice.invariants import Profile, mine
from sluice.plants import simulate

__all__ = ["SampledBench", "bench_sampled", "payload", "show"]

STARTUP_S = 21_600
THINNED = 5
SHARE = 0.15  # of the rows to fit on, and as many to calibrate on
PAPER_CONSTRAINTS = 297_736
SALT, LIMIT = bytes(32), 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledBench:
    """One circuit of the paper's size; the least of several times counts."""

    rows: int
    samples: int
    rules: int
    channels: int
    constraints: int
    setup_seconds: float
    commit_seconds: float
    prove_seconds: float
    verify_milliseconds: float
    proof_bytes: int
    proving_key_bytes: int
    peak_mb: float

    @property
    def of_the_paper(self) -> float:
        """Constraints over those of the paper's circuit."""
        return self.constraints / PAPER_CONSTRAINTS


def bench_sampled(*, repeats: int, samples: int = 32) -> SampledBench:
    """Make keys, commit, prove and verify."""
    plant = simulate("treatment", seed=0).without_first(STARTUP_S).every(THINNED)
    mined = int(SHARE * len(plant))
    rules = mine(plant.rows(0, mined), plant.rows(mined, 2 * mined), profile=Profile.PAPER_WIDE)
    with TemporaryDirectory() as folder:
        started = time.perf_counter()
        sampling = Sampling(samples=samples)
        system = make_sampled(Path(folder), rules, PaperPolicy(), sampling, rows_max=SAMPLED_ROWS)
        setup = time.perf_counter() - started
        circuit = system.circuit(rules, PaperPolicy(), rows_max=SAMPLED_ROWS)
        for nth in range(LIMIT):
            start = 2 * mined + nth * SAMPLED_ROWS
            batch, context = plant.rows(start, start + SAMPLED_ROWS), nth.to_bytes(32, "big")
            try:
                proof = system.prove(batch, circuit, salt=SALT, context=context)
            except RefusedError:
                continue  # sampling excludes a clean batch now and then
            break
        commitment = system.commit(batch, circuit, salt=SALT)
        commit = _least(repeats, lambda: system.commit(batch, circuit, salt=SALT))
        prove = _least(repeats, lambda: system.prove(batch, circuit, salt=SALT, context=context))
        verify = _least(
            10 * repeats,
            lambda: system.verify(
                circuit, commitment=commitment, rows=SAMPLED_ROWS, context=context, proof=proof
            ),
        )
        key_bytes = system.proving_key.stat().st_size
    return SampledBench(
        rows=SAMPLED_ROWS,
        samples=samples,
        rules=len(rules.invariants),
        channels=circuit.columns,
        constraints=circuit.constraints,
        setup_seconds=setup,
        commit_seconds=commit,
        prove_seconds=prove,
        verify_milliseconds=verify * 1e3,
        proof_bytes=len(proof),
        proving_key_bytes=key_bytes,
        peak_mb=peak_mb(),
    )


def payload(measured: SampledBench) -> dict[str, object]:
    """Return the measurement as JSON has it."""
    return {
        "bench": "attest-sampled",
        **asdict(measured),
        "ratios": {"constraints_of_the_paper": measured.of_the_paper},
    }


def show(measured: SampledBench) -> None:
    """Print the measurement."""
    drawn = table(
        f"{measured.samples} of {measured.rows:,} rows, {measured.channels} channels, "
        f"{measured.rules} rules",
        "what",
        "ours",
    )
    for what, told in (
        ("constraints", f"{measured.constraints:,} ({measured.of_the_paper:.0%} of the paper's)"),
        ("set-up", f"{measured.setup_seconds:.1f} s"),
        ("commit", f"{measured.commit_seconds:.2f} s"),
        ("prove", f"{measured.prove_seconds:.2f} s"),
        ("verify, library call", f"{measured.verify_milliseconds:.1f} ms"),
        ("proof", f"{measured.proof_bytes} bytes"),
        ("proving key", f"{measured.proving_key_bytes / 1e6:.0f} MB"),
        ("memory, whole process with set-up", f"{measured.peak_mb:.0f} MB"),
    ):
        drawn.add_row(what, told)
    out.print(drawn)


def _least(repeats: int, work: Callable[[], object]) -> float:
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)
