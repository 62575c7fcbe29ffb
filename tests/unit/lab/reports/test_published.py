"""The quoted figures, checked against each other where the paper gives one number twice."""

import pytest

from sluice.aggregation.registry import RULES
from sluice.lab.reports import published
from sluice.lab.reports.published import (
    ADMITTED_AFTER_PROJECTION,
    PRINTED_DROP,
    printed_removal,
    recorded_recall,
)

SWAT_RULES = ("fedavg", "krum", "median", "trimmed-mean", "norm-clipping", "fltrust", "foolsgold")
LEAST_DAMAGE = 0.01


def seeds(rule: str) -> list[list[float]]:
    """The quoted recalls of a rule by seed: clean, honest-only, naive, physics-aware, gated."""
    lines = published._SWAT.replace("\n |", " |").strip().splitlines()
    (line,) = [line for line in lines if line.startswith(f"{rule} ")]
    return [[float(one) for one in part.split()] for part in line.split(" ", 1)[1].split("|")]


def test_every_rule_of_the_swat_means_has_five_seeds_of_five_modes() -> None:
    for rule in SWAT_RULES:
        assert rule in RULES
        assert [len(figures) for figures in seeds(rule)] == [5] * 5


@pytest.mark.parametrize("rule", SWAT_RULES)
def test_a_recorded_recall_is_the_mean_over_the_five_seeds(rule: str) -> None:
    for at, mode in enumerate(("clean", "honest-only", "naive", "physics-aware", "gated")):
        mean = sum(figures[at] for figures in seeds(rule)) / 5
        assert recorded_recall("swat", "paper-wide", "replay", rule, mode) == pytest.approx(mean)


@pytest.mark.parametrize("rule", SWAT_RULES[:-1])  # the paper prints no line for foolsgold
def test_the_printed_damage_follows_from_the_recorded_seeds(rule: str) -> None:
    damages = [honest - naive for _, honest, naive, *_ in seeds(rule)]
    informative = [damage for damage in damages if damage >= LEAST_DAMAGE]
    printed = printed_removal("swat", "paper-wide", "replay", rule)
    assert printed is not None
    mean = 100 * sum(informative) / len(informative)
    assert printed.damage_points == pytest.approx(mean, abs=0.051)


def test_a_narrow_gate_removes_no_more_than_projection_but_under_krum() -> None:
    lines = {
        (attack, rule): printed_removal("swat", "paper-narrow", attack, rule)
        for attack in ("replay", "channel-roll")
        for rule in SWAT_RULES
    }
    more = {
        key for key, line in lines.items() if line and line.gate_percent != line.projection_percent
    }
    assert more == {("replay", "krum"), ("channel-roll", "krum")}


def test_the_damage_does_not_depend_on_the_rule_set() -> None:
    found = 0
    for attack in ("replay", "channel-roll"):
        for rule in SWAT_RULES:
            lines = [
                printed_removal("swat", rules, attack, rule)
                for rules in ("paper-wide", "paper-narrow")
            ]
            known = {line.damage_points for line in lines if line is not None}
            found += len(known)
            assert len(known) <= 1
    assert found == 13


@pytest.mark.parametrize(
    ("record", "invariants", "attack", "mode"),
    [
        ("swat", "paper-narrow", "replay", "naive"),
        ("swat", "paper-wide", "channel-roll", "naive"),
        ("swat", None, None, "clean"),
        ("swat", "paper-wide", "replay", "local-only"),
        ("wadi", "paper-narrow", "replay", "naive"),
        ("batadal", "paper-wide", "scaling", "naive"),
    ],
)
def test_what_the_reference_did_not_record_is_unknown(
    record: str, invariants: str | None, attack: str | None, mode: str
) -> None:
    assert recorded_recall(record, invariants, attack, "fedavg", mode) is None


def test_batadals_figures_do_not_depend_on_the_rule_set() -> None:
    figures = {
        recorded_recall("batadal", rules, "replay", "fedavg", "gated")
        for rules in ("paper-wide", "paper-narrow", None)
    }
    assert figures == {0.32323}


def test_quoted_drops_and_admissions_name_rules_that_exist_and_possible_counts() -> None:
    assert {rule for rule, _ in PRINTED_DROP} <= set(RULES)
    assert PRINTED_DROP["krum", "min-max"] == 14.7
    for admitted, of in ADMITTED_AFTER_PROJECTION.values():
        assert 0 <= admitted <= of
