"""Which rows break which rule, in the paper's arithmetic, close to the speed of memory.

`residuals` says the same relation by relation and is the reference. The two kinds of rule that the
paper's profiles consist of are judged faster here; any other, and a short record, is left to it.

A coupling is judged by stretches: an actuator shows one code for a long time, and where the largest
and the smallest flow meanwhile are within tolerance, so is every flow between, since rounding is
monotone. Only the rows of other stretches are looked at. A balance is judged by blocks of rows, so
that a channel which several balances read comes from memory once. Operations and their order are
those of `residuals`: both name the same rows to the last bit.
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
"""A record of fewer rows is in the cache anyway, and the fewer calls the better."""

STRETCH_ROWS = 256
"""The most rows that are looked at again for one violation among them."""

LONG_ROWS = 262_144
"""From here on threads are worth starting."""

THREADS = os.cpu_count() or 1

BLOCK_ROWS = 262_144
"""2 MiB a buffer: with smaller blocks the threads wait for the interpreter's lock."""


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
    """Every rule on every row, and the rows that break any."""

    violating: Bools
    rules: tuple[RuleRows, ...]


def violations(rules: RuleSet, record: Record) -> RowCheck:
    """Tell the rows beyond tolerance; where a reading is missing a rule is not judged."""
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
    _do(work, threads=THREADS if len(record) >= LONG_ROWS else 1)
    for tally in tallies:
        np.logical_or(violating, tally.broken, out=violating)
    return RowCheck(violating=violating, rules=tuple(tally.result() for tally in tallies))


def _do(work: list[Callable[[], None]], *, threads: int) -> None:
    """Do it all; NumPy lets go of the interpreter in long operations, so threads do help there."""
    if threads == 1:
        for part in work:
            part()
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(part) for part in reversed(work)]:  # balances, the longest, first
            done.result()


class _Tally:
    """What one rule has found so far."""

    def __init__(self, rule: Invariant, broken: Bools) -> None:
        self.rule = rule
        self.broken = broken
        self.applicable = 0
        self.envelope = 0
        self._counting = Lock()

    def judged(self, rows: int) -> None:
        """Count rows on which the rule was judged, from whichever thread judged them."""
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
    """A record cut into stretches of one actuator code each, one after the other."""

    starts: Ints
    stops: Ints
    since: Ints  # the row at which the actuator switched to the code, or the segment began
    codes: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steady:
    """The stretches on which a coupling is judged, and the flow that goes with each."""

    starts: Ints
    stops: Ints
    expected: Floats


def _codes(actuator: str, record: Record) -> _Codes:
    """Cut the record wherever the actuator may have switched, and often enough in between."""
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


def _steady(coupling: Coupling, shown: _Codes) -> _Steady:
    expected = np.full(len(shown.codes), np.nan)
    expected[shown.codes == coupling.off] = 0.0
    for state in coupling.states:
        expected[shown.codes == state.code] = state.nominal
    starts = np.maximum(shown.starts, shown.since + coupling.settle)
    judged = (starts < shown.stops) & ~np.isnan(expected)
    return _Steady(starts=starts[judged], stops=shown.stops[judged], expected=expected[judged])


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
    """Tell the stretches on which a flow is beyond tolerance or missing."""
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
    """Judge every balance on a block of rows before the next block comes from memory."""
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
    """Return what the terms say the level should do, in `total`; `part` is spent."""
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
    """Return the change since the row before; the record's first row has none before it."""
    first = 1 if rows.start == 0 else 0
    later = level[rows.start + first : rows.stop]
    np.subtract(later, level[rows.start + first - 1 : rows.stop - 1], out=out[first:])
    return out
