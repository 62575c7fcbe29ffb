"""Measures behind the report: grouping, pairing by seed, and what a missing seed does."""

import math
from dataclasses import replace
from statistics import fmean

import pytest

from sluice.evaluation.removal import Reference
from sluice.lab.reports.grid_measures import (
    Group,
    Line,
    groups,
    of_mode,
    removal_of,
    saved_by,
    seeds_of,
    wilson,
)
from sluice.lab.results.cell import Asked
from sluice.lab.results.reading import StoredCell
from tests.unit.lab.reports.stored_cells import ASKED, done, failed, recalling, waiting


def group(*cells: list[StoredCell]) -> Group:
    (found,) = groups([cell for part in cells for cell in part])
    return found


def test_cells_that_differ_in_mode_and_seed_alone_are_one_group() -> None:
    found = group(recalling("naive", (0.1, 0.2)), recalling("clean", (0.3,)))
    assert {mode: list(seeds) for mode, seeds in found.cells.items()} == {
        "naive": [0, 1],
        "clean": [0],
    }


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, record="wadi"),
        replace(ASKED, stand_in="treatment"),
        replace(ASKED, clients=4),
        replace(ASKED, invariants=None),
        replace(ASKED, attack=None),
        replace(ASKED, rule="krum"),
    ],
    ids=["record", "stand-in", "clients", "rule set", "attack", "rule"],
)
def test_cells_that_differ_in_anything_else_are_two_groups_in_the_grids_order(
    other: Asked,
) -> None:
    cells = [done("clean", asked=other), done("clean"), done("naive", asked=other)]
    first, second = groups(cells)
    assert list(first.cells) == ["clean", "naive"]
    assert (second.line.record, second.line.clients, second.line.rule) == ("swat", 3, "fedavg")
    assert first.line != second.line


def test_cells_without_a_result_are_in_no_group() -> None:
    assert groups([failed("clean", 0, "why"), waiting("naive", 0)]) == ()
    assert groups([]) == ()


def test_a_study_can_be_grouped_alone() -> None:
    cells = [done("clean"), done("naive", asked=replace(ASKED, study="sweep"))]
    (found,) = groups(cells, study="sweep")
    assert list(found.cells) == ["naive"]
    assert groups(cells, study="dial") == ()


def test_a_line_names_its_stand_in() -> None:
    line = Line(
        record="swat", stand_in="", clients=3, invariants="", attack="replay", rule="fedavg"
    )
    assert line.plant == "swat"
    assert replace(line, stand_in="treatment").plant == "treatment for swat"


def test_seeds_are_sorted_and_those_without_targets_are_left_out() -> None:
    cells = list(reversed(recalling("naive", (0.25, None, 0.5))))
    found = group(cells)
    assert list(seeds_of(found, "naive").items()) == [(0, 0.25), (2, 0.5)]
    assert of_mode(found, "naive") == 0.375


def test_a_mode_without_targets_or_cells_has_no_mean() -> None:
    found = group(recalling("naive", (None,)))
    assert of_mode(found, "naive") is None
    assert of_mode(found, "gated") is None


def test_removal_is_against_honest_only_if_there_is_one_and_else_against_clean() -> None:
    clean = recalling("clean", (0.5,))
    honest_only = recalling("honest-only", (0.4,))
    attacked = [*recalling("naive", (0.2,)), *recalling("gated", (0.35,))]
    against_honest = removal_of(group(clean, honest_only, attacked), "gated")
    against_clean = removal_of(group(clean, attacked), "gated")
    assert against_honest is not None
    assert against_clean is not None
    assert against_honest.reference is Reference.HONEST_ONLY
    assert against_honest.share == pytest.approx(1 - 0.05 / 0.2)
    assert against_clean.reference is Reference.CLEAN
    assert against_clean.share == pytest.approx(1 - 0.15 / 0.3)


def test_removal_uses_only_seeds_that_every_mode_has() -> None:
    found = group(
        recalling("clean", (0.5, 0.9, 0.5)),
        recalling("naive", (0.3, 0.1)),
        recalling("gated", (0.4, None, 0.5)),
    )
    removed = removal_of(found, "gated")
    assert removed is not None
    assert removed.units == 1
    assert removed.share == pytest.approx(0.5)


def test_removal_falls_back_to_clean_if_no_seed_of_honest_only_is_finished() -> None:
    found = group(
        recalling("honest-only", (None,)),
        recalling("clean", (0.5,)),
        recalling("naive", (0.3,)),
        recalling("gated", (0.4,)),
    )
    removed = removal_of(found, "gated")
    assert removed is not None
    assert removed.reference is Reference.CLEAN


def test_without_a_reference_or_the_mode_nothing_is_removed() -> None:
    attacked = [*recalling("naive", (0.2,)), *recalling("gated", (0.35,))]
    assert removal_of(group(attacked), "gated") is None
    assert removal_of(group(recalling("clean", (0.5,)), attacked), "physics-aware") is None


def test_a_gate_that_leaves_the_honest_clients_removes_by_construction() -> None:
    parts = (recalling("honest-only", (0.5, 0.5)), recalling("naive", (0.3, 0.3)))
    all_refused = recalling("gated", (0.5, 0.5), refused=("plant-1", "plant-2"))
    one_refused = recalling("gated", (0.5, 0.5), refused=("plant-1",))
    by_construction = removal_of(group(*parts, all_refused), "gated")
    earned = removal_of(group(*parts, one_refused), "gated")
    assert by_construction is not None
    assert earned is not None
    assert [unit.seed for unit in by_construction.by_construction] == [0, 1]
    assert earned.by_construction == ()
    assert by_construction.share == earned.share == 1


def test_the_gain_is_the_mean_of_the_differences_seed_by_seed() -> None:
    naive, gated = (0.1, 0.2, 0.4), (0.2, 0.5, 0.3)
    saved = saved_by(group(recalling("naive", naive), recalling("gated", gated)), "gated")
    assert saved is not None
    assert saved.mean == pytest.approx(fmean(g - n for g, n in zip(gated, naive, strict=True)))
    assert saved.low <= saved.mean <= saved.high


def test_the_gain_of_a_mode_over_itself_is_zero() -> None:
    saved = saved_by(group(recalling("naive", (0.1, 0.4))), "naive", against="naive")
    assert saved is not None
    assert (saved.mean, saved.low, saved.high) == (0, 0, 0)


def test_the_interval_of_a_gain_is_the_same_at_every_call() -> None:
    found = group(recalling("naive", (0.1, 0.2, 0.4)), recalling("gated", (0.2, 0.5, 0.3)))
    assert saved_by(found, "gated") == saved_by(found, "gated")


def test_one_shared_seed_has_no_interval() -> None:
    found = group(recalling("naive", (0.1, None)), recalling("gated", (0.2, 0.3)))
    assert saved_by(found, "gated") is None


def test_a_gain_can_be_taken_against_another_group() -> None:
    other = group(recalling("clean", (0.5, 0.7), asked=replace(ASKED, attack=None)))
    own = group(recalling("clean", (0.9, 0.9)), recalling("naive", (0.4, 0.4)))
    saved = saved_by(own, "naive", against="clean", other=other)
    assert saved is not None
    assert saved.mean == pytest.approx(-0.2)


@pytest.mark.parametrize(("count", "of"), [(0, 3), (1, 3), (6, 15), (15, 15), (500, 1_000)])
def test_wilsons_bounds_are_the_shares_whose_test_would_just_not_reject(
    count: int, of: int
) -> None:
    for bound in wilson(count, of):
        if 0 < bound < 1:
            distance = abs(count / of - bound)
            assert distance == pytest.approx(
                1.959964 * math.sqrt(bound * (1 - bound) / of), abs=1e-7
            )


@pytest.mark.parametrize("of", [1, 4, 30])
def test_wilsons_interval_mirrors_and_stays_between_zero_and_one(of: int) -> None:
    for count in range(of + 1):
        low, high = wilson(count, of)
        assert 0 <= low < high <= 1
        assert wilson(of - count, of) == pytest.approx((1 - high, 1 - low))
