"""What moved between two minings of one plant, and what is kept from loosening."""

from dataclasses import replace

import pytest

from sluice.invariants.drift import Appeared, Change, Moved, Redefined, Vanished, What, drift
from sluice.invariants.mining.profiles import mine
from sluice.invariants.mining.renewal import keep_tolerances
from sluice.invariants.relations import Balance, Bound, Coupling, Invariant, Window
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.channel import Span
from sluice.telemetry.record import Record


@pytest.fixture(scope="module")
def plant() -> Record:
    return simulate("line", seed=0, days=6)


@pytest.fixture(scope="module")
def clean(plant: Record) -> Record:
    return plant.rows(4320, 8640)


@pytest.fixture(scope="module")
def rules(plant: Record, clean: Record) -> RuleSet:
    return mine(plant.rows(0, 4320), clean, profile=Profile.HARDENED)


def rule(rules: RuleSet, name: str) -> Invariant:
    return next(found for found in rules.invariants if found.name == name)


def with_rule(rules: RuleSet, changed: Invariant) -> RuleSet:
    return replace(
        rules,
        invariants=tuple(changed if r.name == changed.name else r for r in rules.invariants),
    )


def only(changes: tuple[Change, ...]) -> Change:
    assert len(changes) == 1, [change.sentence for change in changes]
    return changes[0]


def test_the_same_rules_have_not_drifted(rules: RuleSet) -> None:
    assert drift(rules, rules) == ()


def test_a_stronger_pump_is_asked_about(rules: RuleSet) -> None:
    old = rule(rules, "S_PU1~F_PU1")
    assert isinstance(old.relation, Coupling)
    state = old.relation.states[0]
    new = replace(
        old,
        relation=replace(old.relation, states=(replace(state, nominal=1.12 * state.nominal),)),
    )
    change = only(drift(rules, with_rule(rules, new)))
    assert isinstance(change, Moved)
    assert (change.rule, change.what) == ("S_PU1~F_PU1", What.NOMINAL)
    assert change.share == pytest.approx(0.12)
    assert change.sentence.startswith("S_PU1's nominal flow rose by 12 %, from 13")
    assert change.sentence.endswith("m3/h: a new pump?")


def test_a_leak_shows_in_the_constant(rules: RuleSet) -> None:
    old = rule(rules, "dL_T1")
    assert isinstance(old.relation, Balance)
    leaking = replace(old, relation=replace(old.relation, constant=-0.41))
    change = only(drift(rules, with_rule(rules, leaking)))
    assert isinstance(change, Moved)
    assert change.what is What.CONSTANT
    assert change.sentence.endswith(
        "to -0.41 m per row: the tank loses water that no meter measures"
    )


def test_a_coefficient_and_a_tolerance_move_by_percentages(rules: RuleSet) -> None:
    old = rule(rules, "dL_T1")
    assert isinstance(old.relation, Balance)
    first, *rest = old.relation.terms
    terms = (replace(first, coefficient=first.coefficient * 0.8), *rest)
    new = replace(old, relation=replace(old.relation, terms=terms), tolerance=old.tolerance * 1.5)
    coefficient, tolerance = drift(rules, with_rule(rules, new))
    assert "coefficient of F_PU1 changed from" in coefficient.sentence
    assert "(-20 %): meter drift, or a different tank area?" in coefficient.sentence
    assert "(+50 %): it detects less" in tolerance.sentence


def test_terms_that_come_and_go_are_named(rules: RuleSet) -> None:
    old = rule(rules, "dL_T1")
    assert isinstance(old.relation, Balance)
    first, second = old.relation.terms
    moved = replace(second, channel="F_PU4")
    new = replace(old, relation=replace(old.relation, terms=(first, moved)))
    told = [change.sentence for change in drift(rules, with_rule(rules, new))]
    assert told[0] == "L_T1 no longer depends on F_PU2"
    assert told[1].startswith("L_T1 now depends on F_PU4")


def test_windows_do_not_repeat_what_their_balance_tells(rules: RuleSet) -> None:
    changed = rules
    for old in rules.invariants:
        if isinstance(old.relation, Balance | Window) and old.relation.level == "L_T1":
            leaking = replace(old.relation, constant=-0.41)
            changed = with_rule(changed, replace(old, relation=leaking))
    assert only(drift(rules, changed)).rule == "dL_T1"
    window = next(r for r in rules.invariants if isinstance(r.relation, Window))
    assert isinstance(window.relation, Window)
    alone = replace(window, relation=replace(window.relation, constant=-0.41))
    assert only(drift(rules, with_rule(rules, alone))).rule == window.name


def test_new_and_vanished_rules_are_listed(rules: RuleSet) -> None:
    fewer = replace(rules, invariants=rules.invariants[1:])
    gone, come = only(drift(rules, fewer)), only(drift(fewer, rules))
    assert isinstance(gone, Vanished)
    assert isinstance(come, Appeared)
    assert gone.rule == come.rule == "S_PU1~F_PU1"
    assert "S_PU1~F_PU1 was removed: it was: S_PU1 on: F_PU1 reads" in gone.sentence


def test_what_a_rule_reads_is_not_a_number(rules: RuleSet) -> None:
    old = rule(rules, "S_PU1~F_PU1")
    assert isinstance(old.relation, Coupling)
    silenced = replace(old, relation=replace(old.relation, standby=(("S_PU4", 0),)))
    change = only(drift(rules, with_rule(rules, silenced)))
    assert isinstance(change, Redefined)
    assert change.sentence.endswith("not checked while S_PU4 runs")


def test_spans_and_clean_facts_show_too(rules: RuleSet) -> None:
    assert rules.clean is not None
    level = replace(rules.channels[0], span=Span(low=0, high=99))
    wider = replace(rules, channels=(level, *rules.channels[1:]))
    sentence = "channel L_T1's span changed from [0, 13] to [0, 99]"
    assert only(drift(rules, wider)).sentence == sentence
    jumpy = replace(rules, clean=replace(rules.clean, segments_per_row=0.5))
    change = only(drift(rules, jumpy))
    assert change.sentence == "in clean rows, segments per row changed from 0 to 0.5"
    still = replace(rules, clean=replace(rules.clean, liveness=()))
    assert all("no longer stated" in change.sentence for change in drift(rules, still))
    assert all("is new: " in change.sentence for change in drift(still, rules))
    assert len(drift(still, rules)) == len(rules.clean.liveness)


def test_wider_tolerances_are_not_taken_over(rules: RuleSet, plant: Record) -> None:
    name = "S_PU1~F_PU1"
    narrow = with_rule(rules, replace(rule(rules, name), tolerance=rule(rules, name).tolerance / 4))
    held, kept = keep_tolerances(narrow, rules, plant)
    assert [k.rule for k in kept] == [name, name]
    assert f"{name}: kept the tolerance" in kept[0].sentence
    assert "(+300.0%)" in kept[0].sentence
    assert rule(held, name).tolerance == rule(narrow, name).tolerance
    assert rule(held, name).evidence.smallest_offset == pytest.approx(rule(held, name).tolerance)
    assert held.clean is not None
    assert rules.clean is not None
    assert held.clean.violating_share > rules.clean.violating_share
    excess = {fact.rule: fact.share for fact in held.clean.severe}
    before = {fact.rule: fact.share for fact in rules.clean.severe}
    assert excess[name] == before[name]  # of a tolerance a quarter as wide
    assert f"{name}: kept the largest clean residual over its tolerance" in kept[1].sentence


def test_narrower_tolerances_are_taken_over(rules: RuleSet, clean: Record) -> None:
    wide = with_rule(
        rules, replace(rule(rules, "dL_T1"), tolerance=rule(rules, "dL_T1").tolerance * 4)
    )
    assert keep_tolerances(wide, rules, clean) == (rules, ())


def test_ranges_and_spans_do_not_grow(rules: RuleSet, plant: Record) -> None:
    old = rule(rules, "L_T1 in range")
    assert isinstance(old.relation, Bound)
    bound = replace(old.relation, low=0.0, high=2.0)
    level = replace(rules.channels[0], span=Span(low=0, high=9))
    narrow = replace(
        with_rule(rules, replace(old, relation=bound)), channels=(level, *rules.channels[1:])
    )
    wide = with_rule(rules, replace(old, relation=replace(bound, high=13.0)))
    held, kept = keep_tolerances(narrow, wide, plant)
    assert [k.sentence for k in kept] == [
        "L_T1 in range: kept 0 to 2 m; new rows need 0 to 13 m",
        "L_T1: kept the span 0 to 9 m",
    ]
    assert rule(held, "L_T1 in range").relation == bound
    assert held.channels[0].span == Span(low=0, high=9)


def test_a_window_is_not_lost_to_another_choice(rules: RuleSet, plant: Record) -> None:
    window = next(r for r in rules.invariants if isinstance(r.relation, Window))
    without = replace(rules, invariants=tuple(r for r in rules.invariants if r is not window))
    held, kept = keep_tolerances(rules, without, plant)
    assert [k.rule for k in kept] == [window.name]
    assert rule(held, window.name) == window
    assert held.clean is not None
    assert window.name in {fact.rule for fact in held.clean.anchors}
