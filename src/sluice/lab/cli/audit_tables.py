"""The results of audits as JSON, as tables, and as the bars and stems of figures."""

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


def separation_payload(result: audits.SeparationTable) -> dict[str, object]:
    """Return the table as JSON, and the fabrications that this record does not allow."""
    return {
        "table": _separation_rows(result),
        "skipped": [asdict(skipped) for skipped in result.skipped],
    }


def _separation_rows(result: audits.SeparationTable) -> list[dict[str, object]]:
    return [asdict(row) for row in result.rows]


def coverage_payload(result: audits.Coverage) -> dict[str, object]:
    """Return one rule set's coverage as JSON."""
    return {
        "segments": [asdict(segment) for segment in result.segments],
        "covered": result.covered,
        "total": result.total,
        "honest_share": result.honest_share,
        "recovery_rows": result.recovery_rows,
        "attack_rows": result.attack_rows,
        "suspect_attack_rows": result.suspect_attack_rows,
        "missed": list(result.missed),
        "honest_rows": result.honest_rows,
        "honest_suspect_rows": result.honest_suspect_rows,
        "left_out": {
            "recovering_rows": result.recovering_rows,
            "unlabelled_rows": result.unlabelled_rows,
            "channels": list(result.unread),
        },
    }


def ablation_payload(result: audits.Ablation) -> dict[str, object]:
    """Return the table of every part, and its coverage if a labelled record was given."""
    payload: dict[str, object] = {
        "table": [
            {"part": part.part.value, "rules": part.rules, **row}
            for part in result.parts
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
        for part in result.parts
        if part.coverage
    ]
    return {**payload, "coverage": covered} if covered else payload


def panel(gate: Gate, result: audits.SeparationTable) -> AuditPanel:
    """Return a rule set's bars."""
    count = len(gate.rules.invariants)
    profile = gate.rules.profile.value
    return _bars(f"{gate.rules.plant}, {profile} ({count} rules)", result)


def part_panel(part: audits.AblationPart) -> AuditPanel:
    """Return the bars of one part of a rule set."""
    return _bars(f"{part.part.value} ({part.rules} rules)", part.separation)


def _bars(title: str, result: audits.SeparationTable) -> AuditPanel:
    bars = tuple(
        Bar(kind=row.kind, share=row.mean_violating_share, admitted_share=row.admitted_share)
        for row in result.rows
    )
    return AuditPanel(title=title, bars=bars)


def stems(coverages: list[audits.Coverage]) -> list[Stem]:
    """Return each attack with its share under every rule set."""
    return [
        Stem(
            index=segments[0].index,
            rows=segments[0].rows,
            shares=tuple(segment.violating_share for segment in segments),
        )
        for segments in zip(*(coverage.segments for coverage in coverages), strict=True)
    ]


def show_separation(gate: Gate, result: audits.SeparationTable, size: int) -> None:
    """Print one row per kind of telemetry."""
    title = f"{gate.rules.plant}: batches of {size:,} rows, {len(gate.rules.invariants)} rules"
    shown = table(
        escape(title), "telemetry", "rows violating", "admitted", "95 % interval", "batches"
    )
    for row in result.rows:
        shown.add_row(
            row.kind,
            f"{row.mean_violating_share:.3%}",
            f"{row.admitted_share:.1%}",
            f"{row.low:.1%} to {row.high:.1%}",
            str(row.batches),
        )
    out.print(shown)
    out.print(
        "splicing-record cuts the whole record into 12 pieces. Most of its batches contain no "
        "join: they are genuine telemetry and are admitted."
    )
    for skipped in result.skipped:
        out.print(f"{skipped.kind} was skipped: {skipped.why}", markup=False)


def show_coverage(gate: Gate, result: audits.Coverage) -> None:
    """Print one row per attack, then the total."""
    title = f"{gate.rules.plant}, {gate.rules.profile.value} ({len(gate.rules.invariants)} rules)"
    columns = ("attack", "from", "rows", "suspect", "share", "covered", "chance", "worst rule")
    shown = table(escape(title), *columns)
    shown.columns[1].no_wrap = True
    for segment in result.segments:
        shown.add_row(
            str(segment.index),
            segment.start.replace("T", " "),
            f"{segment.rows:,}",
            f"{segment.violating_rows:,}",
            f"{segment.violating_share:.2%}",
            "yes" if segment.covered else "",
            _share(segment.chance),
            escape(segment.rule),
        )
    out.print(shown)
    missed = f" Not covered: {', '.join(map(str, result.missed))}." if result.missed else ""
    out.print(
        f"{result.covered} of {result.total} attacks are covered, and "
        f"{result.suspect_attack_rows:,} of {result.attack_rows:,} attack rows are suspect."
        f"{missed}"
    )
    out.print(
        f"{result.honest_suspect_rows:,} of {result.honest_rows:,} normal rows are suspect "
        f"({_share(result.honest_share)}). Left out of this share: {result.recovering_rows:,} rows "
        f"that follow an attack within {result.recovery_rows} rows, and "
        f"{result.unlabelled_rows:,} unlabelled rows."
    )
    if result.unread:
        out.print(
            f"No rule reads {len(result.unread)} channels, so an attack on them alone cannot be "
            f"detected: {', '.join(result.unread)}",
            markup=False,
        )


def show_ablation(result: audits.Ablation) -> None:
    """Print one row per kind of telemetry and one column per part of the rules."""
    title = "Rows violating / batches admitted"
    shown = table(title, "rules", *(f"{part.part.value} ({part.rules})" for part in result.parts))
    for rows in zip(*(part.separation.rows for part in result.parts), strict=True):
        cells = [f"{row.mean_violating_share:.2%} / {row.admitted_share:.0%}" for row in rows]
        shown.add_row(rows[0].kind, *cells)
    coverages = [part.coverage for part in result.parts if part.coverage]
    if coverages:
        shown.add_row("attacks covered", *(f"{one.covered} of {one.total}" for one in coverages))
    out.print(shown)
    for skipped in result.parts[-1].separation.skipped:
        out.print(f"{skipped.kind} was skipped: {skipped.why}", markup=False)


def _share(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.2%}"
