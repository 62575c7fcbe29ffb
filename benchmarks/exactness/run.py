"""Whether gate and circuit ever disagree: random, edge and adversarial batches by the thousand.

Exits with 1 where they do. With `--minutes` the run ends in time and says what it got through.
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
    check_proof,
    check_shard,
)
from benchmarks.exactness.forgeries import Lied, check_lies
from benchmarks.exactness.page import Run, page
from benchmarks.exactness.shards import PLANTS, absent
from sluice.files import atomically

AHEAD = 3  # tasks that wait for each worker
TELL = 200  # tasks between two lines of progress where there is no terminal

Answer = Tally | Proven | Lied
Task = tuple[str, Callable[[], Answer]]  # what it counts towards, and the work


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is asked."""

    batches: int
    proofs: int
    shards: int
    seed: int

    def tasks(self) -> Iterator[Task]:
        """Yield all tasks, each sort spread over the whole run."""
        held = [
            (plant, index)
            for plant, found in PLANTS.items()
            for index in range(found.shards)
            if not absent(plant)
        ][: self.shards]
        shards: list[Task] = [
            (plant, partial(check, plant, index))
            for plant, index in held
            for check in (check_shard, check_lies)
        ]
        cases: list[Task] = [
            ("", partial(check_case, Drawn(seed=self.seed, index=index, batches=batches)))
            for index, batches in enumerate(_parts(self.batches))
        ]
        proofs: list[Task] = [
            ("proof", partial(check_proof, Drawn(seed=self.seed, index=index)))
            for index in range(self.proofs)
        ]
        sorts = (shards, cases, proofs)
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
    """Ask gate and circuit, and gather what they answer."""
    began = time.monotonic()
    tally, crashed = Tally(), []
    proven: dict[str, list[Proven]] = {}
    lied: dict[str, list[Lied]] = {}
    tasks, total = effort.tasks(), sum(1 for _ in effort.tasks())
    with Progress(console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("gate and circuit", total=total)
        for done, (name, found) in enumerate(
            answers(tasks, workers=workers, seconds=seconds), start=1
        ):
            progress.advance(bar)
            if not console.is_terminal and done % TELL == 0:
                console.print(f"gate and circuit: {done:,} of {total:,} tasks")
            match found:
                case Tally():
                    tally.add(found)
                case Proven():
                    proven.setdefault(name, []).append(found)
                case Lied():
                    lied.setdefault(name, []).append(found)
                case _:
                    crashed.append(f"{name or 'case'}: {found!r}")
    return Run(
        seed=effort.seed,
        tally=tally,
        proofs=tuple(proven.pop("proof", ())),
        shards=tuple((plant, tuple(proven[plant])) for plant in PLANTS if plant in proven),
        lies=tuple((plant, tuple(lied[plant])) for plant in PLANTS if plant in lied),
        skipped=tuple(filter(None, (absent(plant) for plant in PLANTS))) if effort.shards else (),
        minutes=(time.monotonic() - began) / 60,
        cut_short=next(tasks, None) is not None,
        crashed=tuple(crashed),
    )


def payload(found: Run) -> dict[str, object]:
    """Return what `--json` prints."""
    tally = found.tally
    return {
        "seed": found.seed,
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
        "proofs": len(found.proofs),
        "shards": {plant: len(each) for plant, each in found.shards},
        "lies": sum(each.told.total() for _, lied in found.lies for each in lied),
        "wrong": list(found.wrong),
        "cut_short": found.cut_short,
        "minutes": found.minutes,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="where the page is written")
    parser.add_argument("--batches", type=int, default=101_000)
    parser.add_argument("--proofs", type=int, default=1_000)
    parser.add_argument("--shards", type=int, default=100, help="honest shards, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop in time")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    return parser.parse_args()


def main() -> None:
    """Run, write the page, and fail where anything is wrong."""
    arguments = _arguments()
    console = Console(stderr=True)
    os.environ.setdefault("RAYON_NUM_THREADS", "1")  # each worker has a core
    effort = Effort(
        batches=arguments.batches,
        proofs=arguments.proofs,
        shards=arguments.shards,
        seed=arguments.seed,
    )
    found = run(effort, workers=arguments.workers, seconds=60 * arguments.minutes, console=console)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with atomically(arguments.out) as draft:
        draft.write_text(page(found), encoding="utf-8")
    if arguments.json:
        print(json.dumps(payload(found)))
    console.print(f"{arguments.out} written after {found.minutes:.1f} minutes")
    for each in found.wrong:
        console.print(each)
    sys.exit(1 if found.wrong else 0)


if __name__ == "__main__":
    main()
