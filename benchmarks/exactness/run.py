"""Test on thousands of random, edge and adversarial batches whether gate and circuit ever disagree.

Exits with 1 if they do. With `--minutes` the run stops in time and reports what it has done.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from benchmarks.exactness.check import (
    BATCHES,
    Drawn,
    Proven,
    Tally,
    check_case,
    check_chain,
    check_proof,
    check_shard,
)
from benchmarks.exactness.forgeries import ForgeryCounts, check_forgeries
from benchmarks.exactness.page import Run, page
from benchmarks.exactness.shards import PLANTS, absent
from sluice.files import atomically

AHEAD = 3  # queued tasks per worker
REPORT_EVERY = 200  # tasks between two lines of progress without a terminal

Answer = Tally | Proven | ForgeryCounts
Task = tuple[str, Callable[[], Answer]]  # what it counts towards, and the work


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Size of the run."""

    batches: int
    proofs: int
    chains: int
    shards: int
    seed: int

    def tasks(self) -> Iterator[Task]:
        """Yield all tasks, each sort spread over the whole run."""
        chosen = [
            (plant, index)
            for plant, source in PLANTS.items()
            for index in range(source.shards)
            if not absent(plant)
        ][: self.shards]
        shards: list[Task] = [
            (plant, partial(check, plant, index))
            for plant, index in chosen
            for check in (check_shard, check_forgeries)
        ]
        cases: list[Task] = [
            ("", partial(check_case, Drawn(seed=self.seed, index=index, batches=batches)))
            for index, batches in enumerate(_parts(self.batches))
        ]
        proofs: list[Task] = [
            ("proof", partial(check_proof, Drawn(seed=self.seed, index=index)))
            for index in range(self.proofs)
        ]
        chains: list[Task] = [
            ("chain", partial(check_chain, Drawn(seed=self.seed, index=index)))
            for index in range(self.chains)
        ]
        sorts = (shards, cases, proofs, chains)
        placed = [
            (at / len(tasks), task) for tasks in sorts for at, task in enumerate(tasks, start=1)
        ]
        yield from (task for _, task in sorted(placed, key=lambda each: each[0]))


def _parts(batches: int) -> list[int]:
    """Return how many batches each case makes."""
    return [min(BATCHES, batches - done) for done in range(0, batches, BATCHES)]


def answers(
    tasks: Iterator[Task], *, workers: int, seconds: float
) -> Iterator[tuple[str, Answer | BaseException]]:
    """Hand tasks to processes until all are done or time is up; yield what comes back."""
    began = time.monotonic()
    under_way: dict[Future[Answer], str] = {}
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        while True:
            if time.monotonic() - began < seconds:
                for name, work in islice(tasks, workers * AHEAD - len(under_way)):
                    under_way[pool.submit(work)] = name
            if not under_way:
                return
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                yield under_way.pop(future), future.exception() or future.result()


def run(effort: Effort, *, workers: int, seconds: float, console: Console) -> Run:
    """Run all checks and collect their results."""
    began = time.monotonic()
    tally, crashed = Tally(), []
    proven: dict[str, list[Proven]] = {}
    forged: dict[str, list[ForgeryCounts]] = {}
    tasks, total = effort.tasks(), sum(1 for _ in effort.tasks())
    with Progress(console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("gate and circuit", total=total)
        for done, (name, result) in enumerate(
            answers(tasks, workers=workers, seconds=seconds), start=1
        ):
            progress.advance(bar)
            if not console.is_terminal and done % REPORT_EVERY == 0:
                console.print(f"gate and circuit: {done:,} of {total:,} tasks")
            match result:
                case Tally():
                    tally.add(result)
                case Proven():
                    proven.setdefault(name, []).append(result)
                case ForgeryCounts():
                    forged.setdefault(name, []).append(result)
                case _:
                    crashed.append(f"{name or 'case'}: {result!r}")
    return Run(
        seed=effort.seed,
        tally=tally,
        proofs=tuple(proven.pop("proof", ())),
        chains=tuple(proven.pop("chain", ())),
        shards=tuple((plant, tuple(proven[plant])) for plant in PLANTS if plant in proven),
        forgeries=tuple((plant, tuple(forged[plant])) for plant in PLANTS if plant in forged),
        skipped=tuple(filter(None, (absent(plant) for plant in PLANTS))) if effort.shards else (),
        minutes=(time.monotonic() - began) / 60,
        cut_short=next(tasks, None) is not None,
        crashed=tuple(crashed),
    )


def payload(outcome: Run) -> dict[str, object]:
    """Return what `--json` prints."""
    tally = outcome.tally
    return {
        "seed": outcome.seed,
        "cases": tally.cases,
        "batches": sum(tally.verdicts.values()),
        "admitted": {kind: n for (kind, admitted), n in tally.verdicts.items() if admitted},
        "refused": {kind: n for (kind, admitted), n in tally.verdicts.items() if not admitted},
        "failed": dict(tally.failed),
        "alone": dict(tally.alone),
        "forced": tally.forced,
        "outside": tally.outside,
        "uncommitted": tally.uncommitted,
        "unstatable": dict(tally.unstatable),
        "proofs": len(outcome.proofs),
        "chains": len(outcome.chains),
        "shards": {plant: len(each) for plant, each in outcome.shards},
        "lies": sum(each.tried.total() for _, counts in outcome.forgeries for each in counts),
        "wrong": list(outcome.wrong),
        "cut_short": outcome.cut_short,
        "minutes": outcome.minutes,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="file to write the page to")
    parser.add_argument("--batches", type=int, default=101_000)
    parser.add_argument("--proofs", type=int, default=1_000)
    parser.add_argument("--chains", type=int, default=200, help="proofs in segments")
    parser.add_argument("--shards", type=int, default=100, help="honest shards at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="stop after so many minutes"
    )
    parser.add_argument("--json", action="store_true", help="also print the counts as JSON")
    return parser.parse_args()


def main() -> None:
    """Run, write the page, and exit with 1 on any error."""
    arguments = _arguments()
    console = Console(stderr=True)
    os.environ.setdefault("RAYON_NUM_THREADS", "1")  # each worker has a core
    effort = Effort(
        batches=arguments.batches,
        proofs=arguments.proofs,
        chains=arguments.chains,
        shards=arguments.shards,
        seed=arguments.seed,
    )
    outcome = run(
        effort, workers=arguments.workers, seconds=60 * arguments.minutes, console=console
    )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with atomically(arguments.out) as draft:
        draft.write_text(page(outcome), encoding="utf-8")
    if arguments.json:
        print(json.dumps(payload(outcome)))
    console.print(f"{arguments.out} written after {outcome.minutes:.1f} minutes")
    for each in outcome.wrong:
        console.print(each)
    sys.exit(1 if outcome.wrong else 0)


if __name__ == "__main__":
    main()
