"""`gate`: mining a plant's record and judging a long one, beside a rival and one memory pass.

All are measured in one process, in turns, and the fastest of several times counts, because other
load on the machine only adds time.
"""

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.speed import pandas_gate
from sluice.admission import Gate, PaperPolicy, Verdict
from sluice.errors import SettingError
from sluice.invariants import Profile, RuleSet
from sluice.invariants.mining import mine
from sluice.lab.plants import simulate
from sluice.telemetry import Record

__all__ = ["GateBench", "Timing", "bench_gate"]

STARTUP_S = 21_600
THINNED = 5
SHARE = 0.15  # of the rows to fit on, and as many to calibrate on
FEWEST_ROWS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The shortest time and the peak memory of one task."""

    seconds: float
    peak_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GateBench:
    """Costs of mining a record; of judging a longer one with our gate and pandas; of one read."""

    mined_rows: int
    rows: int
    rules: int
    channels_read: int
    violating_rows: int
    mining: Timing
    ours: Timing
    pandas: Timing
    one_pass: Timing


def bench_gate(*, rows: int, repeats: int) -> GateBench:
    """Measure; raise `AssertionError` if the two gates name different rows."""
    if rows < FEWEST_ROWS:
        raise SettingError(
            f"the bench judges at least {FEWEST_ROWS} rows, got {rows}; set --rows higher"
        )
    record = simulate("treatment", seed=0).without_first(STARTUP_S).every(THINNED)
    share = int(SHARE * len(record))
    fit, calibration = record.rows(0, share), record.rows(share, 2 * share)
    rules = mine(fit, calibration, profile=Profile.PAPER_WIDE)
    batch = _repeated(record, rows)
    gate = Gate.of(rules, PaperPolicy())
    frame = pandas_gate.frame_of(batch)
    read = [batch.column(name) for name in _channels(rules)]

    verdict = gate.judge(batch)
    _demand_agreement(verdict, pandas_gate.judge(frame, rules))

    (mining,) = _least(
        [lambda: mine(fit, calibration, profile=Profile.HARDENED)], repeats=min(repeats, 2)
    )
    ours, pandas, one_pass = _least(
        [
            lambda: gate.judge(batch),
            lambda: pandas_gate.judge(frame, rules),
            lambda: [column.sum() for column in read],
        ],
        repeats=repeats,
    )
    return GateBench(
        mined_rows=len(record),
        rows=rows,
        rules=len(rules.invariants),
        channels_read=len(read),
        violating_rows=verdict.violating_rows,
        mining=mining,
        ours=ours,
        pandas=pandas,
        one_pass=one_pass,
    )


def _channels(rules: RuleSet) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(name for rule in rules.invariants for name in rule.relation.channels)
    )


def _demand_agreement(verdict: Verdict, rival: pandas_gate.Judgement) -> None:
    differing = int((verdict.violating != rival.violating.to_numpy()).sum())
    broken = tuple(finding.violating_rows for finding in verdict.findings)
    judged = tuple(
        round((1 - finding.inapplicable_share) * verdict.rows) for finding in verdict.findings
    )
    if differing or (broken, judged) != (rival.broken_rows, rival.judged_rows):
        raise AssertionError(f"the gate and its pandas rival differ: on {differing} rows")


def _repeated(record: Record, rows: int) -> Record:
    """Repeat the record, at one stride, to a length of `rows` rows."""
    values = np.empty((rows, len(record.channels)), order="F")
    for column in range(len(record.channels)):
        values[:, column] = np.resize(record.values[:, column], rows)
    stride = np.timedelta64(round(record.stride_s * 1e6), "us")
    return replace(
        record,
        values=values,
        times=record.times[0] + np.arange(rows) * stride,
        labels=np.resize(record.labels, rows),
    )


def _least(tasks: list[Callable[[], object]], *, repeats: int) -> list[Timing]:
    """Time each task in turn, `repeats` times; then measure its memory, which slows it down."""
    seconds = [np.inf] * len(tasks)
    for _ in range(repeats):
        for index, task in enumerate(tasks):
            began = time.perf_counter()
            task()
            seconds[index] = min(seconds[index], time.perf_counter() - began)
    return [
        Timing(seconds=taken, peak_bytes=_peak(task))
        for taken, task in zip(seconds, tasks, strict=True)
    ]


def _peak(task: Callable[[], object]) -> int:
    """Return the peak memory that Python and NumPy allocate during a task."""
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
