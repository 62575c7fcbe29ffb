"""Joint calibration: all limits together, so that few whole honest batches are refused.

The clean record is cut into blocks. Each block is judged by rules whose numbers and limits come
from the other blocks alone. Where the refused share is above the target, the limits of the rules to
blame are widened, in every fold and in the rules themselves, or the rule is dropped once it would
be vacuous.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sluice.invariants.budgets import Margins
from sluice.invariants.mining.candidates import Candidate, Judged, judged, window_candidates
from sluice.invariants.mining.facts import clean_facts, liveness_of
from sluice.invariants.mining.folds import Clean, Fold
from sluice.invariants.mining.spans import operating_range, resolution
from sluice.invariants.mining.trial import TARGET, Check, HonestRefusal, tried
from sluice.invariants.relations import Balance, Bound, Coupling, Invariant, Window
from sluice.invariants.ruleset import CleanShare, Dropped, Liveness, RuleSet
from sluice.telemetry import Record, Role

__all__ = ["Calibrated", "Structure", "calibrate_jointly", "structure_of"]

VACUOUS = 0.5  # of nominal flow: a looser coupling cannot tell on from off
VIOLATING = 1e-4  # share of rows that all rules together may be expected to break
REFERENCE_ROWS = 1_000  # of a batch in which the target is shared among the rules
WINDOW_ROOM = 1.25  # a short batch may have no window out of balance
WIDEN = 1.3
MOST_ROUNDS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """What the rules are about, before their limits are set."""

    rules: RuleSet  # channels and ranges; the ranges are limits already
    judged: tuple[Judged, ...]
    folds: tuple[Fold, ...]
    clean: Clean

    @property
    def checks(self) -> int:
        """The number of limits that the target is shared among."""
        return max(1, len(self.judged) + len(self.rules.channels))

    @property
    def violating(self) -> float:
        """The share of rows that one rule may be expected to break."""
        return VIOLATING / self.checks

    @property
    def severe(self) -> float:
        """The share of rows on which one rule may be expected to be severe."""
        return TARGET / self.checks / REFERENCE_ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """Rules, and the refusal rate that their clean record predicts."""

    rules: RuleSet
    honest: HonestRefusal


def structure_of(rules: RuleSet, candidates: tuple[Candidate, ...], clean: Clean) -> Structure:
    """Judge the candidates out of fold, and add the windows of each balance."""
    folds = clean.folds
    checks = 3 * len(candidates) + len(rules.channels)
    shares = (VIOLATING / checks, TARGET / checks / REFERENCE_ROWS / 2)
    found: list[Judged] = []
    for candidate in candidates:
        by_row = judged(candidate, folds)
        found.append(by_row)
        if isinstance(candidate.relation, Balance):
            found += window_candidates(by_row, folds, shares)
    return Structure(rules=rules, judged=tuple(found), folds=folds, clean=clean)


def calibrate_jointly(structure: Structure, margins: Margins | None = None) -> Calibrated:
    """Return rules that are expected to refuse few honest batches, and how few."""
    margins = margins or Margins()
    slack: dict[Check, float] = {}
    structure = _without_vacuous(structure, slack)
    honest = _tried(structure, slack, margins)
    for _ in range(MOST_ROUNDS):
        if honest.kept:
            break
        blamed = [(each.check, each.rule) for each in honest.blamed if each.rule]
        if not blamed:
            break
        for check in blamed:
            slack[check] = slack.get(check, 1.0) * WIDEN
        structure = _without_vacuous(structure, slack)
        honest = _tried(structure, slack, margins)
    rules = _rules(structure, structure.clean.record, None, slack)
    assert rules.clean is not None
    worst = honest.worst
    facts = replace(
        rules.clean,
        batch_rows=worst.rows,
        batches=worst.batches,
        effective_batches=float(worst.batches),
        refused_share=worst.rate,
        refused_upper=worst.high,
    )
    return Calibrated(rules=replace(rules, clean=facts), honest=honest)


def _tried(structure: Structure, slack: dict[Check, float], margins: Margins) -> HonestRefusal:
    return tried(
        [
            (_rules(structure, fold.rest, at, slack), fold.held_out)
            for at, fold in enumerate(structure.folds)
        ],
        margins,
    )


def _rules(
    structure: Structure, clean: Record, without: int | None, slack: dict[Check, float]
) -> RuleSet:
    """Return the rules with limits from all folds but one."""
    found = [_invariant(each, structure, without, slack) for each in structure.judged]
    ranges = _ranges(structure, without, slack)
    rules = replace(structure.rules, invariants=(*found, *ranges))
    severe = tuple(
        CleanShare(
            rule=rule.name,
            share=each.tail(without).level(structure.severe)
            / rule.tolerance
            * slack.get(("severe rows", rule.name), 1.0),
        )
        for each, rule in zip(structure.judged, found, strict=True)
    )
    facts = clean_facts(
        rules,
        clean,
        liveness=_liveness(structure, without, slack),
        severe=severe,
        jumps_per_row=structure.clean.jumps_per_row,
    )
    envelope = tuple(
        replace(
            fact,
            share=min(1.0, fact.share * slack.get(("rows in transition", fact.rule), 1.0)),
        )
        for fact in facts.envelope
    )
    repeats = tuple(
        replace(
            fact, share=min(1.0, fact.share * slack.get(("repeated readings", fact.rule), 1.0))
        )
        for fact in facts.repeats
    )
    return replace(rules, clean=replace(facts, envelope=envelope, repeats=repeats))


def _invariant(
    each: Judged, structure: Structure, without: int | None, slack: dict[Check, float]
) -> Invariant:
    relation = each.candidate.relation
    wider = max(
        slack.get((check, relation.name), 1.0) for check in ("violating rows", "own budget")
    )
    if isinstance(relation, Window):
        share, wider = structure.severe * relation.rows / 2, WINDOW_ROOM * wider
    else:
        share = structure.violating
    return each.invariant(without, share=share, slack=wider)


def _ranges(
    structure: Structure, without: int | None, slack: dict[Check, float]
) -> Iterator[Invariant]:
    blocks = [fold.held_out for at, fold in enumerate(structure.folds) if at != without]
    for channel in structure.rules.channels:
        if channel.role.discrete:
            continue
        usual = operating_range(channel, blocks, share=structure.severe / 2)
        if usual is not None:
            name = f"{channel.name} in range"
            wider = max(
                slack.get((check, name), 1.0) for check in ("violating rows", "severe rows")
            )
            room = (wider - 1) * (usual.high - usual.low)
            bound = Bound(
                name=name, channel=channel.name, low=usual.low - room, high=usual.high + room
            )
            step = resolution(structure.clean.record.column(channel.name))
            yield Invariant(relation=bound, tolerance=step)


def _liveness(
    structure: Structure, without: int | None, slack: dict[Check, float]
) -> tuple[Liveness, ...]:
    parts = [fold.held_out for at, fold in enumerate(structure.folds) if at != without]
    return tuple(
        replace(
            fact,
            smallest_range=fact.smallest_range / slack.get(("standing still", level.name), 1.0),
        )
        for level in structure.rules.channels
        if level.role is Role.LEVEL and level.span
        for fact in liveness_of(level.name, parts, share=structure.severe)
    )


def _without_vacuous(structure: Structure, slack: dict[Check, float]) -> Structure:
    """Drop couplings that cannot tell on from off."""
    kept, dropped = [], list(structure.rules.dropped)
    for each in structure.judged:
        relation = each.candidate.relation
        if isinstance(relation, Coupling):
            tolerance = _invariant(each, structure, None, slack).tolerance
            if tolerance >= VACUOUS * relation.nominal:
                why = (
                    f"vacuous: tolerance {tolerance:.3g} reaches half of nominal "
                    f"{relation.nominal:.3g}; it cannot tell on from off"
                )
                dropped.append(Dropped(name=relation.name, why=why))
                continue
        kept.append(each)
    rules = replace(structure.rules, dropped=tuple(dropped))
    return replace(structure, judged=tuple(kept), rules=rules)
