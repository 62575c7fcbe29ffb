"""Updating rules: what new rows would loosen keeps its old limits, to the digit."""

from dataclasses import replace

import pytest

from sluice.admission.policy import HardenedPolicy, accept
from sluice.invariants.mining.renewal import KeptRule, keep_tolerances
from sluice.invariants.relations import Evidence, Invariant
from sluice.invariants.ruleset import CleanShare, Liveness, RuleSet
from sluice.telemetry.channel import Span
from tests.unit.invariants.small_plant import (
    BALANCE,
    BALANCED,
    BOUND,
    BOUNDED,
    COUPLED,
    COUPLING,
    EVERY_RULE,
    METER,
    PUMP,
    RATED,
    TANK,
    WINDOW,
    WINDOWED,
    quiet_day,
    record_of,
    rule,
    rules_of,
)

DAY = record_of(quiet_day())


def without_facts(*rules: Invariant) -> RuleSet:
    return replace(rules_of(*rules), clean=None)


def kept(old: RuleSet, new: RuleSet) -> tuple[RuleSet, tuple[KeptRule, ...]]:
    return keep_tolerances(old, new, DAY)


def test_the_same_rules_are_returned_as_they_are() -> None:
    rules, sentences = kept(EVERY_RULE, EVERY_RULE)
    assert rules is EVERY_RULE
    assert sentences == ()


def test_a_wider_tolerance_is_not_taken_over_and_its_power_shrinks_with_it() -> None:
    wider = replace(COUPLED, tolerance=8.0, evidence=Evidence(smallest_offset=8.0, support=0.5))
    rules, sentences = kept(without_facts(COUPLED), without_facts(wider))
    (limited,) = rules.invariants
    assert limited.tolerance == 6.0
    assert limited.evidence == Evidence(smallest_offset=6.0, support=0.5)
    assert sentences == (
        KeptRule(
            rule="P1~F1",
            sentence="P1~F1: kept the tolerance 6 m3/h; new rows need 8 m3/h (+33.3%)",
        ),
    )


@pytest.mark.parametrize("tolerance", [6.0, 5.9])
def test_a_tolerance_that_is_no_wider_is_taken_over(tolerance: float) -> None:
    rules, sentences = kept(rules_of(COUPLED), rules_of(replace(COUPLED, tolerance=tolerance)))
    assert (rules.invariants[0].tolerance, sentences) == (tolerance, ())


def test_a_rule_of_another_kind_under_the_same_name_is_new() -> None:
    renamed = rule(replace(BOUND, name="dL1"), 99.0)
    rules, sentences = kept(rules_of(BALANCED), rules_of(renamed))
    assert (rules.invariants, sentences) == ((renamed,), ())


@pytest.mark.parametrize(
    ("low", "high", "limits"),
    [
        (0.0, 3_000.0, (30.0, 3_000.0)),
        (60.0, 3_300.0, (60.0, 3_000.0)),
        (0.0, 3_300.0, (30.0, 3_000.0)),
        (60.0, 2_700.0, (60.0, 2_700.0)),
        (6_000.0, 9_000.0, (6_000.0, 9_000.0)),  # the ranges do not meet: nothing could pass
    ],
)
def test_a_range_keeps_the_ends_that_would_move_outward(
    low: float, high: float, limits: tuple[float, float]
) -> None:
    moved = rule(replace(BOUND, low=low, high=high), 3.0)
    rules, sentences = kept(rules_of(BOUNDED), rules_of(moved))
    relation = rules.invariants[0].relation
    assert (getattr(relation, "low", None), getattr(relation, "high", None)) == limits
    assert len(sentences) == (limits != (low, high))


def test_a_kept_range_is_told_with_what_new_rows_need() -> None:
    moved = rule(replace(BOUND, low=0.0, high=3_300.0), 3.0)
    _, (sentence,) = kept(rules_of(BOUNDED), rules_of(moved))
    assert sentence.sentence == ("L1 in range: kept 30 to 3,000 mm; new rows need 0 to 3,300 mm")


def test_a_window_of_another_length_is_kept_with_the_old_balance() -> None:
    balance = replace(BALANCE, constant=0.5)
    rules, sentences = kept(without_facts(BALANCED, WINDOWED), without_facts(rule(balance, 12.0)))
    assert [one.relation for one in rules.invariants] == [BALANCE, WINDOW]
    assert rules.invariants[-1].tolerance == 12.0
    assert [one.rule for one in sentences] == ["dL1", "dL1/4"]
    assert "kept what it predicts" in sentences[0].sentence
    assert "kept, although new rows alone would give other windows" in sentences[1].sentence


@pytest.mark.parametrize(("tolerance", "moves"), [(11.4, True), (11.6, False)])
def test_a_prediction_moves_only_if_the_tolerance_shrinks_by_as_much(
    tolerance: float, *, moves: bool
) -> None:
    balance = replace(BALANCE, constant=0.5)
    rules, sentences = kept(without_facts(BALANCED), without_facts(rule(balance, tolerance)))
    (one,) = rules.invariants
    assert (one.relation, one.tolerance) == (balance if moves else BALANCE, tolerance)
    assert bool(sentences) is not moves


def test_a_window_of_a_tank_without_a_balance_is_lost() -> None:
    rules, sentences = kept(without_facts(RATED, WINDOWED), without_facts(RATED))
    assert ([one.name for one in rules.invariants], sentences) == (["L1 rate"], ())


@pytest.mark.parametrize(
    ("before", "now", "after"),
    [
        (Span(low=0, high=10), Span(low=-5, high=12), Span(low=0, high=10)),
        (Span(low=0, high=10), Span(low=2, high=12), Span(low=2, high=10)),
        (Span(low=0, high=10), Span(low=2, high=8), Span(low=2, high=8)),
        (Span(low=0, high=10), Span(low=20, high=30), Span(low=20, high=30)),
        (None, Span(low=-5, high=12), Span(low=-5, high=12)),
        (Span(low=0, high=10), None, None),
    ],
)
def test_a_span_does_not_grow(before: Span | None, now: Span | None, after: Span | None) -> None:
    old = replace(rules_of(channels=(PUMP, METER, replace(TANK, span=before))), clean=None)
    new = replace(rules_of(channels=(PUMP, METER, replace(TANK, span=now))), clean=None)
    rules, sentences = kept(old, new)
    assert rules.channel("L1").span == after
    assert [one.rule for one in sentences] == ([""] if after != now else [])


def test_facts_about_clean_rows_are_counted_again_for_the_kept_limits() -> None:
    """The quiet day rises by 150 a row, beyond the old tolerance of 96: every batch is refused."""
    old, new = rules_of(replace(RATED, tolerance=96.0)), rules_of(RATED)
    rules, _ = kept(old, new)
    assert rules.clean is not None
    assert new.clean is not None
    assert rules.clean.liveness == new.clean.liveness
    assert rules.clean.refused_share == 1.0


def claiming(**facts: object) -> RuleSet:
    assert EVERY_RULE.clean is not None
    return replace(EVERY_RULE, clean=replace(EVERY_RULE.clean, **facts))  # type: ignore[arg-type]


def block(rows: int, size: float) -> Liveness:
    return Liveness(level="L1", rows=rows, smallest_range=size)


@pytest.mark.parametrize(
    ("loose", "sentence"),
    [
        (
            claiming(envelope=(CleanShare(rule="P1~F1", share=0.2),)),
            "P1~F1: kept the share of clean rows in transition, 0; new rows show 0.2",
        ),
        (
            claiming(anchors=(CleanShare(rule="dL1/4", share=0.01),)),
            "dL1/4: kept the share of clean windows out of balance, 0; new rows show 0.01",
        ),
        (
            claiming(repeats=(CleanShare(rule="L1", share=0.1),)),
            "L1: kept the share of repeated clean rows, 0; new rows show 0.1",
        ),
        (claiming(segments_per_row=0.01), "time jumps: kept 0 per row; new rows show 0.01"),
        (claiming(liveness=()), "L1: kept the smallest range, 60 mm over 8 rows"),
        (claiming(liveness=(block(9, 60.0),)), "L1: kept the smallest range, 60 mm over 8 rows"),
        (claiming(liveness=(block(8, 59.0),)), "L1: kept the smallest range, 60 mm over 8 rows"),
    ],
)
def test_a_fact_from_which_a_larger_budget_would_follow_is_kept(
    loose: RuleSet, sentence: str
) -> None:
    rules, (told,) = kept(EVERY_RULE, loose)
    assert told.sentence == sentence
    assert accept(rules, HardenedPolicy(), last=EVERY_RULE) == ()
    assert accept(loose, HardenedPolicy(), last=EVERY_RULE) != ()


def test_a_block_that_implies_the_old_one_needs_no_other() -> None:
    sharper = claiming(liveness=(block(7, 66.0),))
    assert kept(EVERY_RULE, sharper) == (sharper, ())


def test_a_longer_settle_time_is_not_taken_over() -> None:
    slow = rule(replace(COUPLING, settle=3), 6.0)
    rules, (told,) = kept(without_facts(COUPLED), without_facts(slow))
    assert rules.invariants == (COUPLED,)
    assert told.sentence == "P1~F1: kept 1 rows to settle; new rows need 3"


def test_a_range_and_a_rate_are_not_lost() -> None:
    rules, told = kept(without_facts(COUPLED, BOUNDED, RATED), without_facts(COUPLED))
    assert rules.invariants == (COUPLED, BOUNDED, RATED)
    assert {one.rule for one in told} == {"L1 in range", "L1 rate"}


def test_rules_without_facts_stay_without_them() -> None:
    old = replace(rules_of(replace(RATED, tolerance=96.0)), clean=None)
    rules, sentences = kept(old, replace(rules_of(RATED), clean=None))
    assert rules.clean is None
    assert len(sentences) == 1
