"""Equation 3: a tolerance from the residuals of clean hold-out rows."""

import numpy as np

from sluice.invariants.relations import Evidence, Invariant, Relation
from sluice.invariants.residuals import residuals
from sluice.telemetry import Record

__all__ = ["ROWS_FOR_PERCENTILE", "calibrate_as_paper"]

SAFETY = 1.5
QUANTILE = 0.999
NEVER_APPLIED = 1e-6
PAPER_FLOOR = 1e-9
ROWS_FOR_PERCENTILE = 1_000
"""With fewer rows, the 99.9th percentile is hardly more than the maximum."""


def calibrate_as_paper(relation: Relation, evidence: Evidence, clean: Record) -> Invariant:
    """Return the invariant with 1.5 times the 99.9th percentile of its clean residuals."""
    on_clean = residuals(relation, clean)
    size = np.abs(on_clean.values[on_clean.applies])
    tolerance = SAFETY * float(np.quantile(size, QUANTILE)) if size.size else NEVER_APPLIED
    known = Evidence(
        r2=evidence.r2,
        support=evidence.support,
        variation=evidence.variation,
        judged_rows=int(size.size),
        few_rows=size.size < ROWS_FOR_PERCENTILE,
    )
    return Invariant(relation=relation, tolerance=max(tolerance, PAPER_FLOOR), evidence=known)
