"""Runs the work of a store: gives tasks to workers and saves each result when it arrives."""

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

__all__ = ["Runner", "Silent", "Watcher"]

LEASE_S = 120.0
LISTEN_S = 1.0
ATTEMPTS = 3


class Watcher(Protocol):
    """Receives the progress of a run."""

    def seen(self, counts: Counts, at_work: Sequence[WorkClaim]) -> None:
        """Receive the counts and the claimed work, about once a second."""
        ...


class Silent:
    """Shows no progress."""

    def seen(self, counts: Counts, at_work: Sequence[WorkClaim]) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Distributes the work of one store to workers."""

    store: ResultStore
    owner: Owner
    made_by: Provenance
    engine: Engine
    watcher: Watcher
    lease_s: float = LEASE_S
    _deaths: Counter[str] = field(default_factory=Counter)  # of workers, by work id

    def run(self) -> Counts:
        """Run until all work is done or failed; release all claims at the end, also on an error."""
        claims: dict[int, WorkClaim] = {}
        layouts: dict[int, str] = {}
        renewed = time.monotonic()
        try:
            while True:
                for worker in range(self.engine.workers):
                    if worker not in claims and (claim := self._claim(layouts.get(worker))):
                        claims[worker], layouts[worker] = claim, claim.layout
                        self._give(worker, claim)
                counts = self.store.counts()
                self.watcher.seen(counts, tuple(claims.values()))
                if counts.over:
                    return counts
                for worker, reply in self.engine.wait(LISTEN_S):
                    if claim := claims.pop(worker, None):
                        self._save(claim, reply)
                if time.monotonic() - renewed > self.lease_s / 4:
                    self.store.renew(self.owner.name, now=time.time(), lease_s=self.lease_s)
                    renewed = time.monotonic()
        finally:
            self.engine.close()
            with contextlib.suppress(ResultsError):  # the leases end with this process anyway
                self.store.give_back(self.owner.name)

    def _claim(self, prefer: str | None) -> WorkClaim | None:
        return self.store.claim(
            self.owner.name, now=time.time(), lease_s=self.lease_s, prefer=prefer
        )

    def _give(self, worker: int, claim: WorkClaim) -> None:
        known = self.store.scores(claim.layout, claim.rule)
        self.engine.give(worker, WorkerTask(settings=claim.settings, known=known))

    def _save(self, claim: WorkClaim, reply: Reply) -> None:
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
