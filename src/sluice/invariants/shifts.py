"""By how much a rule can predict something else than an earlier version of it."""

import math
from collections import defaultdict

from sluice.invariants.relations import Balance, Coupling, Mean, Relation, Tie, Transition, Window
from sluice.invariants.ruleset import RuleSet
from sluice.telemetry import Span

__all__ = ["prediction_shift"]


def prediction_shift(old: Relation, new: Relation, rules: RuleSet) -> float:
    """Return by how much two rules can differ in what they predict, over the channels' spans.

    A rule with the tolerance of another and a shift accepts readings that the other refuses.
    """
    match old, new:
        case Coupling() as before, Coupling() as after:
            steady = {state.code: state.nominal for state in before.states}
            codes = {state.code for state in after.states}
            silent = Transition.ENVELOPE is before.transition is not after.transition
            if (before.off, {*steady}) != (after.off, codes) or silent:
                return math.inf
            return max(abs(state.nominal - steady[state.code]) for state in after.states)
        case (
            (Balance() as before, Balance() as after)
            | (Window() as before, Window() as after)
            | (Tie() as before, Tie() as after)
        ):
            return _moved_by(before, after, rules)
        case Mean() as before, Mean() as after:
            return abs(after.mean - before.mean)
        case _:
            return 0.0


def _moved_by(old: Balance | Window | Tie, new: Balance | Window | Tie, rules: RuleSet) -> float:
    """Return the largest difference between two sums of terms, for the rows of the new one."""
    if _averaged(old) != _averaged(new):
        return math.inf
    change: dict[tuple[str, tuple[int, ...]], float] = defaultdict(float)
    for sign, relation in ((-1.0, old), (1.0, new)):
        for term in relation.terms:
            change[term.channel, term.on] += sign * term.coefficient
    low = high = new.constant - old.constant
    spans = {channel.name: channel.span for channel in rules.channels}
    for (channel, on), coefficient in change.items():
        span = Span(low=0.0, high=1.0) if on else spans.get(channel)
        if coefficient and span is None:
            return math.inf
        if coefficient and span is not None:
            ends = coefficient * span.low, coefficient * span.high
            low, high = low + min(ends), high + max(ends)
    rows = new.rows if isinstance(new, Window) else 1
    return rows * max(abs(low), abs(high))


def _averaged(relation: Balance | Window | Tie) -> bool:
    return not isinstance(relation, Tie) and relation.averaged
