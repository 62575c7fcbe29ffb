"""Measurement of a batch under a rule set, in integers: the quantities that budgets limit."""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sluice.arrays import Bools, Floats, Ints
from sluice.invariants.encoding import Encoding, encode, register_of
from sluice.invariants.integers import Judged, evaluate
from sluice.invariants.ruleset import Liveness, RuleSet
from sluice.telemetry import Record, Role

__all__ = [
    "REPEAT_ROWS",
    "Measurement",
    "block_ranges",
    "block_starts",
    "illegal_rows",
    "measure",
    "missing_rows",
    "repeated_rows",
]

REPEAT_ROWS = 12
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The measured quantities of a batch."""

    rows: int
    segments: int
    judged: tuple[Judged, ...]  # every rule on every row; some at their anchors alone
    missing: Bools  # rows in which a rule's reading is missing or of bad quality
    illegal: Bools  # rows in which an actuator shows a code it does not have
    violating: Bools  # rows that break a row rule, are missing or illegal, or start a segment
    quietest: tuple[tuple[Liveness, Ints], ...]  # a level's range over each block, in registers
    repeated: tuple[tuple[str, Bools], ...]  # per level: rows of repeated stretches


def measure(rules: RuleSet, record: Record, *, encoding: Encoding | None = None) -> Measurement:
    """Measure a batch; a channel that a rule reads and the batch lacks is an error."""
    rules.demand(record)
    encoding = encoding or encode(rules)
    judged = evaluate(encoding, record)
    missing, illegal = missing_rows(rules, record), illegal_rows(encoding, record)
    violating = missing | illegal
    violating[record.segment_starts] = True
    for found in judged:
        if not found.own_budget:
            violating |= found.violating
    facts = rules.clean.liveness if rules.clean else ()
    return Measurement(
        rows=len(record),
        segments=len(record.segment_starts),
        judged=judged,
        missing=missing,
        illegal=illegal,
        violating=violating,
        quietest=tuple((fact, _register_ranges(rules, fact, record)) for fact in facts),
        repeated=tuple(
            (channel.name, repeated_rows(record.column(channel.name)))
            for channel in rules.channels
            if channel.role is Role.LEVEL and channel.name in record.names
        ),
    )


def block_starts(rows: int, block: int) -> Ints:
    """Return where blocks begin: four staggered chains, a quarter block apart.

    Any stretch of five quarters of a block holds one whole block.
    """
    step = max(1, block // 4)
    return np.arange(0, max(0, rows - block + 1), step)


def block_ranges(readings: Floats, block: int) -> Floats:
    """Return max - min over each block of rows; missing readings are ignored."""
    starts = block_starts(len(readings), block)
    if starts.size == 0:
        return np.empty(0)
    blocks = sliding_window_view(readings, block)[starts]
    spread = np.fmax.reduce(blocks, axis=1) - np.fmin.reduce(blocks, axis=1)
    return np.asarray(np.nan_to_num(spread, nan=0.0), np.float64)


def _register_ranges(rules: RuleSet, fact: Liveness, record: Record) -> Ints:
    registers = register_of(rules.channel(fact.level)).quantise(record.column(fact.level))
    return block_ranges(registers.astype(np.float64), fact.rows).astype(np.int64)


def repeated_rows(readings: Floats) -> Bools:
    """Mark rows of a stretch of readings that repeats an earlier one, digit by digit.

    A replayed sensor does this; a live one never shows the same dozen readings twice.
    Stretches in which the reading hardly changes are skipped, because they repeat by chance.
    """
    rows = len(readings)
    marked = np.zeros(rows, bool)
    if rows < 2 * REPEAT_ROWS:
        return marked
    hashed = np.zeros(rows - REPEAT_ROWS + 1, np.uint64)
    bits = np.ascontiguousarray(readings).view(np.uint64)
    for offset in range(REPEAT_ROWS):
        hashed = hashed * HASH_FACTOR + bits[offset : offset + len(hashed)]
        hashed ^= hashed >> np.uint64(31)
    changes = np.concatenate(([0], np.cumsum(np.diff(readings, prepend=np.nan) != 0)))
    lively = changes[REPEAT_ROWS:] - changes[:-REPEAT_ROWS] >= REPEAT_ROWS * 3 // 4
    at = np.flatnonzero(lively)
    order = at[np.argsort(hashed[at], kind="stable")]
    same = hashed[order[1:]] == hashed[order[:-1]]
    for start in order[1:][same]:  # only the later copy: the first may be the original
        marked[start : start + REPEAT_ROWS] = True
    return marked


def missing_rows(rules: RuleSet, record: Record) -> Bools:
    """Mark rows in which a reading that a rule needs is missing."""
    read = sorted({name for rule in rules.invariants for name in rule.relation.channels})
    columns = [record.index(name) for name in read]
    return np.asarray(np.isnan(record.values[:, columns]).any(axis=1))


def illegal_rows(encoding: Encoding, record: Record) -> Bools:
    """Mark rows in which an actuator shows a code that it does not have."""
    illegal = np.zeros(len(record), bool)
    for channel in encoding.actuators:
        assert channel.codes is not None
        readings = record.column(channel.name)
        legal = np.isin(readings, sorted(channel.codes.legal))
        illegal |= ~legal & ~np.isnan(readings)
    return illegal
