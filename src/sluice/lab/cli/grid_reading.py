"""The commands that read a results folder: `sluice lab status`, `export` and `report`."""

from pathlib import Path
from typing import Annotated

import typer

from sluice.cli import Json, SelfContained, emit, out, reads_folder, writes_file, writes_folder
from sluice.lab.cli.grid_words import payload, show_status
from sluice.lab.results import ResultStore, under_way

__all__ = ["Results", "export", "report", "status"]

Results = Annotated[
    Path,
    typer.Argument(
        metavar="RESULTS", help="A results folder.", click_type=reads_folder("a results folder")
    ),
]


def status(results: Results, json: Json = False) -> None:
    """Show the progress of a grid, its running cells and its failures.

    Example: [bold]sluice lab status results[/bold]
    """
    store = ResultStore(results, read_only=True)
    if json:
        emit(payload(store))
    else:
        show_status(store)
        for cell in under_way(store):
            out.print(f"running: {cell}", markup=False)
    store.close()


def export(
    results: Results,
    out_dir: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder to write to; default: the results folder.",
            click_type=writes_folder(),
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Export the results to cells.parquet and the running times to times.parquet.

    The same results give the same bytes of cells.parquet.

    Example: [bold]sluice lab export results --out tables[/bold]
    """
    from sluice.lab.results import export as export_results

    store = ResultStore(results, read_only=True)
    written = export_results(store, out_dir or results)
    store.close()
    if json:
        emit({"rows": written.rows, "cells": str(written.cells), "times": str(written.times)})
    else:
        out.print(
            f"{written.rows} cells in {written.cells}; times in {written.times}", markup=False
        )


def report(
    results: Results,
    out_file: Annotated[
        Path, typer.Option("--out", help="The HTML page to write.", click_type=writes_file())
    ],
    tables: Annotated[
        Path | None,
        typer.Option(
            help="Also write the tables as CSV and LaTeX to this folder.",
            click_type=writes_folder(),
        ),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            help="Also write a Markdown page with the same tables.", click_type=writes_file()
        ),
    ] = None,
    paper: Annotated[
        Path | None,
        typer.Option(
            help="Also write a Markdown page of the paper's grid: every published table and "
            "figure beside ours, plants that replace a record included.",
            click_type=writes_file(),
        ),
    ] = None,
    self_contained: SelfContained = False,
    json: Json = False,
) -> None:
    """Write one HTML page with all tables and figures, next to the paper's.

    Example: [bold]sluice lab report results --out report.html --tables tables[/bold]
    """
    from sluice.lab.reports import (
        lab_report,
        write_lab_page,
        write_lab_summary,
        write_lab_tables,
        write_paper_page,
    )

    store = ResultStore(results, read_only=True)
    content = lab_report(store)
    if paper:
        write_paper_page(lab_report(store, beside_stand_ins=True), paper)
    store.close()
    write_lab_page(content, out_file, self_contained=self_contained)
    written = write_lab_tables(content, tables) if tables else ()
    if summary:
        write_lab_summary(content, summary)
    done = sum(cell.result is not None for cell in content.cells)
    if json:
        emit(
            {
                "report": str(out_file),
                "cells": len(content.cells),
                "cells_done": done,
                "figures": len(content.figures),
                "tables": [str(path) for path in written],
            }
        )
    else:
        out.print(f"{out_file}: {done} of {len(content.cells)} cells", markup=False)
