"""What the two pages about bound statistics share: arguments, trials, and lines of text."""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TypeVar

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
from sluice.lab.trials import Contributions, NamedGate, Scenario, Trial, scenario
from sluice.telemetry import Record

console = Console(stderr=True, highlight=False)
FIRST_SEED = 100
FIGURES = ("recall", "precision", "false_alarms_per_week")

Measured = TypeVar("Measured")


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


def trials(
    study: Study, seeds: Sequence[int], limits: StatisticLimits
) -> Iterator[tuple[Trial, Scenario]]:
    """Yield a trial and its scenario for each seed; each batch is proven once for all seeds."""
    setup = replace(study.setup, detector="moments")
    binding, gate, shards = ProvenOnce(limits=limits), None, None
    for seed in seeds:
        begun = time.monotonic()
        shared = scenario(study.clean, study.test, setup=setup, seed=seed)
        shards = shards or shared.shards
        shared = replace(shared, shards=shards)  # the same objects: each batch is proven once
        gate = gate or _hardened(shared)
        shared = shared.tied(gate.gate.rules)
        contributions = Contributions(shared)
        yield Trial(contributions=contributions, gate=gate, limits=limits, binding=binding), shared
        console.print(f"{study.name} seed {seed}: {time.monotonic() - begun:.1f} s")


def _hardened(shared: Scenario) -> NamedGate:
    """Return the gate of hardened rules that are mined from a scenario's clean rows."""
    rules = mine(shared.parts.fit, shared.parts.calibration, profile=Profile.HARDENED)
    return NamedGate(name="hardened", gate=Gate.of(rules, HardenedPolicy()))


def certified(done: Federated, test: Record) -> tuple[VoteCertificate, ...]:
    """Certify a vote against as many members as it withstands, and against fewer, down to one.

    A detector that is no vote is certified against one member.
    """
    model = done.detector.model
    most = model.malicious if isinstance(model, VotedModel) else 1
    return tuple(
        certificate_of(done.detector, test, malicious=malicious) for malicious in range(most, 0, -1)
    )


def spread(certificates: Sequence[VoteCertificate], which: str, name: str) -> str:
    """Return the mean of a figure over seeds, and its range."""
    figures = [getattr(getattr(one, which), name) for one in certificates]
    known = [float(figure) for figure in figures if figure is not None]
    if not known:
        return "-"
    return f"{fmean(known):.3f} ({min(known):.3f} to {max(known):.3f})"


def by_malicious(runs: Sequence[tuple[VoteCertificate, ...]]) -> Iterator[list[VoteCertificate]]:
    """Yield the certificates of all seeds for each number of malicious members, largest first."""
    for malicious in sorted({one.malicious for run in runs for one in run}, reverse=True):
        yield [one for run in runs for one in run if one.malicious == malicious]


def vacuous(certificates: Sequence[VoteCertificate]) -> str:
    """Return in how many seeds a certificate promises nothing, if it is so in any."""
    count = sum(one.vacuous for one in certificates)
    return f"; vacuous in {count} of {len(certificates)} seeds" if count else ""


def setting_lines(study: Study, seeds: Sequence[int], limits: StatisticLimits) -> Iterator[str]:
    """Yield how a plant begins on a page: its clients, its seeds and its limits."""
    setup = study.setup
    yield ""
    yield f"## {study.name}"
    yield (
        f"{setup.clients} clients, {setup.malicious} of them malicious; {len(seeds)} seeds "
        f"({seeds[0]} to {seeds[-1]}); hardened rules."
    )
    if limits.lowered:
        yield f"Limits are lowered for this run: {limits.lowered}."
    yield ""


def write_page(
    about: str | None,
    out: Path,
    measure: Callable[[Study, tuple[int, ...], StatisticLimits], Measured],
    page: Callable[[list[Measured]], str],
) -> None:
    """Read the arguments of a command, measure each plant, and write the page."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--plants", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--seeds", type=int, default=20, help=f"from {FIRST_SEED} on")
    parser.add_argument("--rows-min", type=int, default=512, help="statistic_rows_min")
    parser.add_argument("--out", type=Path, default=out)
    given = parser.parse_args()
    warnings.simplefilter("ignore", EmptyRulesWarning)
    limits = StatisticLimits(rows_min=given.rows_min, span_min_s=0)
    console.print(f"limits: {limits.lowered}")
    seeds = tuple(range(FIRST_SEED, FIRST_SEED + given.seeds))
    outcomes = [measure(STUDIES[name](), seeds, limits) for name in given.plants]
    with atomically(given.out) as draft:
        draft.write_text(page(outcomes), encoding="utf-8")
