"""Clients of mode `bound` forge their statistics in every way; write docs/results/bound.md.

Shards do not depend on the seed, so each honest batch is proven once for each plant. Every forged
statistic is verified by itself.
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
from sluice.lab.trials import MODES, STATISTIC_FORGERIES, TrialPlan

PAGE = Path("docs/results/bound.md")


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
    certificates: list[tuple[VoteCertificate, ...]] = field(default_factory=list)

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
    made: Outcomes | None = None
    for trial, shared in trials(study, seeds, limits):
        if made is None:
            rows = max(len(shard) for shard in shared.shards.values())
            made = Outcomes(study=study, rows=rows, limits=limits, seeds=seeds)
        for attack in STATISTIC_FORGERIES:
            plan = trial.plan(MODES["bound"], attack)
            made.count(plan, shared.malicious)
        (done,) = trial.run(plan, "vote")
        made.certificates.append(certified(done, shared.test))
    assert made is not None
    return made


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
    yield from setting_lines(each.study, each.seeds, each.limits)
    yield f"Each batch has up to {each.rows:,} rows."
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
    yield "| certified against | figure | measured | certified |"
    yield "|---|---|---|---|"
    for certificates in by_malicious(each.certificates):
        one = certificates[0]
        against = f"any {one.malicious} of {len(one.members)}{vacuous(certificates)}"
        for name in FIGURES:
            measured = spread(certificates, "actual", name)
            promised = spread(certificates, "certified", name)
            yield f"| {against} | {name} | {measured} | {promised} |"
    yield ""
    yield "Certified: whatever so many of the admitted clients share. The malicious ones above are"
    needed = each.certificates[0][0].needed
    yield f"refused, so these are further ones. An alarm needs {needed} votes."


def main() -> None:
    """Run the benchmark."""
    write_page(__doc__, PAGE, measure, page)
