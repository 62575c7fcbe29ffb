"""The plants of the evidence, the cells run on each, and their gates."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sluice.admission import Gate, HardenedPolicy, PaperPolicy
from sluice.detector import Descent
from sluice.invariants import Profile, RelationKind, RuleSet
from sluice.invariants.mining import mine
from sluice.lab.plants import simulate
from sluice.lab.trials import (
    MODES,
    Adversary,
    Contributions,
    Mode,
    NamedGate,
    Roster,
    Scenario,
    Setup,
    Trial,
    TrialPlan,
    scenario,
)
from sluice.telemetry import Record, read_record

RULES = ("fedavg", "median", "trimmed-mean", "krum", "norm-clipping", "fltrust", "foolsgold")
NON_ADAPTIVE = ("replay", "channel-roll")
ADAPTIVE = ("replay", "feasible", "attest-clean")
"""Attacks of clients that know the gate: the replay projected onto its rules, or stronger."""
REFERENCES = ("clean", "honest-only", "local-only", "centralised")
GATES = ("ranges", "paper", "hardened")
TWO_RULES = ("fedavg", "median")

GUARDED = Mode(name="guarded", adversary=Adversary.PLAIN, gated=True, roster=Roster.ALL)
"""The gate against clients that do not know it, which the paper's five modes leave out."""

DESCENT = Descent(batch=128)
"""The setting of every cell in the paper's code. With the batch of 1,024 in its text, a BATADAL
shard is less than one batch, and after 50 steps the detector has learnt too little to be poisoned.
"""

START_UP_S = 21_600
EVERY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One plant: its clean record, its labelled record and the number of seeds."""

    name: str
    clean: Record
    test: Record
    setup: Setup
    seeds: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """A plan with the gate it belongs to; reference modes belong to none."""

    gate: str
    trial: Trial
    plan: TrialPlan

    @property
    def rules(self) -> tuple[str, ...]:
        """The aggregation rules it is run under: all, except for cells that are only baselines."""
        if self.plan.mode.name in ("local-only", "centralised"):
            return ("fedavg",)  # nothing is aggregated in these modes
        if self.gate == "ranges" or (self.gate, self.plan.attack) == ("paper", "feasible"):
            return TWO_RULES
        return RULES


def data_folder() -> Path:
    """Return the folder of plant records."""
    folder = os.environ.get("SLUICE_DATA")
    return Path(folder) if folder else Path(__file__).parents[3] / "shared" / "data"


def batadal() -> Study:
    """A year of C-Town, hourly: five clients, two of them malicious."""
    folder = data_folder() / "batadal"
    return Study(
        name="BATADAL",
        clean=read_record(folder / "dataset03.csv"),
        test=read_record(folder / "dataset04_full_labels.csv"),
        setup=Setup(clients=5, malicious=2, descent=DESCENT),
        seeds=20,
    )


def treatment(seed: int = 0) -> Study:
    """The simulated treatment plant, every 10 s: ten clients, three of them malicious.

    The labelled record is another run, with the next seed.
    """
    clean = simulate("treatment", seed=seed).without_first(START_UP_S).every(EVERY)
    test = simulate("treatment", seed=seed + 1, attacks=True).every(EVERY)
    return Study(name="treatment", clean=clean, test=test, setup=Setup(descent=DESCENT), seeds=8)


STUDIES = {"BATADAL": batadal, "treatment": treatment}


def gates(shared: Scenario) -> Mapping[str, NamedGate]:
    """Mine the paper's rules, ours, and the ranges of ours, on the record's first slices."""
    fit, calibration = shared.parts.fit, shared.parts.calibration
    paper = mine(fit, calibration, profile=Profile.PAPER_WIDE)
    hardened = mine(fit, calibration, profile=Profile.HARDENED)
    mined = {
        "ranges": Gate.of(_ranges(hardened), PaperPolicy(), allow_empty=True),
        "paper": Gate.of(paper, PaperPolicy()),
        "hardened": Gate.of(hardened, HardenedPolicy()),
    }
    return {name: NamedGate(name=name, gate=gate) for name, gate in mined.items()}


def _ranges(rules: RuleSet) -> RuleSet:
    """Return a rule set's bounds and rates, without rules that relate channels."""
    ranges = rules.of_kind(RelationKind.BOUND, RelationKind.RATE)
    facts = rules.clean
    assert facts is not None
    names = {rule.name for rule in ranges}
    return replace(
        rules,
        invariants=ranges,
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
    """Yield the cells of every mode, attack and gate of one seed."""
    shared = scenario(study.clean, study.test, setup=study.setup, seed=seed)
    known = gates(shared)
    hardened = known["hardened"].gate
    shared = shared.tied(hardened.rules)
    contributions = Contributions(shared, own=hardened)
    non_adaptive = Trial(contributions=contributions)
    for mode in REFERENCES:
        yield Cell(gate="", trial=non_adaptive, plan=non_adaptive.plan(MODES[mode]))
    for attack in NON_ADAPTIVE:
        yield Cell(gate="", trial=non_adaptive, plan=non_adaptive.plan(MODES["naive"], attack))
    for name, gate in known.items():
        trial = Trial(contributions=contributions, gate=gate)
        for attack in NON_ADAPTIVE:
            yield Cell(gate=name, trial=trial, plan=trial.plan(GUARDED, attack))
        for attack in ADAPTIVE:
            for mode in ("physics-aware", "gated"):
                yield Cell(gate=name, trial=trial, plan=trial.plan(MODES[mode], attack))
