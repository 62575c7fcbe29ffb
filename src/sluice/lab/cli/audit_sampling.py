"""`sluice audit sampling`: the chances of table 8, drawn and exact."""

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
    table,
    working,
)
from sluice.lab.attacks import DATA_ATTACKS, Means
from sluice.lab.audits import SamplingTable
from sluice.lab.audits import sampling as audit

__all__ = ["sampling"]


def sampling(
    record: RecordPath,
    rules: Annotated[Path, typer.Option("--rules", help="The plant's rules file.")],
    target: Annotated[
        Path | None, typer.Option(help="A record with attacks, to replay and project.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Rows that are drawn.")] = 32,
    violations: Annotated[
        list[int] | None,
        typer.Option(
            min=0, help="Of which so many may violate (may be repeated).", show_default="1 and 2"
        ),
    ] = None,
    batches: Annotated[int, typer.Option(min=1, help="How many batches of each kind.")] = 20,
    size: Annotated[int, typer.Option(min=2, help="Rows of a batch.")] = SAMPLED_ROWS,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same draws.")] = 0,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw rows of honest, rolled and replayed batches, and say how often they pass.

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
        found = audit(
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
                "table": [asdict(row) for row in found.rows],
                "skipped": [{"kind": kind, "why": why} for kind, why in found.skipped],
            }
        )
    else:
        _show(found, samples)


def _show(found: SamplingTable, samples: int) -> None:
    drawn = table(
        f"{samples} rows drawn",
        "batch", "may violate", "violating rows", "passes", "exactly", "error", "within silence",
    )  # fmt: skip
    for row in found.rows:
        drawn.add_row(
            row.kind,
            str(row.violations),
            f"{row.violating_share:.2%}",
            f"{row.passed:.4f}",
            f"{row.exact:.4f}",
            f"{row.error:.4f}",
            f"{row.within_silence:.4f}",
        )
    out.print(drawn)
    for kind, why in found.skipped:
        out.print(f"{kind} was left out: {why}", markup=False)
