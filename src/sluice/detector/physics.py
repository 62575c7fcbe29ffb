"""A plant's own rules as a detector: how far each row is from what its physics allows.

Every check of the gate gives one number per row, in multiples of what clean rows showed: 1 is the
largest that counts as clean.

- A row rule: the residual over its tolerance.
- A rule that is judged on some rows only, such as a window rule at its anchors: its residual counts
  in full for as long as such a row is in the detector's window.
- Liveness: half the smallest clean range of a level over a block, divided by the range of the last
  whole block.
- Repeats: 1 from the row on at which a stretch of readings has repeated an earlier one.
- Codes: 2 on a row in which an actuator shows a code that it does not have.

A row's value uses no later row, so a score is the same live and afterwards. The score of a window
is the mean square over its rows and all checks, with each value limited to 3: one broken rule
should count, and not more than a dozen strained ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.invariants import (
    Encoding,
    Judged,
    RuleSet,
    block_starts,
    encode,
    evaluate,
    illegal_rows,
    known_repeats,
    levels_of,
    quiet_ranges,
    register_of,
    rules_hash,
)
from sluice.telemetry import Record

__all__ = ["Physics", "RuleExcess", "rule_excess"]

MOST_EXCESS = 3.0
REPEATED = 1.0
ILLEGAL = 2.0
QUIET = 0.5  # of the smallest clean range: the share below which the gate calls a level still
STANDS_OUT = 0.5  # of the largest: checks that are named beside the worst


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleExcess:
    """One value per row and check, in multiples of what clean rows showed."""

    names: tuple[str, ...]
    values: Floats  # rows x checks
    anchored: Bools  # checks that are judged on some rows only

    def over(self, last_rows: Ints, rows: int) -> Floats:
        """Return the mean square of each check over the windows that end at these rows."""
        squares = np.minimum(self.values, MOST_EXCESS) ** 2
        total = np.concatenate((np.zeros((1, squares.shape[1])), np.cumsum(squares, axis=0)))
        means: Floats = (total[last_rows + 1] - total[last_rows + 1 - rows]) / rows
        # A check that is judged now and then counts in full while its row is in the window.
        means[:, self.anchored] = self._largest(squares[:, self.anchored], last_rows, rows)
        return np.maximum(means, 0.0)

    @staticmethod
    def _largest(squares: Floats, last_rows: Ints, rows: int) -> Floats:
        largest = squares[last_rows]
        for back in range(1, rows):
            np.maximum(largest, squares[last_rows - back], out=largest)
        return largest


@dataclass(frozen=True, slots=True, kw_only=True)
class Physics:
    """The rules that a detector was calibrated with."""

    rules: RuleSet
    encoding: Encoding = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", encode(self.rules))

    @property
    def digest(self) -> str:
        """The hash that names the rules."""
        return rules_hash(self.rules)

    def scores(self, record: Record, last_rows: Ints, *, rows: int) -> Floats:
        """Return the mean square excess of the windows of `rows` rows that end at `last_rows`."""
        mean: Floats = self._excess(record).over(last_rows, rows).mean(axis=1)
        return mean

    def _excess(self, record: Record) -> RuleExcess:
        return rule_excess(self.rules, record, encoding=self.encoding)

    def blame(
        self, record: Record, last_rows: Ints, *, rows: int, most: int
    ) -> tuple[tuple[str, ...], ...]:
        """Return, per window, the rules that stand out, worst first; each is named once."""
        excess = self._excess(record)
        names, values = _by_name(excess.names, excess.over(last_rows, rows))
        order = np.argsort(-values, axis=1, kind="stable")[:, :most]
        return tuple(
            tuple(
                names[at] for at in places if own[at] > 0 and own[at] >= STANDS_OUT * own[places[0]]
            )
            for own, places in zip(values, order, strict=True)
        )


def _by_name(names: tuple[str, ...], values: Floats) -> tuple[tuple[str, ...], Floats]:
    """Return the largest value of the checks of each name; a level has blocks of two lengths."""
    places: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        places.setdefault(name, []).append(at)
    largest: Floats = np.column_stack([values[:, own].max(axis=1) for own in places.values()])
    return tuple(places), largest


def rule_excess(rules: RuleSet, record: Record, *, encoding: Encoding | None = None) -> RuleExcess:
    """Evaluate every check on every row; `encoding` saves the time of deriving it again."""
    rules.demand(record)
    checks = tuple(_checks(rules, record, encoding or encode(rules)))
    return RuleExcess(
        names=tuple(check.name for check in checks),
        values=np.column_stack([check.values for check in checks]),
        anchored=np.array([check.anchored for check in checks]),
    )


class _Check(NamedTuple):
    name: str
    values: Floats  # one per row
    anchored: bool = False


def _checks(rules: RuleSet, record: Record, encoding: Encoding) -> Iterator[_Check]:
    rows = len(record)
    for judged in evaluate(encoding, record):
        yield _Check(judged.rule.name, _residual(judged, record), bool(judged.anchors.size))
    for fact, ranges in quiet_ranges(rules, record):
        step = register_of(rules.channel(fact.level)).step
        quiet: Floats = QUIET * fact.smallest_range / np.maximum(ranges * step, step)
        ends = block_starts(rows, fact.rows) + fact.rows - 1
        yield _Check(f"{fact.level} stands still", _carried(quiet, ends, rows))
    for level in levels_of(rules, record):
        known = known_repeats(record.column(level))
        yield _Check(f"{level} repeats", np.where(known, REPEATED, 0.0))
    yield _Check("actuator codes", np.where(illegal_rows(encoding, record), ILLEGAL, 0.0))


def _residual(judged: Judged, record: Record) -> Floats:
    at = judged.anchors
    if not at.size:
        return judged.excess
    # The gate counts a window across a time jump as violating; it shows no attack.
    span = int(getattr(judged.rule.relation, "rows", 0))
    segment = np.searchsorted(record.segment_starts, np.arange(len(record)), side="right")
    whole = segment[at] == segment[np.maximum(at - span, 0)]
    values = np.zeros(len(record))
    values[at] = np.where(whole, judged.excess[at], 0.0)
    return values


def _carried(values: Floats, rows: Ints, total: int) -> Floats:
    """Hold each value, known at its row, until the next one is known; 0 before the first."""
    if not len(rows):
        return np.zeros(total)
    at = np.searchsorted(rows, np.arange(total), side="right") - 1
    return np.where(at >= 0, values[np.maximum(at, 0)], 0.0)
