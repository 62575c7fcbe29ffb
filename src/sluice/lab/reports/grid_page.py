"""The report of a grid: all its tables and figures on one page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    as_latex,
    as_markdown,
    as_part,
    without_empty_columns,
)
from sluice.lab.results import (
    Audits,
    GridState,
    Provenance,
    ResultStore,
    StoredCell,
    load_audits,
    stored_cells,
)
from sluice.reports import (
    Drawing,
    PageSection,
    Part,
    Prose,
    ReportPage,
    Tile,
    Tone,
    write_page,
)

__all__ = [
    "LabReport",
    "lab_report",
    "write_lab_page",
    "write_lab_summary",
    "write_lab_tables",
]

_CAUTION = (
    "Recall is measured at a threshold taken from clean validation rows, without point adjustment. "
    "With few seeds the means are uncertain: look at the dashes, not at the bars."
)
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


def lab_report(store: ResultStore, *, beside_stand_ins: bool = False) -> LabReport:
    """Read a store and compute all tables and figures.

    With `beside_stand_ins`, the paper's figures of a record stand beside the cells of the plant
    that replaces it. Without, such cells have none.
    """
    asked = stored_cells(store)
    facts = store.facts()
    audits = load_audits(store.folder)
    cells, names = asked, dict[str, str]()
    if beside_stand_ins:
        names = {cell.asked.record: cell.asked.stand_in for cell in asked if cell.asked.stand_in}
        cells = tuple(replace(cell, asked=replace(cell.asked, stand_in=None)) for cell in asked)
        audits = Audits(
            sets=tuple(replace(each, stand_in=None) for each in audits.sets),
            proofs=tuple(replace(each, stand_in=None) for each in audits.proofs),
        )
    sweep = sweep_table(cells)
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
        cells=asked,
        tables=tuple(_renamed(each, names) for each in tables if each is not None and each.rows),
        figures=figures,
    )


def _renamed(table: ReportTable, stand_ins: Mapping[str, str]) -> ReportTable:
    """Return the table with the plants that replace records named beside them."""
    finding = table.finding
    for record, plant in stand_ins.items():
        finding = finding.replace(f" on {record}", f" on {plant} for {record}")
    plants = {record: f"{plant} for {record}" for record, plant in stand_ins.items()}
    rows = tuple((plants.get(str(row[0]), row[0]), *row[1:]) for row in table.rows)
    return replace(table, rows=rows, finding=finding)


def write_lab_page(report: LabReport, path: Path, *, self_contained: bool = False) -> None:
    """Write the page."""
    page = ReportPage(
        kind="Experiment grid",
        title=f"The grid {report.name}",
        lead=_summary(report.cells),
        tiles=_tiles(report),
        sections=_sections(report),
        search="tables" if report.tables else "",
        end=" ".join((*(_made_by(maker) for maker in report.makers), _CAUTION)),
    )
    write_page(page, path, self_contained=self_contained)


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


def _tiles(report: LabReport) -> tuple[Tile, ...]:
    cells = report.cells
    done = sum(cell.result is not None for cell in cells)
    failed = sum(cell.state is GridState.FAILED for cell in cells)
    records = dict.fromkeys(_TITLES.get(cell.asked.record, cell.asked.record) for cell in cells)
    return (
        Tile(
            label="cells done",
            value=f"{done:,} of {len(cells):,}",
            tone=Tone.GOOD if done == len(cells) else Tone.WARN,
        ),
        Tile(label="failed cells", value=f"{failed:,}", tone=Tone.BAD if failed else Tone.PLAIN),
        Tile(
            label="federations",
            value=f"{len({cell.federation for cell in cells if cell.result}):,}",
            note="equal cells share one",
        ),
        Tile(label="records", value=str(len(records)), note=", ".join(records)),
        Tile(
            label="tables and figures",
            value=f"{len(report.tables)} and {len(report.figures)}",
        ),
    )


def _sections(report: LabReport) -> tuple[PageSection, ...]:
    """Put each table below its figures, so that the paper's numbers are near every figure."""
    sections = []
    if report.stand_ins:
        sections.append(PageSection(title="Stand-ins", parts=_stand_ins(report.stand_ins)))
    topics = {table.slug for table in report.tables}
    for drawn in report.figures:
        if drawn.topic not in topics:
            sections.append(PageSection(title=drawn.title, parts=(_drawing(drawn),)))
    for table in report.tables:
        drawings = [_drawing(drawn) for drawn in report.figures if drawn.topic == table.slug]
        sentence = Prose(text=f"{table.sentence} {table.finding}".strip())
        parts: tuple[Part, ...] = (*drawings, sentence, as_part(without_empty_columns(table)))
        sections.append(PageSection(title=table.title, short=table.slug.capitalize(), parts=parts))
    return tuple(sections)


def _stand_ins(notes: Sequence[str]) -> tuple[Part, ...]:
    return tuple(
        Prose(
            text=f"{note}. Its cells are cells of another plant, so no published figure is shown "
            "beside them.",
            tone=Tone.WARN,
        )
        for note in notes
    )


def _drawing(drawn: Drawn) -> Drawing:
    return Drawing(figure=drawn.figure, title=drawn.title, note=drawn.sentence)


def _made_by(maker: Provenance) -> str:
    return (
        f"Made by Sluice {maker.version}, commit {maker.commit[:12]}, code {maker.code[:12]}, "
        f"environment {maker.environment[:12]}."
    )
