"""What plants that prove clean rows and share others cost, by mode; write a page of docs/results.

The attack is `attest-clean` in every attacked mode. In mode `bound` a proof ties the shared sums to
the rows. In the other modes nothing does.
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

from benchmarks.bound import FIRST_SEED, ProvenOnce, hardened
from benchmarks.evidence.study import STUDIES, Study
from sluice.admission import EmptyRulesWarning
from sluice.attestation.messages import StatisticLimits
from sluice.detector import VotedModel
from sluice.evaluation import VoteCertificate
from sluice.federation import Federated, certificate_of
from sluice.files import atomically
from sluice.lab.trials import MODES, Contributions, Trial, scenario
from sluice.telemetry import Record

console = Console(stderr=True, highlight=False)
ATTACK = "attest-clean"
PAGE = Path("docs/results/bound-damage.md")
ROWS = (
    ("clean", "fedavg"),
    ("clean", "vote"),
    ("honest-only", "vote"),
    ("naive", "fedavg"),
    ("naive", "vote"),
    ("gated", "fedavg"),
    ("gated", "vote"),
    ("bound", "vote"),
)
"""Modes and rules; `fedavg` adds the sums of all members, as the paper averages updates."""
FIGURES = ("recall", "precision", "false_alarms_per_week")

Row = tuple[str, str]


@dataclass(slots=True, kw_only=True)
class Damage:
    """The figures of one plant, by mode and rule."""

    study: Study
    limits: StatisticLimits
    seeds: tuple[int, ...]
    certificates: dict[Row, list[VoteCertificate]] = field(
        default_factory=lambda: defaultdict(list)
    )
    admitted: Counter[Row] = field(default_factory=Counter)  # malicious clients
    attacking: Counter[Row] = field(default_factory=Counter)


def measure(study: Study, seeds: tuple[int, ...], limits: StatisticLimits) -> Damage:
    """Run every mode on every seed of one plant."""
    setup = replace(study.setup, detector="moments")
    binding, gate, shards = ProvenOnce(limits=limits), None, None
    made = Damage(study=study, limits=limits, seeds=seeds)
    for seed in seeds:
        begun = time.monotonic()
        shared = scenario(study.clean, study.test, setup=setup, seed=seed)
        shards = shards or shared.shards
        shared = replace(shared, shards=shards)  # the same objects: each batch is proven once
        gate = gate or hardened(shared)
        trial = Trial(
            contributions=Contributions(shared), gate=gate, limits=limits, binding=binding
        )
        for row in ROWS:
            mode, rule = row
            plan = trial.plan(MODES[mode], ATTACK)
            (done,) = trial.run(plan, rule)
            made.certificates[row].append(_certified(done, shared.test))
            if MODES[mode].attacked:
                made.attacking[row] += len(shared.malicious)
                made.admitted[row] += sum(plan.decisions[c].admitted for c in shared.malicious)
        console.print(f"{study.name} seed {seed}: {time.monotonic() - begun:.1f} s")
    return made


def _certified(done: Federated, test: Record) -> VoteCertificate:
    """Certify against as many members as the vote withstands; against one if it is no vote."""
    model = done.detector.model
    malicious = model.malicious if isinstance(model, VotedModel) else 1
    return certificate_of(done.detector, test, malicious=malicious)


def page(outcomes: list[Damage]) -> str:
    """Return the page."""
    return "\n".join(_lines(outcomes)) + "\n"


def _lines(outcomes: list[Damage]) -> Iterator[str]:
    yield "# What binding prevents"
    yield ""
    yield "Malicious clients prove a clean batch and share the sums of another one, in which every"
    yield f"attack of a day is replayed as normal operation (attack `{ATTACK}`). The detector is"
    yield "`moments`. `python -m benchmarks bound-damage` writes this page. The seed draws the"
    yield "malicious clients and the attacks that they hide. No setting was chosen on these seeds."
    yield ""
    yield "*Measured* is the mean over seeds on the labelled record, with its range. *Certified* is"
    yield "what holds whatever the stated number of members share; with `fedavg` that number is 1,"
    yield "and one member decides everything, so its certificate is empty."
    yield "In `naive` and `gated`, the malicious members take part, and the certificate covers them"
    yield "among others. In `bound` they are refused, and the certificate covers further ones."
    for each in outcomes:
        yield from _of_plant(each)


def _of_plant(each: Damage) -> Iterator[str]:
    setup, seeds = each.study.setup, each.seeds
    yield ""
    yield f"## {each.study.name}"
    yield (
        f"{setup.clients} clients, {setup.malicious} of them malicious; {len(seeds)} seeds "
        f"({seeds[0]} to {seeds[-1]}); hardened rules."
    )
    if each.limits.lowered:
        yield f"Limits are lowered for this run: {each.limits.lowered}."
    yield ""
    yield "| mode | rule | malicious admitted | figure | measured | certified | against |"
    yield "|---|---|---|---|---|---|---|"
    for row in ROWS:
        mode, rule = row
        certificates = each.certificates[row]
        last = certificates[-1]
        admitted = f"{each.admitted[row]} of {each.attacking[row]}" if each.attacking[row] else "-"
        for name in FIGURES:
            measured = _spread(certificates, "actual", name)
            certified = _spread(certificates, "certified", name)
            yield (
                f"| {mode} | {rule} | {admitted} | {name} | {measured} | {certified} | "
                f"any {last.malicious} of {len(last.members)} |"
            )


def _spread(certificates: list[VoteCertificate], which: str, name: str) -> str:
    figures = [getattr(getattr(one, which), name) for one in certificates]
    known = [float(figure) for figure in figures if figure is not None]
    if not known:
        return "-"
    return f"{fmean(known):.3f} ({min(known):.3f} to {max(known):.3f})"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plants", nargs="+", choices=STUDIES, default=["BATADAL"])
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
