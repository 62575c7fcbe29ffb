"""Slow noise is noticed in a level that others explain, and not in one that wanders by itself."""

import numpy as np
import pytest

from benchmarks.red_team.detectability import Noticed, noticed, page
from sluice.seeding import stream
from sluice.telemetry import Channel, Record, Role

ROWS = 1_600


def record() -> Record:
    rng = stream(1, "detectability test")
    drive = np.cumsum(rng.normal(size=ROWS))
    wander = np.empty(ROWS)
    state = 0.0
    for row, shock in enumerate(rng.normal(size=ROWS)):
        state = 0.95 * state + shock
        wander[row] = state
    explained = 2.0 * drive + 0.01 * rng.normal(size=ROWS)
    return Record(
        name="two tanks",
        channels=(
            Channel(name="L1", role=Role.LEVEL),
            Channel(name="L2", role=Role.LEVEL),
            Channel(name="F1", role=Role.FLOW),
        ),
        values=np.column_stack([explained, wander, drive]),
        times=np.datetime64("2026-01-01", "us") + np.arange(ROWS) * np.timedelta64(1, "h"),
        stride_s=3_600.0,
        labels=np.zeros(ROWS, np.int8),
    )


def test_noise_is_noticed_where_other_channels_explain_a_level() -> None:
    found = noticed(record(), "L1", 0.1, rows=200)
    assert found.gaussian > 0.99
    assert found.measured > 0.99


def test_noise_is_not_noticed_in_a_level_that_moves_as_the_noise_does() -> None:
    found = noticed(record(), "L2", 0.1, rows=200)
    assert found.gaussian < 0.05
    assert found.measured < 0.2


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(SystemExit, match="too few batches"):
        noticed(record(), "L1", 0.1, rows=800)


def test_the_page_has_a_row_for_each_level() -> None:
    found = [
        Noticed(name=name, size=size, gaussian=0.04, measured=0.5)
        for name in ("L1", "L2")
        for size in (0.1, 0.3)
    ]
    lines = page(found, 200).splitlines()
    assert "| L1 | 4% | 50% | 4% | 50% |" in lines
    assert lines[-1].startswith("| L2 |")
