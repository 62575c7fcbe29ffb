"""Updating rules: mined anew, never loosened unnoticed.

A plant that slowly drifts, or is slowly lied about, must not drag its own gate open: where new
rows ask for more room than the rules mined before gave, the old room is kept and said so.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sluice.invariants.mining.joint import clean_facts
from sluice.invariants.mining.windows import window_of
from sluice.invariants.relations import Balance, Bound, Invariant, Window
from sluice.invariants.ruleset import RuleSet
from sluice.invariants.words import amount, number, unit_of
from sluice.telemetry import Record, Span

__all__ = ["KeptRule", "keep_tolerances"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRule:
    """What new rows would have loosened, and did not."""

    rule: str
    sentence: str


def keep_tolerances(
    old: RuleSet, new: RuleSet, clean: Record
) -> tuple[RuleSet, tuple[KeptRule, ...]]:
    """Hold new rules to old tolerances, ranges and windows where new rows would loosen them.

    What clean rows show is stated anew under what was kept; clean data may then be refused more
    often, which `CleanFacts.refused_share` tells.
    """
    before = {rule.name: rule for rule in old.invariants}
    invariants: list[Invariant] = []
    kept: list[KeptRule] = []
    for rule in new.invariants:
        held, word = _held(rule, before.get(rule.name, rule), new)
        invariants.append(held)
        if word:
            kept.append(KeptRule(rule=rule.name, sentence=f"{rule.name}: kept {word}"))
    for window in _lost_windows(old, new):
        invariants.append(window)
        word = "though new rows alone would choose other windows"
        kept.append(KeptRule(rule=window.name, sentence=f"{window.name}: kept, {word}"))
    spans = {channel.name: channel.span for channel in old.channels}
    channels = []
    for channel in new.channels:
        span = _narrower(spans.get(channel.name), channel.span)
        channels.append(replace(channel, span=span))
        if span is not None and span != channel.span:
            sentence = f"{channel.name}: kept the span {_range(span.low, span.high, channel.unit)}"
            kept.append(KeptRule(rule="", sentence=sentence))
    if not kept:
        return new, ()
    rules = replace(new, invariants=tuple(invariants), channels=tuple(channels))
    if rules.clean:
        facts = clean_facts(rules, clean, liveness=rules.clean.liveness)
        rules = replace(rules, clean=facts)
    return rules, tuple(kept)


def _held(new: Invariant, old: Invariant, rules: RuleSet) -> tuple[Invariant, str]:
    """Return the rule no looser than it was, and where that changed it what was kept."""
    unit = unit_of(new.relation, rules)
    match old.relation, new.relation:
        case Bound() as was, Bound() as now:
            low, high = max(was.low, now.low), min(was.high, now.high)
            if (low, high) == (now.low, now.high) or not low < high:
                return new, ""
            asked = f"new rows ask for {_range(now.low, now.high, unit)}"
            held = replace(new, relation=replace(now, low=low, high=high))
            return held, f"{_range(low, high, unit)}; {asked}"
        case was, now if was.kind is now.kind and new.tolerance > old.tolerance:
            share = old.tolerance / new.tolerance
            known = new.evidence
            if known.smallest_offset is not None:
                known = replace(known, smallest_offset=known.smallest_offset * share)
            asked = f"new rows ask for {amount(new.tolerance, unit)} (+{1 / share - 1:.1%})"
            held = replace(new, tolerance=old.tolerance, evidence=known)
            return held, f"the tolerance {amount(old.tolerance, unit)}; {asked}"
    return new, ""


def _range(low: float, high: float, unit: str) -> str:
    return f"{number(low)} to {amount(high, unit)}"


def _lost_windows(old: RuleSet, new: RuleSet) -> Iterator[Invariant]:
    """Keep window lengths that new rows would not choose again: they see what others do not."""
    names = {rule.name for rule in new.invariants}
    balances = {
        rule.relation.level: rule.relation
        for rule in new.invariants
        if isinstance(rule.relation, Balance)
    }
    for rule in old.invariants:
        window = rule.relation
        if isinstance(window, Window) and rule.name not in names and window.level in balances:
            yield replace(rule, relation=window_of(balances[window.level], window.rows))


def _narrower(old: Span | None, new: Span | None) -> Span | None:
    if old is None or new is None:
        return new
    low, high = max(old.low, new.low), min(old.high, new.high)
    return Span(low=low, high=high) if low < high else new
