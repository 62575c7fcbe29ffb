"""The page of the paper's grid: what is done, what stands in, and every published item."""

from dataclasses import replace
from pathlib import Path

from sluice.lab.reports.grid_page import lab_report
from sluice.lab.reports.paper_page import PUBLISHED, write_paper_page
from sluice.lab.results.reading import StoredCell
from sluice.lab.results.store import ResultStore
from tests.unit.lab.reports.stored_cells import recalling, waiting
from tests.unit.lab.reports.test_lab_report import kept

RECALLS = {"clean": (0.5, 0.5), "honest-only": (0.5, 0.5), "naive": (0.3, 0.4), "gated": (0.5, 0.4)}


def written(folder: Path, cells: list[StoredCell]) -> str:
    kept(folder, cells, name="paper", stand_ins=("treatment STANDS IN for swat",))
    store = ResultStore(folder / "kept", read_only=True)
    write_paper_page(lab_report(store, beside_stand_ins=True), folder / "page.md")
    store.close()
    return (folder / "page.md").read_text(encoding="utf-8")


def stood_in(cells: list[StoredCell]) -> list[StoredCell]:
    return [replace(cell, asked=replace(cell.asked, stand_in="treatment")) for cell in cells]


def test_the_page_of_a_part_says_how_much_is_done_and_what_stands_in(tmp_path: Path) -> None:
    done = [cell for mode, recall in RECALLS.items() for cell in recalling(mode, recall)]
    page = written(tmp_path, stood_in([*done, waiting("physics-aware", 0)]))
    assert "**The grid is not complete**: **8 of 9 cells are done**, 0 failed." in page
    assert "**The simulated plant `treatment` stands in for swat**" in page
    assert "| treatment for swat | 8 | 9 |" in page
    assert "federations were trained, 0.0 hours of workers" in page
    assert all(f"| {item.what} | {item.shows} |" in page for item in PUBLISHED)


def test_the_papers_figures_stand_beside_the_plant_that_replaces_its_record(
    tmp_path: Path,
) -> None:
    done = stood_in([cell for mode, recall in RECALLS.items() for cell in recalling(mode, recall)])
    page = written(tmp_path, done)
    line, *_ = (
        line
        for line in page.splitlines()
        if line.startswith("| treatment for swat | paper-wide | replay | fedavg | honest-only")
    )
    cells = [cell.strip() for cell in line.split("|")]
    assert "13.8" in cells  # printed in the paper: damage to FedAvg by replay
    assert "on treatment for swat" in page
    assert " on swat" not in page
    # Without the option, no published figure stands beside another plant.
    store = ResultStore(tmp_path / "kept", read_only=True)
    tables = {table.slug: table for table in lab_report(store).tables}
    store.close()
    assert 13.8 not in tables["removal"].rows[0]


def test_an_empty_grid_has_a_page(tmp_path: Path) -> None:
    page = written(tmp_path, [waiting("clean", 0)])
    assert "**0 of 1 cells are done**" in page
    assert "No federation is done yet." in page
