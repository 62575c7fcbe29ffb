"""Run the paper's experiment anew on two plants and write what it says, whichever way it falls.

Every federation is kept as soon as it has run; a run that was stopped goes on where it was. Two
processes take a core and a seed each.
"""

import argparse
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path

from evidence_page import page
from evidence_store import Kept, Scores, load_kept, save_kept
from evidence_study import STUDIES, cells
from rich.console import Console

from sluice.admission import EmptyRulesWarning
from sluice.files import atomically
from sluice.lab.cell import run_cell

said = Console(stderr=True, highlight=False)


def take_core(free: "Queue[int]") -> None:
    """Keep this process, and the threads jax will start in it, on a core of its own."""
    os.sched_setaffinity(0, {free.get()})


def run_seed(name: str, seed: int, folder: Path) -> int:
    """Run every cell of one seed that is not kept yet; return how many federations that took."""
    warnings.simplefilter("ignore", EmptyRulesWarning)  # the ranges are there to be compared with
    done = folder / f"{name}-{seed:02d}.json"
    if done.exists():
        return 0
    scores = Scores(folder / f"{name}-{seed:02d}.scores.jsonl")
    study = STUDIES[name]()
    kept = []
    for cell in cells(study, seed):
        for rule in cell.rules:
            result = run_cell(cell.trial, cell.plan, rule, memory=scores)
            kept.append(Kept(gate=cell.gate, result=result))
    save_kept(done, kept)
    return scores.noted


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/evidence.md"))
    parser.add_argument("--folder", type=Path, default=Path("evidence"))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seeds", type=int, help="fewer seeds than the studies take")
    parser.add_argument("--only", choices=sorted(STUDIES), help="one study alone")
    told = parser.parse_args()
    told.folder.mkdir(parents=True, exist_ok=True)
    wanted = [
        (name, seed)
        for name, study in STUDIES.items()
        if told.only in (None, name)
        for seed in range(told.seeds or study().seeds)
    ]
    begun = time.monotonic()
    context = get_context("spawn")
    free = context.Queue()
    for core in sorted(os.sched_getaffinity(0))[: told.workers]:
        free.put(core)
    with ProcessPoolExecutor(
        free.qsize(), mp_context=context, initializer=take_core, initargs=(free,)
    ) as pool:
        running = {pool.submit(run_seed, n, seed, told.folder): (n, seed) for n, seed in wanted}
        failed = 0
        for at, future in enumerate(as_completed(running), start=1):
            name, seed = running[future]
            if problem := future.exception():
                failed += 1
                said.print(f"{name} seed {seed} failed: {problem!r}")
                continue
            said.print(
                f"{name} seed {seed}: {future.result()} federations; {at} of {len(wanted)} seeds "
                f"after {(time.monotonic() - begun) / 60:.1f} min"
            )
    if failed:
        said.print(f"{failed} of {len(wanted)} seeds failed, so there is no page; run it again")
        raise SystemExit(1)
    kept = {
        name: [
            one
            for study, seed in wanted
            if study == name
            for one in load_kept(told.folder / f"{name}-{seed:02d}.json")
        ]
        for name in dict.fromkeys(name for name, _ in wanted)
    }
    with atomically(told.out) as draft:
        draft.write_text(page(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
