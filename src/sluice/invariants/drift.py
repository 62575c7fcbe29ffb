"""Drift: the differences between two rule sets of one plant, and what may have caused them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum

from sluice.invariants.relations import (
    Balance,
    Bound,
    Coupling,
    Invariant,
    Mean,
    Relation,
    RelationKind,
    Window,
)
from sluice.invariants.ruleset import CleanFacts, Liveness, RuleSet
from sluice.invariants.words import amount, number, rule_in_words, unit_of

__all__ = ["Appeared", "Change", "Moved", "Redefined", "Vanished", "What", "drift"]

NOTABLE = 0.05  # no cause is suggested for a smaller relative change
SHARES = {
    "severe": "largest residual in tolerances",
    "envelope": "largest share of rows in transition",
    "anchors": "share of windows that do not balance",
    "repeats": "largest share of repeated rows",
}


class What(StrEnum):
    """The part of a rule set that changed."""

    COEFFICIENT = "coefficient"
    NOMINAL = "nominal"
    CONSTANT = "constant"
    TOLERANCE = "tolerance"
    SETTLE = "settle"
    BOUND = "bound"
    DEFINITION = "definition"  # the channels of a rule; a channel's role, unit or codes
    SPAN = "span"
    CLEAN = "clean"  # what the file states about clean rows; budgets follow from it


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A number that differs between the two sets."""

    rule: str
    what: What
    before: float
    after: float
    share: float  # change relative to `before`; for a constant, to the tolerance
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Redefined:
    """A change of something other than a number; `rule` is empty if it concerns the plant."""

    rule: str
    what: What
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Appeared:
    """A rule that is only in the new set."""

    rule: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Vanished:
    """A rule that is only in the old set."""

    rule: str
    sentence: str


Change = Moved | Redefined | Appeared | Vanished


def drift(old: RuleSet, new: RuleSet) -> tuple[Change, ...]:
    """Return all changes: of rules, matched by name, then of the plant and its clean facts."""
    before = {rule.name: rule for rule in old.invariants}
    after = {rule.name: rule for rule in new.invariants}
    changes: list[Change] = []
    for name, rule in after.items():
        if name not in before:
            sentence = f"{name} is new: {rule_in_words(rule, new)}"
            changes.append(Appeared(rule=name, sentence=sentence))
        else:
            reported = _repeats_balance(rule, new) and _repeats_balance(before[name], old)
            changes += _changes(before[name], rule, new, reported=reported)
    why = {gone.name: gone.why for gone in new.dropped}
    for name, rule in before.items():
        if name not in after:
            reason = why.get(name) or f"it was: {rule_in_words(rule, old)}"
            changes.append(Vanished(rule=name, sentence=f"{name} was removed: {reason}"))
    return (*changes, *_plant(old, new), *_clean(old, new))


def _moved(rule: str, what: What, before: float, after: float, sentence: str) -> Moved:
    share = after / before - 1 if before else math.inf
    return Moved(rule=rule, what=what, before=before, after=after, share=share, sentence=sentence)


def _repeats_balance(rule: Invariant, rules: RuleSet) -> bool:
    """Whether a window has the numbers of its tank's balance, where they are reported once."""
    window = rule.relation
    return isinstance(window, Window) and any(
        isinstance(other.relation, Balance)
        and (other.relation.level, other.relation.terms, other.relation.constant)
        == (window.level, window.terms, window.constant)
        for other in rules.invariants
    )


def _changes(old: Invariant, new: Invariant, rules: RuleSet, *, reported: bool) -> Iterator[Change]:
    name, unit = new.name, unit_of(new.relation, rules)
    match old.relation, new.relation:
        case Coupling() as before, Coupling() as after:
            yield from _coupling(before, after, unit)
        case (Balance() as before, Balance() as after) | (
            Window() as before,
            Window() as after,
        ) if not reported:
            yield from _balance(before, after, new.tolerance, unit)
        case Mean() as before, Mean() as after if before.mean != after.mean:
            moved = _from_to(before.mean, after.mean, unit)
            sentence = f"{after.channel}'s mean over {after.rows} rows changed {moved}"
            yield _moved(name, What.CONSTANT, before.mean, after.mean, sentence)
        case Bound() as before, Bound() as after:
            for end in ("low", "high"):
                was, now = getattr(before, end), getattr(after, end)
                if was != now:
                    sentence = f"{name}: the {end} limit changed {_from_to(was, now, unit)}"
                    yield _moved(name, What.BOUND, was, now, sentence)
    if _frame(old.relation) != _frame(new.relation):
        sentence = f"{name} is defined differently: {rule_in_words(new, rules)}"
        yield Redefined(rule=name, what=What.DEFINITION, sentence=sentence)
    if old.tolerance != new.tolerance and new.kind is not RelationKind.BOUND:
        effect = "it detects less" if new.tolerance > old.tolerance else "it detects more"
        sentence = (
            f"{name}'s tolerance changed {_from_to(old.tolerance, new.tolerance, unit)} "
            f"({_percent(old.tolerance, new.tolerance)}): {effect}"
        )
        yield _moved(name, What.TOLERANCE, old.tolerance, new.tolerance, sentence)


def _coupling(old: Coupling, new: Coupling, unit: str) -> Iterator[Change]:
    before = {state.code: state.nominal for state in old.states}
    for state in new.states:
        was, now = before.get(state.code, state.nominal), state.nominal
        if was == now:
            continue
        moved = now / was - 1 if was else 0.0
        verb = "rose" if now > was else "fell"
        guess = ""
        if abs(moved) >= NOTABLE:
            guess = ": a new pump?" if now > was else ": wear, or a valve that does not open fully?"
        sentence = (
            f"{new.actuator}'s nominal flow {verb} by {_size(moved)}, "
            f"{_from_to(was, now, unit)}{guess}"
        )
        yield _moved(new.name, What.NOMINAL, was, now, sentence)
    if old.settle != new.settle:
        sentence = f"{new.actuator} settles in {new.settle} rows; before, in {old.settle}"
        yield _moved(new.name, What.SETTLE, old.settle, new.settle, sentence)


def _balance(
    old: Balance | Window, new: Balance | Window, tolerance: float, unit: str
) -> Iterator[Change]:
    before = {term.channel: term.coefficient for term in old.terms}
    after = {term.channel: term.coefficient for term in new.terms}
    for channel in dict.fromkeys((*before, *after)):
        was, now = before.get(channel, 0.0), after.get(channel, 0.0)
        if was == now:
            continue
        if channel not in before:
            sentence = (
                f"{new.level} now depends on {channel} ({amount(now, unit)} per unit and row)"
            )
        elif channel not in after:
            sentence = f"{new.level} no longer depends on {channel}"
        else:
            notable = abs(now / was - 1) >= NOTABLE if was else True
            guess = ": meter drift, or a different tank area?" if notable else ""
            sentence = (
                f"{new.level}'s coefficient of {channel} changed {_from_to(was, now, unit)} "
                f"per unit and row ({_percent(was, now)}){guess}"
            )
        yield _moved(new.name, What.COEFFICIENT, was, now, sentence)
    if old.constant != new.constant:
        guess = ""
        rows = new.rows if isinstance(new, Window) else 1
        share = (new.constant - old.constant) * rows / tolerance
        if abs(share) >= NOTABLE:
            verb = "loses" if new.constant < old.constant else "gains"
            guess = f": the tank {verb} water that no meter measures"
        yield Moved(
            rule=new.name,
            what=What.CONSTANT,
            before=old.constant,
            after=new.constant,
            share=share,
            sentence=f"{new.level}'s constant changed "
            f"{_from_to(old.constant, new.constant, unit)} per row{guess}",
        )


def _frame(relation: Relation) -> object:
    """Return a relation without the numbers that are compared one by one."""
    match relation:
        case Coupling():
            codes = tuple(state.code for state in relation.states)
            return (
                relation.actuator,
                relation.flow,
                relation.off,
                codes,
                relation.transition,
                relation.standby,
            )
        case Balance():
            on = tuple(sorted((term.channel, term.on) for term in relation.terms if term.on))
            return relation.level, relation.averaged, on
        case Window():
            on = tuple(sorted((term.channel, term.on) for term in relation.terms if term.on))
            return relation.level, relation.averaged, on, relation.rows
        case Mean():
            return relation.kind, relation.channels, relation.rows
        case _:
            return relation.kind, relation.channels


def _plant(old: RuleSet, new: RuleSet) -> Iterator[Change]:
    """Compare what the two sets state about the plant itself."""
    if (old.profile, old.stride_s) != (new.profile, new.stride_s):
        mined = [f"{r.profile.value}, one row every {r.stride_s:g} s" for r in (old, new)]
        yield _redefined(f"mined as {mined[1]}; before, as {mined[0]}")
    before = {channel.name: channel for channel in old.channels}
    after = {channel.name: channel for channel in new.channels}
    for name in dict.fromkeys((*before, *after)):
        if name not in after:
            yield _redefined(f"channel {name} was removed")
        elif name not in before:
            yield _redefined(f"channel {name} is new")
        else:
            was, now = before[name], after[name]
            if (was.role, was.unit, was.codes) != (now.role, now.unit, now.codes):
                yield _redefined(f"channel {name} has a different role, unit or codes")
            if was.span != now.span:
                spans = [f"[{s.low:g}, {s.high:g}]" if s else "none" for s in (was.span, now.span)]
                sentence = f"channel {name}'s span changed from {spans[0]} to {spans[1]}"
                yield Redefined(rule="", what=What.SPAN, sentence=sentence)


def _redefined(sentence: str) -> Redefined:
    return Redefined(rule="", what=What.DEFINITION, sentence=sentence)


def _clean(old: RuleSet, new: RuleSet) -> Iterator[Change]:
    """Compare the facts about clean rows: every budget of the gate follows from them."""
    if old.clean is None or new.clean is None:
        return
    before, after = _facts(old.clean), _facts(new.clean)
    for rule, name in dict.fromkeys((*before, *after)):
        fact = f"{rule}: in clean rows, {name}" if rule else f"in clean rows, {name}"
        if (rule, name) not in before:
            sentence = f"{fact} is new: {number(after[rule, name])}"
            yield Redefined(rule=rule, what=What.CLEAN, sentence=sentence)
            continue
        was = before[rule, name]
        if (rule, name) not in after:
            sentence = f"{fact} is no longer stated"
            yield Redefined(rule=rule, what=What.CLEAN, sentence=sentence)
            continue
        now = after[rule, name]
        if was != now:
            sentence = f"{fact} changed {_from_to(was, now, '')}"
            yield _moved(rule, What.CLEAN, was, now, sentence)


def _facts(clean: CleanFacts) -> dict[tuple[str, str], float]:
    """Return every fact, keyed by the rule or level it concerns and by its name in words."""
    facts: dict[tuple[str, str], float] = {}
    for item in fields(clean):
        name, value = item.name.replace("_", " "), getattr(clean, item.name)
        if isinstance(value, int | float):
            facts["", name] = float(value)
            continue
        for fact in value:
            if isinstance(fact, Liveness):
                facts[fact.level, f"smallest range over {fact.rows} rows"] = fact.smallest_range
            else:
                facts[fact.rule, SHARES.get(item.name, f"largest {name}")] = fact.share
    return facts


def _from_to(was: float, now: float, unit: str) -> str:
    digits = 3 if number(was) != number(now) else 6
    text = number(now, digits)
    return f"from {number(was, digits)} to {f'{text} {unit}' if unit else text}"


def _percent(was: float, now: float) -> str:
    if not was:
        return "from 0"
    share = now / was - 1
    return f"{'+' if share >= 0 else '-'}{_size(share)}"


def _size(share: float) -> str:
    return f"{abs(share) * 100:.2g} %" if abs(share) < 1 else f"{abs(share) * 100:,.0f} %"
