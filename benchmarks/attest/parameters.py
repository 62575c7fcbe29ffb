"""Measure the cost of other parameters of the `full` system, each on the same batch.

A copy of the Rust core is built for each choice. Then all choices run in turn, round after round,
so that other load on the machine affects all of them alike. Programs and results are kept in a
folder: a run that was stopped continues, unless the core's source has changed. Writes a page of
tables.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path

from rich.console import Console

from benchmarks.attest.choices import CHOICES, ROOT, Choice, build, program
from benchmarks.attest.full import CONTEXT, SALT, subject
from benchmarks.attest.rival import run_measured
from sluice.admission import HardenedPolicy
from sluice.attestation.systems.full import Full, worker
from sluice.files import atomically

STEPS = Path(__file__).with_name("prover_steps.md")
"""Steps that need another version of the source, measured by hand: the end of the page."""
HEAD = """# Cost of other parameters of the full proof

Written by `make parameters` (`python -m benchmarks parameters`). The Rust core is built once for
each choice of parameters, and each build proves a batch of `treatment` under hardened rules; more
than 4,096 rows are a chain of segments. Times are of library calls: the median of {runs} (smallest
to largest). *Processor* is the time of all threads, and memory the peak, of a process that proves
and verifies once. The column *times ours* is the proving time divided by that of our parameters.
The machine had {processors} processors and a load of {load:.1f} at the start. Radix 4 and 16 round
the limits that share digits up. A chain binds one root of each segment, so caps are measured on one
proof only. Each run has masks of its own, and so a proof of work of its own: 22 bits take 0.1 s of
processor time on average, in one proof of twenty three times as much.
"""
COLUMNS = """
## {rows:,} rows

| parameters | columns | prove | times ours | processor | memory | verify | proof | bits |
|---|---|---|---|---|---|---|---|---|
"""
LOG_ROWS = 12  # of a segment, as in the product
REQUEST_FIELDS = 9  # of a request, that the program reads
console = Console(highlight=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One proof with one choice of parameters."""

    seconds: float
    verify_s: float
    proof_bytes: int
    bits: int
    columns: int
    peak_bytes: int
    cpu_s: float
    load: float  # of the machine when this part of the benchmark began


def request_file(folder: Path, rows: int) -> Path:
    """Return the path of the request to prove so many rows."""
    return folder / f"{rows}.request"


def write_requests(folder: Path, sizes: Sequence[int]) -> None:
    """Write what every program is asked to prove."""
    of = subject("treatment")
    for rows in sizes:
        circuit = Full().circuit(of.rules, HardenedPolicy(), rows_max=rows)
        request = Full().request(of.unseen.rows(0, rows), circuit, salt=SALT, context=CONTEXT)
        fields = list(islice(worker.split(BytesIO(request)), REQUEST_FIELDS))
        request_file(folder, rows).write_bytes(worker.joined(fields))


def proving(made: Path, request: Path, choice: Choice, *, rows: int, mask: int) -> list[str]:
    """Return the command that proves a batch once; a long one in segments, as the product does."""
    threads = [f"RAYON_NUM_THREADS={choice.threads}"] if choice.threads else []
    log_rows = LOG_ROWS if rows > 1 << LOG_ROWS else 0
    return ["/usr/bin/env", *threads, str(made), str(request), "1", str(log_rows), str(mask)]


def results_file(made: Path, request: Path) -> Path:
    """Return where the results of a program are kept: of this program, for this request."""
    key = hashlib.sha256(request.read_bytes()).hexdigest()[:12]
    return made.with_name(f"{made.name}.{request.stem}.{key}.jsonl")


def kept(path: Path) -> list[Run]:
    """Return the results that are kept; a line that was cut short is dropped."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [Run(**json.loads(line)) for line in lines if line.endswith(b"\n")]


def run(command: list[str], folder: Path, load: float) -> Run:
    """Prove once, in its own process, and once more to measure the process."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)  # noqa: S603 - built by us
    line = json.loads(done.stdout)
    usage = run_measured(command, folder)
    return Run(
        seconds=line["prove_s"],
        verify_s=line["verify_s"],
        proof_bytes=line["proof_bytes"],
        bits=line["bits"],
        columns=line["columns"],
        peak_bytes=usage.peak_bytes,
        cpu_s=usage.cpu_seconds,
        load=load,
    )


def keep(path: Path, found: Run) -> None:
    """Keep a result; what a crash left of a line is removed first."""
    lines = [json.dumps(asdict(each)) + "\n" for each in (*kept(path), found)]
    with atomically(path) as draft:
        draft.write_text("".join(lines), encoding="utf-8")


def measure(
    choices: Sequence[Choice], folder: Path, *, rows: int, runs: int
) -> Iterator[tuple[Choice, Sequence[Run]]]:
    """Yield the results of every choice; runs that are kept are not repeated."""
    load, request = os.getloadavg()[0], request_file(folder, rows)
    made = {choice.name: program(choice, folder) for choice in choices}
    for time in range(runs):
        console.print(f"{rows:,} rows: {time + 1} of {runs}", style="dim")
        for choice in choices:
            path = results_file(made[choice.name], request)
            if len(kept(path)) > time:
                continue
            command = proving(made[choice.name], request, choice, rows=rows, mask=time)
            keep(path, run(command, folder, load))
    for choice in choices:
        yield choice, kept(results_file(made[choice.name], request))[:runs]


def row(choice: Choice, runs: Sequence[Run], ours: Sequence[Run]) -> str:
    """Return one row of the table."""
    seconds = sorted(each.seconds for each in runs)
    median, beside = (statistics.median(each.seconds for each in some) for some in (runs, ours))
    verify = statistics.median(each.verify_s for each in runs)
    cpu = statistics.median(each.cpu_s for each in runs)
    peak, last = max(each.peak_bytes for each in runs), runs[-1]
    return (
        f"| {choice.name} | {last.columns} | {median:.2f} s ({seconds[0]:.2f} to {seconds[-1]:.2f})"
        f" | {median / beside:.2f} | {cpu:.2f} s | {peak / 1e6:,.0f} MB | {1e3 * verify:.1f} ms "
        f"| {last.proof_bytes / 1e3:,.0f} kB | {last.bits} |"
    )


def page(tables: dict[int, list[tuple[Choice, Sequence[Run]]]], *, runs: int) -> str:
    """Return the page of results."""
    every = [one for table in tables.values() for _, found in table for one in found]
    load = max(one.load for one in every)
    text = HEAD.format(runs=runs, processors=os.cpu_count(), load=load)
    for rows, table in tables.items():
        ours = next(found for choice, found in table if choice == CHOICES[0])
        lines = [row(choice, found, ours) + "\n" for choice, found in table]
        text += COLUMNS.format(rows=rows) + "".join(lines)
    return text + STEPS.read_text(encoding="utf-8")


def main() -> None:
    """Build every choice, run them in turn, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "parameters")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_024, 4_734])
    parser.add_argument("--runs", type=int, default=5, help="proofs per choice; 0 builds only")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for choice in CHOICES:
        if not program(choice, folder).exists():
            console.print(f"building: {choice.name}", style="dim")
            build(choice, folder)
    if not arguments.runs:
        return
    write_requests(folder, arguments.rows)
    tables = {}
    for rows in arguments.rows:
        choices = [each for each in CHOICES if each.chains or rows <= 1 << LOG_ROWS]
        tables[rows] = list(measure(choices, folder, rows=rows, runs=arguments.runs))
    with atomically(arguments.out) as draft:
        draft.write_text(page(tables, runs=arguments.runs), encoding="utf-8")
    console.print(f"{arguments.out} written", markup=False)


if __name__ == "__main__":
    main()
