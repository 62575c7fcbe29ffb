"""Point-adjusted F1, for comparison with the literature that reports it."""

import numpy as np

from sluice.evaluation.outcome import Outcome
from sluice.evaluation.windows import hits

__all__ = ["point_adjusted_f1"]


def point_adjusted_f1(outcome: Outcome) -> float:
    """Return F1 after every attack with at least one alarm is counted as fully detected.

    This metric is misleading, so Sluice reports it only on request: a random alarm eventually hits
    a long attack and is then credited with all of it. On a record with long attacks, random alarms
    on 1 % of windows reach 0.9 where their F1 is below 0.03; Kim and others (AAAI 2022) show why.
    """
    attacks = outcome.attacks
    hit = attacks.counts(outcome.alarms) > 0
    granted = np.zeros(len(outcome) + 1, dtype=np.int64)
    granted[attacks.starts[hit]] += 1
    granted[attacks.stops[hit]] -= 1
    return hits(outcome.alarms | (np.cumsum(granted)[:-1] > 0), outcome.attack).f1
