"""The plants of the evidence, the cells run on each, and the gates they are run against."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sluice.admission import Gate, HardenedPolicy, PaperPolicy
from sluice.detector import Descent
from sluice.invariants import Kind, Profile, RuleSet, mine
from sluice.lab import MODES, Adversary, Mode, Roster, Scenario, Setup, scenario
from sluice.lab.contributions import Contributions, NamedGate
from sluice.lab.trial import Plan, Trial
from sluice.plants import simulate
from sluice.telemetry import Record, read_record

RULES = ("fedavg", "median", "trimmed-mean", "krum", "norm-clipping", "fltrust", "foolsgold")
HEEDLESS = ("replay", "channel-roll")
ADAPTIVE = ("replay", "feasible", "attest-clean")
"""What liars do who know the gate: they project the replay onto its rules, or better."""
REFERENCES = ("clean", "honest-only", "local-only", "centralised")
GATES = ("ranges", "paper", "hardened")
TWO_RULES = ("fedavg", "median")

GUARDED = Mode(name="guarded", adversary=Adversary.PLAIN, gated=True, roster=Roster.ALL)
"""The gate against liars who do not know it, which the paper's five modes leave out."""

DESCENT = Descent(batch=128)
"""What every cell of the paper's code ran with; at the 1,024 of its text a BATADAL shard is less
than one batch, and 50 steps leave a detector that has learnt too little to be poisoned."""

START_UP_S = 21_600
EVERY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One plant: its clean record, its labelled one, and how many seeds."""

    name: str
    clean: Record
    test: Record
    setup: Setup
    seeds: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """A plan with the gate it belongs to; references belong to none."""

    gate: str
    trial: Trial
    plan: Plan

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules it is run under: all, but where there is only something to compare with."""
        if self.plan.mode.name in ("local-only", "centralised"):
            return ("fedavg",)  # alone or pooled there is nothing to aggregate
        if self.gate == "ranges" or (self.gate, self.plan.attack) == ("paper", "feasible"):
            return TWO_RULES
        return RULES


def data_folder() -> Path:
    """Return where the plant records are."""
    told = os.environ.get("SLUICE_DATA")
    return Path(told) if told else Path(__file__).parents[2] / "shared" / "data"


def batadal() -> Study:
    """A year of C-Town, hourly: five plants, two of whom lie."""
    folder = data_folder() / "batadal"
    return Study(
        name="BATADAL",
        clean=read_record(folder / "dataset03.csv"),
        test=read_record(folder / "dataset04_full_labels.csv"),
        setup=Setup(clients=5, liars=2, descent=DESCENT),
        seeds=20,
    )


def treatment() -> Study:
    """The simulated treatment plant at every tenth second: ten plants, three of whom lie."""
    clean = simulate("treatment", seed=0).without_first(START_UP_S).every(EVERY)
    test = simulate("treatment", seed=1, attacks=True).every(EVERY)
    return Study(name="treatment", clean=clean, test=test, setup=Setup(descent=DESCENT), seeds=8)


STUDIES = {"BATADAL": batadal, "treatment": treatment}


def gates(shared: Scenario) -> Mapping[str, NamedGate]:
    """Mine on the record's first slices: the paper's rules, ours, and of ours only the ranges."""
    fit, calibration = shared.parts.fit, shared.parts.calibration
    paper = mine(fit, calibration, profile=Profile.PAPER_WIDE)
    hardened = mine(fit, calibration, profile=Profile.HARDENED)
    found = {
        "ranges": Gate.of(_ranges(hardened), PaperPolicy(), allow_empty=True),
        "paper": Gate.of(paper, PaperPolicy()),
        "hardened": Gate.of(hardened, HardenedPolicy()),
    }
    return {name: NamedGate(name=name, gate=gate) for name, gate in found.items()}


def _ranges(rules: RuleSet) -> RuleSet:
    """Return a rule set's bounds and rates, and nothing that ties channels together."""
    kept = rules.of_kind(Kind.BOUND, Kind.RATE)
    facts = rules.clean
    assert facts is not None
    names = {rule.name for rule in kept}
    return replace(
        rules,
        invariants=kept,
        clean=replace(
            facts,
            severe=tuple(share for share in facts.severe if share.rule in names),
            envelope=(),
            anchors=(),
            liveness=(),
            repeats=(),
        ),
    )


def cells(study: Study, seed: int) -> Iterator[Cell]:
    """Walk every mode, attack and gate of one seed."""
    shared = scenario(study.clean, study.test, setup=study.setup, seed=seed)
    known = gates(shared)
    brought = Contributions(shared, own=known["hardened"].gate)
    heedless = Trial(contributions=brought)
    for mode in REFERENCES:
        yield Cell(gate="", trial=heedless, plan=heedless.plan(MODES[mode]))
    for attack in HEEDLESS:
        yield Cell(gate="", trial=heedless, plan=heedless.plan(MODES["naive"], attack))
    for name, gate in known.items():
        trial = Trial(contributions=brought, gate=gate)
        for attack in HEEDLESS:
            yield Cell(gate=name, trial=trial, plan=trial.plan(GUARDED, attack))
        for attack in ADAPTIVE:
            for mode in ("physics-aware", "gated"):
                yield Cell(gate=name, trial=trial, plan=trial.plan(MODES[mode], attack))
