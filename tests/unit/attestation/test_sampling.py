"""Drawing rows, and what that promises."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.attestation.systems.sampled.budgets import Exclusion, clean_share, violation_budget
from sluice.attestation.systems.sampled.guarantee import (
    exclusion_probability,
    guarantee,
    least_budget,
    pass_probability,
)
from sluice.attestation.systems.sampled.system import Sampling, draw_rows
from sluice.errors import SettingError
from sluice.invariants.relations import Balance, Invariant
from sluice.invariants.ruleset import Profile, RuleSet

COMMITMENT, CONTEXT = b"r" * 32, b"c" * 32


def _rules(count: int) -> RuleSet:
    """Levels that stand still: as many rules as are asked for."""
    levels = [
        Balance(name=f"L{at}", level=f"L{at}", terms=(), constant=0.0, averaged=False)
        for at in range(count)
    ]
    return RuleSet(
        plant="tanks",
        profile=Profile.PAPER_WIDE,
        stride_s=60.0,
        channels=(),
        invariants=tuple(Invariant(relation=level, tolerance=1.0) for level in levels),
    )


@given(
    rows=st.integers(2, 300),
    samples=st.integers(1, 299),
    context=st.binary(min_size=32, max_size=32),
)
def test_rows_are_distinct_and_have_a_row_before_them(
    rows: int, samples: int, context: bytes
) -> None:
    if samples >= rows:
        with pytest.raises(SettingError):
            draw_rows(COMMITMENT, context, rows=rows, samples=samples)
        return
    drawn = draw_rows(COMMITMENT, context, rows=rows, samples=samples)
    assert len(set(drawn)) == samples
    assert all(1 <= row < rows for row in drawn)


def test_another_commitment_or_nonce_draws_other_rows() -> None:
    drawn = draw_rows(COMMITMENT, CONTEXT, rows=1_024, samples=32)
    assert drawn == draw_rows(COMMITMENT, CONTEXT, rows=1_024, samples=32)
    assert drawn != draw_rows(b"s" * 32, CONTEXT, rows=1_024, samples=32)
    assert drawn != draw_rows(COMMITMENT, b"d" * 32, rows=1_024, samples=32)
    assert drawn[:16] == draw_rows(COMMITMENT, CONTEXT, rows=1_024, samples=16)


def test_every_row_is_as_likely() -> None:
    counts = [0] * 12
    for nonce in range(3_000):
        for row in draw_rows(COMMITMENT, nonce.to_bytes(32, "big"), rows=12, samples=3):
            counts[row] += 1
    expected = 3_000 * 3 / 11
    assert counts[0] == 0
    assert sum((count - expected) ** 2 / expected for count in counts[1:]) < 29.6  # 0.1 %


def test_the_chance_is_a_count_of_draws() -> None:
    draws = list(combinations(range(1, 9), 3))
    few = [draw for draw in draws if len({1, 4, 7} & set(draw)) <= 1]
    assert pass_probability(9, 3, 1, violating=3) == pytest.approx(len(few) / len(draws))


@pytest.mark.parametrize(
    ("share", "probability"),
    [(0.01, 0.963), (0.02, 0.873), (0.03, 0.748), (0.05, 0.519), (0.1, 0.153), (0.15, 0.035)],
)
def test_one_of_thirty_two_is_not_a_one_percent_rule(share: float, probability: float) -> None:
    found = pass_probability(1_024, 32, 1, violating=round(share * 1_024))
    assert found == pytest.approx(probability, abs=6e-3)


def test_two_of_thirty_two_excludes_clean_plants_a_hundred_times_less() -> None:
    one, two = (guarantee(1_024, 32, allowed, clean_share=0.0032) for allowed in (1, 2))
    assert 1e-3 < one.excluded_per_round < 0.02
    assert two.excluded_per_round < 3e-4
    assert two.excluded_per_run == pytest.approx(1 - (1 - two.excluded_per_round) ** 25)
    paper = guarantee(1_024, 32, 1, clean_share=0.006)
    assert 1 / paper.excluded_per_round == pytest.approx(67, rel=0.2)


@given(tries=st.integers(1, 60), violations=st.integers(0, 8))
def test_a_plant_that_tries_again_passes_more_often(tries: int, violations: int) -> None:
    found = guarantee(1_024, 32, violations, clean_share=0.0, tries=tries)
    assert found.tries == tries
    for once, after in zip(found.passes, found.passes_after_tries, strict=True):
        assert after.share == once.share
        assert after.probability == pytest.approx(1 - (1 - once.probability) ** tries)
        assert once.probability - 1e-12 <= after.probability <= 1


def test_a_very_small_chance_grows_with_the_tries_and_does_not_vanish() -> None:
    found = guarantee(1_024, 512, 1, clean_share=0.0, tries=5)
    once, after = found.passes[-1].probability, found.passes_after_tries[-1].probability
    assert 0 < once < 1e-17  # 1 - (1 - once) ** 5 is 0 in floating point
    assert after == pytest.approx(5 * once)


def test_budgets_follow_from_rates() -> None:
    budget = least_budget(32, rate=0.0126, excluded=1e-5)
    assert exclusion_probability(32, budget, rate=0.0126) <= 1e-5
    assert exclusion_probability(32, budget - 1, rate=0.0126) > 1e-5
    assert least_budget(32, rate=1.0, excluded=1e-5) == 32


def test_the_budget_of_violating_rows_follows_from_the_rules() -> None:
    rules = _rules(9)
    assert clean_share(rules) == pytest.approx(0.009)
    assert violation_budget(rules, samples=32) == 2
    assert (
        exclusion_probability(32, 1, rate=0.009) > 5e-3 > exclusion_probability(32, 2, rate=0.009)
    )
    assert violation_budget(rules, samples=128) > violation_budget(rules, samples=64) > 2
    assert violation_budget(rules, samples=2) == 1
    assert violation_budget(_rules(1), samples=32) == 2, "clean violations come in pairs"


def test_false_exclusions_add_up_over_a_run() -> None:
    found = Exclusion(violating=0.0149, silent=0.0, rounds=25)
    assert 1 / found.per_round == pytest.approx(67, rel=0.01)
    assert 1 - found.per_run == pytest.approx(0.688, abs=2e-3)
    assert Exclusion(violating=0.9, silent=0.9, rounds=1).per_run == 1.0


def test_a_budget_may_exclude_exactly_the_stated_share() -> None:
    assert exclusion_probability(2, 1, rate=0.5) == 0.25
    assert least_budget(2, rate=0.5, excluded=0.25) == 1
    assert least_budget(2, rate=0.5, excluded=0.24) == 2


@pytest.mark.parametrize(
    ("samples", "violations", "says"),
    [
        (0, 0, "0 samples cannot be drawn from rows 1 to 1023"),
        (1_024, 1, "1024 samples cannot be drawn"),
        (32, 33, "0 to 32 samples can violate, got 33"),
        (32, -1, "0 to 32 samples can violate, got -1"),
    ],
)
def test_impossible_draws_are_refused(samples: int, violations: int, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        guarantee(1_024, samples, violations, clean_share=0.0)


def test_no_tries_are_refused() -> None:
    with pytest.raises(SettingError, match="tries 1 or more"):
        guarantee(1_024, 32, 1, clean_share=0.0, tries=0)


@pytest.mark.parametrize(("share", "rounds"), [(1.0, 1), (-0.001, 1), (0.5, 0), (0.5, -1)])
def test_impossible_shares_and_runs_are_refused(share: float, rounds: int) -> None:
    with pytest.raises(SettingError, match="less than 1.*; got"):
        guarantee(1_024, 32, 1, clean_share=share, rounds=rounds)


@pytest.mark.parametrize(("samples", "violations"), [(1, 0), (1, 1), (1_023, 0), (1_023, 1_023)])
def test_draws_at_the_edge_are_made(samples: int, violations: int) -> None:
    made = guarantee(1_024, samples, violations, clean_share=0.0, rounds=1, tries=1)
    assert made.excluded_per_run == made.excluded_per_round == 0.0
    assert len(draw_rows(COMMITMENT, CONTEXT, rows=1_024, samples=samples)) == samples


@pytest.mark.parametrize("samples", [0, 32, 33])
def test_samples_that_the_rows_do_not_hold_are_refused_before_one_is_drawn(
    samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawing(counter: int) -> bytes:
        raise AssertionError(f"draw {counter}")  # the row that is missing would never be drawn

    monkeypatch.setattr("sluice.attestation.systems.sampled.system.number", drawing)
    with pytest.raises(SettingError, match=f"{samples} samples cannot be drawn from rows 1 to 31"):
        draw_rows(COMMITMENT, CONTEXT, rows=32, samples=samples)


@pytest.mark.parametrize(("samples", "violations"), [(32, 32), (32, -1), (0, 0)])
def test_a_sampling_that_lets_every_drawn_row_violate_is_refused(
    samples: int, violations: int
) -> None:
    with pytest.raises(SettingError, match="drawn rows may violate; expected 0 to"):
        Sampling(samples=samples, violations=violations)


def test_a_sampling_may_allow_no_row_or_all_but_one() -> None:
    assert Sampling(samples=1, violations=0).violations == 0
    assert Sampling(samples=32, violations=31).violations == 31
