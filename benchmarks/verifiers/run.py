"""Show both verifiers of `full` proofs random circuits, valid proofs and changed ones.

Exits with 1 if they disagree on any.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.verifiers.compare import (
    ACCEPTED,
    Answer,
    changed_bound,
    changed_claim,
    changed_hidden,
    drawn_circuit,
    drawn_proof,
)
from sluice.files import atomically

__all__ = ["Outcome", "main", "page"]

TEXT = """# Agreement of the two verifiers

Written by `make verifiers` (`python -m benchmarks verifiers`); do not edit. [The second
verifier](../how-to/check-a-proof-twice.md) is written in Python alone. Circuits, proofs and changes
are drawn from named random streams.

**{circuits:,} random circuits, {proofs:,} valid proofs and {changed:,} changed ones (seed {seed}):
{wrong} disagreements.**

- Both compute the same identity of {same:,} of {circuits:,} circuits of random plants and rules.
  The identity contains the value of all constraints at a random point.
- Both accept {valid:,} of {proofs:,} valid proofs of random circuits.
- Both refuse {refused:,} of {changed:,} changed proofs or claims, and accept {accepted:,}. (A
  budget above what there is to count has no effect: only claims with such a change may be
  accepted.) They name the same step for {steps:,} of the refused ones.
- The second verifier takes {median:.1f} s for a valid proof (median; {least:.1f} to {most:.1f}),
  and the core {core:.0f} ms, with the circuit. Other work ran on the machine.

| changed | cases | refused by both | accepted by both | disagreements |
| --- | --- | --- | --- | --- |
{table}

*Bytes*: the proof is flipped, cut, moved, overwritten, or spliced with another proof of the same
batch. *Part*: one value of a proof is changed, or one list is dropped, doubled, emptied or
reversed; the proof stays well formed. *Claim*: the proof stays as it is, and one number of the
statement or the budgets, the rows, or a bit of the commitment or of the context is changed. *With a
statistic*: the proof binds a statistic to the rows. A bit of it is changed, or it is that of
another batch; where that batch has the same statistic, the proof is shown as it is (*valid*). *Of
hidden sums*: the same with a sealed statistic; *totals* are the masked forms that the proof begins
with.

The run took {minutes:.0f} minutes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Everything that was asked."""

    circuits: list[Answer]
    proofs: list[Answer]
    changed: list[Answer]
    seed: int
    minutes: float

    @property
    def wrong(self) -> list[str]:
        """Every disagreement, and every valid proof that is refused."""
        wrong = [f"circuit: {each}" for each in self.circuits if each.core != each.reference]
        wrong += [f"proof: {each}" for each in (*self.proofs, *self.changed) if not each.agree]
        return wrong + [f"refused: {each}" for each in self.proofs if each.core != ACCEPTED]


def answers(
    ask: Callable[[int, int], Answer], *, seed: int, count: int, workers: int
) -> list[Answer]:
    """Ask so many questions, on so many processes."""
    if workers == 1:
        return [ask(seed, index) for index in range(count)]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
        return list(pool.map(partial(ask, seed), range(count), chunksize=8))


def page(found: Outcome) -> str:
    """Return the page of docs/results."""
    circuits, proofs, changed = found.circuits, found.proofs, found.changed
    refused = [each for each in changed if ACCEPTED not in (each.core, each.reference)]
    steps = sum(each.core == each.reference for each in refused)
    took = [each.reference_s for each in proofs]
    core_ms = statistics.median(each.core_s for each in proofs) * 1e3
    rows = []
    for kind in sorted({each.kind for each in changed}):
        mine = [each for each in changed if each.kind == kind]
        both, disagree = _both(mine), sum(not each.agree for each in mine)
        rows.append(
            f"| {kind} | {len(mine)} | {len(mine) - both - disagree} | {both} | {disagree} |"
        )
    return TEXT.format(
        circuits=len(circuits),
        proofs=len(proofs),
        changed=len(changed),
        seed=found.seed,
        wrong=len(found.wrong),
        same=sum(each.core == each.reference for each in circuits),
        valid=_both(proofs),
        refused=len(refused),
        accepted=_both(changed),
        steps=steps,
        median=statistics.median(took),
        least=min(took),
        most=max(took),
        core=core_ms,
        table="\n".join(rows),
        minutes=found.minutes,
    )


def _both(asked: list[Answer]) -> int:
    return sum(each.core == each.reference == ACCEPTED for each in asked)


def main() -> None:
    """Run, write the page, and exit with 1 on any disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, help="file to write the page to")
    parser.add_argument("--circuits", type=int, default=500)
    parser.add_argument("--proofs", type=int, default=50)
    parser.add_argument("--changed", type=int, default=1_000)
    parser.add_argument("--bound", type=int, default=200, help="changed proofs with a statistic")
    parser.add_argument("--hidden", type=int, default=200, help="changed proofs of hidden sums")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="also print the counts as JSON")
    arguments = parser.parse_args()
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    console, started = Console(stderr=True), time.monotonic()
    found = []
    for ask, count in (
        (drawn_circuit, arguments.circuits),
        (drawn_proof, arguments.proofs),
        (changed_claim, arguments.changed),
        (changed_bound, arguments.bound),
        (changed_hidden, arguments.hidden),
    ):
        found.append(answers(ask, seed=arguments.seed, count=count, workers=arguments.workers))
        console.print(f"{ask.__name__}: {count:,} done")
    circuits, proofs, changed, bound, hidden = found
    changed += [replace(each, kind=f"with a statistic, {each.kind}") for each in bound]
    changed += [replace(each, kind=f"of hidden sums, {each.kind}") for each in hidden]
    outcome = Outcome(
        circuits=circuits,
        proofs=proofs,
        changed=changed,
        seed=arguments.seed,
        minutes=(time.monotonic() - started) / 60,
    )
    if arguments.out:
        with atomically(arguments.out) as draft:
            draft.write_text(page(outcome), encoding="utf-8")
    if arguments.json:
        counts = {"circuits": len(circuits), "proofs": len(proofs), "changed": len(changed)}
        print(json.dumps({**counts, "wrong": outcome.wrong, "minutes": outcome.minutes}))
    for each in outcome.wrong:
        console.print(each)
    sys.exit(1 if outcome.wrong else 0)


if __name__ == "__main__":
    main()
