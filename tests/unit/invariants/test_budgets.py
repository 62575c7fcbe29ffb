"""Budgets: margins times clean facts, rounded so that a budget never grows by rounding."""

from dataclasses import replace

import pytest

from sluice.invariants.budgets import Budgets, Margins, budgets_for
from sluice.invariants.encoding import TOLERANCE
from sluice.invariants.measure import measure
from sluice.invariants.ruleset import CleanFacts, CleanShare, Liveness
from sluice.telemetry.channel import Role
from tests.unit.invariants.small_plant import BOUNDED, EVERY_RULE, TANK, record_of, rules_of

assert EVERY_RULE.clean is not None
FACTS: CleanFacts = EVERY_RULE.clean
NOTHING = Margins(
    alpha=0.0,
    severe_multiple=0.0,
    severe_factor=0.0,
    envelope_factor=0.0,
    envelope_points=0.0,
    anchor_factor=0.0,
    anchor_points=0.0,
    liveness_share=0.0,
    repeat_factor=0.0,
    segment_factor=0.0,
)


def of(facts: CleanFacts, margins: Margins, rows: int) -> Budgets:
    return budgets_for(EVERY_RULE, facts, margins, rows=rows)


def severe(size: float) -> CleanFacts:
    """Facts in which the balance alone came near its tolerance."""
    return replace(
        FACTS,
        severe=tuple(
            replace(fact, share=size if fact.rule == "dL1" else 0.0) for fact in FACTS.severe
        ),
    )


@pytest.mark.parametrize(
    ("alpha", "rows", "allowed"),
    [(0.01, 99, 0), (0.01, 100, 1), (0.01, 199, 1), (0.01, 200, 2), (0.0, 10**6, 0), (0.5, 3, 1)],
)
def test_violating_rows_are_rounded_down(alpha: float, rows: int, allowed: int) -> None:
    assert of(FACTS, replace(NOTHING, alpha=alpha), rows).violating_rows == allowed


@pytest.mark.parametrize(
    ("per_row", "points", "rows", "segments"),
    [
        (0.0, 0.0, 1_000, 1),
        (0.001, 0.0, 499, 1),
        (0.001, 0.0, 500, 2),
        (0.001, 0.0, 1_000, 3),
        (0.0, 0.01, 99, 1),
        (0.0, 0.01, 200, 3),
        (0.001, 0.01, 1_000, 13),
    ],
)
def test_a_batch_is_one_segment_and_jumps_round_down(
    per_row: float, points: float, rows: int, segments: int
) -> None:
    facts = replace(FACTS, segments_per_row=per_row)
    margins = replace(NOTHING, segment_factor=2.0, segment_points=points)
    assert of(facts, margins, rows).segments == segments


@pytest.mark.parametrize(
    ("share", "multiple"),
    [(0.0, 1.0), (0.5, 1.0), (2 / 3, 1.0), (0.8, 1.2), (4.0, 6.0)],
)
def test_severe_is_beyond_the_tolerance_or_half_more_than_clean_rows_reached(
    share: float, multiple: float
) -> None:
    budgets = of(severe(share), Margins(), 200)
    assert budgets.severe["dL1"] == pytest.approx(multiple * TOLERANCE, abs=1)
    assert budgets.severe_multiple["dL1"] == pytest.approx(multiple)


def test_a_rule_whose_clean_residuals_are_small_may_reach_its_tolerance() -> None:
    budgets = of(severe(0.1), Margins(), 200)
    assert set(budgets.severe) == {rule.name for rule in EVERY_RULE.invariants}
    assert set(budgets.severe.values()) == {TOLERANCE}


@pytest.mark.parametrize(
    ("role", "severe"),
    [
        (Role.LEVEL, True),
        (Role.QUALITY, True),
        (Role.FLOW, False),
        (Role.PRESSURE, False),
        (Role.SPEED, False),
    ],
)
def test_only_what_no_pump_moves_at_once_is_severe_out_of_range(
    role: Role,
    severe: bool,  # noqa: FBT001
) -> None:
    channel = replace(TANK, role=role)
    repeats = FACTS.repeats if role is Role.LEVEL else ()
    clean = replace(FACTS, severe=(), envelope=(), anchors=(), liveness=(), repeats=repeats)
    bounded = replace(rules_of(BOUNDED), channels=(channel,), clean=clean)
    budgets = budgets_for(bounded, clean, Margins(), rows=300)
    record = record_of({"L1": [600.0, 60_000.0]}, channels=(channel,))
    (judged,) = measure(bounded, record).judged
    assert list(judged.violating) == [False, True]
    assert (judged.size[1] > budgets.severe["L1 in range"]) == severe


def test_severe_sizes_round_down() -> None:
    margins = replace(NOTHING, severe_factor=1.0)
    assert of(severe(1 / 3), margins, 200).severe["dL1"] == TOLERANCE // 3


@pytest.mark.parametrize(
    ("share", "rows", "allowed"), [(0.0, 200, 2), (0.0, 199, 1), (0.2, 200, 52), (0.2, 1, 0)]
)
def test_rows_in_transition_are_a_quarter_more_than_clean_and_a_hundredth(
    share: float, rows: int, allowed: int
) -> None:
    facts = replace(FACTS, envelope=(CleanShare(rule="P1~F1", share=share),))
    assert of(facts, Margins(), rows).envelope_rows == {"P1~F1": allowed}


@pytest.mark.parametrize(
    ("share", "rows", "allowed"),
    [
        (0.0, 1_999, 0),
        (0.0, 2_000, 1),
        (0.01, 400, 4),
        (0.01, 380, 3),
        (0.0025, 400, 1),
        (0.0025, 300, 0),
    ],
)
def test_windows_are_counted_at_two_anchors_per_window(
    share: float, rows: int, allowed: int
) -> None:
    """At 400 rows a window of 4 has 200 anchors: 2 % (twice the clean share) and 0.1 % are 4."""
    facts = replace(FACTS, anchors=(CleanShare(rule="dL1/4", share=share),))
    assert of(facts, Margins(), rows).anchors == {"dL1/4": allowed}


@pytest.mark.parametrize(
    ("smallest", "registers"), [(60.0, 10), (65.9, 10), (66.0, 11), (5.9, 0), (0.0, 0)]
)
def test_a_level_moves_at_least_half_of_the_smallest_clean_range(
    smallest: float, registers: int
) -> None:
    facts = replace(FACTS, liveness=(Liveness(level="L1", rows=8, smallest_range=smallest),))
    assert of(facts, Margins(), 200).quietest == {("L1", 8): registers}


def test_each_block_length_of_a_level_has_its_own_range() -> None:
    facts = replace(
        FACTS,
        liveness=(
            Liveness(level="L1", rows=8, smallest_range=60.0),
            Liveness(level="L1", rows=27, smallest_range=600.0),
        ),
    )
    assert of(facts, Margins(), 200).quietest == {("L1", 8): 10, ("L1", 27): 100}


@pytest.mark.parametrize(
    ("share", "points", "rows", "allowed"),
    [(0.0, 0.0, 1_000, 0), (0.06, 0.0, 200, 24), (0.0624, 0.0, 200, 24), (0.0, 0.06, 200, 12)],
)
def test_repeated_rows_are_twice_the_clean_share(
    share: float, points: float, rows: int, allowed: int
) -> None:
    facts = replace(FACTS, repeats=(CleanShare(rule="L1", share=share),))
    assert of(facts, Margins(repeat_points=points), rows).repeated_rows == {"L1": allowed}


@pytest.mark.parametrize(
    ("share", "rows", "allowed"), [(0.0, 10_000, 0), (0.001, 999, 0), (0.001, 1_000, 1), (1, 7, 7)]
)
def test_severe_rows_are_a_share_of_the_rows_rounded_down(
    share: float, rows: int, allowed: int
) -> None:
    assert of(FACTS, Margins(severe_share=share), rows).severe_rows == allowed


def test_the_papers_budgets_limit_violating_rows_alone() -> None:
    budgets = Budgets.of_rows(3, rows=50)
    assert (budgets.violating_rows, budgets.segments, budgets.severe_rows) == (3, 50, 50)
    assert not any(
        (
            budgets.severe,
            budgets.envelope_rows,
            budgets.anchors,
            budgets.quietest,
            budgets.repeated_rows,
        )
    )
