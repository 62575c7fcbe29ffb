"""`sluice audit`: measure what a plant's rules detect, before you rely on them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from sluice.cli import (
    AllowEmpty,
    Every,
    FillWith,
    FormatName,
    Json,
    PlantPath,
    PolicyName,
    Quiet,
    RecordPath,
    SelfContained,
    SkipSeconds,
    emit,
    open_gate,
    open_record,
    range_of,
    reads_file,
    reads_record,
    refuse_without_page,
    working,
    writes_file,
)
from sluice.lab import audits
from sluice.lab.audits import Progress as AuditProgress
from sluice.lab.audits import ignore_progress
from sluice.lab.cli.audit_sampling import sampling
from sluice.lab.cli.audit_tables import (
    ablation_payload,
    coverage_payload,
    panel,
    part_panel,
    separation_payload,
    show_ablation,
    show_coverage,
    show_separation,
    stems,
)
from sluice.lab.reports import demand_figure_suffix, write_coverage_figure, write_separation_figure
from sluice.telemetry import Record

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True, help="Measure which fabrications and attacks a plant's rules detect."
)

RulesPath = Annotated[
    Path,
    typer.Option("--rules", help="The plant's rules file.", click_type=reads_file("a rules file")),
]
Batches = Annotated[int, typer.Option(min=1, help="Number of batches of each kind.")]
Size = Annotated[int, typer.Option(min=12, help="Rows per batch.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
RowRange = Annotated[str | None, typer.Option("--rows", help="Audit only rows A:B; B is excluded.")]
FigurePath = Annotated[
    Path | None,
    typer.Option(
        "--figure", help="Write the table as a figure, .png or .html.", click_type=writes_file()
    ),
]


@app.command()
def separation(
    record: RecordPath,
    rules: RulesPath,
    policy: PolicyName = None,
    batches: Batches = 200,
    size: Size = 1_000,
    seed: Seed = 0,
    roll_seconds: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds to roll actuators by; default 300, at least 7 rows."),
    ] = None,
    rows: RowRange = None,
    figure: FigurePath = None,
    self_contained: SelfContained = False,
    allow_empty: AllowEmpty = False,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge honest batches of an attack-free record, and of the record fabricated in four ways.

    Example: [bold]sluice audit separation clean.csv --rules rules.json --figure sep.png[/bold]
    """
    quiet = quiet or json
    refuse_without_page(figure, self_contained=self_contained, option="--figure PAGE.html")
    if figure:
        demand_figure_suffix(figure)
    gate = open_gate(rules, policy, allow_empty=allow_empty)
    with working(f"reading {record}", quiet=quiet):
        loaded = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
        loaded = _cut(loaded, rows)
    roll = None if roll_seconds is None else max(1, round(roll_seconds / loaded.stride_s))
    with _counting(f"judging {batches} batches of each kind", quiet=quiet) as progress:
        result = audits.separation(
            loaded, gate, batches=batches, size=size, seed=seed, roll_rows=roll, progress=progress
        )
    if figure:
        write_separation_figure([panel(gate, result)], figure, self_contained=self_contained)
    if json:
        emit(separation_payload(result))
    else:
        show_separation(gate, result, size)


@app.command()
def coverage(
    record: Annotated[
        Path,
        typer.Argument(
            metavar="LABELLED", help="A record with labelled attacks.", click_type=reads_record()
        ),
    ],
    rules: RulesPath,
    compare: Annotated[
        Path | None,
        typer.Option(
            help="A second rules file to compare with the first.",
            click_type=reads_file("a rules file"),
        ),
    ] = None,
    policy: PolicyName = None,
    rows: RowRange = None,
    figure: FigurePath = None,
    self_contained: SelfContained = False,
    allow_empty: AllowEmpty = False,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the labelled attacks that the rules cover: more than 1 % of their rows are suspect.

    The column 'chance' is the share of attack-free stretches of the same length that would also
    count as covered.

    Example: [bold]sluice audit coverage attack.csv --rules rules.json --figure cov.html[/bold]
    """
    quiet = quiet or json
    refuse_without_page(figure, self_contained=self_contained, option="--figure PAGE.html")
    if figure:
        demand_figure_suffix(figure)
    gates = [
        open_gate(path, policy, allow_empty=allow_empty)
        for path in (rules, compare)
        if path is not None
    ]
    with working(f"judging {record}", quiet=quiet):
        loaded = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
        loaded = _cut(loaded, rows)
        results = [audits.coverage(loaded, gate) for gate in gates]
    if figure:
        names = [path.stem for path in (rules, compare) if path is not None]
        write_coverage_figure(stems(results), names, figure, self_contained=self_contained)
    if json:
        compared = {"compared": coverage_payload(results[1])} if compare else {}
        emit({**coverage_payload(results[0]), **compared})
        return
    for gate, result in zip(gates, results, strict=True):
        show_coverage(gate, result)


@app.command()
def ablation(
    record: RecordPath,
    rules: RulesPath,
    labelled: Annotated[
        Path | None,
        typer.Option(
            help="A record with labelled attacks, to audit coverage too.", click_type=reads_record()
        ),
    ] = None,
    policy: PolicyName = None,
    batches: Batches = 200,
    size: Size = 1_000,
    seed: Seed = 0,
    rows: RowRange = None,
    figure: FigurePath = None,
    self_contained: SelfContained = False,
    allow_empty: AllowEmpty = False,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Repeat the audits with parts of the rules: bounds and rates, couplings, balances, and all.

    Example: [bold]sluice audit ablation clean.csv --rules rules.json --labelled bad.csv[/bold]
    """
    quiet = quiet or json
    refuse_without_page(figure, self_contained=self_contained, option="--figure PAGE.html")
    if figure:
        demand_figure_suffix(figure)
    gate = open_gate(rules, policy, allow_empty=allow_empty)
    with working(f"reading {record}", quiet=quiet):
        loaded = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
        loaded = _cut(loaded, rows)
        attacked = (
            open_record(labelled, plant=plant, format_name=format_, fill=fill, every=every)
            if labelled
            else None
        )
    with _counting(f"judging {batches} batches of each kind and part", quiet=quiet) as progress:
        result = audits.ablation(
            loaded,
            gate,
            labelled=attacked,
            batches=batches,
            size=size,
            seed=seed,
            progress=progress,
        )
    if figure:
        write_separation_figure(
            [part_panel(part) for part in result.parts], figure, self_contained=self_contained
        )
    if json:
        emit(ablation_payload(result))
    else:
        show_ablation(result)


app.command()(sampling)


def _cut(record: Record, rows: str | None) -> Record:
    return record.rows(*range_of(rows, record, option="--rows")) if rows else record


@contextmanager
def _counting(what: str, *, quiet: bool) -> Iterator[AuditProgress]:
    """Show a progress bar on a terminal, one plain line elsewhere."""
    if quiet or not sys.stderr.isatty():
        with working(what, quiet=quiet):
            yield ignore_progress
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)
