"""Measurement of a batch under a rule set, in integers: the quantities that budgets limit."""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sluice.arrays import Bools, Floats, Ints
from sluice.invariants.encoding import Encoding, encode, register_of
from sluice.invariants.integers import Judged, evaluate
from sluice.invariants.repeats import repeated_rows
from sluice.invariants.ruleset import Liveness, RuleSet
from sluice.telemetry import Record, Role

__all__ = [
    "Measurement",
    "Repeated",
    "block_ranges",
    "block_starts",
    "illegal_rows",
    "levels_of",
    "measure",
    "missing_rows",
    "quiet_ranges",
    "repeated_levels",
]


Repeated = tuple[tuple[str, Bools], ...]
"""Per level: the rows of repeated stretches."""


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
    repeated: Repeated


def measure(
    rules: RuleSet,
    record: Record,
    *,
    encoding: Encoding | None = None,
    repeated: Repeated | None = None,
) -> Measurement:
    """Measure a batch; a channel that a rule reads and the batch lacks is an error.

    `repeated` states the repeated rows where they are known already: to find them takes longest.
    """
    rules.demand(record)
    encoding = encoding or encode(rules)
    judged = evaluate(encoding, record)
    missing, illegal = missing_rows(rules, record), illegal_rows(encoding, record)
    violating = missing | illegal
    violating[record.segment_starts] = True
    for found in judged:
        if not found.own_budget:
            violating |= found.violating
    return Measurement(
        rows=len(record),
        segments=len(record.segment_starts),
        judged=judged,
        missing=missing,
        illegal=illegal,
        violating=violating,
        quietest=quiet_ranges(rules, record),
        repeated=repeated_levels(rules, record) if repeated is None else repeated,
    )


def repeated_levels(rules: RuleSet, record: Record) -> Repeated:
    """Return the rows of repeated stretches of each level."""
    return tuple((level, repeated_rows(record.column(level))) for level in levels_of(rules, record))


def levels_of(rules: RuleSet, record: Record) -> tuple[str, ...]:
    """Return the levels of the rules that the record has."""
    return tuple(
        channel.name
        for channel in rules.channels
        if channel.role is Role.LEVEL and channel.name in record.names
    )


def quiet_ranges(rules: RuleSet, record: Record) -> tuple[tuple[Liveness, Ints], ...]:
    """Return each fact on liveness with its level's range over each block, in registers."""
    facts = rules.clean.liveness if rules.clean else ()
    return tuple((fact, _register_ranges(rules, fact, record)) for fact in facts)


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
