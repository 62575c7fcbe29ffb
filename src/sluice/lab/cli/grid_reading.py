"""The commands that read a results folder: `sluice lab status`, `export` and `report`."""

from pathlib import Path
from typing import Annotated

import typer

from sluice.cli import Json, emit, out
from sluice.lab.cli.grid_words import payload, tell
from sluice.lab.results import ResultStore, under_way

__all__ = ["Results", "export", "report", "status"]

Results = Annotated[Path, typer.Argument(metavar="RESULTS", help="A results folder.")]


def status(results: Results, json: Json = False) -> None:
    """Say how far a grid is and what failed.

    Example: [bold]sluice lab status results[/bold]
    """
    store = ResultStore(results, read_only=True)
    if json:
        emit(payload(store))
    else:
        tell(store)
        for asked in under_way(store):
            out.print(f"running: {asked}", markup=False)
    store.close()


def export(
    results: Results,
    out_dir: Annotated[
        Path | None, typer.Option("--out", help="Folder to write to; else the results folder.")
    ] = None,
    json: Json = False,
) -> None:
    """Write cells.parquet, the same bytes for the same results, and times.parquet beside it.

    Example: [bold]sluice lab export results --out tables[/bold]
    """
    from sluice.lab.results import export as written

    store = ResultStore(results, read_only=True)
    told = written(store, out_dir or results)
    store.close()
    if json:
        emit({"rows": told.rows, "cells": str(told.cells), "times": str(told.times)})
    else:
        out.print(f"{told.rows} cells in {told.cells}; times in {told.times}", markup=False)


def report(
    results: Results,
    out_file: Annotated[Path, typer.Option("--out", help="The page to write.")],
    tables: Annotated[
        Path | None, typer.Option(help="Folder for the tables as CSV and LaTeX.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(help="A page of Markdown with the same tables.")
    ] = None,
    json: Json = False,
) -> None:
    """Write one page with every table and figure, the paper's beside them.

    Example: [bold]sluice lab report results --out report.html --tables tables[/bold]
    """
    from sluice.lab.reports import lab_report, write_lab_page, write_lab_summary, write_lab_tables

    store = ResultStore(results, read_only=True)
    found = lab_report(store)
    store.close()
    write_lab_page(found, out_file)
    written = write_lab_tables(found, tables) if tables else ()
    if summary:
        write_lab_summary(found, summary)
    done = sum(cell.result is not None for cell in found.cells)
    if json:
        emit(
            {
                "report": str(out_file),
                "cells": len(found.cells),
                "cells_done": done,
                "figures": len(found.figures),
                "tables": [str(path) for path in written],
            }
        )
    else:
        out.print(f"{out_file}: {done} of {len(found.cells)} cells", markup=False)
