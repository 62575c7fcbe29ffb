"""Clients of mode `bound` forge their statistics in every way; write docs/results/bound.md.

Shards do not depend on the seed, so each honest batch is proven once for each plant. Every forged
statistic is verified by itself.
"""

import argparse
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from rich.console import Console

from benchmarks.evidence.study import STUDIES, Study
from sluice.admission import EmptyRulesWarning, Gate, HardenedPolicy, Policy
from sluice.attestation.messages import StatisticLimits
from sluice.detector import VotedModel
from sluice.evaluation import VoteCertificate
from sluice.federation import (
    AdmissionCheck,
    Attestation,
    Attestor,
    Federated,
    Keyless,
    certificate_of,
)
from sluice.files import atomically
from sluice.invariants import Profile, RuleSet
from sluice.invariants.mining import mine
from sluice.lab.trials import (
    MODES,
    STATISTIC_FORGERIES,
    Contributions,
    NamedGate,
    Scenario,
    Trial,
    TrialPlan,
    scenario,
)
from sluice.telemetry import Record

console = Console(stderr=True, highlight=False)
FIRST_SEED = 100
PAGE = Path("docs/results/bound.md")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnceAttestor(Attestor):
    """Proves each client's batch once, and sends the same documents again."""

    made: dict[tuple[str, int], Attestation | None] = field(default_factory=dict)

    def __call__(self, client: str, batch: Record) -> Attestation | None:
        """Commit and prove the first time."""
        key = client, id(batch)
        if key not in self.made:
            self.made[key] = Attestor.__call__(self, client, batch)
        return self.made[key]


@dataclass(slots=True, kw_only=True, eq=False)
class ProvenOnce:
    """Both sides of the gate of one plant; every seed uses the same."""

    limits: StatisticLimits
    both: tuple[Attestor, AdmissionCheck] | None = None

    def sides(
        self, federation: str, rules: RuleSet, policy: Policy, *, rows_max: int
    ) -> tuple[Attestor, AdmissionCheck]:
        """Return the sides of `full`, with an attestor that remembers its proofs."""
        if self.both is None:
            attest, admission = Keyless.bound(self.limits).sides(
                federation, rules, policy, rows_max=rows_max
            )
            once = OnceAttestor(
                federation=attest.federation, system=attest.system, circuit=attest.circuit
            )
            self.both = once, admission
        return self.both


@dataclass(slots=True, kw_only=True)
class Outcomes:
    """What became of the forgeries of one plant."""

    study: Study
    rows: int  # of each client's batch
    limits: StatisticLimits
    seeds: tuple[int, ...]
    forged: Counter[str] = field(default_factory=Counter)  # by attack
    admitted: Counter[str] = field(default_factory=Counter)
    steps: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    honest: int = 0
    honest_refused: int = 0
    certificates: list[VoteCertificate] = field(default_factory=list)

    def count(self, plan: TrialPlan, malicious: tuple[str, ...]) -> None:
        """Count who is admitted under one attack and seed."""
        assert plan.attack is not None
        for client, decision in plan.decisions.items():
            if client in malicious:
                self.forged[plan.attack] += 1
                self.admitted[plan.attack] += decision.admitted
                self.steps[plan.attack].update(decision.reasons)
            else:
                self.honest += 1
                self.honest_refused += not decision.admitted


def measure(study: Study, seeds: tuple[int, ...], limits: StatisticLimits) -> Outcomes:
    """Run every forgery on every seed of one plant."""
    setup = replace(study.setup, detector="moments")
    binding, gate = ProvenOnce(limits=limits), None
    made: Outcomes | None = None
    shards = None
    for seed in seeds:
        begun = time.monotonic()
        shared = scenario(study.clean, study.test, setup=setup, seed=seed)
        shards = shards or shared.shards
        shared = replace(shared, shards=shards)  # the same objects: each batch is proven once
        gate = gate or hardened(shared)
        trial = Trial(
            contributions=Contributions(shared), gate=gate, limits=limits, binding=binding
        )
        if made is None:
            rows = max(len(shard) for shard in shards.values())
            made = Outcomes(study=study, rows=rows, limits=limits, seeds=seeds)
        for attack in STATISTIC_FORGERIES:
            plan = trial.plan(MODES["bound"], attack)
            made.count(plan, shared.malicious)
        (done,) = trial.run(plan, "vote")
        made.certificates.append(_certified(done, shared.test))
        console.print(f"{study.name} seed {seed}: {time.monotonic() - begun:.1f} s")
    assert made is not None
    return made


def hardened(shared: Scenario) -> NamedGate:
    """Return the gate of hardened rules that are mined from a scenario's clean rows."""
    rules = mine(shared.parts.fit, shared.parts.calibration, profile=Profile.HARDENED)
    return NamedGate(name="hardened", gate=Gate.of(rules, HardenedPolicy()))


def _certified(done: Federated, test: Record) -> VoteCertificate:
    model = done.detector.model
    assert isinstance(model, VotedModel)
    return certificate_of(done.detector, test, malicious=model.malicious)


def page(outcomes: list[Outcomes]) -> str:
    """Return the page."""
    return "\n".join(_lines(outcomes)) + "\n"


def _lines(outcomes: list[Outcomes]) -> Iterator[str]:
    yield "# Bound statistics under attack"
    yield ""
    yield "Malicious clients prove their own batch, and share another statistic than that of its"
    yield "rows. They sign a commitment that names the forged statistic. Every forged statistic has"
    yield "the right channels, windows and weight, so that only the proof can tell it from the true"
    yield "one ([how sums are bound to rows](../explanation/bound.md)). The command"
    yield "`python -m benchmarks bound` writes this page. The seed draws the malicious clients and"
    yield "the attacks that they hide. No setting was chosen on these seeds."
    yield ""
    yield "The forgers send the proof of their true statistic. Whether a prover can make a proof of"
    yield "false sums is not measured here. [An argument](../explanation/bound.md#the-argument)"
    yield "bounds it, and tests of the circuit change the cells that carry the sums."
    for each in outcomes:
        yield from _of_plant(each)


def _of_plant(each: Outcomes) -> Iterator[str]:
    setup, seeds = each.study.setup, each.seeds
    yield ""
    yield f"## {each.study.name}"
    yield (
        f"{setup.clients} clients, {setup.malicious} of them malicious; {each.rows:,} rows each; "
        f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]}); hardened rules."
    )
    if each.limits.lowered:
        yield f"Limits are lowered for this run: {each.limits.lowered}."
    yield ""
    yield "| attack | admitted | refused because |"
    yield "|---|---|---|"
    for attack, count in each.forged.items():
        steps = ", ".join(f"{why} ({times})" for why, times in each.steps[attack].items())
        yield f"| {attack} | {each.admitted[attack]} of {count} | {steps} |"
    yield ""
    refused = f"{each.honest_refused} of {each.honest}"
    yield f"Honest clients refused: {refused} (each batch is proven once, and verified every time)."
    yield ""
    yield "The vote of the admitted clients on the labelled record, mean over seeds and range:"
    yield ""
    yield "| figure | measured | certified |"
    yield "|---|---|---|"
    for name in ("recall", "precision", "false_alarms_per_week"):
        yield f"| {name} | {_spread(each, 'actual', name)} | {_spread(each, 'certified', name)} |"
    needed = each.certificates[0]
    yield ""
    yield (
        f"Certified: whatever any {needed.malicious} of the {len(needed.members)} admitted clients "
        f"share. An alarm needs {needed.needed} votes."
    )


def _spread(each: Outcomes, which: str, name: str) -> str:
    figures = [getattr(getattr(one, which), name) for one in each.certificates]
    known = [float(figure) for figure in figures if figure is not None]
    if not known:
        return "-"
    return f"{fmean(known):.3f} ({min(known):.3f} to {max(known):.3f})"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plants", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--seeds", type=int, default=20, help=f"from {FIRST_SEED} on")
    parser.add_argument("--rows-min", type=int, default=512, help="statistic_rows_min")
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args()
    warnings.simplefilter("ignore", EmptyRulesWarning)
    limits = StatisticLimits(rows_min=given.rows_min, span_min_s=0)
    console.print(f"limits: {limits.lowered}")
    seeds = tuple(range(FIRST_SEED, FIRST_SEED + given.seeds))
    outcomes = [measure(STUDIES[name](), seeds, limits) for name in given.plants]
    with atomically(given.out) as draft:
        draft.write_text(page(outcomes), encoding="utf-8")
