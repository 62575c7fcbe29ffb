"""Results are what cells came to: kept in a store, exported as Parquet, read by reports."""

from sluice.results.cell import Asked, CellResult, Score

__all__ = ["Asked", "CellResult", "Score"]
