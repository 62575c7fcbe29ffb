"""Window rules: a balance summed over more rows detects slower manipulation."""

import numpy as np

from sluice.arrays import Floats
from sluice.invariants.relations import Balance, Window
from sluice.invariants.residuals import residuals
from sluice.telemetry import Record

__all__ = ["sliding_residuals", "window_lengths", "window_of"]

SHORTEST = 4
LONGEST_SHARE = 1 / 20  # of the calibration rows
LONGEST = 1_024
MOST_WINDOWS = 3
SHARPER = 2.0  # a longer window must detect ramps this much slower than the one before
SAFETY = 1.5
QUANTILE = 0.999


def window_of(balance: Balance, rows: int) -> Window:
    """Return the balance as a rule over several rows."""
    return Window(
        name=f"{balance.name}/{rows}",
        level=balance.level,
        terms=balance.terms,
        constant=balance.constant,
        rows=rows,
        averaged=balance.averaged,
    )


def window_lengths(balance: Balance, clean: Record) -> tuple[int, ...]:
    """Return the lengths at which the slowest detectable ramp at least halves each time."""
    ramp = _tolerance(sliding_residuals(balance, clean, 1))
    chosen: list[int] = []
    rows = SHORTEST
    while rows <= min(LONGEST, len(clean) * LONGEST_SHARE) and len(chosen) < MOST_WINDOWS:
        slower = _tolerance(sliding_residuals(balance, clean, rows)) / rows
        if slower * SHARPER <= ramp:
            chosen.append(rows)
            ramp = slower
        rows *= 2
    return tuple(chosen)


def sliding_residuals(balance: Balance, clean: Record, rows: int) -> Floats:
    """Return the balance's residual over every stretch of rows that crosses no time jump."""
    step = residuals(balance, clean)
    total = np.concatenate(([0.0], np.cumsum(np.where(step.applies, step.values, 0.0))))
    known = np.concatenate(([0], np.cumsum(step.applies)))
    whole = known[rows:] - known[:-rows] == rows
    summed: Floats = (total[rows:] - total[:-rows])[whole]
    return summed


def _tolerance(summed: Floats) -> float:
    return SAFETY * float(np.quantile(np.abs(summed), QUANTILE)) if summed.size else np.inf
