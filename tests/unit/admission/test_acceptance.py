"""Acceptance: rules that were made loose on purpose do not pass."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from sluice.admission.acceptance import Acceptance, unsound
from sluice.admission.objections import Objection
from sluice.admission.policy import HardenedPolicy, accept
from sluice.invariants.mining.profiles import mine
from sluice.invariants.relations import Balance, Bound, Coupling, Invariant, Rate, Window
from sluice.invariants.ruleset import CleanFacts, CleanShare, Dropped, Profile, RuleSet
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.channel import Role, Span

Edit = Callable[[RuleSet], RuleSet]
IDLE = {"S_PU4": "runs only if S_PU3 fails"}
POLICY = HardenedPolicy(acceptance=Acceptance(reasons=IDLE))


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    plant = simulate("line", seed=0, days=6)
    return mine(plant.rows(0, 4320), plant.rows(4320, 8640), profile=Profile.HARDENED)


def said(pattern: str, objections: tuple[Objection, ...]) -> bool:
    return any(re.search(pattern, objection.sentence) for objection in objections)


def edited(rules: RuleSet, kind: type, edit: Callable[[Invariant], Invariant]) -> RuleSet:
    return replace(
        rules,
        invariants=tuple(
            edit(rule) if isinstance(rule.relation, kind) else rule for rule in rules.invariants
        ),
    )


def loosened(kind: type, factor: float) -> Edit:
    return lambda rules: edited(
        rules, kind, lambda rule: replace(rule, tolerance=rule.tolerance * factor)
    )


def without(*names: str) -> Edit:
    def gone(rule: str) -> bool:
        return any(rule == name or rule.startswith(f"{name}/") for name in names)

    def edit(rules: RuleSet) -> RuleSet:
        return kept(rules, lambda rule: not gone(rule.name))

    return edit


def kept(rules: RuleSet, which: Callable[[Invariant], bool]) -> RuleSet:
    """Some of the rules, with the facts about these."""
    invariants = tuple(rule for rule in rules.invariants if which(rule))
    names, facts = {rule.name for rule in invariants}, clean(rules)
    return replace(
        rules,
        invariants=invariants,
        clean=replace(
            facts,
            severe=tuple(fact for fact in facts.severe if fact.rule in names),
            envelope=tuple(fact for fact in facts.envelope if fact.rule in names),
            anchors=tuple(fact for fact in facts.anchors if fact.rule in names),
            switches=tuple(fact for fact in facts.switches if fact.rule in names),
            blocks=tuple(fact for fact in facts.blocks if fact.rule in names),
        ),
    )


def boasting(**facts: object) -> Edit:
    def edit(rules: RuleSet) -> RuleSet:
        assert rules.clean is not None
        return replace(rules, clean=replace(rules.clean, **facts))  # type: ignore[arg-type]

    return edit


def exaggerated(field: str, share: float) -> Edit:
    def edit(rules: RuleSet) -> RuleSet:
        found: tuple[CleanShare, ...] = getattr(clean(rules), field)
        return boasting(**{field: tuple(replace(fact, share=share) for fact in found)})(rules)

    return edit


def clean(rules: RuleSet) -> CleanFacts:
    assert rules.clean is not None
    return rules.clean


def silenced(rules: RuleSet) -> RuleSet:
    def edit(rule: Invariant) -> Invariant:
        assert isinstance(rule.relation, Coupling)
        return replace(rule, relation=replace(rule.relation, standby=(("S_PU2", 0),)))

    return edited(rules, Coupling, edit)


def deaf(rules: RuleSet) -> RuleSet:
    """Drop every flow from every balance: only tolerances remain, and they look tight."""

    def edit(rule: Invariant) -> Invariant:
        assert isinstance(rule.relation, Balance | Window)
        return replace(rule, relation=replace(rule.relation, terms=()))

    return edited(edited(rules, Balance, edit), Window, edit)


def test_mined_rules_are_accepted_and_again_after_themselves(rules: RuleSet) -> None:
    assert accept(rules, POLICY) == ()
    assert accept(rules, POLICY, last=rules) == ()


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (loosened(Coupling, 20), "S_PU1~F_PU1: tolerance .* m3/h; the policy allows less than"),
        (loosened(Balance, 1000), r"dL_T1: tolerance .* \(25% of the span of L_T1\)"),
        (loosened(Window, 100), "the tolerance of 4 single rows"),
        (deaf, "L_T1 has no balance or window tight enough"),
        (without("dL_T2"), "L_T2 has no balance or window tight enough"),
        (
            without("S_PU1~F_PU1", "S_PU1 by L_T1"),
            "no coupling or balance reads S_PU1; mine other rows, or declare",
        ),
        (
            silenced,
            (
                "S_PU1~F_PU1 is not checked while S_PU2 runs, and nothing declares that S_PU2 is "
                "on standby"
            ),
        ),
        (boasting(refused_share=0.4), "40.0% of clean batches would be refused; .* 0.5%"),
        (exaggerated("severe", 1e6), "S_PU1~F_PU1: the file claims clean residuals up to"),
        (exaggerated("envelope", 0.9), "claims 90.0% of clean rows in transition"),
        (exaggerated("anchors", 0.5), "claims that 50.0% of clean windows do not balance"),
        (exaggerated("repeats", 1.0), "claims that 100.0% of clean rows repeat"),
        (boasting(segments_per_row=0.5), "claims that 50.00% of clean rows follow a time jump"),
    ],
)
def test_rules_made_loose_on_purpose_fail(rules: RuleSet, edit: Edit, reason: str) -> None:
    assert said(reason, accept(edit(rules), POLICY))


def test_a_tank_is_seen_only_by_a_rule_tighter_than_its_flows(rules: RuleSet) -> None:
    blunt = loosened(Balance, 15)(rules)
    assert accept(blunt, POLICY) == ()
    only_blunt = kept(blunt, lambda rule: not isinstance(rule.relation, Window))
    pattern = "L_T1 has no balance or window tight enough to detect 50% of the change"
    assert said(pattern, accept(only_blunt, POLICY))


def test_empty_rules_are_never_accepted(rules: RuleSet) -> None:
    empty = kept(rules, lambda rule: isinstance(rule.relation, Bound | Rate))
    assert "every batch in range would be admitted" in accept(empty, POLICY)[0].sentence


def test_a_minimum_of_rules_is_asked_for(rules: RuleSet) -> None:
    policy = HardenedPolicy(acceptance=Acceptance(rules_min=99, reasons=IDLE))
    assert "the policy requires 99" in accept(rules, policy)[0].sentence


def test_paper_rules_say_nothing_of_clean_batches(rules: RuleSet) -> None:
    paper = replace(rules, profile=Profile.PAPER_WIDE, clean=None)
    assert "mine with --profile hardened" in accept(paper, POLICY)[-1].sentence


def test_a_declared_reason_stands_in_for_a_rule(rules: RuleSet) -> None:
    fewer = without("dL_T2", "S_PU1~F_PU1")(rules)
    reasons = {"L_T2": "no outflow meter", "S_PU1": "manual valve"}
    assert accept(fewer, HardenedPolicy(acceptance=Acceptance(reasons=reasons | IDLE))) == ()


def test_a_pump_that_never_ran_stays_idle_or_needs_a_declared_reason(rules: RuleSet) -> None:
    assert accept(rules, HardenedPolicy()) == ()
    free = without("S_PU4 idle")(rules)
    (objection,) = accept(free, HardenedPolicy())
    assert objection.subject == "S_PU4"
    assert accept(free, HardenedPolicy(), declared=IDLE) == ()


def test_the_miner_is_quoted_where_a_rule_is_missing(rules: RuleSet) -> None:
    gone = Dropped(name="S_PU1~flow", why="the flow goes on while it is off")
    fewer = without("S_PU1~F_PU1", "S_PU1 by L_T1")(rules)
    (objection,) = accept(replace(fewer, dropped=(*rules.dropped, gone)), POLICY)
    assert "(the miner says: the flow goes on while it is off)" in objection.sentence


def roomier(rules: RuleSet) -> RuleSet:
    def edit(rule: Invariant) -> Invariant:
        assert isinstance(rule.relation, Bound)
        return replace(rule, relation=replace(rule.relation, low=-1e6))

    return edited(rules, Bound, edit)


def slower(rules: RuleSet) -> RuleSet:
    def edit(rule: Invariant) -> Invariant:
        assert isinstance(rule.relation, Coupling)
        return replace(rule, relation=replace(rule.relation, settle=9))

    return edited(rules, Coupling, edit)


def renamed(rules: RuleSet) -> RuleSet:
    level, facts = replace(rules.channels[0], role=Role.PRESSURE), clean(rules)
    silent = replace(
        facts,
        repeats=tuple(fact for fact in facts.repeats if fact.rule != level.name),
        liveness=tuple(fact for fact in facts.liveness if fact.level != level.name),
    )
    return replace(rules, channels=(level, *rules.channels[1:]), clean=silent)


def widened(rules: RuleSet) -> RuleSet:
    level = replace(rules.channels[0], span=Span(low=-50, high=50))
    return replace(rules, channels=(level, *rules.channels[1:]))


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (loosened(Coupling, 1.01), "S_PU1~F_PU1: tolerance .* is looser than the last accepted"),
        (loosened(Rate, 2), "L_T1 rate: tolerance .* is looser than the last accepted"),
        (roomier, "L_T1 in range: -1,000,000 to .* is wider than the last accepted"),
        (slower, r"settles in 9 rows; the last accepted file has \d"),
        (without("S_PU1~F_PU1"), "S_PU1~F_PU1 is missing; the last accepted file has it"),
        (renamed, "channel L_T1 is no longer described as a level"),
        (widened, "the span of channel L_T1 grew from 0 to 13 to -50 to 50"),
        (
            boasting(liveness=()),
            r"L_T1 needs to move by 0 m; the last accepted file requires 0.\d+ m within \d+ rows",
        ),
    ],
)
def test_rules_get_no_looser_than_the_last_accepted(
    rules: RuleSet, edit: Edit, reason: str
) -> None:
    assert said(reason, accept(edit(rules), POLICY, last=rules))


def test_a_policy_may_leave_some_room(rules: RuleSet) -> None:
    policy = HardenedPolicy(acceptance=Acceptance(looser_than_last=1.1, reasons=IDLE))
    assert accept(loosened(Coupling, 1.05)(rules), policy, last=rules) == ()


def test_a_sharper_window_replaces_another(rules: RuleSet) -> None:
    windows = [rule for rule in rules.invariants if isinstance(rule.relation, Window)]
    shortest = windows[0].name
    fewer = kept(rules, lambda rule: rule.name != shortest)
    assert accept(fewer, POLICY, last=rules) == ()
    reasons = accept(without("dL_T1/4", "dL_T1")(rules), POLICY, last=rules)
    assert said("is missing; the last accepted file has it", reasons)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (loosened(Coupling, -1), "the tolerance is -.*; it must be above 0"),
        (loosened(Coupling, 0), "the tolerance is 0; it must be above 0"),
        (
            lambda rules: replace(rules, invariants=(*rules.invariants, rules.invariants[0])),
            "2 rules are named 'S_PU1~F_PU1'",
        ),
        (
            lambda rules: replace(rules, channels=rules.channels[1:]),
            "dL_T1 reads L_T1, which the file does not describe",
        ),
        (loosened(Balance, 1e-12), "beyond half the proof field"),
    ],
)
def test_rules_that_contradict_themselves_are_unsound(
    rules: RuleSet, edit: Edit, reason: str
) -> None:
    wrong = unsound(edit(rules))
    assert said(reason, wrong)
    assert accept(edit(rules), POLICY) == wrong
