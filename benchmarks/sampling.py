"""Draw rows of honest and attacked batches, beside the formula and the paper's table 8."""

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

said = Console(stderr=True, highlight=False)
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
    """What liars do to a batch of 1,024 rows."""
    replay = ReplayFrom(labelled=labelled)
    return [
        ("channel-roll", RollLasting()),
        ("replay, a quarter of the rows", replay),
        ("replay, as many rows as the batch", ReplayFrom(labelled=labelled, share=1.0)),
        ("replay, projected", Projected(of=replay, rules=rules, policy=PaperPolicy())),
    ]


def audited(of: Subject, batches: int) -> tuple[RuleSet, SamplingTable]:
    """Mine the paper's rules of a plant, and draw rows of its batches."""
    fit, calibration = of.slices()
    rules = mine(fit, calibration, profile=Profile.PAPER_WIDE)
    found = sampling(
        of.clean(),
        rules,
        attacks(of.labelled(), rules),
        draws=WAYS,
        batches=batches,
        size=SAMPLED_ROWS,
        seed=0,
        progress=lambda done: said.print(f"{of.name}: {done:.0%}"),
    )
    return rules, found


def study_page(of: Subject, batches: int) -> Iterator[str]:
    """Write one plant's table."""
    rules, found = audited(of, batches)
    share = clean_share(rules)
    yield (
        f"\n## {of.name}\n\n{len(rules.invariants)} rules of the paper's wide profile, mined on "
        f"{of.mined_on}. Batches of {SAMPLED_ROWS:,} rows from {of.clean_as}, {batches} of each "
        f"kind, {DRAWS} draws of each; attacks from {of.labelled_as}. Calibration leaves at most "
        f"{share:.1%} of clean rows violating, from which `attest setup` derives a budget of "
        f"{violation_budget(rules, samples=32)} of 32."
    )
    yield (
        "\n| batch | k | v_max | violating rows | passes | exactly | off by | within silence | "
        "the paper |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    yield from (_line(row) for row in found.rows)
    yield from (f"\n{kind} was left out: {why}." for kind, why in found.skipped)
    yield f"\n| k | v_max | clean batches excluded, a round | a run of {ROUNDS} rounds |"
    yield "|---|---|---|---|"
    for draw in WAYS:
        honest = found.of("honest", draw)
        yield (
            f"| {draw.samples} | {draw.violations} | {1 - honest.exact:.3%} "
            f"| {1 - honest.exact**ROUNDS:.2%} |"
        )


def published_page() -> Iterator[str]:
    """Write what the formula says of the shares that the paper's batches showed."""
    yield (
        "\n## The paper's batches, by the formula\n\nWhat table 8 has for its batches at v_max 1, "
        "and how likely a batch with such a share of violating *rows* passes.\n"
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
        told = " | ".join(f"{chance:.4f}" for chance in exact)
        yield f"| {each.kind} | {each.violating} | {', '.join(each.passes)} | {told} |"


def _line(row: SamplingRow) -> str:
    """One kind under one way to draw; the paper's figures stand where it has some."""
    published = next((each for each in PUBLISHED if each.kind == row.kind), None)
    paper = published.passes[row.samples == WAYS[-1].samples] if published else ""
    told = f"{paper} at {published.violating}" if published and row.violations == 1 else ""
    off = abs(row.passed - row.exact) / row.error if row.error > 0 else 0.0
    return (
        f"| {row.kind} | {row.samples} | {row.violations} | {row.violating_share:.2%} "
        f"| {row.passed:.4f} | {row.exact:.4f} | {off:.1f} errors | {row.within_silence:.4f} "
        f"| {told} |"
    )


HEAD = """# What drawn rows find

Written by `make sampling`. Rows are drawn as [the sampled proof](../explanation/sampled-proof.md)
draws them, k of each batch, and a batch passes where at most v_max of them violate. *Passes* is the
share of draws, *exactly* the hypergeometric chance averaged over the same batches, and *off by*
their difference in standard errors of the draws. *Within silence*: draws in which every coupling
applies on as many rows as its budget demands. The paper's column is its table 8, measured on
SWaT's own batches, counting pairs of row and rule; a share there is of its one batch of that kind,
and its replay is a window in which every row is an attack. Batches here have another share of
violating rows, so the columns compare in kind and not in the digit: the formula ties a share to a
chance."""


def main() -> None:
    """Draw, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/sampling.md"))
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--only", choices=PLANTS, help="one plant alone")
    told = parser.parse_args()
    parts = [HEAD, *published_page()]
    for name in PLANTS:
        if told.only not in (None, name):
            continue
        why = absent(name)
        parts += [f"\n{why}"] if why else study_page(subject(name, EFFORT), told.batches)
    with atomically(told.out) as draft:
        draft.write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
