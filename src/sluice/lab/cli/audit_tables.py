"""How audits are told: JSON, tables and the figures' bars and stems."""

from dataclasses import asdict

from rich.markup import escape

from sluice.admission import Gate
from sluice.cli import out, table
from sluice.lab import audits
from sluice.lab.reports import AuditPanel, Bar, Stem

__all__ = [
    "ablation_payload",
    "coverage_payload",
    "panel",
    "part_panel",
    "separation_payload",
    "show_ablation",
    "show_coverage",
    "show_separation",
    "stems",
]


def separation_payload(found: audits.SeparationTable) -> dict[str, object]:
    """Return the table as JSON has it, and which fabrications the plant gave no room for."""
    return {
        "table": _separation_rows(found),
        "skipped": [asdict(skipped) for skipped in found.skipped],
    }


def _separation_rows(found: audits.SeparationTable) -> list[dict[str, object]]:
    return [asdict(row) for row in found.rows]


def coverage_payload(found: audits.Coverage) -> dict[str, object]:
    """Return one rule set's coverage as JSON has it."""
    return {
        "segments": [asdict(segment) for segment in found.segments],
        "covered": found.covered,
        "total": found.total,
        "honest_share": found.honest_share,
        "recovery_rows": found.recovery_rows,
    }


def ablation_payload(found: audits.Ablation) -> dict[str, object]:
    """Return every part's table, and its coverage where a labelled record was given."""
    payload: dict[str, object] = {
        "table": [
            {"part": part.part.value, "rules": part.rules, **row}
            for part in found.parts
            for row in _separation_rows(part.separation)
        ]
    }
    covered = [
        {
            "part": part.part.value,
            "rules": part.rules,
            "covered": part.coverage.covered,
            "total": part.coverage.total,
            "honest_share": part.coverage.honest_share,
        }
        for part in found.parts
        if part.coverage
    ]
    return {**payload, "coverage": covered} if covered else payload


def panel(gate: Gate, found: audits.SeparationTable) -> AuditPanel:
    """Return a rule set's bars."""
    count = len(gate.rules.invariants)
    profile = gate.rules.profile.value
    return _bars(f"{gate.rules.plant}, {profile} ({count} rules)", found)


def part_panel(part: audits.AblationPart) -> AuditPanel:
    """Return the bars of one part of a rule set."""
    return _bars(f"{part.part.value} ({part.rules} rules)", part.separation)


def _bars(title: str, found: audits.SeparationTable) -> AuditPanel:
    bars = tuple(
        Bar(kind=row.kind, share=row.mean_violating_share, admitted_share=row.admitted_share)
        for row in found.rows
    )
    return AuditPanel(title=title, bars=bars)


def stems(found: list[audits.Coverage]) -> list[Stem]:
    """Return each attack with its share under every rule set."""
    return [
        Stem(
            index=segments[0].index,
            rows=segments[0].rows,
            shares=tuple(segment.violating_share for segment in segments),
        )
        for segments in zip(*(seen.segments for seen in found), strict=True)
    ]


def show_separation(gate: Gate, found: audits.SeparationTable, size: int) -> None:
    """Print one row a kind of telemetry."""
    title = f"{gate.rules.plant}: batches of {size:,} rows, {len(gate.rules.invariants)} rules"
    drawn = table(
        escape(title), "telemetry", "rows violating", "admitted", "95 % interval", "batches"
    )
    for row in found.rows:
        drawn.add_row(
            row.kind,
            f"{row.mean_violating_share:.3%}",
            f"{row.admitted_share:.1%}",
            f"{row.low:.1%} to {row.high:.1%}",
            str(row.batches),
        )
    out.print(drawn)
    out.print(
        "Of a record cut into 12 pieces (splicing-record) most batches hold no join: they are true "
        "telemetry and are admitted as such."
    )
    for skipped in found.skipped:
        out.print(f"no {skipped.kind}: {skipped.why}", markup=False)


def show_coverage(gate: Gate, found: audits.Coverage) -> None:
    """Print one row an attack, then the sum."""
    title = f"{gate.rules.plant}, {gate.rules.profile.value} ({len(gate.rules.invariants)} rules)"
    columns = ("attack", "from", "rows", "suspect", "share", "covered", "chance", "worst rule")
    drawn = table(escape(title), *columns)
    drawn.columns[1].no_wrap = True
    for segment in found.segments:
        drawn.add_row(
            str(segment.index),
            segment.start.replace("T", " "),
            f"{segment.rows:,}",
            f"{segment.violating_rows:,}",
            f"{segment.violating_share:.2%}",
            "yes" if segment.covered else "",
            _share(segment.chance),
            escape(segment.rule),
        )
    out.print(drawn)
    out.print(
        f"{found.covered} of {found.total} attacks covered; {_share(found.honest_share)} of normal "
        f"rows suspect, {found.recovery_rows} rows after each attack left out"
    )


def show_ablation(found: audits.Ablation) -> None:
    """Print one row a kind of telemetry, one column a part of the rules."""
    title = "Rows violating / batches admitted"
    drawn = table(title, "rules", *(f"{part.part.value} ({part.rules})" for part in found.parts))
    for rows in zip(*(part.separation.rows for part in found.parts), strict=True):
        cells = [f"{row.mean_violating_share:.2%} / {row.admitted_share:.0%}" for row in rows]
        drawn.add_row(rows[0].kind, *cells)
    seen = [part.coverage for part in found.parts if part.coverage]
    if seen:
        drawn.add_row("attacks covered", *(f"{one.covered} of {one.total}" for one in seen))
    out.print(drawn)
    for skipped in found.parts[-1].separation.skipped:
        out.print(f"no {skipped.kind}: {skipped.why}", markup=False)


def _share(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.2%}"
