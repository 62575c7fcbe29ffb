"""A grid's report from a store: unfinished grids, failures, escaping, and files."""

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sluice.lab.reports.grid_page import (
    LabReport,
    lab_report,
    write_lab_page,
    write_lab_summary,
    write_lab_tables,
)
from sluice.lab.results.audited import AuditedProof, Audits, save_audits
from sluice.lab.results.provenance import Provenance
from sluice.lab.results.reading import GridState, StoredCell
from sluice.lab.results.store import ResultStore
from sluice.lab.results.work import GridFacts, Made, WorkRow
from tests.unit.lab.reports.stored_cells import ASKED, done, failed, recalling, waiting
from tests.unit.reports.pages import Page

MAKER = Provenance(version="1.2", commit="c" * 40, code="k" * 32, environment="e" * 32)
FINISHED = (
    *recalling("clean", (0.5, 0.5)),
    *recalling("naive", (0.3, 0.4)),
    *recalling("gated", (0.5, 0.4), refused=("plant-1",)),
)


def kept(
    folder: Path,
    cells: Sequence[StoredCell],
    *,
    name: str = "small",
    stand_ins: tuple[str, ...] = (),
    makers: Sequence[Provenance] = (MAKER,),
) -> LabReport:
    """The report of a store in which every cell has come to its state."""
    rows = [
        WorkRow(id=f"w{at}", layout="l", rule="fedavg", settings="{}", cells=((at, cell.asked),))
        for at, cell in enumerate(sorted(cells, key=lambda cell: cell.state is GridState.WAITING))
    ]
    store = ResultStore.create(folder / "kept", GridFacts(name=name, stand_ins=stand_ins), rows)
    for at, cell in enumerate(cell for cell in cells if cell.state is not GridState.WAITING):
        claim = store.claim("me", now=0, lease_s=60)
        assert claim is not None
        maker = makers[at % len(makers)]
        if cell.result is None:
            store.fail(claim, "me", str(cell.reason), made_by=maker, now=1)
            continue
        made = Made(result=cell.result, federation=str(cell.federation), recalled=False, wall_s=1.0)
        store.finish(claim, "me", made, made_by=maker, now=1)
    report = lab_report(store)
    store.close()
    return report


def page_of(report: LabReport, folder: Path) -> str:
    """The page without its scripts and styles."""
    write_lab_page(report, folder / "page.html")
    return Page.at(folder / "page.html").markup


def summary_of(report: LabReport, folder: Path) -> str:
    write_lab_summary(report, folder / "summary.md")
    return (folder / "summary.md").read_text(encoding="utf-8")


def test_a_grid_without_results_still_has_a_page(tmp_path: Path) -> None:
    report = kept(tmp_path, [waiting("clean", 0), waiting("naive", 0)])
    assert report.tables == ()
    assert report.figures == ()
    assert report.makers == ()
    page = page_of(report, tmp_path)
    assert '<p class="lead">The page shows 0 of 2 cells on swat, computed from 0 fed' in page
    assert "<h2>" not in page


def test_a_grid_of_failures_has_their_reasons_and_nothing_else(tmp_path: Path) -> None:
    report = kept(tmp_path, [failed("clean", 0, "<memory> ran & out")])
    assert [table.slug for table in report.tables] == ["failures"]
    page = page_of(report, tmp_path)
    assert "<h2>1 failed cells</h2>" in page
    assert "&lt;memory&gt; ran &amp; out" in page
    assert "<memory>" not in page


def test_failures_are_the_last_table_and_are_in_no_other(tmp_path: Path) -> None:
    report = kept(tmp_path, [*FINISHED, failed("naive", 2, "too short"), waiting("gated", 2)])
    assert [table.slug for table in report.tables] == [
        "removal",
        "admission",
        "sweep",
        "recall",
        "quality",
        "failures",
    ]
    seeds = {
        row[[column.name for column in table.columns].index("seeds")]
        for table in report.tables
        if any(column.name == "seeds" for column in table.columns)
        for row in table.rows
    }
    assert seeds == {2}


def test_the_summary_counts_cells_done_and_distinct_federations(tmp_path: Path) -> None:
    cells = [
        replace(FINISHED[0], federation="one"),
        replace(FINISHED[1], federation="one"),
        replace(FINISHED[2], federation="two"),
        failed("gated", 0, "why"),
    ]
    assert "3 of 4 cells on swat, computed from 2 federations:" in summary_of(
        kept(tmp_path, cells), tmp_path
    )


def test_records_are_named_once_in_the_order_of_the_grid(tmp_path: Path) -> None:
    other = replace(ASKED, record="batadal")
    cells = [done("naive", asked=other), done("naive"), done("clean", asked=other)]
    summary = summary_of(kept(tmp_path, cells), tmp_path)
    assert summary.startswith("# The grid `small` on BATADAL, SWaT\n\n")
    assert "3 of 3 cells on batadal, swat," in summary


def test_the_name_of_a_grid_and_its_stand_ins_are_escaped(tmp_path: Path) -> None:
    report = kept(tmp_path, FINISHED, name="<i>mine</i>", stand_ins=("a<b STANDS IN for c",))
    page = page_of(report, tmp_path)
    assert "<h1>The grid &lt;i&gt;mine&lt;/i&gt;</h1>" in page
    assert '<p class="loud warn">a&lt;b STANDS IN for c.' in page
    assert "<i>mine" not in page


def test_each_stand_in_is_said_on_its_own(tmp_path: Path) -> None:
    notes = ("tanks STANDS IN for swat", "line STANDS IN for wadi")
    report = kept(tmp_path, FINISHED, stand_ins=notes)
    assert page_of(report, tmp_path).count('class="loud warn"') == 2
    summary = summary_of(report, tmp_path)
    for note in notes:
        assert f"\n\n**{note}.** No published figure is shown beside its cells.\n\n" in summary


def test_every_maker_of_a_result_is_named(tmp_path: Path) -> None:
    later = replace(MAKER, version="1.3", code="m" * 32)
    report = kept(tmp_path, FINISHED, makers=(MAKER, later))
    page = re.sub(r"\s+", " ", page_of(report, tmp_path))
    for maker in (MAKER, later):
        assert (
            f"Made by Sluice {maker.version}, commit {'c' * 12}, code {maker.code[:12]}, "
            f"environment {'e' * 12}."
        ) in page
    assert f"(Sluice 1.2, code {'k' * 12}; Sluice 1.3, code {'m' * 12})" in summary_of(
        report, tmp_path
    )


def test_audits_come_before_everything_else(tmp_path: Path) -> None:
    kept(tmp_path, FINISHED)
    proof = AuditedProof(
        record="swat",
        stand_in=None,
        system="full",
        rows=10,
        constraints=1,
        proven_bits=100,
        prove_s=0.1,
        peak_mb=1.0,
        verify_ms=1.0,
        proof_bytes=1,
    )
    save_audits(tmp_path / "kept", Audits(proofs=(proof,)))
    report = lab_report(ResultStore(tmp_path / "kept", read_only=True))
    assert [table.slug for table in report.tables][:2] == ["proofs", "removal"]


def test_a_figure_whose_table_is_absent_comes_first(tmp_path: Path) -> None:
    report = kept(tmp_path, FINISHED)
    alone = replace(report, tables=tuple(table for table in report.tables if table.slug != "sweep"))
    headings = re.findall(r"<h2>([^<:]+)", page_of(alone, tmp_path))
    assert headings[0] == "Recall lost to each attack under each aggregation rule"
    assert headings[1:] == [table.title for table in alone.tables]


def test_every_figure_of_a_page_has_a_name_of_its_own(tmp_path: Path) -> None:
    report = kept(tmp_path, FINISHED)
    names = re.findall(r'<div class="plot" id="([^"]+)"', page_of(report, tmp_path))
    assert len(names) == len(set(names)) == len(report.figures) == 2


def test_tables_on_a_page_and_in_the_summary_have_no_empty_column(tmp_path: Path) -> None:
    report = kept(tmp_path, recalling("naive", (0.5,), asked=replace(ASKED, record="tanks")))
    (recall, quality) = report.tables
    assert [column.name for column in recall.columns].count("paper") == 1
    assert [column.name for column in quality.columns].count("paper") == 2
    summary = summary_of(report, tmp_path)
    assert "| record | rule set | attack | rule | seeds | naive |\n" in summary
    assert "paper |" not in summary
    assert ">paper<" not in page_of(report, tmp_path)


def test_a_finding_is_bold_in_the_summary_and_plain_on_the_page(tmp_path: Path) -> None:
    report = kept(tmp_path, FINISHED)
    summary, page = summary_of(report, tmp_path), page_of(report, tmp_path)
    for table in report.tables:
        if table.finding:
            assert f"{table.sentence} **{table.finding}**\n" in summary
    finding = (
        "In total, the gate admits 2 of 4 malicious batches and refuses 0 of 2 honest batches."
    )
    assert f"malicious batches admitted. {finding}</p>" in page


def test_each_table_is_written_as_csv_then_latex_with_every_column(tmp_path: Path) -> None:
    report = kept(tmp_path, FINISHED)
    folder = tmp_path / "a" / "tables"
    written = write_lab_tables(report, folder)
    assert [path.name for path in written] == [
        f"{table.slug}{suffix}" for table in report.tables for suffix in (".csv", ".tex")
    ]
    for table in report.tables:
        with (folder / f"{table.slug}.csv").open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        assert head == [column.name for column in table.columns]
        assert len(rows) == len(table.rows)
        text = (folder / f"{table.slug}.tex").read_text(encoding="utf-8")
        assert rf"\label{{tab:{table.slug}}}" in text


def test_the_report_of_the_same_store_is_the_same_twice(tmp_path: Path) -> None:
    first = summary_of(kept(tmp_path, FINISHED), tmp_path)
    again = lab_report(ResultStore(tmp_path / "kept", read_only=True))
    assert summary_of(again, tmp_path) == first


@pytest.mark.parametrize("mode", ["clean", "local-only"])
def test_a_grid_without_attacks_has_recall_and_quality_alone(tmp_path: Path, mode: str) -> None:
    report = kept(tmp_path, [done(mode, asked=replace(ASKED, attack=None, invariants=None))])
    assert [table.slug for table in report.tables] == ["recall", "quality"]
    assert report.figures == ()
