"""Float residuals of relations on a record (the paper's arithmetic), one vectorised pass each.

No relation is evaluated across a time jump: the first row of a segment has no row before it.
"""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.invariants.relations import (
    Balance,
    Bound,
    Constant,
    Coupling,
    Mean,
    Rate,
    Relation,
    Spectrum,
    SwitchBand,
    Term,
    Tie,
    Transition,
    Window,
)
from sluice.telemetry import Record

__all__ = ["Residuals", "anchors", "block_ends", "residuals", "switch_rows", "transition_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """One residual per row, in the relation's unit, and whether it is judged on that row.

    In transition, a coupling's residual is how far the flow lies outside the settle envelope; it is
    zero inside.
    """

    values: Floats
    applies: Bools
    envelope: Bools


def residuals(  # noqa: C901, PLR0911 - one case a kind
    relation: Relation, record: Record
) -> Residuals:
    """Evaluate one relation on every row of a record."""
    match relation:
        case Coupling():
            return _coupling(relation, record)
        case Balance():
            step, known = _step(relation.level, relation.name, record)
            flow = _flow(relation.terms, relation.name, record, averaged=relation.averaged)
            return _where(step - flow - relation.constant, known)
        case Window():
            return _window(relation, record)
        case Bound():
            readings = _column(relation.channel, relation.name, record)
            outside = _outside(readings, relation.low, relation.high)
            return _where(outside, np.ones(len(record), bool))
        case Rate():
            return _where(*_step(relation.channel, relation.name, record))
        case Tie():
            readings = _column(relation.channel, relation.name, record)
            predicted = _flow(relation.terms, relation.name, record, averaged=False)
            return _where(readings - predicted - relation.constant, np.ones(len(record), bool))
        case Constant():
            readings = _column(relation.channel, relation.name, record)
            return _where(readings - relation.value, np.ones(len(record), bool))
        case SwitchBand():
            return _switch_band(relation, record)
        case Spectrum():
            return _spectrum(relation, record)
        case Mean():
            return _mean(relation, record)


def transition_rows(states: Floats, settle: int, starts: Ints) -> Bools:
    """Mark `settle` rows from each switch and from the start of each segment."""
    rows = len(states)
    switched = np.zeros(rows, bool)
    switched[1:] = states[1:] != states[:-1]
    switched[starts] = True
    if settle == 0:
        return np.zeros(rows, bool)
    last = np.maximum.accumulate(np.where(switched, np.arange(rows), -settle))
    settling: Bools = np.arange(rows) - last < settle
    return settling


def anchors(rows: int, window: int) -> Ints:
    """Return the rows at which a window rule is judged: two chains, half a window apart.

    A window across a segment start also has its anchor: under the hardened policy it counts as
    violating, so that declaring time jumps does not evade the rule.
    """
    first = np.arange(window, rows, window)
    second = np.arange(window + window // 2, rows, window)
    return np.unique(np.concatenate([first, second]))


def switch_rows(on: Bools, starts: Ints) -> tuple[Bools, Bools]:
    """Mark the rows on which an actuator switches on and off; no segment begins with a switch."""
    went_on, went_off = np.zeros(len(on), bool), np.zeros(len(on), bool)
    went_on[1:] = on[1:] & ~on[:-1]
    went_off[1:] = ~on[1:] & on[:-1]
    went_on[starts] = went_off[starts] = False
    return went_on, went_off


def block_ends(rows: int, block: int, offset: int) -> Ints:
    """Return the last rows of the whole blocks that lie side by side from row `offset` on."""
    return np.arange(offset + block - 1, rows, block)


def _coupling(relation: Coupling, record: Record) -> Residuals:
    states = np.rint(_column(relation.actuator, relation.name, record))
    flow = _column(relation.flow, relation.name, record)
    expected = np.full(len(record), np.nan)
    expected[states == relation.off] = 0.0
    for state in relation.states:
        expected[states == state.code] = state.nominal
    settling = transition_rows(states, relation.settle, record.segment_starts) | np.isnan(expected)
    standby_runs = np.zeros(len(record), bool)
    for pump, off in relation.standby:
        standby_runs |= np.rint(_column(pump, relation.name, record)) != off
    steady = flow - expected
    if relation.transition is Transition.SILENT:
        return _where(steady, ~settling & ~standby_runs)
    outside = np.minimum(flow, 0.0) + np.maximum(flow - relation.nominal, 0.0)
    judged = _where(np.where(settling, outside, steady), ~standby_runs)
    in_transition = settling & ~standby_runs
    return Residuals(values=judged.values, applies=judged.applies, envelope=in_transition)


def _window(relation: Window, record: Record) -> Residuals:
    span = relation.rows
    level = _column(relation.level, relation.name, record)
    flow = _flow(relation.terms, relation.name, record, averaged=relation.averaged)
    at, inflow, whole = _totals(flow, span, record)
    values = np.full(len(record), np.nan)
    values[at] = level[at] - level[at - span] - inflow - relation.constant * span
    return _where(values, whole)


def _mean(relation: Mean, record: Record) -> Residuals:
    """Return, at anchor rows, how far the mean of the rows before lies from the usual one."""
    readings = _column(relation.channel, relation.name, record)
    at, total, whole = _totals(readings - relation.mean, relation.rows, record)
    values = np.full(len(record), np.nan)
    values[at] = total / relation.rows
    return _where(values, whole)


def _totals(values: Floats, span: int, record: Record) -> tuple[Ints, Floats, Bools]:
    """Return the anchor rows, the sum over the window of each, and which windows are whole."""
    unknown = np.isnan(values)
    known = np.where(unknown, 0.0, values)  # one missing reading must not spoil every later total
    total = np.concatenate(([0.0], np.cumsum(known)))
    missing = np.concatenate(([0], np.cumsum(unknown)))
    at = anchors(len(record), span)
    segment = np.searchsorted(record.segment_starts, np.arange(len(record)), side="right")
    whole = np.zeros(len(record), bool)
    complete = missing[at + 1] == missing[at - span + 1]
    whole[at] = complete & (segment[at] == segment[at - span])
    return at, total[at + 1] - total[at - span + 1], whole


def _switch_band(relation: SwitchBand, record: Record) -> Residuals:
    """Return how far outside its band the reading of each switch lies."""
    states = np.rint(_column(relation.actuator, relation.name, record))
    went_on, went_off = switch_rows(np.isin(states, relation.on), record.segment_starts)
    known = ~np.isnan(states)
    known[1:] &= known[:-1].copy()
    readings = _column(relation.level, relation.name, record)
    if relation.before:
        readings = np.concatenate((readings[:1], readings[:-1]))
    at_on = _outside(readings, relation.on_low, relation.on_high)
    at_off = _outside(readings, relation.off_low, relation.off_high)
    return _where(np.where(went_on, at_on, at_off), known & (went_on | went_off))


def _spectrum(relation: Spectrum, record: Record) -> Residuals:
    """Return, on the last row of each block, how far its worse sum lies outside its limits."""
    readings = _column(relation.channel, relation.name, record)
    at = block_ends(len(record), relation.rows, relation.offset)
    blocks = readings[relation.offset : relation.offset + at.size * relation.rows]
    blocks = blocks.reshape(at.size, relation.rows)
    first = np.square(np.diff(blocks, axis=1)).sum(axis=1)
    second = np.square(np.diff(blocks, n=2, axis=1)).sum(axis=1)
    outside = np.array(
        [
            _outside(first, relation.first_low, relation.first_high),
            _outside(second, relation.second_low, relation.second_high),
        ]
    )
    worse = np.abs(np.nan_to_num(outside)).argmax(axis=0)
    values = np.full(len(record), np.nan)
    values[at] = np.where(np.isnan(first), np.nan, outside[worse, np.arange(at.size)])
    segment = np.searchsorted(record.segment_starts, np.arange(len(record)), side="right")
    whole = np.zeros(len(record), bool)
    whole[at] = segment[at] == segment[at - relation.rows + 1]
    return _where(values, whole)


def _outside(values: Floats, low: float, high: float) -> Floats:
    """Return how far values lie below (negative) or above (positive) two limits."""
    return np.minimum(values - low, 0.0) + np.maximum(values - high, 0.0)


def _step(channel: str, name: str, record: Record) -> tuple[Floats, Bools]:
    readings = _column(channel, name, record)
    step = np.empty(len(record))
    step[0] = np.nan
    np.subtract(readings[1:], readings[:-1], out=step[1:])
    known = np.ones(len(record), bool)
    known[record.segment_starts] = False
    return step, known


def _flow(terms: tuple[Term, ...], name: str, record: Record, *, averaged: bool) -> Floats:
    total = np.zeros(len(record))
    for term in terms:
        readings = _column(term.channel, name, record)
        if term.on:
            readings = np.isin(np.rint(readings), term.on).astype(np.float64)
        total += term.coefficient * readings
    if averaged:
        mean = np.full(len(record), np.nan)
        mean[1:] = (total[1:] + total[:-1]) / 2
        mean[record.segment_starts] = np.nan
        return mean
    return total


def _column(channel: str, name: str, record: Record) -> Floats:
    return record.values[:, record.index(channel, needed_by=f"rule {name!r}")]


def _where(values: Floats, applies: Bools) -> Residuals:
    """Mark rows without a residual (a reading is missing) as not judged."""
    judged = applies & ~np.isnan(values)
    return Residuals(values=values, applies=judged, envelope=np.zeros(len(values), bool))
