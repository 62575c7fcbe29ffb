"""Run the paper's experiment on two plants and write the results.

The score of each federation is stored as soon as it has run, so a stopped run continues where it
stopped. Each worker process runs one seed at a time on its own core.
"""

import argparse
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path

from rich.console import Console

from benchmarks.evidence.page import page
from benchmarks.evidence.store import Scores, StoredCell, load_cells, save_cells
from benchmarks.evidence.study import STUDIES, cells
from sluice.admission import EmptyRulesWarning
from sluice.files import atomically
from sluice.lab.trials import run_cell

console = Console(stderr=True, highlight=False)


def take_core(free: "Queue[int]") -> None:
    """Pin this process, and the threads that jax starts in it, to a core of its own."""
    os.sched_setaffinity(0, {free.get()})


def run_seed(name: str, seed: int, folder: Path) -> int:
    """Run every cell of one seed that is not stored yet; return the number of federations run."""
    warnings.simplefilter("ignore", EmptyRulesWarning)  # the ranges gate is only a baseline
    done = folder / f"{name}-{seed:02d}.json"
    if done.exists():
        return 0
    scores = Scores(folder / f"{name}-{seed:02d}.scores.jsonl")
    study = STUDIES[name]()
    results = []
    for cell in cells(study, seed):
        for rule in cell.rules:
            result = run_cell(cell.trial, cell.plan, rule, memory=scores)
            results.append(StoredCell(gate=cell.gate, result=result))
    save_cells(done, results)
    return scores.added


def main() -> None:
    """Run the missing seeds, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/evidence.md"))
    parser.add_argument("--folder", type=Path, default=Path("evidence"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seeds", type=int, help="number of seeds; default: that of each study")
    parser.add_argument("--only", choices=sorted(STUDIES), help="run one study only")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    wanted = [
        (name, seed)
        for name, study in STUDIES.items()
        if arguments.only in (None, name)
        for seed in range(arguments.seeds or study().seeds)
    ]
    begun = time.monotonic()
    context = get_context("spawn")
    free = context.Queue()
    for core in sorted(os.sched_getaffinity(0))[: arguments.workers]:
        free.put(core)
    with ProcessPoolExecutor(
        free.qsize(), mp_context=context, initializer=take_core, initargs=(free,)
    ) as pool:
        running = {
            pool.submit(run_seed, n, seed, arguments.folder): (n, seed) for n, seed in wanted
        }
        failed = 0
        for at, future in enumerate(as_completed(running), start=1):
            name, seed = running[future]
            if problem := future.exception():
                failed += 1
                console.print(f"{name} seed {seed} failed: {problem!r}")
                continue
            console.print(
                f"{name} seed {seed}: {future.result()} federations; {at} of {len(wanted)} seeds "
                f"after {(time.monotonic() - begun) / 60:.1f} min"
            )
    if failed:
        console.print(f"{failed} of {len(wanted)} seeds failed; no page was written; run it again")
        raise SystemExit(1)
    stored = {
        name: [
            cell
            for study, seed in wanted
            if study == name
            for cell in load_cells(arguments.folder / f"{name}-{seed:02d}.json")
        ]
        for name in dict.fromkeys(name for name, _ in wanted)
    }
    with atomically(arguments.out) as draft:
        draft.write_text(page(stored), encoding="utf-8")


if __name__ == "__main__":
    main()
