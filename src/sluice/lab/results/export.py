"""Results as Parquet, one row per cell. Times have their own file: equal results, equal bytes."""

from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl
from polars._typing import SchemaDict

from sluice.errors import ResultsError, SettingError
from sluice.files import atomically
from sluice.lab.results.cell import CellResult, Score
from sluice.lab.results.database import SCHEMA
from sluice.lab.results.reading import StoredCell, stored_cells
from sluice.lab.results.store import ResultStore

__all__ = ["ExportedResults", "export"]

CELLS, TIMES = "cells.parquet", "times.parquet"

SCORES: SchemaDict = {
    "targeted_recall": pl.Float64,
    "untargeted_recall": pl.Float64,
    "targeted_auc_pr": pl.Float64,
    "precision": pl.Float64,
    "recall": pl.Float64,
    "f1": pl.Float64,
    "auc_pr": pl.Float64,
    "oracle_best_f1": pl.Float64,
    "detected_attacks": pl.Float64,
    "attacks": pl.Int64,
    "median_delay_s": pl.Float64,
    "false_alarms_per_day": pl.Float64,
    "etaf1": pl.Float64,
}
NAMES = pl.List(pl.String)
CELL_SCHEMA: SchemaDict = {
    "schema": pl.Int64,
    "study": pl.String,
    "record": pl.String,
    "stand_in": pl.String,
    "clients": pl.Int64,
    "liars": pl.Int64,
    "rule": pl.String,
    "attack": pl.String,
    "mode": pl.String,
    "invariants": pl.String,
    "seed": pl.Int64,
    "state": pl.String,
    "reason": pl.String,
    **SCORES,
    "admitted": NAMES,
    "refused": NAMES,
    "refused_because": NAMES,
    "lying": NAMES,
    "liars_admitted": pl.Int64,
    "influence_of_liars": pl.Float64,
    "work": pl.String,
    "federation": pl.String,
    "settings": pl.String,
    "version": pl.String,
    "commit": pl.String,
    "code": pl.String,
    "environment": pl.String,
}
TIME_SCHEMA: SchemaDict = {
    "work": pl.String,
    "attempts": pl.Int64,
    "recalled": pl.Boolean,
    "wall_s": pl.Float64,
    "ended": pl.Datetime("ms"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedResults:
    """The files written and the number of cells."""

    cells: Path
    times: Path
    rows: int


def export(store: ResultStore, folder: Path) -> ExportedResults:
    """Write every cell in its present state."""
    cells = stored_cells(store)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError(f"cannot create the folder {folder}: {error.strerror}") from None
    _write(pl.DataFrame([_row(cell) for cell in cells], schema=CELL_SCHEMA), folder / CELLS)
    works = {cell.work: cell for cell in cells}
    _write(
        pl.DataFrame([_time(cell) for cell in works.values()], schema=TIME_SCHEMA), folder / TIMES
    )
    return ExportedResults(cells=folder / CELLS, times=folder / TIMES, rows=len(cells))


def _write(frame: pl.DataFrame, path: Path) -> None:
    try:
        with atomically(path) as draft:
            frame.write_parquet(draft, compression="zstd", row_group_size=max(1, len(frame)))
    except pl.exceptions.ComputeError as error:
        raise SettingError(f"cannot write {path}: {error}") from None


def _row(cell: StoredCell) -> dict[str, object]:
    asked, made_by = asdict(cell.asked), cell.made_by
    return {
        "schema": SCHEMA,
        **asked,
        "state": cell.state.value,
        "reason": cell.reason,
        **(_outcome(cell.result) if cell.result else {}),
        "work": cell.work,
        "federation": cell.federation,
        "settings": cell.settings,
        **(asdict(made_by) if made_by else {}),
    }


def _outcome(result: CellResult) -> dict[str, object]:
    score: Score = result.score
    return {
        **{name: getattr(score, name) for name in SCORES},
        "admitted": list(result.admitted),
        "refused": list(result.refused),
        "refused_because": ["; ".join(reasons) for reasons in result.refused.values()],
        "lying": list(result.liars),
        "liars_admitted": result.liars_admitted,
        "influence_of_liars": sum(score.influence.get(name, 0.0) for name in result.liars),
    }


def _time(cell: StoredCell) -> dict[str, object]:
    return {
        "work": cell.work,
        "attempts": cell.attempts,
        "recalled": cell.recalled,
        "wall_s": cell.wall_s,
        "ended": None if cell.ended is None else round(cell.ended * 1000),
    }
