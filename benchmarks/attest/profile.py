"""Where a prover's time goes: by phase, and as a flame graph.

The core's example program proves a batch under `perf`, which samples call stacks on all threads.
Writes one page of SVG for each number of rows, and prints a table of phases.
"""

import argparse
import html
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from benchmarks.attest.full import CONTEXT, SALT, subject
from sluice.admission import HardenedPolicy
from sluice.attestation.systems.full import Full
from sluice.errors import SettingError

ROOT = Path(__file__).parents[2]
SAMPLES_PER_SECOND = 199
SYMBOLIC = (
    "get_symbolic_constraints",
    "get_max_constraint",
    "get_log_num",
    "get_constraint_layout",
    "SymbolicExpr",
    "seam::read",
)
PHASES = (
    ("reading the statement", ("Circuit::new",)),
    ("degree and layout of constraints", (*SYMBOLIC, "proven_bits")),
    ("witness", ("witness::",)),
    ("verifying", ("::verify",)),
    ("hashing: trees and the proof of work", ("merkle_tree", "blake3", "hashing::", "serialize")),
    ("codewords", ("transform::Transform", "p3_dft")),
    ("quotient", ("prover::Steps", "::quotient", "FullAir as p3_air", "full::air")),
    ("openings", ("dot_product", "prover::batched", "transform::rows_at", "transform::remainders")),
    ("foldings", ("p3_fri",)),
)
OTHER = "other (copies, allocation, kernel)"
ROW_PX, WIDTH_PX = 16, 1_600
LOG_ROWS = 12  # of a segment, as in the product
console = Console(highlight=False)


@dataclass(slots=True)
class Node:
    """A function in a flame graph, with what it calls."""

    samples: int = 0
    calls: dict[str, "Node"] = field(default_factory=dict)


def stacks_of(script: str) -> list[tuple[str, ...]]:
    """Return the stacks in the output of `perf script`, the outermost function first."""
    stacks = []
    for sample in script.split("\n\n"):
        frames = [line.split(maxsplit=1)[1] for line in sample.splitlines()[1:] if line.strip()]
        names = tuple(frame.rsplit(" (", 1)[0].rsplit("+0x", 1)[0] for frame in reversed(frames))
        if names:
            stacks.append(names)
    return stacks


def phase_of(stack: Sequence[str]) -> str:
    """Return the phase that a stack belongs to: the first whose mark is on the stack."""
    joined = " ".join(stack)
    for name, marks in PHASES:
        if any(mark in joined for mark in marks):
            return name
    return OTHER


def flame_graph(stacks: Iterable[Sequence[str]]) -> str:
    """Return a flame graph as SVG: a bar is a function, as wide as its share of the samples."""
    root = Node()
    for stack in stacks:
        node = root
        node.samples += 1
        for name in stack:
            node = node.calls.setdefault(name, Node())
            node.samples += 1
    bars: list[str] = []
    deepest = _draw(root, 0.0, 0, root.samples, bars)
    height = (deepest + 1) * ROW_PX
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH_PX}" height="{height}" '
        f'font-family="monospace" font-size="11">{"".join(bars)}</svg>\n'
    )


def _draw(node: Node, left: float, depth: int, total: int, bars: list[str]) -> int:
    deepest = depth
    for name, called in sorted(node.calls.items()):
        width = WIDTH_PX * called.samples / total
        if width >= 1:
            label = html.escape(name)
            shown = html.escape(name[: int(width / 7)])
            bars.append(
                f"<g><title>{label}: {called.samples} of {total}</title>"
                f'<rect x="{left:.1f}" y="{depth * ROW_PX}" width="{width:.1f}" '
                f'height="{ROW_PX - 1}" fill="hsl({20 + len(name) % 30},80%,65%)"/>'
                f'<text x="{left + 2:.1f}" y="{depth * ROW_PX + 11}">{shown}</text></g>'
            )
            deepest = max(deepest, _draw(called, left, depth + 1, total, bars))
        left += width
    return deepest


def main() -> None:
    """Profile a prover at each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_024, 4_734])
    parser.add_argument("--out", type=Path, default=Path("build/profile"))
    arguments = parser.parse_args()
    if not shutil.which("perf"):
        raise SettingError("the profile needs the program perf")
    arguments.out.mkdir(parents=True, exist_ok=True)
    command = ["cargo", "build", "--release", "--locked", "-p", "attest-core", "--example", "prove"]
    subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - our own core
    of = subject("treatment")
    for rows in arguments.rows:
        circuit = Full().circuit(of.rules, HardenedPolicy(), rows_max=rows)
        request = Full().request(of.unseen.rows(0, rows), circuit, salt=SALT, context=CONTEXT)
        profile(rows, request, arguments.out)


def profile(rows: int, request: bytes, out: Path) -> None:
    """Prove once under perf; print the phases and write the flame graph."""
    asked, found = out / f"{rows}.request", out / f"{rows}.perf"
    asked.write_bytes(request)
    program = ROOT / "target" / "release" / "examples" / "prove"
    recording = ["perf", "record", "-q", "-F", str(SAMPLES_PER_SECOND), "--call-graph",
                 "dwarf,16384", "-o", str(found), str(program), str(asked), "1",
                 str(LOG_ROWS if rows > 1 << LOG_ROWS else 0)]  # fmt: skip
    subprocess.run(recording, check=True, stdout=subprocess.PIPE)  # noqa: S603 - our own program
    reading = ["perf", "script", "-i", str(found)]
    script = subprocess.run(reading, check=True, capture_output=True, text=True)  # noqa: S603 - as above
    stacks = stacks_of(script.stdout)
    asked.unlink()
    found.unlink()
    (out / f"{rows}.svg").write_text(flame_graph(stacks))
    counts = Counter(map(phase_of, stacks))
    console.print(f"{rows:,} rows: {len(stacks):,} samples, {SAMPLES_PER_SECOND} a second")
    for name, count in counts.most_common():
        console.print(f"  {count / len(stacks):6.1%}  {count / SAMPLES_PER_SECOND:6.2f} s  {name}")
    console.print(f"  flame graph: {out / f'{rows}.svg'}")


if __name__ == "__main__":
    main()
