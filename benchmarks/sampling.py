"""Sample rows of honest and attacked batches; compare with the formula and the paper's table 8."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.gate.plants import Effort, Subject, absent, subject
from sluice.admission import PaperPolicy
from sluice.attestation.systems.sampled import (
    ROUNDS,
    SAMPLED_ROWS,
    Sampling,
    clean_share,
    pass_probability,
    violation_budget,
)
from sluice.files import atomically
from sluice.invariants import Profile, RuleSet
from sluice.invariants.mining import mine
from sluice.lab.attacks import DataAttack, ReplayFrom, RollLasting
from sluice.lab.attacks.projection import Projected
from sluice.lab.audits import DRAWS, SamplingRow, SamplingTable, sampling
from sluice.telemetry import Record

console = Console(stderr=True, highlight=False)
PLANTS = ("treatment", "BATADAL")
EFFORT = Effort(seeds=(0,), batches=1, draws=1, line_days=1.0)
WAYS = tuple(Sampling(samples=k, violations=v) for k in (16, 32) for v in (1, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A row of the paper's table 8, on SWaT at v_max 1: how often a batch passes."""

    kind: str
    violating: str
    passes: tuple[str, str]  # at 16 and at 32 samples


PUBLISHED = (
    Published(kind="honest", violating="0.39 %", passes=("0.9941", "0.9851")),
    Published(kind="channel-roll", violating="21.29 %", passes=("0.065", "0.002")),
    Published(
        kind="replay, as many rows as the batch", violating="23.34 %", passes=("0.083", "0.002")
    ),
    Published(kind="replay, projected", violating="0.68 %", passes=("passed", "passed")),
)


def attacks(labelled: Record, rules: RuleSet) -> list[tuple[str, DataAttack]]:
    """Return the attacks on a batch of 1,024 rows."""
    replay = ReplayFrom(labelled=labelled)
    return [
        ("channel-roll", RollLasting()),
        ("replay, a quarter of the rows", replay),
        ("replay, as many rows as the batch", ReplayFrom(labelled=labelled, share=1.0)),
        ("replay, projected", Projected(of=replay, rules=rules, policy=PaperPolicy())),
    ]


def audited(of: Subject, batches: int) -> tuple[RuleSet, SamplingTable]:
    """Mine the paper's rules of a plant and sample rows of its batches."""
    fit, calibration = of.slices()
    rules = mine(fit, calibration, profile=Profile.PAPER_WIDE)
    results = sampling(
        of.clean(),
        rules,
        attacks(of.labelled(), rules),
        draws=WAYS,
        batches=batches,
        size=SAMPLED_ROWS,
        seed=0,
        progress=lambda done: console.print(f"{of.name}: {done:.0%}"),
    )
    return rules, results


def study_page(of: Subject, batches: int) -> Iterator[str]:
    """Write one plant's tables."""
    rules, results = audited(of, batches)
    share = clean_share(rules)
    yield (
        f"\n## {of.name}\n\nThe gate has {len(rules.invariants)} rules of the paper's wide "
        f"profile, mined on {of.mined_on}. The batches have {SAMPLED_ROWS:,} rows and come from "
        f"{of.clean_as}. There are {batches} batches of each kind, with {DRAWS} draws of each. The "
        f"attacks come from {of.labelled_as}. After calibration, at most {share:.1%} of clean rows "
        "violate. From this share `attest setup` derives a budget of "
        f"{violation_budget(rules, samples=32)} of 32."
    )
    yield (
        "\n| batch | k | v_max | violating rows | passed | formula | difference | "
        "within silence budget | the paper |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    yield from (_line(row) for row in results.rows)
    yield from (f"\n{kind} was left out: {why}." for kind, why in results.skipped)
    yield f"\n| k | v_max | clean batch refused in one round | at least once in {ROUNDS} |"
    yield "|---|---|---|---|"
    for draw in WAYS:
        honest = results.of("honest", draw)
        yield (
            f"| {draw.samples} | {draw.violations} | {1 - honest.exact:.3%} "
            f"| {1 - honest.exact**ROUNDS:.2%} |"
        )


def published_page() -> Iterator[str]:
    """Write what the formula gives for the violating shares of the paper's batches."""
    yield (
        "\n## The paper's batches, by the formula\n\nThe table shows the figures of the paper's "
        "table 8 at v_max 1, and the probability that a batch with the same share of violating "
        "*rows* passes.\n"
    )
    ways = [f"k {draw.samples}, v_max {draw.violations}" for draw in WAYS]
    yield f"| batch | violating | the paper, k 16 and 32 | {' | '.join(ways)} |"
    yield "|---|---|---|" + "---|" * len(WAYS)
    for each in PUBLISHED:
        violating = round(float(each.violating.removesuffix(" %")) / 100 * SAMPLED_ROWS)
        exact = (
            pass_probability(SAMPLED_ROWS, draw.samples, draw.violations, violating=violating)
            for draw in WAYS
        )
        formula = " | ".join(f"{chance:.4f}" for chance in exact)
        yield f"| {each.kind} | {each.violating} | {', '.join(each.passes)} | {formula} |"


def _line(row: SamplingRow) -> str:
    """Write one kind of batch under one sampling; with the paper's figures where it has them."""
    published = next((each for each in PUBLISHED if each.kind == row.kind), None)
    paper = published.passes[row.samples == WAYS[-1].samples] if published else ""
    theirs = f"{paper} at {published.violating}" if published and row.violations == 1 else ""
    off = abs(row.passed - row.exact) / row.error if row.error > 0 else 0.0
    return (
        f"| {row.kind} | {row.samples} | {row.violations} | {row.violating_share:.2%} "
        f"| {row.passed:.4f} | {row.exact:.4f} | {off:.1f} errors | {row.within_silence:.4f} "
        f"| {theirs} |"
    )


HEAD = """# How often sampled rows let a batch pass

Written by `make sampling` (`python -m benchmarks sampling`). Rows are drawn as in [the sampled
proof](../explanation/sampled-proof.md): k rows of each batch. A batch passes if at most v_max of
them violate. *Passed* is the share of draws that pass. *Formula* is the hypergeometric probability,
averaged over the same batches. *Difference* is in standard errors of the draws. *Within silence
budget* is the share of draws in which every coupling applies on as many rows as its budget demands.
The last column is the paper's table 8. The paper measured SWaT batches and counted pairs of row and
rule. Its violating share is the share in one batch of each kind, and in its replay every row is an
attack. The batches on this page have other shares of violating rows, so compare the trend of the
columns, not the digits. The formula gives the probability for each share."""


def main() -> None:
    """Sample, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/sampling.md"))
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--only", choices=PLANTS, help="run one plant only")
    arguments = parser.parse_args()
    parts = [HEAD, *published_page()]
    for name in PLANTS:
        if arguments.only not in (None, name):
            continue
        why = absent(name)
        parts += [f"\n{why}"] if why else study_page(subject(name, EFFORT), arguments.batches)
    with atomically(arguments.out) as draft:
        draft.write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
