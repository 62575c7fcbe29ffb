"""What the proofs of many plants cost the coordinator that verifies them in one call.

A few proofs are made once, each bound to another plant's context, and stand for as many plants as
are asked for: every claim has its own copy of a proof. Processor time is that of all threads. The
memory is what the process needs at most beyond the proofs themselves. Writes a page.
"""

import argparse
import gc
import os
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.attest.full import SALT, subject
from sluice.admission import HardenedPolicy
from sluice.attestation.systems import Circuit, ProofClaim
from sluice.attestation.systems.full import Full
from sluice.errors import ProverError
from sluice.files import atomically
from sluice.telemetry import Record

ROWS = (1_024, 4_734)
PLANTS = (10, 30, 100, 300, 1_000)
PROOFS = 3
HEAD = """# Cost of many proofs to the coordinator

Written by `make verifying` (`python -m benchmarks verify-many`). {proofs} batches of `treatment` \
({columns} columns) are
proven once, each for another plant, and stand for all plants: every plant's claim has its own copy
of a proof. The coordinator verifies all claims in one call, on all cores. *A plant* is the
processor time of all threads, divided by the plants. *Memory* is what the process needs at most
while it verifies, beyond the proofs themselves. The machine had {processors} processors and a load
of {load:.1f} at the start.

| rows | segments | proof | plants | a plant | wall time | memory |
|---|---|---|---|---|---|---|
"""
console = Console(highlight=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What it cost to verify the proofs of so many plants."""

    rows: int
    segments: int
    proof_bytes: int
    plants: int
    cpu_s: float
    wall_s: float
    grown_bytes: int


def claims_of(batch: Record, circuit: Circuit) -> list[ProofClaim]:
    """Prove a batch for a few plants."""
    system = Full()
    commitment = system.commit(batch, circuit, salt=SALT)
    contexts = [bytes([plant]) * 32 for plant in range(PROOFS)]
    return [
        ProofClaim(
            commitment=commitment,
            rows=len(batch),
            context=context,
            proof=system.prove(batch, circuit, salt=SALT, context=context),
        )
        for context in contexts
    ]


def measure(circuit: Circuit, made: list[ProofClaim], plants: int) -> Verified:
    """Verify the proofs of so many plants in one call."""
    claims = [_copied(made[plant % len(made)]) for plant in range(plants)]
    gc.collect()
    before, cpu, began = _peak(), time.process_time(), time.perf_counter()
    answers = Full().verify_many(circuit, claims)
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    if any(answers):
        raise ProverError(f"a proof that holds was refused: {next(filter(None, answers))}")
    return Verified(
        rows=made[0].rows,
        segments=Full().cut(made[0].rows, circuit).segments(made[0].rows),
        proof_bytes=len(made[0].proof),
        plants=plants,
        cpu_s=cpu_s,
        wall_s=wall_s,
        grown_bytes=_peak() - before,
    )


def _copied(claim: ProofClaim) -> ProofClaim:
    copy = bytes(bytearray(claim.proof))
    return ProofClaim(
        commitment=claim.commitment, rows=claim.rows, context=claim.context, proof=copy
    )


def _peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1_024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def line(found: Verified) -> str:
    """Return a line of the table."""
    return (
        f"| {found.rows:,} | {found.segments} | {found.proof_bytes / 1e3:,.0f} kB | "
        f"{found.plants:,} | {found.cpu_s / found.plants * 1e3:.1f} ms | {found.wall_s:.2f} s | "
        f"{found.grown_bytes / 1e6:.0f} MB |"
    )


def main() -> None:
    """Measure, print each line as it comes, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, action="append", help="default: 1,024 and 4,734")
    parser.add_argument("--plants", type=int, action="append", help="default: 10 to 1,000")
    parser.add_argument("--out", type=Path, help="the page to write")
    chosen = parser.parse_args()
    load, of = os.getloadavg()[0], subject("treatment")
    sizes: tuple[int, ...] = tuple(chosen.rows or ROWS)
    circuit = Full().circuit(of.rules, HardenedPolicy(), rows_max=max(sizes))
    lines = []
    for rows in sizes:
        made = claims_of(of.unseen.rows(0, rows), circuit)
        for plants in chosen.plants or PLANTS:
            lines.append(line(measure(circuit, made, plants)))
            console.print(lines[-1])
    if chosen.out is not None:
        head = HEAD.format(
            proofs=PROOFS, columns=circuit.columns, processors=os.cpu_count(), load=load
        )
        with atomically(chosen.out) as draft:
            draft.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
