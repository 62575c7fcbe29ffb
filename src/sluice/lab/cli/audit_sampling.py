"""`sluice audit sampling`: the pass probabilities of table 8, from draws and from the formula."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sluice.attestation.systems.sampled import SAMPLED_ROWS, Sampling
from sluice.cli import (
    Every,
    FillWith,
    FormatName,
    Json,
    PlantPath,
    Quiet,
    RecordPath,
    SkipSeconds,
    emit,
    open_gate,
    open_record,
    out,
    reads_file,
    reads_record,
    table,
    working,
)
from sluice.lab.attacks import DATA_ATTACKS, Means
from sluice.lab.audits import SamplingTable
from sluice.lab.audits import sampling as audit

__all__ = ["sampling"]


def sampling(
    record: RecordPath,
    rules: Annotated[
        Path,
        typer.Option(
            "--rules", help="The plant's rules file.", click_type=reads_file("a rules file")
        ),
    ],
    target: Annotated[
        Path | None,
        typer.Option(
            help="A record with labelled attacks, to replay and project.", click_type=reads_record()
        ),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Rows to draw.")] = 32,
    violations: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            help="Drawn rows that may violate a rule; may be repeated.",
            show_default="1 and 2",
        ),
    ] = None,
    batches: Annotated[int, typer.Option(min=1, help="Number of batches of each kind.")] = 20,
    size: Annotated[int, typer.Option(min=2, help="Rows per batch.")] = SAMPLED_ROWS,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw rows of honest, rolled and replayed batches, and measure how often they pass.

    Example: [bold]sluice audit sampling clean.csv --rules rules.json --violations 1[/bold]
    """
    quiet = quiet or json
    gate = open_gate(rules, "paper", allow_empty=False)
    with working(f"reading {record}", quiet=quiet):
        loaded = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
        labelled = (
            open_record(target, plant=plant, format_name=format_, fill=fill, every=every)
            if target
            else None
        )
    means = Means(labelled=labelled, rules=gate.rules, policy=gate.policy)
    names = ("channel-roll", "replay", "projection") if target else ("channel-roll",)
    with working(f"drawing rows of {batches} batches of each kind", quiet=quiet):
        result = audit(
            loaded,
            gate.rules,
            [(name, DATA_ATTACKS[name](means)) for name in names],
            draws=[Sampling(samples=samples, violations=most) for most in violations or (1, 2)],
            batches=batches,
            size=size,
            seed=seed,
        )
    if json:
        emit(
            {
                "table": [asdict(row) for row in result.rows],
                "skipped": [{"kind": kind, "why": why} for kind, why in result.skipped],
            }
        )
    else:
        _show(result, samples)


def _show(result: SamplingTable, samples: int) -> None:
    shown = table(
        f"{samples} rows drawn",
        "batch",
        "allowed violations",
        "violating rows",
        "passed",
        "exact",
        "standard error",
        "within silence budget",
    )
    for row in result.rows:
        shown.add_row(
            row.kind,
            str(row.violations),
            f"{row.violating_share:.2%}",
            f"{row.passed:.4f}",
            f"{row.exact:.4f}",
            f"{row.error:.4f}",
            f"{row.within_silence:.4f}",
        )
    out.print(shown)
    for kind, why in result.skipped:
        out.print(f"{kind} was skipped: {why}", markup=False)
