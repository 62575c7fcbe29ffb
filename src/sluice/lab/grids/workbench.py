"""The workbench: runs pieces of work in one worker.

It keeps in memory what the next piece is likely to need: the record, the scenario of the seed and
the contributions of its clients. The artifact cache shares the results of slow steps with other
workers and with later runs.
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
    content_of,
    result_of,
    scenario,
    score_of,
)
from sluice.telemetry import Record

__all__ = ["LabBench", "Workbench"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LoadedLayout:
    """A layout in memory."""

    layout: WorkLayout
    scenario: Scenario
    measured_on: str  # a digest of what the scenario does not train on but depends on
    contributions: Contributions
    trials: dict[str | None, Trial] = field(default_factory=dict)


class Workbench:
    """Runs pieces of work one after another; consecutive pieces of one layout run fastest."""

    def __init__(self, *, cache: ArtifactCache | None = None) -> None:
        self._cache = cache
        self._record: tuple[RecordSource, Opened] | None = None
        self._loaded: _LoadedLayout | None = None

    def work(self, work: Work, known: Mapping[str, Score]) -> Made:
        """Run a federation, or take its score from `known` if an equal one has run before."""
        begun = time.monotonic()
        loaded = self._load(work.layout)
        trial = self._trial(loaded, work.invariants)
        plan = trial.plan(MODES[work.mode], work.attack)
        federation = _federation(work, plan, loaded)
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

    def _load(self, layout: WorkLayout) -> _LoadedLayout:
        if self._loaded is None or self._loaded.layout.id != layout.id:
            self._loaded = None  # frees the memory first: two layouts may not fit
            shared = self.shared(layout)
            own = None
            if layout.screened:
                own = self.gate(layout, shared, Profile.HARDENED.value).gate
                shared = shared.tied(own.rules)
            contributions = Contributions(shared, own=own, cache=self._cache)
            self._loaded = _LoadedLayout(
                layout=layout,
                scenario=shared,
                measured_on=_measured_on(shared),
                contributions=contributions,
            )
        return self._loaded

    def shared(self, layout: WorkLayout) -> Scenario:
        """Return the scenario of a layout: a record split among clients, or a plant per client."""
        if layout.record.sites:
            return site_scenario(setup=layout.setup, seed=layout.seed)
        records = self._open(layout.record)
        return scenario(records.clean, records.test, setup=layout.setup, seed=layout.seed)

    def _open(self, source: RecordSource) -> Opened:
        if self._record is None or self._record[0] != source:
            self._record = None
            self._record = (source, opened(source, cache=self._cache))
        return self._record[1]

    def _trial(self, loaded: _LoadedLayout, invariants: str | None) -> Trial:
        if invariants not in loaded.trials:
            gate = self.gate(loaded.layout, loaded.scenario, invariants) if invariants else None
            loaded.trials[invariants] = Trial(contributions=loaded.contributions, gate=gate)
        return loaded.trials[invariants]

    def gate(self, layout: WorkLayout, shared: Scenario, invariants: str) -> NamedGate:
        """Return the gate with the rules mined from the layout's fit and calibration slices."""
        profile = Profile(invariants)
        policy = HardenedPolicy() if profile is Profile.HARDENED else PaperPolicy()
        ruleset = self._mined(layout, shared, profile)
        return NamedGate(name=invariants, gate=Gate.of(ruleset, policy))

    def _mined(self, layout: WorkLayout, shared: Scenario, profile: Profile) -> RuleSet:
        """Mine the rules, or read them from the cache if the same code mined the same rows."""

        def make() -> RuleSet:
            if layout.record.sites and profile is Profile.PAPER_EXPERT:
                return _expert_rules(shared.parts.calibration)
            return mine(shared.parts.fit, shared.parts.calibration, profile=profile)

        if self._cache is None:
            return make()
        source = layout.record
        key = (source.content, source.sites, source.every, source.skip_s, profile.value)
        return self._cache.rules(key, make)


def _expert_rules(clean: Record) -> RuleSet:
    from sluice.lab.expert_rules import line_rules  # noqa: PLC0415 - numba loads slowly

    return line_rules(clean)


def _measured_on(shared: Scenario) -> str:
    """Return a digest of the rows that set the threshold, of the server's, and of the test rows."""
    digest = hashlib.blake2b(shared.targets.rows.tobytes(), digest_size=16)
    for record in (shared.parts.validation, shared.parts.root, shared.test):
        digest.update(content_of(record).encode())
    return digest.hexdigest()


def _federation(work: Work, plan: TrialPlan, loaded: _LoadedLayout) -> str:
    """Return a digest of everything that a score depends on, besides the code.

    It covers the rows themselves: the score of another run is taken only if every client brings
    the same windows, and the detector is measured on the same rows.
    """
    content = f"{work.layout.id} {loaded.measured_on} {work.rule} {plan.key}"
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class LabBench:
    """Creates the workbench of a worker process."""

    kept: Path  # the folder of the artifact cache
    code: str

    def __call__(self) -> Callable[[WorkerTask], Made]:
        """Create a workbench and return the function that runs one task on it."""
        bench = Workbench(cache=ArtifactCache(folder=self.kept, code=self.code))
        return lambda task: bench.work(work_from_json(task.settings), task.known)
