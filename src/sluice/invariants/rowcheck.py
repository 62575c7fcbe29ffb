"""Finds the rows that break each rule, in the paper's arithmetic, close to memory bandwidth.

`residuals` is the reference. This module evaluates the two kinds of rule of the paper's profiles
faster; for other rules and for short records it uses `residuals`.

A coupling is judged by stretches with one actuator code. Where the largest and the smallest flow of
a stretch are within tolerance, so is every flow between, since rounding is monotone. Only the rows
of the other stretches are evaluated. A balance is judged by blocks of rows, so that a channel which
several balances read is loaded from memory once. Operations and their order are those of
`residuals`: both mark the same rows to the last bit.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.invariants.relations import Balance, Coupling, Invariant, Transition
from sluice.invariants.residuals import residuals
from sluice.invariants.ruleset import RuleSet
from sluice.telemetry import Record

__all__ = ["RowCheck", "RuleRows", "violations"]

SHORT_ROWS = 8_192
"""A record of fewer rows fits in the cache; there, fewer calls are faster."""

STRETCH_ROWS = 256
"""The most rows that one violation among them causes to be evaluated."""

LONG_ROWS = 262_144
"""With this many rows or more, threads save time."""

THREADS = os.cpu_count() or 1

BLOCK_ROWS = 262_144
"""2 MiB per buffer: with smaller blocks the threads wait for the interpreter lock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRows:
    """One rule on every row of a record."""

    rule: Invariant
    broken: Bools
    violating_rows: int
    applicable_rows: int
    envelope_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCheck:
    """Every rule on every row, and the rows that break at least one."""

    violating: Bools
    rules: tuple[RuleRows, ...]


def violations(rules: RuleSet, record: Record) -> RowCheck:
    """Mark the rows beyond tolerance; a rule is not judged where a reading is missing."""
    rules.demand(record)
    violating, *masks = np.zeros((1 + len(rules.invariants), len(record)), bool)
    tallies = tuple(map(_Tally, rules.invariants, masks))
    short = len(record) < SHORT_ROWS
    work: list[Callable[[], None]] = []
    balances: list[tuple[_Tally, Balance]] = []
    for tally in tallies:
        match tally.rule.relation:
            case Coupling(transition=Transition.SILENT, standby=()) as coupling if not short:
                work.append(partial(_judge_coupling, coupling, record, tally))
            case Balance(averaged=False) as balance if not short and _plain(balance):
                balances.append((tally, balance))
            case _:
                work.append(partial(_judge_as_reference, record, tally))
    if balances:
        record.segment_starts  # noqa: B018 - computed once here, not by every thread
        share = -(-len(record) // (BLOCK_ROWS * THREADS)) * BLOCK_ROWS
        work += [
            partial(_judge_balances, balances, record, range(at, min(at + share, len(record))))
            for at in range(0, len(record), share)
        ]
    _run(work, threads=THREADS if len(record) >= LONG_ROWS else 1)
    for tally in tallies:
        np.logical_or(violating, tally.broken, out=violating)
    return RowCheck(violating=violating, rules=tuple(tally.result() for tally in tallies))


def _run(work: list[Callable[[], None]], *, threads: int) -> None:
    """Run all parts; threads help because NumPy's long operations release the interpreter lock."""
    if threads == 1:
        for part in work:
            part()
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(part) for part in reversed(work)]:  # balances, the longest, first
            done.result()


class _Tally:
    """The result of one rule so far."""

    def __init__(self, rule: Invariant, broken: Bools) -> None:
        self.rule = rule
        self.broken = broken
        self.applicable = 0
        self.envelope = 0
        self._counting = Lock()

    def judged(self, rows: int) -> None:
        """Count rows on which the rule was judged; several threads may call this."""
        with self._counting:
            self.applicable += rows

    def result(self) -> RuleRows:
        return RuleRows(
            rule=self.rule,
            broken=self.broken,
            violating_rows=int(np.count_nonzero(self.broken)),
            applicable_rows=self.applicable,
            envelope_rows=self.envelope,
        )


def _judge_as_reference(record: Record, tally: _Tally) -> None:
    found = residuals(tally.rule.relation, record)
    tally.broken[:] = found.applies & (np.abs(found.values) > tally.rule.tolerance)
    tally.applicable = int(np.count_nonzero(found.applies))
    tally.envelope = int(np.count_nonzero(found.envelope))


# -- couplings ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Codes:
    """A record cut into consecutive stretches of one actuator code each."""

    starts: Ints
    stops: Ints
    since: Ints  # the row at which the actuator switched to the code, or the segment began
    codes: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steady:
    """The stretches on which a coupling is judged, and the flow expected on each."""

    starts: Ints
    stops: Ints
    expected: Floats


def _codes(actuator: str, record: Record) -> _Codes:
    """Cut the record where the actuator may have switched, and every `STRETCH_ROWS` rows."""
    readings = record.column(actuator)
    cut = np.empty(len(record), bool)
    np.not_equal(readings[1:], readings[:-1], out=cut[1:])
    cut[::STRETCH_ROWS] = True
    cut[record.segment_starts] = True
    starts = np.flatnonzero(cut)
    codes = np.rint(readings[starts])
    switched = np.isin(starts, record.segment_starts)
    switched[1:] |= codes[1:] != codes[:-1]
    return _Codes(
        starts=starts,
        stops=np.append(starts[1:], len(record)),
        since=np.maximum.accumulate(np.where(switched, starts, 0)),
        codes=codes,
    )


def _steady(coupling: Coupling, cut: _Codes) -> _Steady:
    expected = np.full(len(cut.codes), np.nan)
    expected[cut.codes == coupling.off] = 0.0
    for state in coupling.states:
        expected[cut.codes == state.code] = state.nominal
    starts = np.maximum(cut.starts, cut.since + coupling.settle)
    judged = (starts < cut.stops) & ~np.isnan(expected)
    return _Steady(starts=starts[judged], stops=cut.stops[judged], expected=expected[judged])


def _judge_coupling(coupling: Coupling, record: Record, tally: _Tally) -> None:
    steady = _steady(coupling, _codes(coupling.actuator, record))
    flow = record.column(coupling.flow)
    lengths = steady.stops - steady.starts
    doubtful = _doubtful(steady, flow, tally.rule.tolerance)
    starts, counts = steady.starts[doubtful], lengths[doubtful]
    rows = np.arange(counts.sum()) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    residual = flow[rows] - np.repeat(steady.expected[doubtful], counts)
    tally.broken[rows] = np.abs(residual) > tally.rule.tolerance
    tally.applicable = int(lengths.sum()) - int(np.count_nonzero(np.isnan(residual)))


def _doubtful(steady: _Steady, flow: Floats, tolerance: float) -> Bools:
    """Mark the stretches on which a flow is beyond tolerance or missing."""
    passing = np.ones(len(steady.starts), bool)
    edges = np.column_stack([steady.starts, steady.stops]).ravel()
    for extreme in (np.maximum, np.minimum) if edges.size else ():
        ends = extreme.reduceat(flow[: edges[-1]], edges[:-1])[::2]
        passing &= np.abs(ends - steady.expected) <= tolerance
    return ~passing


# -- balances -----------------------------------------------------------------------------------


def _plain(balance: Balance) -> bool:
    return not any(term.on for term in balance.terms)


def _judge_balances(balances: list[tuple[_Tally, Balance]], record: Record, span: range) -> None:
    """Judge every balance on a block of rows before loading the next block."""
    size = min(BLOCK_ROWS, len(span))
    flow, part, known = np.empty(size), np.empty(size), np.empty(size, bool)
    for start in range(span.start, span.stop, size):
        rows = slice(start, min(start + size, span.stop))
        count = rows.stop - start
        first, last = np.searchsorted(record.segment_starts, (start, rows.stop))
        jumps = record.segment_starts[first:last] - start
        for tally, balance in balances:
            expected = _flow(balance, record, rows, flow[:count], part[:count])
            residual = _step(record.column(balance.level), rows, part[:count])
            residual[jumps] = np.nan
            np.subtract(residual, expected, out=residual)
            np.subtract(residual, balance.constant, out=residual)
            judged = np.equal(residual, residual, out=known[:count])
            tally.judged(int(np.count_nonzero(judged)))
            np.abs(residual, out=residual)
            np.greater(residual, tally.rule.tolerance, out=tally.broken[rows])


def _flow(balance: Balance, record: Record, rows: slice, total: Floats, part: Floats) -> Floats:
    """Return the change of level that the terms predict, in `total`; `part` is overwritten."""
    if not balance.terms:
        total[:] = 0.0
    for index, term in enumerate(balance.terms):
        readings = record.column(term.channel)[rows]
        if index == 0:
            np.multiply(readings, term.coefficient, out=total)
        else:
            np.add(total, np.multiply(readings, term.coefficient, out=part), out=total)
    return total


def _step(level: Floats, rows: slice, out: Floats) -> Floats:
    """Return the change since the previous row; the record's first row has none and is not set."""
    first = 1 if rows.start == 0 else 0
    later = level[rows.start + first : rows.stop]
    np.subtract(later, level[rows.start + first - 1 : rows.stop - 1], out=out[first:])
    return out
