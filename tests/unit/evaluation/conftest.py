"""Outcomes small enough to work out by hand."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from sluice.arrays import Ints
from sluice.evaluation.outcome import Outcome

Make = Callable[..., Outcome]


@pytest.fixture(scope="session")
def make_outcome() -> Make:
    """Make an outcome of labels (0 normal, 1 attack, 2 unlabelled), and alarms or scores."""

    def make(
        labels: Sequence[int],
        alarms: Sequence[int] | None = None,
        *,
        scores: Sequence[float] | None = None,
        last_rows: Ints | None = None,
        stride_s: float = 5.0,
    ) -> Outcome:
        ringing = np.zeros(len(labels)) if alarms is None else np.asarray(alarms)
        return Outcome(
            scores=np.asarray(ringing if scores is None else scores, dtype=np.float64),
            alarms=ringing.astype(np.bool_),
            labels=np.asarray(labels, dtype=np.int8),
            last_rows=np.arange(9, 9 + len(labels)) if last_rows is None else last_rows,
            stride_s=stride_s,
        )

    return make
