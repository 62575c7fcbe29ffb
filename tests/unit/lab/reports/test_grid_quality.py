"""F1, precision and false alarms of every mode, beside what the reference recorded."""

from dataclasses import replace
from statistics import stdev

import pytest

from sluice.lab.reports.grid_quality import quality_table, recorded_f1
from sluice.lab.results.reading import StoredCell
from tests.unit.lab.reports.stored_cells import ASKED, SCORE, column, done, failed

BATADAL = replace(ASKED, record="batadal")


def scoring(*f1: float, mode: str = "clean") -> list[StoredCell]:
    return [done(mode, seed, score=replace(SCORE, f1=one)) for seed, one in enumerate(f1)]


def test_f1_is_the_mean_over_seeds_with_its_deviation() -> None:
    table = quality_table(scoring(0.70, 0.80, 0.90))
    assert column(table, "seeds") == [3]
    assert column(table, "F1") == [pytest.approx(0.80)]
    assert column(table, "deviation") == [pytest.approx(stdev((0.70, 0.80, 0.90)))]
    assert column(table, "paper") == [0.76718]
    assert column(table, "difference") == [pytest.approx(0.80 - 0.76718)]


def test_one_seed_has_no_deviation() -> None:
    assert column(quality_table(scoring(0.7)), "deviation") == [None]


def test_figures_that_some_seeds_lack_are_means_over_the_others() -> None:
    scores = (
        replace(SCORE, precision=0.5, false_alarms_per_day=2.0),
        replace(SCORE, precision=None, false_alarms_per_day=4.0),
    )
    table = quality_table([done("naive", seed, score=one) for seed, one in enumerate(scores)])
    assert column(table, "precision") == [0.5]
    assert column(table, "false alarms per day") == [3.0]
    assert column(table, "average precision") == [SCORE.auc_pr]
    silent = quality_table([done("naive")])
    assert column(silent, "precision") == column(silent, "false alarms per day") == [None]


def test_every_mode_is_a_line_in_the_order_of_the_grid() -> None:
    cells = [done("naive"), done("clean"), done("naive", asked=BATADAL), failed("gated", 0, "why")]
    table = quality_table(cells)
    assert table is not None
    assert list(zip(column(table, "record"), column(table, "mode"), strict=True)) == [
        ("swat", "naive"),
        ("swat", "clean"),
        ("batadal", "naive"),
    ]
    assert {len(row) for row in table.rows} == {len(table.columns)}


def test_the_recorded_precision_is_of_batadals_clean_mode_alone() -> None:
    table = quality_table([done("clean", asked=BATADAL), done("naive", asked=BATADAL)])
    assert column(table, "paper", nth=1) == [0.7739, None]


def test_a_stand_in_has_no_recorded_figures() -> None:
    table = quality_table([done("clean", asked=replace(BATADAL, stand_in="treatment"))])
    assert column(table, "paper") == column(table, "paper", nth=1) == [None]
    assert column(table, "difference") == [None]


def test_the_largest_difference_counts_whatever_its_sign() -> None:
    table = quality_table([*scoring(0.80), *scoring(0.70, mode="naive")])
    assert table is not None
    assert table.finding == (
        "The largest difference from the recorded F1 is 0.072, for naive, replay, fedavg."
    )


def test_without_recorded_figures_there_is_no_finding_and_without_cells_no_table() -> None:
    table = quality_table([done("gated")])
    assert table is not None
    assert table.finding == ""
    assert quality_table([failed("clean", 0, "why")]) is None
    assert quality_table([]) is None


def test_clean_is_recorded_alike_for_both_attacks() -> None:
    for record in ("batadal", "wadi"):
        for rule in ("fedavg", "trimmed-mean", "fltrust"):
            replay = recorded_f1(record, "replay", rule, "clean")
            assert replay is not None
            assert replay == recorded_f1(record, "channel-roll", rule, "clean")
    assert recorded_f1("wadi", "replay", "krum", "clean") is None
