"""Updating rules: newly mined rules keep old limits that new rows would widen or move.

A plant that drifts slowly, or whose telemetry is manipulated slowly, must not widen its own gate.
Where new rows need wider limits than the old rules have, the old limits are kept and reported.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sluice.invariants.budgets import SUMMED_KINDS
from sluice.invariants.mining.facts import clean_facts
from sluice.invariants.mining.windows import window_of
from sluice.invariants.relations import (
    Balance,
    Bound,
    Coupling,
    Invariant,
    Mean,
    Rate,
    Spectrum,
    SwitchBand,
    Tie,
    Window,
)
from sluice.invariants.ruleset import CleanFacts, CleanShare, Liveness, RuleSet
from sluice.invariants.shifts import prediction_shift
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
    """Keep old predictions, tolerances, ranges, spans, windows and facts that would get looser.

    The facts about clean rows are computed again for the kept limits, and none is looser than the
    old one. Clean data may then be refused more often; `CleanFacts.refused_share` states how often.
    """
    new, kept = _with_old_predictions(old, new)
    before = {rule.name: rule for rule in old.invariants}
    invariants: list[Invariant] = []
    for rule in new.invariants:
        limited, limits = _no_looser(rule, before.get(rule.name, rule), new)
        invariants.append(limited)
        if limits:
            kept.append(KeptRule(rule=rule.name, sentence=f"{rule.name}: kept {limits}"))
    for lost, instead in (*_lost_windows(old, new), *_lost_limits(old, new)):
        invariants.append(lost)
        sentence = f"{lost.name}: kept, although new rows alone would give {instead}"
        kept.append(KeptRule(rule=lost.name, sentence=sentence))
    spans = {channel.name: channel.span for channel in old.channels}
    channels = []
    for channel in new.channels:
        span = _narrower(spans.get(channel.name), channel.span)
        channels.append(replace(channel, span=span))
        if span is not None and span != channel.span:
            sentence = f"{channel.name}: kept the span {_range(span.low, span.high, channel.unit)}"
            kept.append(KeptRule(rule="", sentence=sentence))
    rules = replace(new, invariants=tuple(invariants), channels=tuple(channels)) if kept else new
    if rules.clean and kept:
        rules = replace(rules, clean=_facts_again(old, new, rules, clean))
    if rules.clean and old.clean:
        facts, kept_facts = _no_looser_facts(old, old.clean, rules, rules.clean)
        if kept_facts:
            rules = replace(rules, clean=facts)
            kept += kept_facts
    return rules, tuple(kept)


def _with_old_predictions(old: RuleSet, new: RuleSet) -> tuple[RuleSet, list[KeptRule]]:
    """Keep coefficients and nominal flows where new ones let readings pass that were refused.

    A balance and its windows predict the same, so they keep theirs together.
    """
    before = {rule.name: rule for rule in old.invariants}
    channels = {channel.name for channel in new.channels}
    balances = {
        rule.relation.level: rule.relation
        for rule in old.invariants
        if isinstance(rule.relation, Balance) and set(rule.relation.channels) <= channels
    }
    moved = {rule.name for rule in new.invariants if _accepts_more(rule, before, new)}
    lost = before.keys() - {rule.name for rule in new.invariants}  # windows are kept
    levels = balances.keys() & {
        rule.relation.level
        for rule in (*old.invariants, *new.invariants)
        if rule.name in moved | lost and isinstance(rule.relation, Balance | Window)
    }
    invariants: list[Invariant] = []
    kept: list[KeptRule] = []
    for rule in new.invariants:
        relation = rule.relation
        match relation:
            case Balance(level=level) if level in levels:
                relation = balances[level]
            case Window(level=level, rows=rows) if level in levels:
                relation = window_of(balances[level], rows)
            case Coupling() | Tie() | Mean() if rule.name in moved:
                was = before[rule.name].relation
                relation = was if set(was.channels) <= channels else relation
            case _:
                pass
        invariants.append(replace(rule, relation=relation))
        if relation != rule.relation:
            sentence = f"{rule.name}: kept what it predicts; new rows give other coefficients"
            kept.append(KeptRule(rule=rule.name, sentence=sentence))
    return (replace(new, invariants=tuple(invariants)) if kept else new), kept


def _accepts_more(rule: Invariant, before: Mapping[str, Invariant], rules: RuleSet) -> bool:
    """Whether a rule accepts readings that its earlier version refuses, as its prediction moved."""
    old = before.get(rule.name)
    if old is None or old.kind is not rule.kind:
        return False
    shift = prediction_shift(old.relation, rule.relation, rules)
    return shift > 0 and min(rule.tolerance, old.tolerance) + shift > old.tolerance


def _facts_again(old: RuleSet, new: RuleSet, rules: RuleSet, clean: Record) -> CleanFacts:
    """Return the facts for the kept limits; what was predicted holds in the unit of each rule."""
    assert new.clean is not None
    mined = {rule.name: rule.tolerance for rule in new.invariants}
    tolerance = {rule.name: rule.tolerance for rule in rules.invariants}
    severe = tuple(
        replace(fact, share=fact.share * (mined[fact.rule] / tolerance[fact.rule]))
        for fact in new.clean.severe
    )
    facts = clean_facts(
        rules,
        clean,
        liveness=new.clean.liveness,
        severe=severe,
        jumps_per_row=new.clean.segments_per_row,
    )
    return _with_windows_of(old, facts, rules)


def _no_looser_facts(
    old: RuleSet, before: CleanFacts, rules: RuleSet, now: CleanFacts
) -> tuple[CleanFacts, list[KeptRule]]:
    """Return the facts with no looser numbers than before, and which were kept."""
    kept: list[KeptRule] = []
    was = {rule.name: rule.tolerance for rule in old.invariants}
    tolerance = {rule.name: rule.tolerance for rule in rules.invariants}
    # A residual is stated in multiples of the tolerance, so compare it in the unit of the rule.
    severe = tuple(
        replace(fact, share=fact.share * (was[fact.rule] / tolerance[fact.rule]))
        for fact in before.severe
        if fact.rule in tolerance
    )
    limited = {}
    for field, what, earlier, shares in (
        ("severe", "the largest clean residual over its tolerance", severe, now.severe),
        ("envelope", "the share of clean rows in transition", before.envelope, now.envelope),
        ("anchors", "the share of clean windows out of balance", before.anchors, now.anchors),
        ("repeats", "the share of repeated clean rows", before.repeats, now.repeats),
        ("switches", "the share of clean switches out of band", before.switches, now.switches),
        ("blocks", "the share of clean blocks out of limits", before.blocks, now.blocks),
    ):
        limited[field] = _no_larger(earlier, shares)
        for share, wanted in zip(limited[field], shares, strict=True):
            if share != wanted:
                sentence = (
                    f"{share.rule}: kept {what}, {number(share.share)}; new rows show "
                    f"{number(wanted.share)}"
                )
                kept.append(KeptRule(rule=share.rule, sentence=sentence))
    jumps = min(before.segments_per_row, now.segments_per_row)
    if jumps < now.segments_per_row:
        sentence = (
            f"time jumps: kept {number(jumps)} per row; new rows show "
            f"{number(now.segments_per_row)}"
        )
        kept.append(KeptRule(rule="", sentence=sentence))
    liveness = _no_stiller(before.liveness, now.liveness, rules)
    for fact in liveness:
        if fact not in now.liveness:
            unit = rules.channel(fact.level).unit
            moves = f"{amount(fact.smallest_range, unit)} over {fact.rows} rows"
            sentence = f"{fact.level}: kept the smallest range, {moves}"
            kept.append(KeptRule(rule="", sentence=sentence))
    facts = replace(
        now,
        segments_per_row=jumps,
        severe=limited["severe"],
        envelope=limited["envelope"],
        anchors=limited["anchors"],
        liveness=liveness,
        repeats=limited["repeats"],
        switches=limited["switches"],
        blocks=limited["blocks"],
    )
    return facts, kept


def _no_larger(
    before: tuple[CleanShare, ...], now: tuple[CleanShare, ...]
) -> tuple[CleanShare, ...]:
    most = {fact.rule: fact.share for fact in before}
    return tuple(
        replace(fact, share=min(fact.share, most.get(fact.rule, fact.share))) for fact in now
    )


def _no_stiller(
    before: tuple[Liveness, ...], now: tuple[Liveness, ...], rules: RuleSet
) -> tuple[Liveness, ...]:
    """Add each earlier fact that no new one implies: as much movement over no more rows."""
    measured = {channel.name for channel in rules.channels if channel.span}
    facts = {(fact.level, fact.rows): fact for fact in now}
    for old in before:
        implied = any(
            fact.level == old.level
            and fact.rows <= old.rows
            and fact.smallest_range >= old.smallest_range
            for fact in now
        )
        if not implied and old.level in measured:
            facts[old.level, old.rows] = old
    return tuple(facts.values())


def _with_windows_of(old: RuleSet, facts: CleanFacts, rules: RuleSet) -> CleanFacts:
    """Add the old fact of each kept window that is longer than the new rows, so has no new fact."""
    measured = {fact.rule for fact in facts.anchors}
    missing = {rule.name for rule in rules.of_kind(*SUMMED_KINDS)} - measured
    earlier = old.clean.anchors if old.clean else ()
    return replace(
        facts, anchors=(*facts.anchors, *(fact for fact in earlier if fact.rule in missing))
    )


def _no_looser(new: Invariant, old: Invariant, rules: RuleSet) -> tuple[Invariant, str]:
    """Return the rule with no looser limits than before, and the kept limits in words, if any."""
    limited, limits = _no_wider(new, old, rules)
    match old.relation, limited.relation:
        case Coupling() as was, Coupling() as now if now.settle > was.settle:
            kept = f"{was.settle} rows to settle; new rows need {now.settle}"
            limited = replace(limited, relation=replace(now, settle=was.settle))
            return limited, f"{limits}; {kept}" if limits else kept
    return limited, limits


def _no_wider(new: Invariant, old: Invariant, rules: RuleSet) -> tuple[Invariant, str]:
    unit = unit_of(new.relation, rules)
    match old.relation, new.relation:
        case Bound() as was, Bound() as now:
            low, high = max(was.low, now.low), min(was.high, now.high)
            if (low, high) == (now.low, now.high) or not low < high:
                return new, ""
            needed = f"new rows need {_range(now.low, now.high, unit)}"
            limited = replace(new, relation=replace(now, low=low, high=high))
            return limited, f"{_range(low, high, unit)}; {needed}"
        case SwitchBand() as was, SwitchBand() as now:
            return _narrower_band(new, was, now, unit)
        case Spectrum() as was, Spectrum() as now if was.rows == now.rows:
            return _narrower_sums(new, was, now)
        case was, now if was.kind is now.kind and new.tolerance > old.tolerance:
            share = old.tolerance / new.tolerance
            evidence = new.evidence
            if evidence.smallest_offset is not None:
                evidence = replace(evidence, smallest_offset=evidence.smallest_offset * share)
            needed = f"new rows need {amount(new.tolerance, unit)} (+{1 / share - 1:.1%})"
            limited = replace(new, tolerance=old.tolerance, evidence=evidence)
            return limited, f"the tolerance {amount(old.tolerance, unit)}; {needed}"
    return new, ""


def _narrower_band(
    new: Invariant, was: SwitchBand, now: SwitchBand, unit: str
) -> tuple[Invariant, str]:
    on = max(was.on_low, now.on_low), min(was.on_high, now.on_high)
    off = max(was.off_low, now.off_low), min(was.off_high, now.off_high)
    ends = (now.on_low, now.on_high), (now.off_low, now.off_high)
    if (on, off) == ends or not (on[0] < on[1] and off[0] < off[1]):
        return new, ""
    kept = replace(now, on_low=on[0], on_high=on[1], off_low=off[0], off_high=off[1])
    shown = f"on at {_range(*on, unit)}, off at {_range(*off, unit)}"
    needed = f"new rows need {_range(*ends[0], unit)} and {_range(*ends[1], unit)}"
    return replace(new, relation=kept), f"{shown}; {needed}"


def _narrower_sums(new: Invariant, was: Spectrum, now: Spectrum) -> tuple[Invariant, str]:
    kept = replace(
        now,
        first_low=max(was.first_low, now.first_low),
        first_high=min(was.first_high, now.first_high),
        second_low=max(was.second_low, now.second_low),
        second_high=min(was.second_high, now.second_high),
    )
    sound = kept.first_low < kept.first_high and kept.second_low < kept.second_high
    if kept == now or not sound:
        return new, ""
    return replace(new, relation=kept), "the earlier limits of its noise"


def _range(low: float, high: float, unit: str) -> str:
    return f"{number(low)} to {amount(high, unit)}"


def _lost_windows(old: RuleSet, new: RuleSet) -> Iterator[tuple[Invariant, str]]:
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
            relation = window_of(balances[window.level], window.rows)
            yield replace(rule, relation=relation), "other windows"


def _lost_limits(old: RuleSet, new: RuleSet) -> Iterator[tuple[Invariant, str]]:
    """Yield the old ranges and rates of channels that new rows would leave without one."""
    names = {rule.name for rule in new.invariants}
    measured = {channel.name for channel in new.channels if channel.span}
    for rule in old.invariants:
        limits = isinstance(rule.relation, Bound | Rate) and rule.name not in names
        if limits and set(rule.relation.channels) <= measured:
            yield rule, "none"


def _narrower(old: Span | None, new: Span | None) -> Span | None:
    if old is None or new is None:
        return new
    low, high = max(old.low, new.low), min(old.high, new.high)
    return Span(low=low, high=high) if low < high else new
