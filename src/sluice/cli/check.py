"""`sluice check`: judge one batch and show the evidence behind the verdict."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluice.cli.console import Json, Quiet, emit, out, reason_payload, table, working
from sluice.cli.options import (
    AllowEmpty,
    Every,
    FillWith,
    FormatName,
    PlantPath,
    PolicyName,
    RecordPaths,
    SelfContained,
    SkipSeconds,
    listed,
    open_gate,
    open_record,
    range_of,
    refuse_overwriting,
    refuse_without_page,
)
from sluice.cli.paths import reads_file, writes_file, writes_folder
from sluice.files import demand_room

if TYPE_CHECKING:
    from sluice.admission import Finding, Verdict
    from sluice.invariants import RuleSet

__all__ = ["check"]

MOST_WORST_ROWS = 8


def check(
    record: RecordPaths,
    rules_path: Annotated[
        Path,
        typer.Option(
            "--rules", help="The plant's rules file.", click_type=reads_file("a rules file")
        ),
    ],
    policy_name: PolicyName = None,
    rows: Annotated[str | None, typer.Option(help="Judge only rows A:B; B is excluded.")] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write an HTML page: reasons, timeline, worst rows, every rule.",
            click_type=writes_file(),
        ),
    ] = None,
    self_contained: SelfContained = False,
    png: Annotated[
        Path | None,
        typer.Option(help="Write a figure of the worst stretches.", click_type=writes_file()),
    ] = None,
    prove: Annotated[
        Path | None,
        typer.Option(
            help="If admitted, write keys, commitment, opening and proof into this folder.",
            click_type=writes_folder(),
        ),
    ] = None,
    allow_empty: AllowEmpty = False,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge a batch by its plant's rules; exit 0 if admitted, 3 if refused.

    The command also says what the batch shows to have changed in the plant for good: a leak, a
    meter that drifts, a new pump, a changed set-point. This does not affect the verdict.

    Example: [bold]sluice check april.csv --rules rules.json --html verdict.html[/bold]
    """
    from sluice.attestation import KeyFolder, prove_into
    from sluice.cli.attest import warn_if_unsafe
    from sluice.cli.drifting import cause_payloads, show_causes
    from sluice.invariants import causes
    from sluice.reports import write_verdict_figure, write_verdict_page

    quiet = quiet or json
    refuse_without_page(html, self_contained=self_contained, option="--html PAGE")
    for page in filter(None, (html, png)):
        refuse_overwriting(page, *record, rules_path, plant)
    gate = open_gate(rules_path, policy_name, allow_empty=allow_empty)
    if prove:
        demand_room(prove)
    with working(f"reading {listed(record)}", quiet=quiet):
        batch = open_record(
            record, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
        if rows:
            batch = batch.rows(*range_of(rows, batch, option="--rows"))
    verdict = gate.judge(batch)
    if html:
        with working(f"drawing {html}", quiet=quiet):
            write_verdict_page(verdict, html, self_contained=self_contained)
    if png:
        with working(f"drawing {png}", quiet=quiet):
            write_verdict_figure(verdict, png)
    if prove and verdict.admitted:
        keys = prove / "keys"
        if keys.exists():
            warn_if_unsafe(KeyFolder.open(keys).system.name)
        with working(f"proving {len(batch):,} rows", quiet=quiet):
            prove_into(prove, verdict)
    drifted = causes(gate.rules, batch)
    if json:
        emit({**_payload(verdict), "drift": cause_payloads(drifted)})
    else:
        _show(verdict)
        show_causes(drifted)
    if not verdict.admitted:
        raise typer.Exit(3)


def _payload(verdict: "Verdict") -> dict[str, object]:
    return {
        "admitted": verdict.admitted,
        "rows": verdict.rows,
        "violating_rows": verdict.violating_rows,
        "violating_share": verdict.violating_share,
        "reasons": [reason_payload(reason) for reason in verdict.reasons],
        "rules": [
            {
                "name": finding.name,
                "kind": finding.kind.value,
                "violating_rows": finding.violating_rows,
                "violating_share": finding.violating_share,
                "inapplicable_share": finding.inapplicable_share,
                "envelope_share": finding.envelope_share,
                "limit": finding.limit,
                "sentence": finding.sentence,
            }
            for finding in verdict.findings
        ],
    }


def _show(verdict: "Verdict") -> None:
    batch, rules = verdict.measured.record, verdict.measured.rules
    word = "admitted" if verdict.admitted else "not admitted"
    count = len(verdict.reasons)
    why = f", for {count} reason{'s' if count > 1 else ''}" if count else ""
    out.print(
        f"[bold]{word}[/bold]{why}: {verdict.violating_rows:,} of {verdict.rows:,} rows "
        f"({verdict.violating_share:.2%}) count as violating, {int(verdict.suspect.sum()):,} are "
        "part of the evidence"
        + (
            " (a batch's first row always counts, because no row before it can be checked)"
            if rules.clean
            else ""
        )
    )
    for reason in verdict.sentences:
        out.print(f"  {reason}", markup=False)
    broken = sorted(
        (finding for finding in verdict.findings if finding.violating_rows),
        key=lambda finding: -finding.violating_rows,
    )
    if not broken:
        return
    violations = table("\nViolations by rule", "rule", "rows", "share", "limit", "in words")
    for finding in broken:
        violations.add_row(
            finding.name,
            f"{finding.violating_rows:,}",
            f"{finding.violating_share:.2%}",
            f"{finding.limit:.2%}",
            finding.sentence,
        )
    out.print(violations)
    _show_worst(broken, rules)
    out.print(
        f"\nThis is evidence about the telemetry of {batch.name!r}; a fault and an attack look "
        "the same."
    )


def _show_worst(broken: "list[Finding]", rules: "RuleSet") -> None:
    """List each rule's worst row, largest excess first; ranges have no tolerance and come last."""
    from sluice.invariants import RelationKind, amount, number, unit_of

    units = {rule.name: unit_of(rule.relation, rules) for rule in rules.invariants}
    worst = sorted(
        ((row, finding) for finding in broken for row in finding.worst[:1]),
        key=lambda pair: (
            pair[1].kind is RelationKind.BOUND,
            -abs(pair[0].residual) / pair[0].tolerance,
        ),
    )
    if not worst:
        return
    listed = table("\nWorst rows", "row", "time", "rule", "off by", "tolerance")
    for row, finding in worst[:MOST_WORST_ROWS]:
        off = amount(row.residual, units[finding.name])
        allowed = "" if finding.kind is RelationKind.BOUND else number(row.tolerance)
        listed.add_row(f"{row.row}", row.time.replace("T", " "), finding.name, off, allowed)
    out.print(listed)
