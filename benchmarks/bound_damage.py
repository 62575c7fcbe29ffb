"""What plants that prove clean rows and share others cost, by mode; write a page of docs/results.

The attack is `attest-clean` in every attacked mode. In mode `bound` a proof ties the shared sums to
the rows. In the other modes nothing does.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bound_pages import (
    FIGURES,
    by_malicious,
    certified,
    setting_lines,
    spread,
    trials,
    vacuous,
    write_page,
)
from benchmarks.evidence.study import Study
from sluice.attestation.messages import StatisticLimits
from sluice.evaluation import VoteCertificate
from sluice.lab.trials import MODES

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

Row = tuple[str, str]


@dataclass(slots=True, kw_only=True)
class Damage:
    """The figures of one plant, by mode and rule."""

    study: Study
    limits: StatisticLimits
    seeds: tuple[int, ...]
    certificates: dict[Row, list[tuple[VoteCertificate, ...]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    admitted: Counter[Row] = field(default_factory=Counter)  # malicious clients
    attacking: Counter[Row] = field(default_factory=Counter)


def measure(study: Study, seeds: tuple[int, ...], limits: StatisticLimits) -> Damage:
    """Run every mode on every seed of one plant."""
    made = Damage(study=study, limits=limits, seeds=seeds)
    for trial, shared in trials(study, seeds, limits):
        for row in ROWS:
            mode, rule = row
            plan = trial.plan(MODES[mode], ATTACK)
            (done,) = trial.run(plan, rule)
            made.certificates[row].append(certified(done, shared.test))
            if MODES[mode].attacked:
                made.attacking[row] += len(shared.malicious)
                made.admitted[row] += sum(plan.decisions[c].admitted for c in shared.malicious)
    return made


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
    yield from setting_lines(each.study, each.seeds, each.limits)
    yield "| mode | rule | malicious admitted | figure | measured | certified | against |"
    yield "|---|---|---|---|---|---|---|"
    for row in ROWS:
        mode, rule = row
        admitted = f"{each.admitted[row]} of {each.attacking[row]}" if each.attacking[row] else "-"
        for certificates in by_malicious(each.certificates[row]):
            one = certificates[0]
            against = f"any {one.malicious} of {len(one.members)}{vacuous(certificates)}"
            for name in FIGURES:
                measured = spread(certificates, "actual", name)
                promised = spread(certificates, "certified", name)
                yield (
                    f"| {mode} | {rule} | {admitted} | {name} | {measured} | {promised} | "
                    f"{against} |"
                )


def main() -> None:
    """Run the benchmark."""
    write_page(__doc__, PAGE, measure, page)
