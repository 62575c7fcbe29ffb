"""`attest-full --scaling`: how the cost of a proof grows with the rows of a batch.

Forty batches from 300 to 100,000 rows and one of 524,288 rows are proven, with the statistic of the
default detector. The nearest straight line to the times of the forty is found. How long the proof
of work takes is left to chance, and in a short proof that matters: short batches are proven several
times, and their median counts. A first proof is not counted: it reads the program from disk.
Memory is read from `/proc`, so this benchmark needs Linux.
"""

import os
import resource
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
from scipy.optimize import linprog

from benchmarks.attest.full import CONTEXT, SALT, Subject, demand_rows
from sluice.admission import HardenedPolicy
from sluice.attestation.systems import Circuit
from sluice.attestation.systems.full import Full, StatisticName, batch_statistic, worker
from sluice.cli import out, table
from sluice.errors import ProverError
from sluice.telemetry import Record

__all__ = [
    "LONGEST",
    "SIZES",
    "Point",
    "Proven",
    "Scaling",
    "bench_scaling",
    "enough",
    "furthest",
    "page",
    "payload",
    "show",
]

COUNT, LEAST, MOST = 40, 300, 100_000
SIZES = tuple(round(LEAST * (MOST / LEAST) ** (at / (COUNT - 1))) for at in range(COUNT))
LONGEST = 524_288
POLL_S = 0.02
PATIENCE_S = 3_600
SHORT = 5_000
"""Batches of fewer rows are proven `LEAST_RUNS` times or more often."""
LEAST_RUNS, RUNS_S = 5, 10.0  # batches of any length are proven for about so many seconds
FURTHEST, PEAK_BYTES = 1.25, 1_000_000_000  # targets
HEAD = """# Cost of a proof by the rows of its batch

Written by `python -m benchmarks attest-full --scaling --out docs/results/scaling.md`. Batches of
`{plant}` under hardened rules, with the statistic of `moments`: {columns} columns, at least {bits}
proven bits, zero knowledge. Each proof is made in a new prover process, from the record to the
proof. More than 4,096 rows are a chain of segments. The machine had {processors} processors and a
load of {load:.1f} at the start.

Every batch is proven as often as fits into {seconds:.0f} seconds, but at least once, and at least
{least} times below {short:,} rows: the proof of work takes longer in one proof than in another, at
random. *Prove* is the median (smallest to largest) of all *proofs*. *Processor* is the time of all
threads of the prover, *a row* this time divided by the rows, *verify* the time to verify a proof
and *proof* its size, all medians; *memory* is the largest peak of the prover. One proof before the
first is not counted.

"""
NOTE = """
The line is the nearest one to the medians of {count} batches up to {most:,} rows: its largest ratio
is the smallest. The ratio is that of the larger to the smaller of a batch's time and the
line's. *To the line* is a batch's time divided by the line's.

| rows | segments | proofs | prove | to the line | processor | a row | memory | verify | proof |
|---|---|---|---|---|---|---|---|---|---|"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """One proof."""

    seconds: float
    cpu_s: float
    peak_bytes: int
    verify_s: float
    proof_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One batch, proven once or more often."""

    rows: int
    segments: int
    proofs: tuple[Proven, ...]

    @property
    def seconds(self) -> float:
        """The median time to prove."""
        return statistics.median(proof.seconds for proof in self.proofs)

    @property
    def cpu_s(self) -> float:
        """The median processor time to prove, over all threads."""
        return statistics.median(proof.cpu_s for proof in self.proofs)

    @property
    def verify_s(self) -> float:
        """The median time to verify."""
        return statistics.median(proof.verify_s for proof in self.proofs)

    @property
    def proof_bytes(self) -> int:
        """The median size of a proof."""
        return round(statistics.median(proof.proof_bytes for proof in self.proofs))

    @property
    def peak_bytes(self) -> int:
        """The largest memory of a prover."""
        return max(proof.peak_bytes for proof in self.proofs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """All batches."""

    plant: str
    columns: int
    proven_bits: int
    processors: int
    load: float  # over one minute, when the bench began
    points: tuple[Point, ...]

    def fitted(self) -> tuple[Point, ...]:
        """Return the batches that a straight line is fitted to."""
        return tuple(point for point in self.points if point.rows <= MOST)


def bench_scaling(of: Subject, *, rows: Sequence[int], advance: Callable[[], None]) -> Scaling:
    """Prove a batch of each size as often as its page says; call `advance` after each size."""
    demand_rows(of, rows)
    load = os.getloadavg()[0]
    bound = Full(binds=StatisticName.MOMENTS)
    circuit = bound.circuit(of.rules, HardenedPolicy(), rows_max=max(rows))
    points = []
    _prove(of.unseen.rows(0, min(rows)), circuit)
    for wanted in rows:
        points.append(_point(of.unseen.rows(0, wanted), circuit))
        advance()
    return Scaling(
        plant=of.plant,
        columns=circuit.columns,
        proven_bits=circuit.proven_bits,
        processors=os.cpu_count() or 1,
        load=load,
        points=tuple(points),
    )


def _point(batch: Record, circuit: Circuit) -> Point:
    """Prove a batch as often as fits into the time, and often enough."""
    rows, proofs = len(batch), [_prove(batch, circuit)]
    while not enough(rows, [proof.seconds for proof in proofs]):
        proofs.append(_prove(batch, circuit))
    segments = Full().cut(rows, circuit).segments(rows)
    return Point(rows=rows, segments=segments, proofs=tuple(proofs))


def enough(rows: int, times: Sequence[float]) -> bool:
    """Return whether a batch was proven often enough, or one proof more would take too long."""
    if rows < SHORT and len(times) < LEAST_RUNS:
        return False
    return sum(times) + statistics.median(times) > RUNS_S


def _prove(batch: Record, circuit: Circuit) -> Proven:
    system, rows = Full(patience_s=PATIENCE_S), len(batch)
    statistic = batch_statistic(batch, circuit)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    with _Peak() as peak:
        proof = system.prove(batch, circuit, salt=SALT, context=CONTEXT, statistic=statistic)
    seconds = time.perf_counter() - began
    if not peak.found:
        raise ProverError("the memory of the prover was not seen; use another machine or more rows")
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
    return Proven(
        seconds=seconds,
        cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        peak_bytes=peak.found,
        verify_s=time.perf_counter() - began,
        proof_bytes=len(proof),
    )


class _Peak:
    """Watch the peak memory of the prover that this process starts (Linux)."""

    def __init__(self) -> None:
        self.found = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(POLL_S):
            for child in _children(Path("/proc/self/task")):
                self.found = max(self.found, _peak_of(child))


def _children(tasks: Path) -> Iterator[Path]:
    """Yield the processes that the threads of a process started."""
    for task in tasks.iterdir():
        try:
            children = (task / "children").read_text().split()
        except OSError:  # the thread has ended since the folder was listed
            continue
        yield from (Path("/proc", child) for child in children)


def _peak_of(process: Path) -> int:
    """Return the largest memory of a prover so far; zero if it has ended or is another process.

    Until it runs its own program, a new process has the memory of the one that started it.
    """
    try:
        command = (process / "cmdline").read_text()
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return 0
    if str(worker.__file__) not in command:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)


def furthest(rows: Sequence[int], times: Sequence[float]) -> tuple[float, float, float]:
    """Find the nearest straight line: its time at zero, its time a row, the largest ratio to it.

    The ratio is that of the larger to the smaller of a measured time and the line's. The nearest
    line has the smallest largest ratio r. A line r times as high is above every time, and at most
    r squared times as high as any: the smallest such square is that of a linear programme.
    """
    sizes, seconds = np.asarray(rows, dtype=float), np.asarray(times, dtype=float)
    relative = np.stack([1 / seconds, sizes / seconds], axis=1)
    zero, one = np.zeros((len(sizes), 1)), np.ones((len(sizes), 1))
    found = linprog(
        [0, 0, 1],
        A_ub=np.block([[-relative, zero], [relative, -one]]),
        b_ub=np.concatenate([-one, zero]),
        bounds=[(None, None), (None, None), (1, None)],
    )
    if not found.success:
        raise RuntimeError(f"no straight line was found: {found.message}")
    start, slope, square = found.x
    ratio = float(np.sqrt(square))
    return float(start) / ratio, float(slope) / ratio, ratio


def payload(measured: Scaling) -> dict[str, object]:
    """Return what `--json` prints."""
    return {
        "bench": "attest-full --scaling",
        "plant": measured.plant,
        "columns": measured.columns,
        "proven_bits": measured.proven_bits,
        "processors": measured.processors,
        "load": measured.load,
        "lines": [
            {"of": name, "start_s": start, "row_s": slope, "furthest": ratio}
            for name, start, slope, ratio in _lines(measured)
        ],
        "batches": [
            {
                **asdict(point),
                "seconds": point.seconds,
                "cpu_s": point.cpu_s,
                "peak_bytes": point.peak_bytes,
                "verify_s": point.verify_s,
                "proof_bytes": point.proof_bytes,
            }
            for point in measured.points
        ],
    }


def _lines(measured: Scaling) -> list[tuple[str, float, float, float]]:
    """Return the straight lines of time and processor time; none through fewer than two sizes."""
    fitted = measured.fitted()
    if len({point.rows for point in fitted}) < 2:
        return []
    rows = [point.rows for point in fitted]
    times = {
        "time": [point.seconds for point in fitted],
        "processor time": [point.cpu_s for point in fitted],
    }
    return [(name, *furthest(rows, each)) for name, each in times.items()]


def page(measured: Scaling) -> str:
    """Return the page of results."""
    head = HEAD.format(
        plant=measured.plant,
        columns=measured.columns,
        bits=measured.proven_bits,
        processors=measured.processors,
        load=measured.load,
        seconds=RUNS_S,
        least=LEAST_RUNS,
        short=SHORT,
    )
    lines = [
        f"- **Straight line, {name}**: {start:.2f} s + {slope * 1e6:.0f} us a row. The largest "
        f"ratio of a batch to the line is {ratio:.2f}."
        for name, start, slope, ratio in _lines(measured)
    ]
    note = NOTE.format(count=len(measured.fitted()), most=MOST)
    batches = [f"| {' | '.join(cells)} |" for cells in _cells(measured)]
    return head + "\n".join([*lines, note, *batches]) + "\n"


def _cells(measured: Scaling) -> list[tuple[str, ...]]:
    """Return the cells of every batch."""
    (_, start, slope, _), *_ = _lines(measured) or [("", 0.0, 0.0, 0.0)]

    def cells(point: Point) -> tuple[str, ...]:
        line = start + slope * point.rows
        times = [proof.seconds for proof in point.proofs]
        spread = f" ({min(times):.2f} to {max(times):.2f})" if len(times) > 1 else ""
        return (
            f"{point.rows:,}",
            str(point.segments),
            str(len(times)),
            f"{point.seconds:.2f} s{spread}",
            f"x {point.seconds / line:.2f}" if line else "",
            f"{point.cpu_s:.2f} s",
            f"{1e6 * point.cpu_s / point.rows:.0f} us",
            f"{point.peak_bytes / 1e6:,.0f} MB",
            f"{1e3 * point.verify_s:.0f} ms",
            f"{point.proof_bytes / 1e3:,.0f} kB",
        )

    return [cells(point) for point in measured.points]


def show(measured: Scaling) -> None:
    """Print every batch, and how far they are from a straight line."""
    columns = ("rows", "segments", "proofs", "prove", "to the line", "CPU", "a row", "memory")
    drawn = table("python -m benchmarks attest-full --scaling", *columns, "verify", "proof")
    for cells in _cells(measured):
        drawn.add_row(*cells)
    out.print(drawn)
    for name, start, slope, ratio in _lines(measured):
        out.print(
            f"{name}: {start:.2f} s + {slope * 1e6:.0f} us a row; furthest batch {ratio:.2f} times "
            f"(target {FURTHEST:.2f})"
        )
    peak = max(point.peak_bytes for point in measured.points)
    out.print(
        f"{measured.plant}: {measured.columns} columns, at least {measured.proven_bits} bits, "
        f"{measured.processors} processors, load {measured.load:.1f} at the start; largest memory "
        f"{peak / 1e6:,.0f} MB (target {PEAK_BYTES / 1e6:,.0f} MB)."
    )
