"""The workbench: one worker's way from a piece of work to what it comes to.

It keeps at hand what the next piece is likely to need: the record, the scenario of the seed, what
its clients bring. What is slow to make it shares with other workers, and with those after them,
through the shelf.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sluice.admission import Gate, HardenedPolicy, PaperPolicy
from sluice.invariants import Profile, RuleSet
from sluice.invariants.mining import mine
from sluice.lab.grids.plants import site_scenario
from sluice.lab.grids.sources import Opened, RecordSource, opened
from sluice.lab.grids.work import Work, WorkLayout, work_from_json
from sluice.lab.results import Made, Score
from sluice.lab.results.workers import WorkerTask
from sluice.lab.trials import (
    MODES,
    ArtifactCache,
    Contributions,
    NamedGate,
    Scenario,
    Trial,
    TrialPlan,
    result_of,
    scenario,
    score_of,
)
from sluice.telemetry import Record

__all__ = ["LabBench", "Workbench"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Laid:
    """A layout that is at hand."""

    layout: WorkLayout
    shared: Scenario
    brought: Contributions
    trials: dict[str | None, Trial] = field(default_factory=dict)


class Workbench:
    """Does one piece of work after the other, and quickest those of one layout in a row."""

    def __init__(self, *, cache: ArtifactCache | None = None) -> None:
        self._cache = cache
        self._record: tuple[RecordSource, Opened] | None = None
        self._laid: _Laid | None = None

    def work(self, work: Work, known: Mapping[str, Score]) -> Made:
        """Run a federation, or recall the equal one that has run before."""
        begun = time.monotonic()
        laid = self._lay(work.layout)
        trial = self._trial(laid, work.invariants)
        plan = trial.plan(MODES[work.mode], work.attack)
        federation = _federation(work, plan)
        score = known.get(federation)
        recalled = score is not None
        if score is None:
            unlabelled = work.layout.record.unlabelled
            score = score_of(trial.run(plan, work.rule), trial, unlabelled=unlabelled)
        return Made(
            result=result_of(trial, plan, work.rule, score),
            federation=federation,
            recalled=recalled,
            wall_s=time.monotonic() - begun,
        )

    def _lay(self, layout: WorkLayout) -> _Laid:
        if self._laid is None or self._laid.layout.id != layout.id:
            self._laid = None  # before the next one is made: two may not fit
            shared = self.shared(layout)
            own = self.gate(layout, shared, Profile.HARDENED.value) if layout.screened else None
            brought = Contributions(shared, own=own.gate if own else None, cache=self._cache)
            self._laid = _Laid(layout=layout, shared=shared, brought=brought)
        return self._laid

    def shared(self, layout: WorkLayout) -> Scenario:
        """Return the scenario of a layout: one record shared out, or a plant a client."""
        if layout.record.sites:
            return site_scenario(setup=layout.setup, seed=layout.seed)
        records = self._open(layout.record)
        return scenario(records.clean, records.test, setup=layout.setup, seed=layout.seed)

    def _open(self, source: RecordSource) -> Opened:
        if self._record is None or self._record[0] != source:
            self._record = None
            self._record = (source, opened(source, cache=self._cache))
        return self._record[1]

    def _trial(self, laid: _Laid, invariants: str | None) -> Trial:
        if invariants not in laid.trials:
            gate = self.gate(laid.layout, laid.shared, invariants) if invariants else None
            laid.trials[invariants] = Trial(contributions=laid.brought, gate=gate)
        return laid.trials[invariants]

    def gate(self, layout: WorkLayout, shared: Scenario, invariants: str) -> NamedGate:
        """Return the gate by a rule set of the layout's own first slices."""
        profile = Profile(invariants)
        policy = HardenedPolicy() if profile is Profile.HARDENED else PaperPolicy()
        ruleset = self._mined(layout, shared, profile)
        return NamedGate(name=invariants, gate=Gate.of(ruleset, policy))

    def _mined(self, layout: WorkLayout, shared: Scenario, profile: Profile) -> RuleSet:
        """Mine the rules, or take those that were mined from the same rows by the same code."""

        def make() -> RuleSet:
            if layout.record.sites and profile is Profile.PAPER_EXPERT:
                return _exact(shared.parts.calibration)
            return mine(shared.parts.fit, shared.parts.calibration, profile=profile)

        if self._cache is None:
            return make()
        source = layout.record
        told = (source.content, source.sites, source.every, source.skip_s, profile.value)
        return self._cache.rules(told, make)


def _exact(clean: Record) -> RuleSet:
    from sluice.lab.expert_rules import line_rules  # noqa: PLC0415 - numba loads slowly

    return line_rules(clean)


def _federation(work: Work, plan: TrialPlan) -> str:
    """Name a federation by its layout, its rule and the very windows its clients train on."""
    told = f"{work.layout.id} {work.rule} {plan.key}"
    return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabBench:
    """The bench of a real grid."""

    kept: Path  # the folder of the shelf
    code: str

    def __call__(self) -> Callable[[WorkerTask], Made]:
        """Set up a workbench."""
        bench = Workbench(cache=ArtifactCache(folder=self.kept, code=self.code))
        return lambda task: bench.work(work_from_json(task.settings), task.known)
