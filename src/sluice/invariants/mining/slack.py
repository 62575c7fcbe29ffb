"""Slack: limits of rules to blame for refused clean batches, widened beyond the clean record."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sluice.invariants.mining.trial import Blamed
from sluice.invariants.relations import Bound, Coupling, Invariant, Spectrum, SwitchBand
from sluice.invariants.ruleset import CleanFacts, CleanShare, RuleSet

__all__ = ["Slack", "slackened"]

MOST = 0.5 / 1.0001  # of nominal flow: a coupling stays able to tell on from off


@dataclass(frozen=True, slots=True, kw_only=True)
class Slack:
    """How much wider limits are than the clean record alone would make them."""

    factors: tuple[tuple[str, str, float], ...] = ()  # (check, rule, factor)

    def of(self, check: str, rule: str) -> float:
        """Return the factor of a check of a rule."""
        return next((f for c, r, f in self.factors if (c, r) == (check, rule)), 1.0)

    def widened(self, blamed: Sequence[Blamed], factor: float) -> "Slack":
        """Return the slack with every check to blame widened once more."""
        every = {(check, rule): wider for check, rule, wider in self.factors}
        for each in blamed:
            if each.rule:
                at = (each.check, each.rule)
                every[at] = every.get(at, 1.0) * factor
        return Slack(factors=tuple((*at, wider) for at, wider in every.items()))


def slackened(rules: RuleSet, slack: Slack) -> RuleSet:
    """Return the rules with wider limits where there is slack."""
    if not slack.factors or rules.clean is None:
        return rules
    wider = tuple(_wider(rule, slack) for rule in rules.invariants)
    grown = {
        new.name: new.tolerance / old.tolerance
        for new, old in zip(wider, rules.invariants, strict=True)
    }
    severe = tuple(
        replace(fact, share=fact.share * slack.of("severe rows", fact.rule) / grown[fact.rule])
        for fact in rules.clean.severe
    )
    facts = replace(rules.clean, severe=severe)
    return replace(rules, invariants=wider, clean=_facts(facts, slack))


def _wider(rule: Invariant, slack: Slack) -> Invariant:
    own = slack.of("own budget", rule.name)
    match rule.relation:
        case Bound() as bound:
            factor = max(slack.of(check, rule.name) for check in ("violating rows", "severe rows"))
            room = (factor - 1) * (bound.high - bound.low) / 2
            bound = replace(bound, low=bound.low - room, high=bound.high + room)
            return replace(rule, relation=bound)
        case SwitchBand() as band:
            on, off = (
                (own - 1) * (high - low) / 2
                for low, high in ((band.on_low, band.on_high), (band.off_low, band.off_high))
            )
            wide = replace(
                band,
                on_low=band.on_low - on,
                on_high=band.on_high + on,
                off_low=band.off_low - off,
                off_high=band.off_high + off,
            )
            return replace(rule, relation=wide)
        case Spectrum() as spectrum:
            noisier = replace(
                spectrum,
                first_low=spectrum.first_low / own,
                first_high=spectrum.first_high * own,
                second_low=spectrum.second_low / own,
                second_high=spectrum.second_high * own,
            )
            return replace(rule, relation=noisier)
        case Coupling(nominal=nominal):
            tolerance = rule.tolerance * slack.of("violating rows", rule.name)
            return replace(rule, tolerance=max(rule.tolerance, min(tolerance, MOST * nominal)))
        case _:
            factor = max(own, slack.of("violating rows", rule.name))
            return replace(rule, tolerance=rule.tolerance * factor)


def _facts(facts: CleanFacts, slack: Slack) -> CleanFacts:
    return replace(
        facts,
        envelope=_shares(facts.envelope, "rows in transition", slack),
        repeats=_shares(facts.repeats, "repeated readings", slack),
        liveness=tuple(
            replace(
                fact, smallest_range=fact.smallest_range / slack.of("standing still", fact.level)
            )
            for fact in facts.liveness
        ),
    )


def _shares(shares: tuple[CleanShare, ...], check: str, slack: Slack) -> tuple[CleanShare, ...]:
    return tuple(
        replace(fact, share=min(1.0, fact.share * slack.of(check, fact.rule))) for fact in shares
    )
