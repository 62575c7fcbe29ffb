"""The tables of recall, removal, the dial and failures."""

from dataclasses import replace

import pytest

from sluice.lab.reports.grid_measures import groups, saved_by
from sluice.lab.reports.grid_tables import (
    dial_table,
    difference,
    failure_table,
    recall_table,
    removal_table,
)
from sluice.lab.reports.published import recorded_recall
from sluice.lab.results.cell import Asked
from sluice.lab.results.reading import StoredCell
from tests.unit.lab.reports.stored_cells import ASKED, column, done, failed, recalling, waiting

UNKNOWN = replace(ASKED, record="tanks")
STOOD = replace(ASKED, stand_in="treatment")
NARROW = replace(ASKED, invariants="paper-narrow")


def attacked(*, asked: Asked = ASKED) -> list[StoredCell]:
    return [
        *recalling("honest-only", (0.30, 0.40), asked=asked),
        *recalling("naive", (0.10, 0.20), asked=asked),
        *recalling("physics-aware", (0.15, 0.20), asked=asked),
        *recalling("gated", (0.25, 0.40), asked=asked),
    ]


# -- recall ---------------------------------------------------------------------------------------


def test_modes_are_columns_in_the_papers_order_whatever_the_grids() -> None:
    cells = [done("centralised"), done("gated"), done("clean"), done("local-only")]
    names = [one.name for one in recall_table(cells).columns]
    assert names[:5] == ["record", "rule set", "attack", "rule", "seeds"]
    assert names[5:] == [
        name
        for mode in ("clean", "gated", "local-only", "centralised")
        for name in (mode, "paper", "difference")
    ]


def test_recall_is_the_mean_over_seeds_beside_the_recorded_one() -> None:
    table = recall_table(recalling("naive", (0.1, 0.3)))
    recorded = recorded_recall("swat", "paper-wide", "replay", "fedavg", "naive")
    assert recorded is not None
    assert column(table, "naive") == [pytest.approx(0.2)]
    assert column(table, "paper") == [recorded]
    assert column(table, "difference") == [pytest.approx(0.2 - recorded)]
    assert column(table, "seeds") == [2]


def test_seeds_of_a_line_are_those_of_its_longest_mode() -> None:
    cells = [*recalling("naive", (0.1, 0.3, 0.2)), *recalling("clean", (0.1,))]
    assert column(recall_table(cells), "seeds") == [3]


def test_a_line_without_a_mode_has_no_value_there() -> None:
    cells = [done("clean"), done("naive", asked=UNKNOWN)]
    table = recall_table(cells)
    assert column(table, "record") == ["swat", "tanks"]
    assert column(table, "clean") == [0.5, None]
    assert column(table, "naive") == [None, 0.5]


def test_recall_says_how_many_figures_agree_and_where_the_largest_difference_is() -> None:
    recorded = recorded_recall("swat", "paper-wide", "replay", "fedavg", "naive")
    assert recorded is not None
    cells = [
        *recalling("naive", (recorded + 0.0199,)),
        *recalling("naive", (0.9,), asked=replace(ASKED, rule="krum")),
    ]
    theirs = recorded_recall("swat", "paper-wide", "replay", "krum", "naive")
    assert theirs is not None
    assert recall_table(cells).finding == (
        "Of 2 figures that the paper's code recorded, 1 agree within 0.02; the largest difference "
        f"is {0.9 - theirs:.3f}, for naive, replay, krum on swat."
    )


@pytest.mark.parametrize("asked", [UNKNOWN, STOOD], ids=["another record", "a stand-in"])
def test_recall_says_so_if_the_reference_recorded_nothing(asked: Asked) -> None:
    table = recall_table([done("naive", asked=asked)])
    assert column(table, "paper") == [None]
    assert table.finding == "The paper's code recorded none of these figures."


def test_recall_of_nothing_is_an_empty_table() -> None:
    table = recall_table([waiting("naive", 0), failed("clean", 0, "why")])
    assert table.rows == ()
    assert [one.name for one in table.columns] == ["record", "rule set", "attack", "rule", "seeds"]


# -- removal --------------------------------------------------------------------------------------


def test_a_removal_line_is_exactly_this() -> None:
    table = removal_table(attacked())
    assert table is not None
    (found,) = groups(attacked())
    saved = saved_by(found, "gated")
    assert saved is not None
    (row,) = table.rows
    assert list(row) == [
        "swat",
        "paper-wide",
        "replay",
        "fedavg",
        "honest-only",
        "2 of 2",
        0,
        pytest.approx(20),
        13.8,
        pytest.approx(100 * (1 - 0.35 / 0.4)),
        24,
        pytest.approx(100 * (1 - 0.05 / 0.4)),
        71,
        pytest.approx(87.5 - 71),
        pytest.approx(17.5),
        pytest.approx(100 * saved.low),
        pytest.approx(100 * saved.high),
    ]


def test_a_stand_in_has_our_figures_alone() -> None:
    table = removal_table(attacked(asked=STOOD))
    assert column(table, "record") == ["treatment for swat"]
    assert [column(table, "paper", nth=nth) for nth in range(3)] == [[None]] * 3
    assert column(table, "difference") == [None]
    assert column(table, "gate removes %") == [pytest.approx(87.5)]


def test_removal_without_a_gate_shows_what_projection_removes() -> None:
    cells = [cell for cell in attacked() if cell.asked.mode != "gated"]
    table = removal_table(cells)
    assert column(table, "by construction") == [None]
    assert column(table, "gate removes %") == [None]
    assert column(table, "projection removes %") == [pytest.approx(12.5)]
    assert column(table, "gated - naive") == [None]


def test_removal_without_damage_has_no_share_and_no_damage() -> None:
    cells = [
        *recalling("honest-only", (0.3, 0.3)),
        *recalling("naive", (0.3, 0.295)),
        *recalling("gated", (0.3, 0.3)),
    ]
    table = removal_table(cells)
    assert column(table, "informative seeds") == ["0 of 2"]
    assert column(table, "damage") == [None]
    assert column(table, "gate removes %") == [None]
    assert column(table, "difference") == [None]


def test_there_is_no_removal_without_an_attack_or_a_reference() -> None:
    assert removal_table([]) is None
    assert removal_table(recalling("clean", (0.3,))) is None
    assert removal_table([done("naive"), done("gated")]) is None


def test_one_seed_shows_no_effect() -> None:
    table = removal_table([cell for cell in attacked() if cell.asked.seed == 0])
    assert table is not None
    assert table.finding == "One seed gives no interval: no effect is shown beyond chance."
    assert column(table, "gated - naive") == [None]
    assert column(table, "gate removes %") == [pytest.approx(75)]


def test_lines_are_counted_by_where_their_interval_is() -> None:
    better = attacked()
    worse = [
        *recalling("honest-only", (0.5, 0.5, 0.5), asked=UNKNOWN),
        *recalling("naive", (0.4, 0.4, 0.4), asked=UNKNOWN),
        *recalling("gated", (0.1, 0.2, 0.1), asked=UNKNOWN),
    ]
    unclear = [
        *recalling("honest-only", (0.5, 0.5), asked=NARROW),
        *recalling("naive", (0.3, 0.3), asked=NARROW),
        *recalling("gated", (0.1, 0.5), asked=NARROW),
    ]
    table = removal_table([*better, *worse, *unclear])
    assert table is not None
    assert table.finding == (
        "Beyond chance, the gate raises recall in 1 of 3 lines and lowers it in 1; in the other "
        "lines no effect is shown."
    )


# -- dial -----------------------------------------------------------------------------------------


def test_one_rule_set_is_no_dial() -> None:
    assert dial_table(attacked()) is None
    assert dial_table([]) is None


def test_a_dial_line_equals_the_removal_line_of_its_rule_set() -> None:
    cells = [*attacked(), *attacked(asked=NARROW)]
    dial, removal = dial_table(cells), removal_table(cells)
    assert column(dial, "rule set") == ["paper-wide", "paper-narrow"]
    for name in ("informative seeds", "gate removes %", "difference", "from", "to"):
        assert column(dial, name) == column(removal, name)
    assert column(dial, "paper") == column(removal, "paper", nth=2) == [71, 22]


def test_rules_with_one_rule_set_are_left_out_of_the_dial() -> None:
    krum = replace(ASKED, rule="krum")
    dial = dial_table([*attacked(), *attacked(asked=krum), *attacked(asked=NARROW)])
    assert column(dial, "rule") == ["fedavg", "fedavg"]


def test_a_dial_without_a_reference_has_no_removal_but_still_the_gain() -> None:
    cells = [
        cell
        for asked in (ASKED, NARROW)
        for cell in attacked(asked=asked)
        if cell.asked.mode in ("naive", "gated")
    ]
    dial = dial_table(cells)
    assert column(dial, "informative seeds") == [None, None]
    assert column(dial, "gate removes %") == [None, None]
    assert column(dial, "gated - naive") == [pytest.approx(17.5)] * 2


# -- failures -------------------------------------------------------------------------------------


def test_failed_cells_are_listed_with_their_reasons_and_waiting_ones_are_not() -> None:
    cells = [done("clean"), failed("naive", 3, "out of memory"), waiting("gated", 0)]
    table = failure_table(cells)
    assert table is not None
    assert table.title == "1 failed cells"
    assert table.rows == (
        (
            "swat, 3 plants, fedavg, naive, under replay, by paper-wide, seed 3",
            "out of memory",
        ),
    )


def test_without_failures_there_is_no_list_of_them() -> None:
    assert failure_table([done("clean"), waiting("gated", 0)]) is None


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [(0.5, 0.25, 0.25), (0.0, 0.25, -0.25), (None, 0.5, None), (0.5, None, None)],
)
def test_a_difference_is_ours_minus_theirs(
    ours: float | None, theirs: float | None, expected: float | None
) -> None:
    assert difference(ours, theirs) == expected
