"""A program that runs a store of make-believe work with real processes, for tests that kill it.

fake_grid.py RESULTS make "ok ok bug ..."    then    fake_grid.py RESULTS resume
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sluice.errors import SettingError
from sluice.lab.results.cell import Asked, CellResult, Score
from sluice.lab.results.export import export
from sluice.lab.results.owner import Owner
from sluice.lab.results.provenance import Provenance
from sluice.lab.results.store import ResultStore
from sluice.lab.results.work import Counts, GridFacts, Made, WorkClaim, WorkRow
from sluice.lab.results.workers.local import LocalPool
from sluice.lab.results.workers.on_ray import RayPool
from sluice.lab.results.workers.pool import Engine, WorkerTask
from sluice.lab.results.workers.running import Runner

LASTING_S = 0.05
MAKER = Provenance(version="1", commit="c", code="k", environment="e")


class FakeBench:
    """Notes that it began, takes its time, and does as the work's settings say."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __call__(self) -> Callable[[WorkerTask], Made]:
        return self.work

    def work(self, task: WorkerTask) -> Made:
        at, what = task.settings.split()
        with self.log.open("a") as log:
            log.write(f"{at}\n")
        time.sleep(LASTING_S)
        first = self.log.read_text().split().count(at) == 1
        if what == "die" or (what == "die-once" and first):
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "unable":
            raise SettingError("the record is too short")
        if what == "bug":
            raise ZeroDivisionError("by zero")
        return made(int(at))


def made(at: int) -> Made:
    score = Score(
        targeted_recall=at / 7,
        untargeted_recall=None,
        targeted_auc_pr=None,
        precision=None,
        recall=0.0,
        f1=0.0,
        auc_pr=0.0,
        oracle_best_f1=0.0,
        detected_attacks=0.0,
        attacks=0,
        median_delay_s=None,
        false_alarms_per_day=None,
        etaf1=0.0,
        influence={},
        passed={},
    )
    result = CellResult(
        mode="clean",
        attack=None,
        rule="fedavg",
        seed=at,
        admitted=(),
        refused={},
        liars=(),
        score=score,
    )
    return Made(result=result, federation=f"f{at}", recalled=False, wall_s=time.time())


def work_row(at: int, what: str) -> WorkRow:
    asked = Asked(
        study="fake",
        record="none",
        stand_in=None,
        clients=1,
        liars=0,
        rule="fedavg",
        attack=None,
        mode="clean",
        invariants=None,
        seed=at,
    )
    return WorkRow(
        id=f"w{at}",
        layout=f"l{at // 5}",
        rule="fedavg",
        settings=f"{at} {what}",
        cells=((at, asked),),
    )


class Unseen:
    def seen(self, counts: Counts, at_work: Sequence[WorkClaim]) -> None:
        pass


def main(folder: Path, what: str, told: str = "", engine: str = "local") -> None:
    if what == "make":
        works = [work_row(at, kind) for at, kind in enumerate(told.split())]
        store = ResultStore.create(folder, GridFacts(name="fake", stand_ins=()), works)
    else:
        store = ResultStore(folder)
        store.release_the_dead()
    with Owner(folder) as owner:
        bench = FakeBench(folder / "log")
        workers: Engine = (
            RayPool(2, bench=bench)
            if engine == "ray"
            else LocalPool(2, lock=owner.path, bench=bench)
        )
        Runner(store=store, owner=owner, made_by=MAKER, engine=workers, watcher=Unseen()).run()
    export(store, folder)
    store.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
