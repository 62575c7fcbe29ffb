"""`attest-full --statistic moments | hidden`: what binding a statistic adds to a proof.

Proofs of the same batch with and without the statistic are made in turn, so that a change of the
machine's load falls on both.
"""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.attest.full import CONTEXT, SALT, Subject, Usage, measure_usage
from sluice.admission import HardenedPolicy
from sluice.attestation.hidden import SHARING_BYTES, share_sums
from sluice.attestation.systems import Circuit
from sluice.attestation.systems.full import (
    Full,
    StatisticName,
    batch_masks,
    batch_statistic,
    statistic_settings,
)
from sluice.cli import out, table
from sluice.detector import MomentStatistic
from sluice.telemetry import Record

__all__ = ["BoundBench", "bench_bound", "payload", "show"]

TARGETS = {"time": 1.10, "cpu": 1.10, "memory": 1.10, "proof": 1.05}
VERIFY_MS = 2.0
VERIFICATIONS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One batch, with the statistic or without."""

    columns: int
    constraints: int
    proven_bits: int
    prove_s: tuple[float, ...]  # of each run
    verify_s: tuple[float, ...]
    usage: tuple[Usage, ...]
    proof_bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BothWays:
    """The cost of one batch both ways."""

    rows: int
    plain: Side
    bound: Side
    statistic_bytes: int
    statistic_s: float

    def ratios(self) -> dict[str, float]:
        """Return the medians with the statistic over those without."""
        ratio = {
            "time": [statistics.median(side.prove_s) for side in (self.bound, self.plain)],
            "cpu": [
                statistics.median(usage.cpu_s for usage in side.usage)
                for side in (self.bound, self.plain)
            ],
            "memory": [
                statistics.median(usage.peak_bytes for usage in side.usage)
                for side in (self.bound, self.plain)
            ],
            "proof": [statistics.median(side.proof_bytes) for side in (self.bound, self.plain)],
        }
        return {name: bound / plain for name, (bound, plain) in ratio.items()}

    @property
    def verify_ms(self) -> float:
        """What verifying takes more, in milliseconds: the fastest of each."""
        return 1e3 * (min(self.bound.verify_s) - min(self.plain.verify_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundBench:
    """The pairs of one plant."""

    plant: str
    channels: int  # of the statistic
    lags: int
    statistic_bits: int
    load: float
    pairs: tuple[BothWays, ...]


def bench_bound(
    of: Subject,
    statistic: StatisticName,
    *,
    rows: tuple[int, ...],
    runs: int,
    advance: Callable[[], None],
) -> BoundBench:
    """Prove and verify a batch of each size with and without a statistic, `runs` times each."""
    policy = HardenedPolicy()
    plain, bound = Full(), Full(binds=statistic)
    circuits = [each.circuit(of.rules, policy, rows_max=max(rows)) for each in (plain, bound)]
    load = os.getloadavg()[0]
    pairs = tuple(
        _pair(of.unseen.rows(0, wanted), plain, circuits, runs=runs, advance=advance)
        for wanted in rows
    )
    settings = statistic_settings(circuits[1])
    assert settings is not None
    return BoundBench(
        plant=of.plant,
        channels=len(settings.registers),
        lags=settings.lags,
        statistic_bits=circuits[1].statistic_bits,
        load=load,
        pairs=pairs,
    )


def _pair(
    batch: Record, system: Full, circuits: list[Circuit], *, runs: int, advance: Callable[[], None]
) -> BothWays:
    began = time.perf_counter()
    statistic = _named_statistic(batch, circuits[1])
    took = time.perf_counter() - began
    found: list[list[tuple[float, Usage, bytes]]] = [[], []]
    for _ in range(runs):
        for at, sums in enumerate((None, statistic)):
            circuit = circuits[at]
            began = time.perf_counter()
            proof = system.prove(batch, circuit, salt=SALT, context=CONTEXT, statistic=sums)
            seconds = time.perf_counter() - began
            request = system.request(batch, circuit, salt=SALT, context=CONTEXT, statistic=sums)
            usage = measure_usage(request)
            found[at].append((seconds, usage, proof))
            advance()
    verified: list[list[float]] = [[], []]
    commitment = system.commit(batch, circuits[0], salt=SALT)  # both circuits commit alike
    for _ in range(VERIFICATIONS):
        for at, sums in enumerate((None, statistic)):
            began = time.perf_counter()
            system.verify(
                circuits[at],
                commitment=commitment,
                rows=len(batch),
                context=CONTEXT,
                proof=found[at][0][2],
                statistic=sums,
            )
            verified[at].append(time.perf_counter() - began)
    plain, bound = (
        Side(
            columns=circuit.columns,
            constraints=circuit.constraints,
            proven_bits=circuit.proven_bits,
            prove_s=tuple(seconds for seconds, _, _ in runs_of),
            verify_s=tuple(times),
            usage=tuple(usage for _, usage, _ in runs_of),
            proof_bytes=tuple(len(proof) for _, _, proof in runs_of),
        )
        for circuit, runs_of, times in zip(circuits, found, verified, strict=True)
    )
    return BothWays(
        rows=len(batch),
        plain=plain,
        bound=bound,
        statistic_bytes=len(statistic),
        statistic_s=took,
    )


def _named_statistic(batch: Record, circuit: Circuit) -> bytes:
    """Return what the commitment names: the sums, or the sealed statistic of hidden sums."""
    sums, settings = batch_statistic(batch, circuit), statistic_settings(circuit)
    assert sums is not None
    assert settings is not None
    if circuit.statistic != StatisticName.HIDDEN:
        return sums
    shared = share_sums(
        MomentStatistic.from_canonical(sums, settings),
        batch_masks(batch, circuit, salt=SALT),
        rows=len(batch),
        entropy=bytes(range(SHARING_BYTES)),
    )
    return shared.sealed.canonical()


def payload(measured: BoundBench) -> dict[str, object]:
    """Return the result for `--json`."""
    return {
        "plant": measured.plant,
        "channels": measured.channels,
        "lags": measured.lags,
        "statistic_bits": measured.statistic_bits,
        "load": measured.load,
        "targets": {**TARGETS, "verify_ms": VERIFY_MS},
        "batches": [
            {
                "rows": pair.rows,
                "ratios": pair.ratios(),
                "verify_more_ms": pair.verify_ms,
                "statistic_bytes": pair.statistic_bytes,
                "statistic_s": pair.statistic_s,
                "without": _side(pair.plain),
                "with": _side(pair.bound),
            }
            for pair in measured.pairs
        ],
    }


def _side(side: Side) -> dict[str, object]:
    return {
        "columns": side.columns,
        "constraints": side.constraints,
        "proven_bits": side.proven_bits,
        "prove_s": list(side.prove_s),
        "verify_s": list(side.verify_s),
        "cpu_s": [usage.cpu_s for usage in side.usage],
        "peak_bytes": [usage.peak_bytes for usage in side.usage],
        "proof_bytes": list(side.proof_bytes),
    }


def show(measured: BoundBench) -> None:
    """Print both sides, with the spread over runs, and the ratios beside their targets."""
    for pair in measured.pairs:
        shown = table(
            f"{measured.plant}: {pair.rows:,} rows, {measured.channels} channels, "
            f"{measured.lags} lags, {len(pair.plain.prove_s)} runs, load {measured.load:.1f}",
            "",
            "without",
            "with",
        )
        sides = (pair.plain, pair.bound)
        shown.add_row("columns", *(f"{side.columns:,}" for side in sides))
        shown.add_row("constraints", *(f"{side.constraints:,}" for side in sides))
        shown.add_row("prove (s)", *(_spread(side.prove_s) for side in sides))
        shown.add_row(
            "processor time (s)",
            *(_spread([usage.cpu_s for usage in side.usage]) for side in sides),
        )
        shown.add_row(
            "peak memory (MB)",
            *(_spread([usage.peak_bytes / 1e6 for usage in side.usage]) for side in sides),
        )
        shown.add_row(
            "proof (kB)", *(_spread([size / 1e3 for size in side.proof_bytes]) for side in sides)
        )
        shown.add_row(
            "verify (ms)",
            *(_spread([1e3 * seconds for seconds in side.verify_s]) for side in sides),
        )
        shown.add_row("proven bits", *(str(side.proven_bits) for side in sides))
        out.print(shown)
        for name, ratio in pair.ratios().items():
            out.print(f"{name}: {ratio:.3f} times (target {TARGETS[name]:.2f})")
        out.print(f"verify: {pair.verify_ms:+.2f} ms (target +{VERIFY_MS:.0f} ms; fastest of each)")
        out.print(
            f"statistic: {pair.statistic_bytes:,} bytes, summed in "
            f"{pair.statistic_s * 1e3:.0f} ms, {measured.statistic_bits} bits"
        )


def _spread(values: list[float] | tuple[float, ...]) -> str:
    return f"{statistics.median(values):.4g} ({min(values):.4g} to {max(values):.4g})"
