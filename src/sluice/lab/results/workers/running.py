"""Running a store: hands are given work until none is left, and what they make is kept at once."""

import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sluice.errors import ResultsError
from sluice.lab.results.owner import Owner
from sluice.lab.results.provenance import Provenance
from sluice.lab.results.store import ResultStore
from sluice.lab.results.work import Counts, WorkClaim
from sluice.lab.results.workers.pool import Died, Engine, Reply, Unable, WorkerTask

__all__ = ["Runner", "Watcher"]

LEASE_S = 120.0
LISTEN_S = 1.0
ATTEMPTS = 3


class Watcher(Protocol):
    """Whoever looks on."""

    def seen(self, counts: Counts, at_work: Sequence[WorkClaim]) -> None:
        """Hear how far it is, about once a second."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Gives out the work of one store."""

    store: ResultStore
    owner: Owner
    made_by: Provenance
    engine: Engine
    watcher: Watcher
    lease_s: float = LEASE_S
    _deaths: Counter[str] = field(default_factory=Counter)  # of hands, by the work they were at

    def run(self) -> Counts:
        """Run until all work is done or failed; on the way out nothing stays claimed."""
        held: dict[int, WorkClaim] = {}
        layouts: dict[int, str] = {}
        renewed = time.monotonic()
        try:
            while True:
                for worker in range(self.engine.workers):
                    if worker not in held and (claim := self._claim(layouts.get(worker))):
                        held[worker], layouts[worker] = claim, claim.layout
                        self._give(worker, claim)
                counts = self.store.counts()
                self.watcher.seen(counts, tuple(held.values()))
                if counts.over:
                    return counts
                for worker, reply in self.engine.wait(LISTEN_S):
                    if claim := held.pop(worker, None):
                        self._keep(claim, reply)
                if time.monotonic() - renewed > self.lease_s / 4:
                    self.store.renew(self.owner.name, now=time.time(), lease_s=self.lease_s)
                    renewed = time.monotonic()
        finally:
            self.engine.close()
            with contextlib.suppress(ResultsError):  # the leases end with this process in any case
                self.store.give_back(self.owner.name)

    def _claim(self, prefer: str | None) -> WorkClaim | None:
        return self.store.claim(
            self.owner.name, now=time.time(), lease_s=self.lease_s, prefer=prefer
        )

    def _give(self, worker: int, claim: WorkClaim) -> None:
        known = self.store.scores(claim.layout, claim.rule)
        self.engine.give(worker, WorkerTask(settings=claim.settings, known=known))

    def _keep(self, claim: WorkClaim, reply: Reply) -> None:
        match reply:
            case Died(reason=reason):
                self._deaths[claim.id] += 1
                if self._deaths[claim.id] < ATTEMPTS:
                    self.store.give_back(self.owner.name, claim)
                else:
                    self._fail(claim, f"{reason}, at each of {ATTEMPTS} attempts")
            case Unable(reason=reason):
                self._fail(claim, reason)
            case made:
                self.store.finish(
                    claim, self.owner.name, made, made_by=self.made_by, now=time.time()
                )

    def _fail(self, claim: WorkClaim, reason: str) -> None:
        self.store.fail(claim, self.owner.name, reason, made_by=self.made_by, now=time.time())
