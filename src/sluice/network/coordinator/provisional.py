"""Provisional rules: ranges and rates of a template's points, from the rules of a federation.

A plant with a few days of rows cannot mine rules of its own yet. Until it can, it may watch by
limits of other plants of its kind. They are in points of the template, so they fit a plant of
another size. Rules that relate points to each other contain the sizes of one plant, and are not
taken over.

A limit is the widest that f malicious members cannot set alone: the (f + 1)-th widest. At least one
honest member has a limit that is as wide. Provisional rules serve to watch, and never at the gate.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from sluice.errors import RefusedError
from sluice.invariants import Bound, Invariant, Profile, Rate, RuleSet, untied_channels
from sluice.telemetry import Channel
from sluice.template import Point, Template

__all__ = ["provisional_rules"]


def provisional_rules(
    members: Mapping[str, RuleSet], template: Template, *, malicious: int
) -> RuleSet:
    """Combine the ranges and rates of all members; each needs at least 2 f + 1 of them."""
    needed = 2 * malicious + 1
    if len(members) < needed:
        raise RefusedError(
            f"provisional rules that {malicious} malicious members cannot set need at least "
            f"{needed} members; the federation has {len(members)}"
        )
    bounds: dict[str, list[tuple[Bound, float]]] = defaultdict(list)
    rates: dict[str, list[float]] = defaultdict(list)
    for rules in members.values():
        for rule in rules.invariants:
            match rule.relation:
                case Bound(channel=name) as bound:
                    bounds[name].append((bound, rule.tolerance))
                case Rate(channel=name):
                    rates[name].append(rule.tolerance)
                case _:
                    pass
    spanned = {point.name: point for point in template.points if point.span is not None}
    made = [
        _range(spanned[name], each, malicious)
        for name, each in sorted(bounds.items())
        if name in spanned and len(each) >= needed
    ]
    made += [
        Invariant(
            relation=Rate(name=f"{name} rate", channel=name),
            tolerance=sorted(each, reverse=True)[malicious],
        )
        for name, each in sorted(rates.items())
        if name in spanned and len(each) >= needed
    ]
    if not made:
        raise RefusedError(
            f"no point of template {template.name!r} has a range or a rate in the rules of "
            f"{needed} members; provisional rules would be empty"
        )
    rules = RuleSet(
        plant=template.name,
        profile=Profile.HARDENED,
        stride_s=template.stride_s,
        channels=tuple(_channel(point) for point in template.points),
        invariants=tuple(made),
        provisional=True,
    )
    return replace(rules, untied=untied_channels(rules))


def _range(point: Point, limits: list[tuple[Bound, float]], malicious: int) -> Invariant:
    """Return the widest range that so many members cannot set, inside the template's span."""
    assert point.span is not None
    low = sorted(bound.low for bound, _ in limits)[malicious]
    high = sorted((bound.high for bound, _ in limits), reverse=True)[malicious]
    tolerance = sorted((tolerance for _, tolerance in limits), reverse=True)[malicious]
    bound = Bound(
        name=f"{point.name} in range",
        channel=point.name,
        low=max(low, point.span.low),
        high=min(high, point.span.high),
    )
    return Invariant(relation=bound, tolerance=tolerance)


def _channel(point: Point) -> Channel:
    return Channel(
        name=point.name, role=point.role, unit=point.unit, codes=point.codes, span=point.span
    )
