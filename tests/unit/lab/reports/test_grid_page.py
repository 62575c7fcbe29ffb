"""The grid's report: figures from results, the paper's beside them, and nothing from outside."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sluice.lab.reports.grid_measures import groups, removal_of, wilson
from sluice.lab.reports.grid_page import (
    LabReport,
    lab_report,
    write_lab_page,
    write_lab_summary,
    write_lab_tables,
)
from sluice.lab.reports.grid_quality import recorded_f1
from sluice.lab.reports.published import printed_removal, recorded_recall
from sluice.lab.reports.tables import (
    Column,
    ReportTable,
    as_csv,
    as_latex,
    as_part,
    without_empty_columns,
)
from sluice.lab.results.cell import Asked, CellResult, Score
from sluice.lab.results.provenance import Provenance
from sluice.lab.results.reading import stored_cells
from sluice.lab.results.store import ResultStore
from sluice.lab.results.work import GridFacts, Made, WorkRow
from sluice.reports.page import plotly_name
from tests.unit.reports.pages import Page

MAKER = Provenance(version="1", commit="abcdefabcdef0", code="k" * 32, environment="e" * 32)
MALICIOUS = ("plant-1", "plant-2")
CLIENTS = ("plant-0", *MALICIOUS)
RECALLS = {
    "clean": (0.36, 0.20),
    "honest-only": (0.30, 0.20),
    "naive": (0.10, 0.195),  # the second seed has too little damage to be informative
    "physics-aware": (0.15, 0.20),
    "gated": (0.25, 0.20),
}
SCORE = Score(
    targeted_recall=0.0,
    untargeted_recall=None,
    targeted_auc_pr=0.5,
    precision=None,
    recall=0.3,
    f1=0.4,
    auc_pr=0.5,
    oracle_best_f1=0.6,
    detected_attacks=2.0,
    attacks=3,
    median_delay_s=60.0,
    false_alarms_per_day=0.0,
    etaf1=0.1,
    influence={},
    passed={"plant-1": 1.0, "plant-2": 0.5},
)


def made(mode: str, seed: int) -> Made:
    refused = {"plant-2": ("the level stands still",)} if mode == "gated" else {}
    absent = MALICIOUS if mode == "honest-only" else tuple(refused)
    result = CellResult(
        mode=mode,
        attack="replay",
        rule="fedavg",
        seed=seed,
        admitted=tuple(client for client in CLIENTS if client not in absent),
        refused=refused,
        liars=MALICIOUS,
        score=replace(SCORE, targeted_recall=RECALLS[mode][seed]),
    )
    return Made(result=result, federation=f"{mode} {seed}", recalled=False, wall_s=1.0)


def filled(
    folder: Path, *, stand_in: str | None = None, sets: Sequence[str] = ("paper-wide",)
) -> ResultStore:
    asked = [
        Asked(
            study="removal",
            record="swat",
            stand_in=stand_in,
            clients=3,
            liars=2,
            rule="fedavg",
            attack="replay",
            mode=mode,
            invariants=invariants,
            seed=seed,
        )
        for invariants in sets
        for mode in RECALLS
        for seed in (0, 1)
    ]
    rows = [
        WorkRow(id=f"w{at}", layout="l", rule="fedavg", settings="{}", cells=((at, one),))
        for at, one in enumerate(asked)
    ]
    notes = (f"{stand_in} STANDS IN for swat",) if stand_in else ()
    store = ResultStore.create(folder, GridFacts(name="small", stand_ins=notes), rows)
    for one in asked:
        claim = store.claim("me", now=0, lease_s=60)
        assert claim is not None
        store.finish(claim, "me", made(one.mode, one.seed), made_by=MAKER, now=1)
    return store


def table(report: LabReport, slug: str) -> ReportTable:
    return next(table for table in report.tables if table.slug == slug)


def column(found: ReportTable, name: str, *, nth: int = 0) -> list[object]:
    at = [at for at, column in enumerate(found.columns) if column.name == name][nth]
    return [row[at] for row in found.rows]


def test_removal_is_worked_out_from_the_informative_seeds(tmp_path: Path) -> None:
    store = filled(tmp_path)
    (group,) = groups(stored_cells(store))
    gate = removal_of(group, "gated")
    assert gate is not None
    assert len(gate.informative) == 1
    assert gate.share == pytest.approx(1 - 0.05 / 0.20)
    removal = table(lab_report(store), "removal")
    assert column(removal, "gate removes %") == [pytest.approx(75)]
    assert column(removal, "paper", nth=2) == [71]
    assert column(removal, "difference") == [pytest.approx(4)]
    assert column(removal, "informative seeds") == ["1 of 2"]
    assert column(removal, "gated - naive") == [pytest.approx(100 * (0.15 + 0.005) / 2)]


def test_a_stand_in_is_said_loudly_and_has_no_published_figures_beside_it(tmp_path: Path) -> None:
    report = lab_report(filled(tmp_path, stand_in="treatment"))
    assert column(table(report, "removal"), "paper", nth=2) == [None]
    write_lab_page(report, tmp_path / "page.html")
    stated = Page.at(tmp_path / "page.html").section("Stand-ins")
    assert '<p class="loud warn">treatment STANDS IN for swat' in stated


def test_admission_counts_malicious_and_honest_batches_once_for_all_rules(tmp_path: Path) -> None:
    admission = table(lab_report(filled(tmp_path)), "admission")
    assert column(admission, "malicious batches admitted") == ["2 of 4"]
    assert column(admission, "honest batches refused") == ["0 of 2"]
    assert column(admission, "paper") == ["6 of 15"]


def test_the_sweep_shows_recall_lost_against_clean_and_updates_accepted(tmp_path: Path) -> None:
    sweep = table(lab_report(filled(tmp_path)), "sweep")
    assert column(sweep, "points lost") == [pytest.approx(100 * (0.26 + 0.005) / 2)]
    assert column(sweep, "malicious updates accepted") == [0.75]
    assert column(sweep, "paper") == [8.6]


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    report = lab_report(filled(tmp_path, sets=("paper-wide", "paper-narrow")))
    assert [drawn.title.partition(":")[0] for drawn in report.figures] == [
        "Damage, and damage left with the gate",
        "Damage, and damage left with the gate",
        "The coverage dial",
        "Recall lost to each attack under each aggregation rule",
    ]
    path = tmp_path / "page.html"
    write_lab_page(report, path)
    page = Page.at(path)
    assert 'name="viewport"' in page.html
    assert page.loads == [f"script src={plotly_name()}"]
    assert (tmp_path / plotly_name()).exists()
    assert len(page.figures) == 4


def test_every_table_stands_below_its_figures_and_says_what_came_out(tmp_path: Path) -> None:
    report = lab_report(filled(tmp_path, sets=("paper-wide", "paper-narrow")))
    assert all(table.finding for table in report.tables)
    write_lab_page(report, tmp_path / "page.html")
    page = Page.at(tmp_path / "page.html")
    assert page.headings == [
        "How much of the damage is removed",
        "The coverage dial",
        "Batches that the gate admits",
        "Recall lost to each attack under each aggregation rule",
        "Recall on the targeted attacks",
        "Detection quality over all attacks",
    ]
    drawn = {heading: page.section(heading).count("<figure ") for heading in page.headings}
    assert list(drawn.values()) == [2, 1, 0, 1, 0, 0]
    for heading in page.headings:
        section = page.section(heading)
        assert section.rfind("<figure ") < section.index("<table ")


def test_the_dial_sets_rule_sets_and_the_papers_figures_side_by_side(tmp_path: Path) -> None:
    dial = table(lab_report(filled(tmp_path, sets=("paper-wide", "paper-narrow"))), "dial")
    assert column(dial, "rule set") == ["paper-wide", "paper-narrow"]
    assert column(dial, "paper") == [71, 22]
    assert column(dial, "difference") == [pytest.approx(4), pytest.approx(53)]


def test_f1_stands_beside_what_the_reference_recorded(tmp_path: Path) -> None:
    quality = table(lab_report(filled(tmp_path)), "quality")
    by_mode = dict(zip(column(quality, "mode"), column(quality, "paper"), strict=True))
    assert by_mode["clean"] == pytest.approx(0.76718)
    assert by_mode["gated"] is None
    assert column(quality, "F1") == [0.4] * 5
    assert recorded_f1("simulator", "channel-roll", "fedavg", "naive") == 0.22096


def test_a_counted_share_has_wilsons_interval() -> None:
    assert wilson(6, 15) == pytest.approx((0.1982, 0.6425), abs=1e-4)
    assert wilson(0, 6)[0] == pytest.approx(0)
    assert wilson(6, 6)[1] == pytest.approx(1)


def test_tables_are_written_as_csv_and_latex(tmp_path: Path) -> None:
    written = write_lab_tables(lab_report(filled(tmp_path)), tmp_path / "tables")
    assert {path.name for path in written} >= {"removal.csv", "removal.tex", "recall.csv"}
    assert "13.8" in (tmp_path / "tables" / "removal.tex").read_text()


def test_a_summary_holds_every_table_and_what_came_out(tmp_path: Path) -> None:
    report = lab_report(filled(tmp_path, stand_in="treatment"))
    write_lab_summary(report, tmp_path / "summary.md")
    text = (tmp_path / "summary.md").read_text()
    assert text.startswith("# The grid `small` on SWaT\n")
    assert "**treatment STANDS IN for swat.** No published figure" in text
    assert "| treatment for swat | paper-wide | replay | fedavg | honest-only | 1 of 2 |" in text
    assert all(f"## {table.title}\n" in text for table in report.tables)


def test_a_table_keeps_every_digit_in_csv_and_escapes_what_it_must() -> None:
    shown = ReportTable(
        slug="t",
        title="T",
        sentence="50 % of A & B",
        columns=(Column(name="a_b"), Column(name="x", digits=1)),
        rows=(("<b>", 0.123456), ("c", None)),
    )
    assert "0.123456" in as_csv(shown)
    assert as_part(replace(shown, rows=(("d", -0.01),))).rows == (("d", "0.0"),)
    silent = replace(shown, rows=(("<b>", None), ("c", None)))
    assert [column.name for column in without_empty_columns(silent).columns] == ["a_b"]
    assert without_empty_columns(silent).rows == (("<b>",), ("c",))
    assert as_part(shown).rows == (("<b>", "0.1"), ("c", "-"))  # the page escapes it
    assert r"a\_b" in as_latex(shown)
    assert r"50 \% of A \& B" in as_latex(shown)


def test_published_figures_are_those_of_the_paper() -> None:
    printed = printed_removal("swat", "paper-wide", "replay", "median")
    assert printed is not None
    assert (printed.damage_points, printed.gate_percent) == (6.2, 103)
    assert printed_removal("swat", "paper-wide", "replay", "foolsgold") is None
    assert printed_removal("wadi", "paper-wide", "replay", "median") is None
    mean = (0.2737 + 0.2005 + 0.1305 + 0.1933 + 0.0023) / 5
    assert recorded_recall("swat", "paper-wide", "replay", "fedavg", "naive") == pytest.approx(mean)
    assert recorded_recall("batadal", "paper-wide", "replay", "fedavg", "naive") == 0.32323
    assert recorded_recall("treatment", "paper-wide", "replay", "fedavg", "naive") is None
