"""Updating rules: newly mined rules keep old limits that new rows would widen.

A plant that drifts slowly, or whose telemetry is manipulated slowly, must not widen its own gate.
Where new rows need wider limits than the old rules have, the old limits are kept and reported.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sluice.invariants.mining.joint import clean_facts
from sluice.invariants.mining.windows import window_of
from sluice.invariants.relations import Balance, Bound, Invariant, RelationKind, Window
from sluice.invariants.ruleset import CleanFacts, RuleSet
from sluice.invariants.words import amount, number, unit_of
from sluice.telemetry import Record, Span

__all__ = ["KeptRule", "keep_tolerances"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRule:
    """A rule or span that new rows would loosen and that keeps its old limits."""

    rule: str
    sentence: str


def keep_tolerances(
    old: RuleSet, new: RuleSet, clean: Record
) -> tuple[RuleSet, tuple[KeptRule, ...]]:
    """Keep old tolerances, ranges, spans and windows where new rows would loosen them.

    The facts about clean rows are computed again for the kept limits. Clean data may then be
    refused more often; `CleanFacts.refused_share` states how often.
    """
    before = {rule.name: rule for rule in old.invariants}
    invariants: list[Invariant] = []
    kept: list[KeptRule] = []
    for rule in new.invariants:
        limited, limits = _no_looser(rule, before.get(rule.name, rule), new)
        invariants.append(limited)
        if limits:
            kept.append(KeptRule(rule=rule.name, sentence=f"{rule.name}: kept {limits}"))
    for window in _lost_windows(old, new):
        invariants.append(window)
        sentence = f"{window.name}: kept, although new rows alone would give other windows"
        kept.append(KeptRule(rule=window.name, sentence=sentence))
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
        rules = replace(rules, clean=_with_windows_of(old, facts, rules))
    return rules, tuple(kept)


def _with_windows_of(old: RuleSet, facts: CleanFacts, rules: RuleSet) -> CleanFacts:
    """Add the old fact of each kept window that is longer than the new rows, so has no new fact."""
    measured = {fact.rule for fact in facts.anchors}
    missing = {rule.name for rule in rules.of_kind(RelationKind.WINDOW)} - measured
    earlier = old.clean.anchors if old.clean else ()
    return replace(
        facts, anchors=(*facts.anchors, *(fact for fact in earlier if fact.rule in missing))
    )


def _no_looser(new: Invariant, old: Invariant, rules: RuleSet) -> tuple[Invariant, str]:
    """Return the rule with no looser limits than before, and the kept limits in words, if any."""
    unit = unit_of(new.relation, rules)
    match old.relation, new.relation:
        case Bound() as was, Bound() as now:
            low, high = max(was.low, now.low), min(was.high, now.high)
            if (low, high) == (now.low, now.high) or not low < high:
                return new, ""
            needed = f"new rows need {_range(now.low, now.high, unit)}"
            limited = replace(new, relation=replace(now, low=low, high=high))
            return limited, f"{_range(low, high, unit)}; {needed}"
        case was, now if was.kind is now.kind and new.tolerance > old.tolerance:
            share = old.tolerance / new.tolerance
            evidence = new.evidence
            if evidence.smallest_offset is not None:
                evidence = replace(evidence, smallest_offset=evidence.smallest_offset * share)
            needed = f"new rows need {amount(new.tolerance, unit)} (+{1 / share - 1:.1%})"
            limited = replace(new, tolerance=old.tolerance, evidence=evidence)
            return limited, f"the tolerance {amount(old.tolerance, unit)}; {needed}"
    return new, ""


def _range(low: float, high: float, unit: str) -> str:
    return f"{number(low)} to {amount(high, unit)}"


def _lost_windows(old: RuleSet, new: RuleSet) -> Iterator[Invariant]:
    """Yield the old windows whose length new rows do not give: they detect what others do not."""
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
