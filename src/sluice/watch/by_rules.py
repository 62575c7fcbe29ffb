"""The rules of a plant on a stream of rows: the integer evaluator on the last rows.

Each row is judged exactly as `sluice check` judges it in a batch that begins with the stream's
first row, however the rows come in. There are two differences: a rule is not judged where one of
its readings is missing, and a window is not judged across a time jump. The gate counts both against
a batch; a watch counts them and goes on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.invariants import (
    Balance,
    Bound,
    Coupling,
    Encoding,
    IntegerBalance,
    Invariant,
    Judged,
    Rate,
    RelationKind,
    RuleSet,
    Window,
    encode,
    evaluate,
)
from sluice.telemetry import Record
from sluice.watch.rows import microseconds
from sluice.watch.screening import Screen
from sluice.watch.settings import WatchSettings
from sluice.watch.signals import Cause, CauseKind, Signal
from sluice.watch.trailing import RecentRows
from sluice.watch.words import say_code, say_rule

__all__ = ["BrokenWindow", "ByRules", "chain_in"]

SEVERE_FACTOR = 1.5  # times the largest clean excess; the hardened gate has the same
DIRECT = (
    RelationKind.COUPLING,
    RelationKind.BOUND,
    RelationKind.BALANCE,
    RelationKind.RATE,
    RelationKind.WINDOW,
)
"""The kinds of rule, the one that names the fewest suspects first."""
SEVERE_UNKNOWN = 4.0  # tolerances, where the rules state nothing about clean rows


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenWindow:
    """A window rule that was broken when it was judged last."""

    rule: str
    size: float
    sentence: str


class ByRules:
    """Judges rows by a plant's rules."""

    def __init__(self, rules: RuleSet, names: tuple[str, ...], settings: WatchSettings) -> None:
        self.rules = rules
        self.broken: dict[str, BrokenWindow] = {}
        encoding = encode(rules)
        windows = [r for r in encoding.rules if isinstance(r, IntegerBalance) and r.rows > 1]
        self._row_rules = replace(
            encoding, rules=tuple(r for r in encoding.rules if r not in windows)
        )
        lengths = sorted({r.rows for r in windows})
        self._windows = {
            rows: replace(encoding, rules=tuple(r for r in windows if r.rows == rows))
            for rows in lengths
        }
        self._by_name = {rule.name: rule for rule in rules.invariants}
        self._row_context = max((_context(r.rule) for r in self._row_rules.rules), default=0)
        self._screen = Screen(self._row_rules, names)
        self._column = {name: column for column, name in enumerate(names)}
        read = dict.fromkeys(n for rule in rules.invariants for n in rule.relation.channels)
        self._channels = tuple(c for c in rules.channels if c.name in read)
        self._columns = [self._column[c.name] for c in self._channels]
        self._severe = {fact.rule: fact.share for fact in rules.clean.severe} if rules.clean else {}
        self._causes = {r.name: self._cause(r, settings) for r in rules.invariants}
        self._actuator_at = [self._column[channel.name] for channel in encoding.actuators]
        self._legal = _padded(
            [channel.codes.legal for channel in encoding.actuators if channel.codes]
        )
        self._codes = {
            channel.name: settings.cause(CauseKind.CODE, channel.name, stride_s=rules.stride_s)
            for channel in encoding.actuators
        }

    @property
    def context(self) -> int:
        """How many rows before a row its rules read."""
        return max(_context(rule) for rule in self.rules.invariants)

    def _cause(self, rule: Invariant, settings: WatchSettings) -> Cause:
        order = DIRECT.index(rule.kind)
        if isinstance(rule.relation, Window):  # two windows that share half of their rows
            span = microseconds(rule.relation.rows * self.rules.stride_s)
            return Cause(kind=CauseKind.RULE, name=rule.name, needed=2, within=span, order=order)
        cause = settings.cause(CauseKind.RULE, rule.name, stride_s=self.rules.stride_s)
        return replace(cause, order=order)

    def take(self, stretch: RecentRows) -> list[Signal]:
        """Return what the new rows of a stretch show."""
        short = stretch.last(self._row_context)
        signals: list[Signal] = []
        suspects = self._screen.suspects(short.held, short.fresh)
        if suspects:
            rules = tuple(rule for rule in self._row_rules.rules if rule in suspects)
            record = self._record(short)
            for judged in evaluate(replace(self._row_rules, rules=rules), record):
                if judged.violating[short.fresh :].any():
                    signals += self._broken_rows(judged, short, record)
        signals += self._quality(short)
        if self._windows:
            signals += self._window_signals(stretch)
        return signals

    def _record(self, stretch: RecentRows) -> Record:
        return Record(
            name=self.rules.plant,
            channels=self._channels,
            values=stretch.held[:, self._columns],
            times=stretch.times.view("datetime64[us]"),
            stride_s=self.rules.stride_s,
            labels=np.zeros(len(stretch), np.int8),
        )

    def _known(self, rule: Invariant, stretch: RecentRows) -> Bools:
        columns = [self._column[name] for name in rule.relation.channels]
        known: Bools = np.asarray(~np.isnan(stretch.raw[:, columns]).any(axis=1))
        if isinstance(rule.relation, Balance | Rate):
            known[1:] &= known[:-1].copy()
        return known

    def _broken_rows(self, judged: Judged, stretch: RecentRows, record: Record) -> Iterator[Signal]:
        rule = judged.rule
        rows: Ints = np.flatnonzero(judged.violating & self._known(rule, stretch))
        severe = SEVERE_UNKNOWN
        if rule.name in self._severe:
            severe = max(SEVERE_FACTOR, SEVERE_FACTOR * self._severe[rule.name])
        excess = judged.excess
        for row in rows[np.searchsorted(rows, stretch.fresh) :].tolist():
            size = float(excess[row])
            yield Signal(
                time=int(stretch.times[row]),
                cause=self._causes[rule.name],
                tags=rule.relation.channels,
                size=size,
                severe=size > severe,
                say=partial(say_rule, rule, self.rules, record, row),
            )

    # -- windows ------------------------------------------------------------------------------

    def _window_signals(self, stretch: RecentRows) -> Iterator[Signal]:
        judged_at: dict[str, dict[int, BrokenWindow | None]] = {}
        for rows, encoding in self._windows.items():
            for encoded in encoding.rules:
                judged_at[encoded.rule.name] = {}
            for first in (rows, rows + rows // 2):
                self._judge_chain(encoding, stretch, rows, first, judged_at)
        for name, judged in judged_at.items():
            if judged or name in self.broken:
                yield from self._holding(self._by_name[name], stretch, judged)

    def _judge_chain(
        self,
        encoding: Encoding,
        stretch: RecentRows,
        rows: int,
        first: int,
        judged_at: dict[str, dict[int, BrokenWindow | None]],
    ) -> None:
        """Judge the windows of one chain of anchors that end in the new rows."""
        anchors = chain_in(stretch.row + stretch.fresh, stretch.row + len(stretch), first, rows)
        at = anchors - stretch.row
        for anchor in at.tolist():
            for encoded in encoding.rules:
                judged_at[encoded.rule.name][anchor] = None
        at = at[at >= rows]  # the others have a time jump inside
        if not at.size:
            return
        span = stretch.span(int(at[0]) - rows, int(at[-1]) + 1)
        record = self._record(span)
        for judged in evaluate(encoding, record):
            rule = judged.rule
            unknown: Ints = np.concatenate(
                (np.zeros(1, np.int64), np.cumsum(~self._known(rule, span)))
            )
            for anchor in at.tolist():
                end = anchor - int(at[0]) + rows
                if judged.violating[end] and unknown[end + 1] == unknown[end - rows]:
                    judged_at[rule.name][anchor] = BrokenWindow(
                        rule=rule.name,
                        size=float(judged.excess[end]),
                        sentence=say_rule(rule, self.rules, record, end),
                    )

    def _holding(
        self, rule: Invariant, stretch: RecentRows, judged: dict[int, BrokenWindow | None]
    ) -> Iterator[Signal]:
        """Yield a signal for each row from a broken window to the next one that is judged."""
        for row in range(stretch.fresh, len(stretch)):
            if row in judged:
                found = judged[row]
                self.broken.pop(rule.name, None)
                if found is not None:
                    self.broken[rule.name] = found
            broken = self.broken.get(rule.name)
            if broken is not None:
                yield Signal(
                    time=int(stretch.times[row]),
                    cause=self._causes[rule.name],
                    tags=rule.relation.channels,
                    size=broken.size,
                    severe=broken.size > SEVERE_FACTOR,
                    say=partial(str, broken.sentence),
                    holds=row not in judged,
                )

    # -- readings -----------------------------------------------------------------------------

    def _quality(self, stretch: RecentRows) -> Iterator[Signal]:
        readings = stretch.raw[stretch.fresh :, self._actuator_at]
        legal = (readings[:, :, None] == self._legal).any(axis=2)
        unknown = ~legal & ~np.isnan(readings)
        if not unknown.any():
            return
        for number, channel in enumerate(self._row_rules.actuators):
            assert channel.codes is not None
            for row in np.flatnonzero(unknown[:, number]).tolist():
                said = partial(say_code, channel.name, readings[row, number], channel.codes.legal)
                yield Signal(
                    time=int(stretch.times[stretch.fresh + row]),
                    cause=self._codes[channel.name],
                    tags=(channel.name,),
                    size=1.0,
                    severe=False,
                    say=said,
                )


def _padded(codes: list[frozenset[int]]) -> Floats:
    """Return one row of codes for each actuator; NaN where it has fewer than another."""
    most = max(map(len, codes), default=0)
    return np.array([[*sorted(each), *[np.nan] * (most - len(each))] for each in codes]).reshape(
        len(codes), most
    )


def _context(rule: Invariant) -> int:
    match rule.relation:
        case Coupling(settle=settle):
            return settle
        case Window(rows=rows):
            return rows
        case Balance() | Rate():
            return 1
        case Bound():
            return 0


def chain_in(start: int, stop: int, first: int, step: int) -> Ints:
    """Return the anchors first, first + step, ... among rows start..stop-1 of a stream."""
    skipped = max(0, -(-(start - first) // step))
    return np.arange(first + skipped * step, stop, step)
