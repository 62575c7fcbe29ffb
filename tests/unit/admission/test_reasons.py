"""Reasons: the sentence of each kind to the letter, how far each is exceeded, and the ranking."""

import numpy as np
import pytest

from sluice.admission.reasons import Reason, ReasonKind, ranked
from sluice.cli.console import reason_payload

ROWS = np.array([False, True])


def reason(
    kind: ReasonKind,
    *,
    rule: str = "",
    found: float = 3,
    allowed: float = 2,
    total: int = 200,
    first: str = "",
) -> Reason:
    return Reason(
        kind=kind, rule=rule, found=found, allowed=allowed, total=total, first=first, rows=ROWS
    )


SENTENCES = {
    ReasonKind.BROKEN_ROWS: (
        reason(ReasonKind.BROKEN_ROWS, found=1_234, allowed=1_000, total=100_000),
        "1,234 of 100,000 rows (1.23%) break a rule; the limit is 1,000",
    ),
    ReasonKind.TIME_JUMPS: (
        reason(ReasonKind.TIME_JUMPS, found=1, allowed=0, total=16),
        "1 time jumps in 16 rows; the limit is 0",
    ),
    ReasonKind.VIOLATING_ROWS: (
        reason(ReasonKind.VIOLATING_ROWS, found=3, allowed=2, total=200),
        (
            "3 of 200 rows (1.50%) break a rule, miss a reading or show an unknown code; the limit "
            "is 2"
        ),
    ),
    ReasonKind.WINDOWS: (
        reason(ReasonKind.WINDOWS, rule="dL1/4", found=2, allowed=1, total=6),
        "dL1/4: 2 of 6 windows do not balance; the limit is 1",
    ),
    ReasonKind.SWITCHES: (
        reason(
            ReasonKind.SWITCHES,
            rule="P1@L1",
            found=2,
            allowed=0,
            total=7,
            first="2026-03-01 00:00:30",
        ),
        (
            "P1@L1: 2 of 7 switches happen outside the band (first at 2026-03-01 00:00:30); the "
            "limit is 0"
        ),
    ),
    ReasonKind.BLOCKS: (
        reason(
            ReasonKind.BLOCKS,
            rule="L1 noise",
            found=3,
            allowed=1,
            total=12,
            first="2026-03-01 00:00:30",
        ),
        (
            "L1 noise: the noise of 3 of 12 blocks is outside its limits (first at 2026-03-01 "
            "00:00:30); the limit is 1: the readings are smoother or rougher than in clean rows"
        ),
    ),
    ReasonKind.MEANS: (
        reason(
            ReasonKind.MEANS,
            rule="L1 mean",
            found=3,
            allowed=1,
            total=12,
            first="2026-03-01 00:00:30",
        ),
        (
            "L1 mean: the mean of 3 of 12 windows is outside its limits (first at 2026-03-01 "
            "00:00:30); the limit is 1: the channel reads higher or lower than in clean rows"
        ),
    ),
    ReasonKind.TRANSITION: (
        reason(ReasonKind.TRANSITION, rule="P1~F1", found=9, allowed=8, total=16),
        (
            "P1~F1: 9 of 16 rows are in transition; the limit is 8: the actuator switches, or a "
            "standby pump runs, more often than in clean rows"
        ),
    ),
    ReasonKind.SEVERE_ROWS: (
        reason(ReasonKind.SEVERE_ROWS, found=4, allowed=0, first="2026-03-01 00:00:30"),
        (
            "4 rows are further from a rule than any clean row (first at 2026-03-01 00:00:30); the "
            "limit is 0"
        ),
    ),
    ReasonKind.STILL_LEVEL: (
        reason(
            ReasonKind.STILL_LEVEL,
            rule="L1",
            found=0.012345,
            allowed=30.0,
            total=1_080,
            first="2026-03-01 00:00:00",
        ),
        (
            "L1 moves by only 0.0123 over 1,080 rows (first at 2026-03-01 00:00:00); clean rows "
            "move by at least 30"
        ),
    ),
    ReasonKind.REPEATED_READINGS: (
        reason(
            ReasonKind.REPEATED_READINGS,
            rule="L1",
            found=24,
            allowed=12,
            first="2026-03-01 00:04:00",
        ),
        ("L1 repeats earlier readings on 24 rows (first at 2026-03-01 00:04:00); the limit is 12"),
    ),
}


@pytest.mark.parametrize("kind", ReasonKind)
def test_each_kind_has_its_sentence(kind: ReasonKind) -> None:
    found, sentence = SENTENCES[kind]
    assert found.kind is kind
    assert found.sentence == sentence


@pytest.mark.parametrize("kind", ReasonKind)
def test_json_names_kind_rule_found_allowed_and_sentence(kind: ReasonKind) -> None:
    found, sentence = SENTENCES[kind]
    about_batch = {
        ReasonKind.BROKEN_ROWS,
        ReasonKind.TIME_JUMPS,
        ReasonKind.VIOLATING_ROWS,
        ReasonKind.SEVERE_ROWS,
    }
    assert reason_payload(found) == {
        "kind": kind.value,
        "rule": None if kind in about_batch else found.rule,
        "found": found.found,
        "allowed": found.allowed,
        "sentence": sentence,
    }


def test_only_stillness_and_repeats_are_about_a_level() -> None:
    assert {kind for kind in ReasonKind if kind.about_a_level} == {
        ReasonKind.STILL_LEVEL,
        ReasonKind.REPEATED_READINGS,
    }


@pytest.mark.parametrize(
    ("kind", "found", "allowed", "excess"),
    [
        (ReasonKind.VIOLATING_ROWS, 3, 2, 1.5),
        (ReasonKind.VIOLATING_ROWS, 3, 1, 3.0),
        (ReasonKind.VIOLATING_ROWS, 3, 0, 3.0),  # a budget of none counts as one
        (ReasonKind.STILL_LEVEL, 10.0, 30.0, 3.0),
        (ReasonKind.STILL_LEVEL, 0.5, 0.75, 1.5),  # ranges are not counts
        (ReasonKind.STILL_LEVEL, 0.0, 30.0, np.inf),
    ],
)
def test_excess_is_how_many_times_the_budget_is_exceeded(
    kind: ReasonKind, found: float, allowed: float, excess: float
) -> None:
    assert reason(kind, found=found, allowed=allowed).excess == excess


def test_reasons_rank_by_excess_and_ties_keep_their_order() -> None:
    frozen = reason(ReasonKind.STILL_LEVEL, rule="L1", found=0.0, allowed=1.0)
    first = reason(ReasonKind.TIME_JUMPS, found=4, allowed=2)
    second = reason(ReasonKind.SEVERE_ROWS, found=2, allowed=0)
    least = reason(ReasonKind.VIOLATING_ROWS, found=3, allowed=2)
    assert ranked([least, first, frozen, second]) == (frozen, first, second, least)
    assert ranked([second, first]) == (second, first)
    assert ranked([]) == ()
