"""Measure the cost of other parameters of the `full` system, each on the same batch.

A copy of the Rust core is built for each choice. Then all choices run in turn, round after round,
so that other load on the machine affects all of them alike. Writes a page of tables.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.attest.full import CONTEXT, SALT, subject
from benchmarks.attest.rival import run_measured
from sluice.admission import HardenedPolicy
from sluice.attestation.systems.full import Full
from sluice.files import atomically

ROOT = Path(__file__).parents[2]
FULL = "rust/attest-core/src/full"
STEPS = Path(__file__).with_name("prover_steps.md")
"""Steps that need another version of the source, measured by hand: the end of the page."""
HEAD = """# Cost of other parameters of the full proof

Written by `make parameters` (`python -m benchmarks parameters`). The Rust core is built once for
each choice of parameters, and each build proves a batch of `treatment` under hardened rules; more
than 4,096 rows are a chain of segments. Times are of library calls: the median of {runs} (smallest
to largest). Memory is that of a process that proves once. The column *times ours* is the proving
time divided by that of our parameters. The machine had {processors} processors and a load of
{load:.1f} at the start. Radix 4 and 16 round the limits that share digits up. A chain binds one
root of each segment, so caps are measured on one proof only.
"""
COLUMNS = """
## {rows:,} rows

| parameters | columns | prove | times ours | memory | verify | proof | bits |
|---|---|---|---|---|---|---|---|
"""
LOG_ROWS = 12  # of a segment, as in the product
console = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class Choice:
    """Other parameters: the edits (file, pattern, replacement) that set them."""

    name: str
    edits: tuple[tuple[str, str, str], ...] = ()
    flags: str | None = None  # RUSTFLAGS
    threads: int | None = None
    chains: bool = True  # whether it can prove chains: they bind one root of each segment


def const(name: str, value: int, *, file: str = "parameters.rs") -> tuple[str, str, str]:
    """Return the edit that gives a constant another value."""
    return f"{FULL}/{file}", rf"(pub const {name}: \w+ =) \d+;", rf"\1 {value};"


# Limits that share digits are multiples of 7 registers. Another radix rounds them up to its own.
ROUNDED = (
    (f"{FULL}/statement/checks.rs", r" && width\.is_multiple_of\(RADIX - 1\)", ""),
    (
        f"{FULL}/ladder.rs",
        r"let mut left = reach / \(RADIX - 1\);",
        "let mut left = reach.div_ceil(RADIX - 1);",
    ),
)
RADIX_4, RADIX_16 = ((const("RADIX", value, file="ladder.rs"), *ROUNDED) for value in (4, 16))
BLOWUP_16 = (const("LOG_BLOWUP", 4), const("QUERIES", 40))
QUINTIC = (
    (f"{FULL}/parameters.rs", "extension::CubicTrinomial", "extension::Binomial"),
    (f"{FULL}/parameters.rs", "CubicTrinomialExtensionField<F>", "BinomialExtensionField<F, 5>"),
    const("EXTENSION", 5),
)
KECCAK = (
    (f"{FULL}/parameters.rs", "use p3_blake3::Blake3;", "use p3_keccak::Keccak256Hash as Blake3;"),
    (f"{FULL}/parameters.rs", r"Blake3 \{\}", "Blake3"),
    (f"{FULL}/parameters.rs", r"hashing::hash_long\(", "Blake3.hash_many("),
    ("rust/attest-core/Cargo.toml", r"\[dependencies\]", '[dependencies]\np3-keccak = "0.8"'),
)
ALONE = (  # the other proof system and its libraries take most of the time to compile
    ("rust/attest-core/src/lib.rs", r"(?m)^pub mod (poseidon|sampled);\n", ""),
    ("rust/attest-core/Cargo.toml", r"(?m)^ark-.*\n", ""),
)
CHOICES = (
    Choice("ours"),
    Choice("extension of degree 5", QUINTIC),
    Choice("Keccak for BLAKE3", KECCAK),
    Choice("folding by 2", (const("LOG_ARITY", 1),)),
    Choice("folding by 4", (const("LOG_ARITY", 2),)),
    Choice("folding by 16", (const("LOG_ARITY", 4),)),
    Choice("last polynomial of 8", (const("LOG_FINAL", 3),)),
    Choice("last polynomial of 64", (const("LOG_FINAL", 6),)),
    Choice("caps of 8 nodes", (const("LOG_CAP", 3),), chains=False),
    Choice("caps of 64 nodes", (const("LOG_CAP", 6),), chains=False),
    Choice("57 queries, 16 bits of work", (const("QUERIES", 57), const("QUERY_WORK", 16))),
    Choice("55 queries, 19 bits of work", (const("QUERIES", 55), const("QUERY_WORK", 19))),
    Choice("67 queries, no work", (const("QUERIES", 67), const("QUERY_WORK", 0))),
    Choice("blow-up 16, 40 queries", BLOWUP_16),
    Choice("radix 4", RADIX_4),
    Choice("no vector unit", flags="-C target-cpu=x86-64"),
    Choice("one thread", threads=1),
    Choice("radix 16, blow-up 16, 40 queries", (*RADIX_16, *BLOWUP_16)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One proof with one choice of parameters."""

    seconds: float
    verify_s: float
    proof_bytes: int
    bits: int
    columns: int


def program(choice: Choice, folder: Path) -> Path:
    """Return the path of a choice's program."""
    return folder / re.sub(r"\W+", "-", choice.name)


def build(choice: Choice, folder: Path) -> None:
    """Build the core with other parameters."""
    tree = folder / "tree"
    shutil.rmtree(tree / "rust", ignore_errors=True)
    for part in ("rust", ".cargo"):
        # copyfile sets new times; with the old times cargo would not rebuild a restored file.
        shutil.copytree(ROOT / part, tree / part, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for part in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / part, tree / part)
    for name, old, new in (*ALONE, *choice.edits):
        path = tree / name
        path.write_text(_edited(path.read_text(), old, new))
    made = tree / "target" / "release" / "examples" / "prove"
    command = ["cargo", "build", "--release", "--quiet", "-p", "attest-core", "--example", "prove"]
    env = {**os.environ, **({"RUSTFLAGS": choice.flags} if choice.flags else {})}
    subprocess.run(command, cwd=tree, env=env, check=True)  # noqa: S603 - our own core
    shutil.copy(made, program(choice, folder))


def _edited(text: str, old: str, new: str) -> str:
    changed, count = re.subn(old, new, text)
    if not count:
        raise ValueError(f"the core's source has no match for {old!r}; update CHOICES")
    return changed


def proving(choice: Choice, folder: Path, rows: int) -> list[str]:
    """Return the command that proves a batch once; a long one in segments, as the product does."""
    threads = [f"RAYON_NUM_THREADS={choice.threads}"] if choice.threads else []
    segments = [str(LOG_ROWS)] if rows > 1 << LOG_ROWS else []
    prove = [str(program(choice, folder)), str(request_file(folder, rows)), "1", *segments]
    return ["/usr/bin/env", *threads, *prove]


def request_file(folder: Path, rows: int) -> Path:
    """Return the path of the request to prove so many rows."""
    return folder / f"{rows}.request"


def run(command: list[str]) -> Run:
    """Prove once, in its own process."""
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)  # noqa: S603 - built above
    line = json.loads(done.stdout)
    return Run(
        seconds=line["prove_s"],
        verify_s=line["verify_s"],
        proof_bytes=line["proof_bytes"],
        bits=line["bits"],
        columns=line["columns"],
    )


def row(choice: Choice, runs: Sequence[Run], ours: Sequence[Run], peak_bytes: int) -> str:
    """Return one row of the table."""
    seconds = sorted(each.seconds for each in runs)
    median, beside = (statistics.median(each.seconds for each in some) for some in (runs, ours))
    verify = statistics.median(each.verify_s for each in runs)
    last = runs[-1]
    return (
        f"| {choice.name} | {last.columns} | {median:.2f} s ({seconds[0]:.2f} to {seconds[-1]:.2f})"
        f" | {median / beside:.2f} | {peak_bytes / 1e6:,.0f} MB | {1e3 * verify:.1f} ms "
        f"| {last.proof_bytes / 1e3:,.0f} kB | {last.bits} |"
    )


def main() -> None:
    """Build every choice, run them in turn, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "parameters")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_024, 4_734])
    parser.add_argument("--runs", type=int, default=5, help="proofs per choice; 0 builds only")
    parser.add_argument("--built", action="store_true", help="build only missing choices")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    of = subject("treatment")
    for rows in arguments.rows:
        circuit = Full().circuit(of.rules, HardenedPolicy(), rows_max=rows)
        request = Full().request(of.unseen.rows(0, rows), circuit, salt=SALT, context=CONTEXT)
        request_file(arguments.folder, rows).write_bytes(request)
    for choice in CHOICES:
        if not (arguments.built and program(choice, arguments.folder).exists()):
            console.print(f"building: {choice.name}", style="dim")
            build(choice, arguments.folder)
    if not arguments.runs:
        return
    page = HEAD.format(runs=arguments.runs, processors=os.cpu_count(), load=os.getloadavg()[0])
    for rows in arguments.rows:
        choices = [each for each in CHOICES if each.chains or rows <= 1 << LOG_ROWS]
        results: dict[str, list[Run]] = {choice.name: [] for choice in choices}
        for time in range(arguments.runs):
            console.print(f"{rows:,} rows: {time + 1} of {arguments.runs}", style="dim")
            for choice in choices:
                results[choice.name].append(run(proving(choice, arguments.folder, rows)))
        page += COLUMNS.format(rows=rows)
        for choice in choices:
            command = proving(choice, arguments.folder, rows)
            peak = run_measured(command, arguments.folder).peak_bytes
            page += row(choice, results[choice.name], results[CHOICES[0].name], peak) + "\n"
    page += STEPS.read_text(encoding="utf-8")
    with atomically(arguments.out) as draft:
        draft.write_text(page, encoding="utf-8")
    console.print(f"{arguments.out} written", markup=False)


if __name__ == "__main__":
    main()
