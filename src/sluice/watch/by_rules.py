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
    Constant,
    Coupling,
    Encoding,
    IntegerBalance,
    IntegerRule,
    IntegerSpectrum,
    Invariant,
    Judged,
    Mean,
    Rate,
    RelationKind,
    RuleSet,
    Spectrum,
    SwitchBand,
    Tie,
    Window,
    encode,
    evaluate,
)
from sluice.telemetry import Record
from sluice.watch.rows import microseconds
from sluice.watch.screening import Screen
from sluice.watch.settings import JITTER, WatchSettings
from sluice.watch.signals import Signal, Symptom, SymptomKind
from sluice.watch.trailing import RecentRows
from sluice.watch.words import say_code, say_rule

__all__ = ["BrokenWindow", "ByRules", "chain_in"]

SEVERE_FACTOR = 1.5  # times the largest clean excess; the hardened gate has the same
DIRECT = (
    RelationKind.COUPLING,
    RelationKind.CONSTANT,
    RelationKind.SWITCH_BAND,
    RelationKind.BOUND,
    RelationKind.BALANCE,
    RelationKind.RATE,
    RelationKind.TIE,
    RelationKind.WINDOW,
    RelationKind.SPECTRUM,
    RelationKind.MEAN,
)
"""The kinds of rule, the one that names the fewest suspects first."""
SWITCHES_WITHIN_S, SWITCHES_WITHIN_ROWS = 86_400.0, 24
"""Two switches at unusual levels this close together raise an alarm."""
SEVERE_UNKNOWN = 4.0  # tolerances, where the rules state nothing about clean rows


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenWindow:
    """A window rule that was broken when it was judged last."""

    rule: str
    size: float
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """A rule over several rows that is judged at a chain of rows only."""

    rule: IntegerRule
    key: tuple[int, int, int]  # the first row of the chain, the step, and rows before each

    @staticmethod
    def all_of(rule: IntegerRule) -> "tuple[_Span, ...]":
        """Return its chains: two for a window, one for blocks, none for a rule of single rows."""
        match rule:
            case IntegerBalance(rows=rows) if rows > 1:
                return tuple(
                    _Span(rule=rule, key=(first, rows, rows)) for first in (rows, rows + rows // 2)
                )
            case IntegerSpectrum(relation=relation):
                rows = relation.rows
                first = relation.offset + rows - 1
                moved = replace(relation, offset=0)  # each block is judged by itself
                alone = replace(rule, relation=moved, rule=replace(rule.rule, relation=moved))
                return (_Span(rule=alone, key=(first, rows, rows - 1)),)
            case _:
                return ()


class ByRules:
    """Judges rows by a plant's rules."""

    def __init__(self, rules: RuleSet, names: tuple[str, ...], settings: WatchSettings) -> None:
        self.rules = rules
        self.broken: dict[str, BrokenWindow] = {}
        encoding = encode(rules)
        spans = [span for rule in encoding.rules for span in _Span.all_of(rule)]
        spanning = {span.rule.rule.name for span in spans}
        self._row_rules = replace(
            encoding, rules=tuple(r for r in encoding.rules if r.rule.name not in spanning)
        )
        self._spans = {
            key: replace(encoding, rules=tuple(s.rule for s in spans if s.key == key))
            for key in sorted({span.key for span in spans})
        }
        self._by_name = {rule.name: rule for rule in rules.invariants}
        self._row_context = max((_context(r.rule) for r in self._row_rules.rules), default=0)
        self._screen = Screen(self._row_rules, names)
        self._column = {name: column for column, name in enumerate(names)}
        read = dict.fromkeys(n for rule in rules.invariants for n in rule.relation.channels)
        self._channels = tuple(c for c in rules.channels if c.name in read)
        self._columns = [self._column[c.name] for c in self._channels]
        self._severe = {fact.rule: fact.share for fact in rules.clean.severe} if rules.clean else {}
        self._symptoms = {r.name: self._symptom(r, settings) for r in rules.invariants}
        self._actuator_at = [self._column[channel.name] for channel in encoding.actuators]
        self._legal = _padded(
            [channel.codes.legal for channel in encoding.actuators if channel.codes]
        )
        self._codes = {
            channel.name: settings.symptom(SymptomKind.CODE, channel.name, stride_s=rules.stride_s)
            for channel in encoding.actuators
        }

    @property
    def context(self) -> int:
        """How many rows before a row its rules read."""
        return max(_context(rule) for rule in self.rules.invariants)

    def _symptom(self, rule: Invariant, settings: WatchSettings) -> Symptom:
        order = DIRECT.index(rule.kind)
        within = 0.0
        match rule.relation:
            case Window(rows=rows) | Mean(rows=rows):  # two windows that share half of their rows
                within = rows * self.rules.stride_s
            case Spectrum(rows=rows):  # two blocks side by side
                within = rows * self.rules.stride_s
            case SwitchBand():
                within = max(SWITCHES_WITHIN_S, SWITCHES_WITHIN_ROWS * self.rules.stride_s)
            case _:
                pass
        if within:
            return Symptom(
                kind=SymptomKind.RULE,
                name=rule.name,
                needed=2,
                within=microseconds(within * JITTER),
                order=order,
            )
        symptom = settings.symptom(SymptomKind.RULE, rule.name, stride_s=self.rules.stride_s)
        return replace(symptom, order=order)

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
        if self._spans:
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
        if isinstance(rule.relation, Balance | Rate | SwitchBand):
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
                symptom=self._symptoms[rule.name],
                tags=rule.relation.channels,
                size=size,
                severe=size > severe,
                say=partial(say_rule, rule, self.rules, record, row),
            )

    # -- windows ------------------------------------------------------------------------------

    def _window_signals(self, stretch: RecentRows) -> Iterator[Signal]:
        judged_at: dict[str, dict[int, BrokenWindow | None]] = {}
        for (first, step, back), encoding in self._spans.items():
            for encoded in encoding.rules:
                judged_at.setdefault(encoded.rule.name, {})
            self._judge_chain(encoding, stretch, (first, step, back), judged_at)
        for name, judged in judged_at.items():
            if judged or name in self.broken:
                yield from self._holding(self._by_name[name], stretch, judged)

    def _judge_chain(
        self,
        encoding: Encoding,
        stretch: RecentRows,
        chain: tuple[int, int, int],
        judged_at: dict[str, dict[int, BrokenWindow | None]],
    ) -> None:
        """Judge the windows of one chain of anchors that end in the new rows."""
        first, step, back = chain
        anchors = chain_in(stretch.row + stretch.fresh, stretch.row + len(stretch), first, step)
        at = anchors - stretch.row
        for anchor in at.tolist():
            for encoded in encoding.rules:
                judged_at[encoded.rule.name][anchor] = None
        at = at[at >= back]  # the others have a time jump inside
        if not at.size:
            return
        span = stretch.span(int(at[0]) - back, int(at[-1]) + 1)
        record = self._record(span)
        for judged in evaluate(encoding, record):
            rule = judged.rule
            unknown: Ints = np.concatenate(
                (np.zeros(1, np.int64), np.cumsum(~self._known(rule, span)))
            )
            for anchor in at.tolist():
                end = anchor - int(at[0]) + back
                if judged.violating[end] and unknown[end + 1] == unknown[end - back]:
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
                    symptom=self._symptoms[rule.name],
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
                    symptom=self._codes[channel.name],
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
        case Window(rows=rows) | Mean(rows=rows):
            return rows
        case Spectrum(rows=rows):
            return rows - 1
        case Balance() | Rate() | SwitchBand():
            return 1
        case Bound() | Tie() | Constant():
            return 0


def chain_in(start: int, stop: int, first: int, step: int) -> Ints:
    """Return the anchors first, first + step, ... among rows start..stop-1 of a stream."""
    skipped = max(0, -(-(start - first) // step))
    return np.arange(first + skipped * step, stop, step)
