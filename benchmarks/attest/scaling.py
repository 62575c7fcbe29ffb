"""`attest-full --scaling`: how the cost of a proof grows with the rows of a batch.

Forty batches from 300 to 100,000 rows and one of 524,288 rows are proven once each, with the
statistic of the default detector. A straight line is fitted to the times of the forty.
"""

import os
import resource
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.attest.full import CONTEXT, SALT, Subject, subject
from sluice.admission import HardenedPolicy
from sluice.attestation import StatisticName
from sluice.attestation.systems import Circuit
from sluice.attestation.systems.full import Full
from sluice.attestation.systems.full.statistic import batch_statistic
from sluice.cli import out, table

__all__ = ["LONGEST", "SIZES", "Point", "Scaling", "bench_scaling", "furthest", "page", "show"]

COUNT, LEAST, MOST = 40, 300, 100_000
SIZES = tuple(round(LEAST * (MOST / LEAST) ** (at / (COUNT - 1))) for at in range(COUNT))
LONGEST = 524_288
POLL_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One batch, proven once."""

    rows: int
    segments: int
    seconds: float
    cpu_s: float
    peak_bytes: int
    verify_s: float
    proof_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """All batches."""

    columns: int
    proven_bits: int
    processors: int
    load: float  # over one minute, when the bench began
    points: tuple[Point, ...]


def bench_scaling(
    sizes: Sequence[int], *, advance: Callable[[], None], plant: str = "treatment"
) -> Scaling:
    """Prove a batch of each size once; call `advance` after each."""
    of = subject(plant, rows=max(sizes))
    load = os.getloadavg()[0]
    circuits = [_circuit(of, rows) for rows in sizes]
    points = []
    for rows, circuit in zip(sizes, circuits, strict=True):
        points.append(_point(of, rows, circuit))
        advance()
    return Scaling(
        columns=circuits[0].columns,
        proven_bits=min(circuit.proven_bits for circuit in circuits),
        processors=os.cpu_count() or 1,
        load=load,
        points=tuple(points),
    )


def _circuit(of: Subject, rows: int) -> Circuit:
    bound = Full(binds=StatisticName.MOMENTS)
    return bound.circuit(of.rules, HardenedPolicy(), rows_max=rows)


def _point(of: Subject, rows: int, circuit: Circuit) -> Point:
    system, batch = Full(patience_s=3_600), of.unseen.rows(0, rows)
    statistic = batch_statistic(batch, circuit)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    with _Peak() as peak:
        proof = system.prove(batch, circuit, salt=SALT, context=CONTEXT, statistic=statistic)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    commitment = system.commit(batch, circuit, salt=SALT)
    began = time.perf_counter()
    system.verify(
        circuit,
        commitment=commitment,
        rows=rows,
        context=CONTEXT,
        proof=proof,
        statistic=statistic,
    )
    return Point(
        rows=rows,
        segments=system.cut(rows, circuit).segments(rows),
        seconds=seconds,
        cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        peak_bytes=peak.found,
        verify_s=time.perf_counter() - began,
        proof_bytes=len(proof),
    )


class _Peak:
    """Watch the peak memory of the processes that this one starts (Linux)."""

    def __init__(self) -> None:
        self.found = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "_Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(POLL_S):
            for task in Path("/proc/self/task").iterdir():
                for child in (task / "children").read_text().split():
                    self.found = max(self.found, _peak_of(Path("/proc", child, "status")))


def _peak_of(status: Path) -> int:
    """Return the largest memory of a process so far; zero if it has ended."""
    try:
        lines = status.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)


def furthest(rows: Sequence[int], times: Sequence[float]) -> tuple[float, float, float]:
    """Fit a straight line; return its time at zero, its time a row, and the largest ratio to it.

    The line has the smallest sum of squared relative errors. The ratio is that of the larger to the
    smaller of a measured time and the line's.
    """
    sizes, seconds = np.asarray(rows, dtype=float), np.asarray(times, dtype=float)
    scaled = np.stack([1 / seconds, sizes / seconds], axis=1)
    (start, slope), *_ = np.linalg.lstsq(scaled, np.ones(len(sizes)), rcond=None)
    ratio = (start + slope * sizes) / seconds
    return float(start), float(slope), float(np.maximum(ratio, 1 / ratio).max())


def page(measured: Scaling) -> str:
    """Return the page of results."""
    line = [point for point in measured.points if point.rows <= MOST]
    rows = [point.rows for point in line]
    lines = [
        "# Cost of a proof by the rows of its batch",
        "",
        "Written by `python -m benchmarks attest-full --scaling --out docs/results/scaling.md`. "
        "Batches of `treatment`",
        f"under hardened rules, with the statistic of `moments`: {measured.columns} columns, at "
        f"least {measured.proven_bits} proven bits,",
        "zero knowledge. Each batch is proven once, in a new prover process, from the record to "
        "the proof. More than",
        f"4,096 rows are a chain of segments. The machine had {measured.processors} processors and "
        f"a load of {measured.load:.1f} at the start. *Processor*",
        "is the time of all threads of the prover, *memory* its peak.",
        "",
    ]
    for name, times in (
        ("time", [point.seconds for point in line]),
        ("processor time", [point.cpu_s for point in line]),
    ):
        start, slope, ratio = furthest(rows, times)
        lines += [
            f"- **Straight line, {name}**: {start:.2f} s + {slope * 1e6:.0f} us a row. The largest "
            f"ratio of a batch to the line is {ratio:.2f}.",
        ]
    lines += [
        "",
        f"The line is that of the {len(line)} batches up to {MOST:,} rows with the smallest sum of "
        "squared relative errors. The",
        "ratio is that of the larger to the smaller of a batch's time and the line's.",
        "",
        "| rows | segments | prove | processor | a row | memory | verify | proof |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {point.rows:,} | {point.segments} | {point.seconds:.2f} s | {point.cpu_s:.2f} s "
        f"| {1e6 * point.cpu_s / point.rows:.0f} us | {point.peak_bytes / 1e6:,.0f} MB "
        f"| {1e3 * point.verify_s:.0f} ms | {point.proof_bytes / 1e3:,.0f} kB |"
        for point in measured.points
    ]
    return "\n".join(lines) + "\n"


def show(measured: Scaling) -> None:
    """Print every batch, and how far they are from a straight line."""
    drawn = table("python -m benchmarks attest-full --scaling", "rows", "segments", "prove", "CPU")
    for point in measured.points:
        drawn.add_row(
            f"{point.rows:,}",
            str(point.segments),
            f"{point.seconds:.2f} s",
            f"{point.cpu_s:.2f} s",
        )
    out.print(drawn)
    line = [point for point in measured.points if point.rows <= MOST]
    rows = [point.rows for point in line]
    _, _, wall = furthest(rows, [point.seconds for point in line])
    _, _, cpu = furthest(rows, [point.cpu_s for point in line])
    peak = max(point.peak_bytes for point in measured.points)
    out.print(
        f"Largest ratio to a straight line: {wall:.2f} (time), {cpu:.2f} (processor time). "
        f"Largest memory: {peak / 1e6:,.0f} MB."
    )
