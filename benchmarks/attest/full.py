"""`attest-full`: the cost of proving a whole batch and of verifying the proof.

A proof is timed as the product makes it: from a record to the proof's bytes, in a prover process
started for it. Recorded figures of other systems, which prove less, are shown beside it with their
source.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.attest import weigh
from sluice.admission import HardenedPolicy
from sluice.attestation.systems import Circuit
from sluice.attestation.systems.full import Full, worker
from sluice.errors import ProverError, SettingError
from sluice.invariants import Profile, RelationKind, RuleSet
from sluice.invariants.mining import mine
from sluice.lab.plants import simulate
from sluice.telemetry import Record

__all__ = [
    "CONTEXT",
    "DEFAULT_ROWS",
    "PLANTS",
    "SALT",
    "STARTUP_S",
    "AttestBench",
    "Subject",
    "Usage",
    "bench_attest",
    "demand_rows",
    "measure_usage",
    "subject",
]

DEFAULT_ROWS = (1_024, 4_734)  # the paper's batch, and the paper's shard
MOVING = "treatment-moving"
"""`treatment` without the channels that never move, as the paper's SWaT set is."""
PLANTS = ("treatment", MOVING, "line")
STARTUP_S = 21_600
DAY_S, USUAL_DAYS = 86_400, 7
SALT, CONTEXT = b"s" * 32, b"c" * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A plant's rules, and clean rows that none of them was mined from."""

    plant: str
    rules: RuleSet
    unseen: Record
    moving_channels: int  # those that are not constant in clean rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Memory and CPU time of a prover process, which do not depend on the machine's load."""

    peak_bytes: int
    cpu_s: float  # over all threads


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one batch."""

    rows: int
    prove_s: tuple[float, ...]  # of each run
    commit_s: float
    verify_s: tuple[float, ...]
    usage: Usage
    proof_bytes: int
    proven_bits: int

    @property
    def seconds(self) -> float:
        """The median time to prove."""
        return statistics.median(self.prove_s)

    @property
    def verify_seconds(self) -> float:
        """The median time to verify."""
        return statistics.median(self.verify_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttestBench:
    """The circuit of one plant, and its cost by number of rows."""

    plant: str
    channels: int
    moving_channels: int
    rules: tuple[tuple[RelationKind, int], ...]
    columns: int
    constraints: int
    processors: int
    load: float  # of the machine when the bench began, over one minute
    costs: tuple[Cost, ...]

    def at(self, rows: int) -> Cost | None:
        """Return the cost of a batch of `rows` rows, if it was measured."""
        return next((cost for cost in self.costs if cost.rows == rows), None)


def subject(plant: str, *, rows: int = 0) -> Subject:
    """Simulate a plant, mine hardened rules, and return them with the rows that were not mined.

    The plant runs for as long as it usually does, or longer if more `rows` are asked for.
    """
    if plant == "line":
        record = simulate(plant, seed=0, days=8)
        mined = 4_320
    else:
        mined = 14_202
        days = (STARTUP_S + 5 * (2 * mined + rows)) / DAY_S
        longer = days + 0.1 if days > USUAL_DAYS else None
        record = simulate("treatment", seed=0, days=longer).without_first(STARTUP_S).every(5)
    if plant == MOVING:
        record = record.select(moving(record))
    rules = mine(record.rows(0, mined), record.rows(mined, 2 * mined), profile=Profile.HARDENED)
    return Subject(
        plant=plant,
        rules=rules,
        unseen=record.rows(2 * mined, len(record)),
        moving_channels=len(moving(record)),
    )


def moving(record: Record) -> tuple[str, ...]:
    """Return the names of the channels that are not constant."""
    spans = np.ptp(record.values, axis=0)
    return tuple(name for name, span in zip(record.names, spans, strict=True) if span > 0)


def demand_rows(of: Subject, rows: Sequence[int]) -> None:
    """Raise `SettingError` for a batch too short for its rules, or longer than the record."""
    least, most = HardenedPolicy().least_rows(of.rules), len(of.unseen)
    for wanted in rows:
        if not least <= wanted <= most:
            raise SettingError(
                f"the bench proves {least:,} to {most:,} rows of {of.plant!r}, got {wanted:,}; "
                "choose --rows in that range"
            )


def bench_attest(
    of: Subject, *, rows: tuple[int, ...], runs: int, advance: Callable[[], None]
) -> AttestBench:
    """Prove and verify a batch of each size, `runs` times; call `advance` after each proof."""
    policy = HardenedPolicy()
    demand_rows(of, rows)
    load = os.getloadavg()[0]
    circuit = Full().circuit(of.rules, policy, rows_max=max(rows))
    costs = tuple(
        _cost(of.unseen.rows(0, wanted), circuit, runs=runs, advance=advance) for wanted in rows
    )
    kinds = [rule.kind for rule in of.rules.invariants]
    return AttestBench(
        plant=of.plant,
        channels=len(of.rules.channels),
        moving_channels=of.moving_channels,
        rules=tuple((kind, kinds.count(kind)) for kind in RelationKind if kind in kinds),
        columns=circuit.columns,
        constraints=circuit.constraints,
        processors=os.cpu_count() or 1,
        load=load,
        costs=costs,
    )


def _cost(batch: Record, circuit: Circuit, *, runs: int, advance: Callable[[], None]) -> Cost:
    system = Full()
    began = time.perf_counter()
    commitment = system.commit(batch, circuit, salt=SALT)
    committed = time.perf_counter() - began
    proofs, prove_s, verify_s = [], [], []
    for _ in range(runs):
        began = time.perf_counter()
        proofs.append(system.prove(batch, circuit, salt=SALT, context=CONTEXT))
        prove_s.append(time.perf_counter() - began)
        advance()
    for proof in proofs * max(1, 5 // runs):
        began = time.perf_counter()
        system.verify(circuit, commitment=commitment, rows=len(batch), context=CONTEXT, proof=proof)
        verify_s.append(time.perf_counter() - began)
    sized = Full().circuit(circuit.rules, circuit.policy, rows_max=len(batch))
    usage = measure_usage(system.request(batch, circuit, salt=SALT, context=CONTEXT))
    advance()
    return Cost(
        rows=len(batch),
        prove_s=tuple(prove_s),
        commit_s=committed,
        verify_s=tuple(verify_s),
        usage=usage,
        proof_bytes=round(statistics.median(len(proof) for proof in proofs)),
        proven_bits=sized.proven_bits,
    )


def measure_usage(request: bytes) -> Usage:
    """Run a prover on one request, and measure its memory and CPU time."""
    ours = [sys.executable, "-I"]
    command = [*ours, str(Path(weigh.__file__)), *ours, str(Path(worker.__file__))]
    done = subprocess.run(command, input=request, capture_output=True, check=False)  # noqa: S603 - our own interpreter and scripts
    if done.returncode != 0:
        raise ProverError(f"the prover ended with code {done.returncode} while it was measured")
    peak, seconds = done.stdout.split()
    return Usage(peak_bytes=int(peak), cpu_s=float(seconds))
