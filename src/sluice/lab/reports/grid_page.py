"""The report of a grid: all its tables and figures on one page that needs no network."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sluice.files import atomically
from sluice.lab.reports.audit_parts import audit_figures, audit_tables
from sluice.lab.reports.grid_admission import admission_table, sweep_table
from sluice.lab.reports.grid_figures import Drawn, dial_figures, removal_figures, sweep_figures
from sluice.lab.reports.grid_quality import quality_table
from sluice.lab.reports.grid_tables import dial_table, failure_table, recall_table, removal_table
from sluice.lab.reports.tables import (
    ReportTable,
    as_csv,
    as_html,
    as_latex,
    as_markdown,
    without_empty_columns,
)
from sluice.lab.results import Provenance, ResultStore, StoredCell, load_audits, stored_cells

__all__ = [
    "LabReport",
    "lab_report",
    "write_lab_page",
    "write_lab_summary",
    "write_lab_tables",
]

_TITLES = {"batadal": "BATADAL", "swat": "SWaT", "wadi": "WADI"}  # records in a page's title


@dataclass(frozen=True, slots=True, kw_only=True)
class LabReport:
    """All tables and figures of a grid."""

    name: str
    stand_ins: tuple[str, ...]
    makers: tuple[Provenance, ...]
    cells: tuple[StoredCell, ...]
    tables: tuple[ReportTable, ...]
    figures: tuple[Drawn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    title: str
    sentence: str
    body: str


def lab_report(store: ResultStore) -> LabReport:
    """Read a store and compute all tables and figures."""
    cells = stored_cells(store)
    facts = store.facts()
    sweep = sweep_table(cells)
    audits = load_audits(store.folder)
    tables = (
        *audit_tables(audits),
        removal_table(cells),
        dial_table(cells),
        admission_table(cells),
        sweep,
        recall_table(cells),
        quality_table(cells),
        failure_table(cells),
    )
    figures = (
        *audit_figures(audits.sets),
        *removal_figures(cells),
        *dial_figures(cells),
        *(sweep_figures(sweep) if sweep else ()),
    )
    return LabReport(
        name=facts.name,
        stand_ins=facts.stand_ins,
        makers=store.makers(),
        cells=cells,
        tables=tuple(table for table in tables if table is not None and table.rows),
        figures=figures,
    )


def write_lab_page(report: LabReport, path: Path) -> None:
    """Write the page."""
    import jinja2  # noqa: PLC0415 - only pages need it
    import plotly.offline  # noqa: PLC0415

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sluice.lab.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    text = environment.get_template("grid.html.j2").render(
        title=f"The grid {report.name}",
        summary=_summary(report.cells),
        stand_ins=report.stand_ins,
        makers=report.makers,
        plotly=plotly.offline.get_plotlyjs(),
        parts=_parts(report),
    )
    with atomically(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_lab_summary(report: LabReport, path: Path) -> None:
    """Write the tables with their findings as one page of Markdown."""
    named = dict.fromkeys(cell.asked.record for cell in report.cells)
    records = ", ".join(_TITLES.get(record, record) for record in named)
    made_by = "; ".join(
        f"Sluice {maker.version}, code {maker.code[:12]}" for maker in report.makers
    )
    parts = [
        f"# The grid `{report.name}` on {records}",
        (
            f"Written by `sluice lab report --summary` from the results alone ({made_by}). "
            f"{_summary(report.cells)} Columns headed *paper* contain figures printed in the paper "
            "or taken from the results files of the paper's code; differences are our figure minus "
            "the paper's figure."
        ),
        *(
            f"**{note}.** No published figure is shown beside its cells."
            for note in report.stand_ins
        ),
    ]
    for table in report.tables:
        sentence = f"{table.sentence} **{table.finding}**" if table.finding else table.sentence
        parts += [f"## {table.title}", sentence, as_markdown(without_empty_columns(table)).rstrip()]
    with atomically(path) as draft:
        draft.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def write_lab_tables(report: LabReport, folder: Path) -> tuple[Path, ...]:
    """Write every table as CSV and as LaTeX."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in report.tables:
        for suffix, text in ((".csv", as_csv(table)), (".tex", as_latex(table))):
            path = folder / f"{table.slug}{suffix}"
            with atomically(path) as draft:
                draft.write_text(text, encoding="utf-8")
            written.append(path)
    return tuple(written)


def _summary(cells: Sequence[StoredCell]) -> str:
    done = [cell for cell in cells if cell.result]
    federations = len({cell.federation for cell in done})
    records = ", ".join(dict.fromkeys(cell.asked.record for cell in cells))
    return (
        f"The page shows {len(done):,} of {len(cells):,} cells on {records}, computed from "
        f"{federations:,} federations: cells with the same plants, the same rows and the same "
        "aggregation rule share one federation."
    )


def _parts(report: LabReport) -> list[_Part]:
    """Put each table below its figures, so that the paper's numbers are near every figure."""
    numbered = list(enumerate(report.figures))
    topics = {table.slug for table in report.tables}
    parts = [_drawn(at, drawn) for at, drawn in numbered if drawn.topic not in topics]
    for table in report.tables:
        parts += [_drawn(at, drawn) for at, drawn in numbered if drawn.topic == table.slug]
        parts.append(_tabled(table))
    return parts


def _drawn(at: int, drawn: Drawn) -> _Part:
    body = drawn.figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        config={"responsive": True, "displayModeBar": False},
        div_id=f"figure-{at}",
    )
    return _Part(title=drawn.title, sentence=drawn.sentence, body=body)


def _tabled(table: ReportTable) -> _Part:
    sentence = f"{table.sentence} {table.finding}".strip()
    return _Part(title=table.title, sentence=sentence, body=as_html(without_empty_columns(table)))
