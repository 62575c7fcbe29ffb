"""Sixteen typed rows against each budget: one below, at, and one above what they show."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sluice.admission.gate import Gate, judge
from sluice.admission.judging import judge_integers, rows_within
from sluice.admission.measured import MeasuredBatch
from sluice.admission.policy import HardenedPolicy, PaperPolicy, default_policy
from sluice.admission.reasons import Reason, ReasonKind
from sluice.admission.verdict import Verdict
from sluice.errors import RecordError, SettingError
from sluice.invariants.budgets import Budgets, Margins
from sluice.invariants.encoding import TOLERANCE
from sluice.telemetry.record import Record
from tests.unit.invariants.small_plant import EVERY_RULE, quiet_day, record_of

LARGE = 1_000
SMALL_BATCHES = HardenedPolicy(rows_min=1, margins=Margins(alpha=0.5, envelope_points=0.5))

# Every budget so large that no batch of sixteen rows exceeds it.
GENEROUS = Budgets(
    violating_rows=LARGE,
    segments=LARGE,
    severe_rows=LARGE,
    severe={rule.name: TOLERANCE for rule in EVERY_RULE.invariants},
    envelope_rows={"P1~F1": LARGE},
    anchors={"dL1/4": LARGE},
    quietest={("L1", 8): 0},
    switches={},
    blocks={},
    repeated_rows={"L1": LARGE},
)


def judged(record: Record, budgets: Budgets) -> Verdict:
    measured = MeasuredBatch(rules=EVERY_RULE, record=record)
    return judge_integers(measured, budgets, alpha=0.01, policy=SMALL_BATCHES)


def spoiled() -> Record:
    """Rows 13 to 15 leap up and down; the pump's meter runs at rest on row 2."""
    columns = quiet_day()
    columns["F1"][2] = 30.0
    columns["L1"][13:] = [2_400.0, 1_800.0, 2_400.0]
    return record_of(columns, jumps=(8,))


def repeating() -> Record:
    """Twice the same dozen levels, with a row of its own between."""
    levels = [600.0 + 30.0 * (at * at % 37) for at in range(1, 13)]
    return record_of({"P1": [0.0] * 25, "F1": [0.0] * 25, "L1": [*levels, 1_500.0, *levels]})


Exactly = Callable[[int], Budgets]
# What the rows show, and budgets with one of them at a given number.
SHOWN: dict[ReasonKind, tuple[Record, int, Exactly]] = {
    ReasonKind.TIME_JUMPS: (spoiled(), 1, lambda n: replace(GENEROUS, segments=n + 1)),
    # 0 and 8 begin segments, 2 breaks coupling and balance, 13 to 15 leap
    ReasonKind.VIOLATING_ROWS: (spoiled(), 6, lambda n: replace(GENEROUS, violating_rows=n)),
    ReasonKind.SEVERE_ROWS: (spoiled(), 4, lambda n: replace(GENEROUS, severe_rows=n)),
    # of the anchors 4, 6, ..., 14: 4 sees the meter, 8 and 10 the jump, 14 nothing
    ReasonKind.WINDOWS: (spoiled(), 3, lambda n: replace(GENEROUS, anchors={"dL1/4": n})),
    ReasonKind.TRANSITION: (spoiled(), 4, lambda n: replace(GENEROUS, envelope_rows={"P1~F1": n})),
    ReasonKind.REPEATED_READINGS: (
        repeating(),
        12,
        lambda n: replace(GENEROUS, repeated_rows={"L1": n}),
    ),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_a_budget_may_be_used_up_but_not_exceeded(kind: ReasonKind) -> None:
    record, shown, exactly = SHOWN[kind]
    assert judged(record, exactly(shown + 1)).reasons == ()
    assert judged(record, exactly(shown)).reasons == ()
    (reason,) = judged(record, exactly(shown - 1)).reasons
    assert (reason.kind, reason.found, reason.allowed) == (kind, shown, shown - 1)
    assert int(reason.rows.sum()) == shown


@pytest.mark.parametrize(
    ("kind", "rule", "total", "first"),
    [
        (ReasonKind.TIME_JUMPS, "", 16, "2026-03-01 00:03:00"),
        (ReasonKind.VIOLATING_ROWS, "", 16, "2026-03-01 00:00:00"),
        (ReasonKind.SEVERE_ROWS, "", 16, "2026-03-01 00:00:20"),
        (ReasonKind.WINDOWS, "dL1/4", 6, "2026-03-01 00:00:40"),
        (ReasonKind.TRANSITION, "P1~F1", 16, "2026-03-01 00:00:00"),
        (ReasonKind.REPEATED_READINGS, "L1", 25, "2026-03-01 00:02:10"),
    ],
)
def test_a_reason_says_which_rule_of_how_many_and_since_when(
    kind: ReasonKind, rule: str, total: int, first: str
) -> None:
    record, shown, exactly = SHOWN[kind]
    (reason,) = judged(record, exactly(shown - 1)).reasons
    assert (reason.rule, reason.total, reason.first) == (rule, total, first)


@pytest.mark.parametrize(("least", "reasons"), [(149, 0), (150, 0), (151, 1)])
def test_a_level_may_move_exactly_as_little_as_allowed(least: int, reasons: int) -> None:
    """The calmest block of the quiet day, rows 8 to 15, moves by 150 registers of 3."""
    verdict = judged(record_of(quiet_day()), replace(GENEROUS, quietest={("L1", 8): least}))
    assert len(verdict.reasons) == reasons
    for reason in verdict.reasons:
        assert (reason.kind, reason.rule, reason.total) == (ReasonKind.STILL_LEVEL, "L1", 8)
        assert (reason.found, reason.allowed) == (450.0, 453.0)
        assert list(np.flatnonzero(reason.rows)) == list(range(8, 16))
        assert list(np.flatnonzero(verdict.suspect)) == [0, *range(8, 16)]


@pytest.mark.parametrize(("size", "severe"), [(4, 1), (5, 0)])
def test_severe_rows_are_strictly_beyond_the_severe_size(size: int, severe: int) -> None:
    """A flow of 30 at rest is five tolerances of 6 away."""
    columns = quiet_day()
    columns["F1"][2] = 30.0
    sizes = dict.fromkeys(GENEROUS.severe, LARGE * TOLERANCE)
    budgets = replace(GENEROUS, severe_rows=0, severe={**sizes, "P1~F1": size * TOLERANCE})
    assert len(judged(record_of(columns), budgets).reasons) == severe


def test_windows_are_never_severe() -> None:
    """A creep of 9 a row is within every row rule and three times a window's tolerance."""
    creeping = record_of(
        {"P1": [0.0] * 9, "F1": [0.0] * 9, "L1": [600.0 + 9.0 * at for at in range(9)]}
    )
    budgets = replace(GENEROUS, severe_rows=0, severe=dict.fromkeys(GENEROUS.severe, TOLERANCE))
    assert judged(creeping, budgets).reasons == ()
    assert len(judged(creeping, replace(budgets, anchors={"dL1/4": 0})).reasons) == 1


def test_reasons_come_furthest_exceeded_first() -> None:
    budgets = replace(GENEROUS, segments=1, violating_rows=5, severe_rows=1, anchors={"dL1/4": 2})
    kinds = [reason.kind for reason in judged(spoiled(), budgets).reasons]
    assert kinds == [
        ReasonKind.SEVERE_ROWS,  # 4 of 1
        ReasonKind.WINDOWS,  # 3 of 2
        ReasonKind.VIOLATING_ROWS,  # 6 of 5
        ReasonKind.TIME_JUMPS,  # 1 of 0, which counts as 1
    ]


def test_suspect_rows_are_violating_ones_and_broken_windows() -> None:
    verdict = judged(spoiled(), GENEROUS)
    assert verdict.admitted
    assert list(np.flatnonzero(verdict.violating)) == [0, 2, 8, 13, 14, 15]
    assert list(np.flatnonzero(verdict.suspect)) == [0, 2, 4, 8, 10, 13, 14, 15]
    assert list(np.flatnonzero(verdict.trainable)) == [1, *range(3, 8), *range(9, 13)]
    assert (verdict.rows, verdict.violating_rows, verdict.violating_share) == (16, 6, 6 / 16)


@pytest.mark.parametrize(
    ("alpha", "rows", "most"),
    [
        (0.01, 99, 0),
        (0.01, 100, 1),
        (0.29, 100, 29),  # 0.29 x 100 is 28.999..., yet 29 / 100 is not above 0.29
        (0.57, 100, 57),
        (0.1, 30, 3),
        (0.0, 5, 0),
        (0.999, 10, 9),
        (1 / 3, 3, 1),
        (0.07, 100, 7),
    ],
)
def test_the_papers_limit_is_the_largest_count_whose_share_is_not_above_alpha(
    alpha: float, rows: int, most: int
) -> None:
    assert rows_within(alpha, rows) == most
    assert most / rows <= alpha < (most + 1) / rows


@pytest.mark.parametrize(("alpha", "admitted"), [(4 / 16, True), (3.9 / 16, False)])
def test_the_paper_counts_broken_rows_alone(alpha: float, admitted: bool) -> None:  # noqa: FBT001
    """Row 2 and rows 13 to 15 break a rule; windows break at their anchors 4 and 14 too."""
    rules = replace(EVERY_RULE, invariants=(*EVERY_RULE.invariants[:2], *EVERY_RULE.invariants[3:]))
    verdict = Gate.of(rules, PaperPolicy(alpha=alpha)).judge(spoiled())
    assert verdict.admitted is admitted
    assert verdict.violating_rows == 4
    assert [(one.kind, one.found, one.allowed) for one in verdict.reasons] == (
        [] if admitted else [(ReasonKind.BROKEN_ROWS, 4, 3)]
    )


@pytest.mark.parametrize(
    ("least", "most", "fits"), [(16, 16, True), (17, 20, False), (1, 15, False), (1, 16, True)]
)
def test_a_policy_takes_batches_from_rows_min_to_rows_max(
    least: int,
    most: int,
    fits: bool,  # noqa: FBT001
) -> None:
    gate = Gate.of(EVERY_RULE, replace(SMALL_BATCHES, rows_min=least, rows_max=most))
    if fits:
        assert gate.judge(record_of(quiet_day())).admitted
    else:
        with pytest.raises(
            RecordError, match=f"has 16 rows; the policy .*takes? {max(8, least)} to {most}"
        ):
            gate.judge(record_of(quiet_day()))


def test_rules_without_clean_facts_are_judged_by_the_papers_policy_unless_told() -> None:
    bare = replace(EVERY_RULE, clean=None)
    assert default_policy(bare) == PaperPolicy()
    assert default_policy(EVERY_RULE) == HardenedPolicy()
    assert judge(record_of(quiet_day()), bare).policy == PaperPolicy()
    with pytest.raises(SettingError, match="use --policy paper or mine with --profile hardened"):
        judge(record_of(quiet_day()), bare, SMALL_BATCHES)


def test_a_verdict_repeats_the_reasons_in_words() -> None:
    verdict = judged(spoiled(), replace(GENEROUS, segments=1))
    assert verdict.sentences == ("1 time jumps in 16 rows; the limit is 0",)
    assert all(isinstance(reason, Reason) for reason in verdict.reasons)


@pytest.mark.parametrize(
    ("stride_s", "remedy"),
    [(5.0, "keep every 2-th row"), (4.0, "mine rules at the"), (20.0, "mine rules at the")],
)
def test_a_batch_at_another_stride_is_told_what_to_do(stride_s: float, remedy: str) -> None:
    with pytest.raises(SettingError, match=remedy):
        Gate.of(EVERY_RULE, SMALL_BATCHES).judge(record_of(quiet_day(), stride_s=stride_s))
