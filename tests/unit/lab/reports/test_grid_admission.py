"""What the gate admits and what each attack costs, counted over seeds."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from sluice.lab.reports.grid_admission import admission_table, sweep_table
from sluice.lab.reports.grid_measures import groups, saved_by, wilson
from sluice.lab.results.cell import Asked
from sluice.lab.results.reading import StoredCell
from tests.unit.lab.reports.stored_cells import (
    ASKED,
    CLIENTS,
    MALICIOUS,
    SCORE,
    column,
    done,
    failed,
    recalling,
    waiting,
)

KRUM = replace(ASKED, rule="krum")
UNATTACKED = replace(ASKED, attack=None, invariants=None)


def gated(*refused: tuple[str, ...], asked: Asked = ASKED) -> list[StoredCell]:
    """A gated cell for each seed, with the clients that the gate refuses."""
    return [done("gated", seed, asked=asked, refused=out) for seed, out in enumerate(refused)]


def accepted(passed: Mapping[str, float], seed: int = 0, *, asked: Asked = ASKED) -> StoredCell:
    return done("naive", seed, asked=asked, score=replace(SCORE, passed=passed))


# -- admission ------------------------------------------------------------------------------------


def test_an_admission_line_is_exactly_this() -> None:
    table = admission_table(gated(MALICIOUS, ("plant-1",), ("plant-0", "plant-1")))
    assert table is not None
    low, high = wilson(2, 6)
    (row,) = table.rows
    assert list(row) == [
        "swat",
        "paper-wide",
        "replay",
        3,
        "2 of 6",
        low,
        high,
        "6 of 15",
        pytest.approx(2 / 6 - 6 / 15),
        pytest.approx(4 / 3),
        "1 of 3",
    ]
    assert len(table.columns) == len(table.rows[0])


def test_the_gate_decides_before_the_rule_so_rules_are_counted_once() -> None:
    table = admission_table([*gated(MALICIOUS), *gated((), asked=KRUM)])
    assert column(table, "malicious batches admitted") == ["0 of 2"]


def test_each_rule_set_and_attack_has_its_own_line_and_all_are_summed() -> None:
    table = admission_table(
        [
            *gated(MALICIOUS),
            *gated((), asked=replace(ASKED, invariants="paper-narrow")),
            *gated(("plant-0",), asked=replace(ASKED, attack="scaling")),
        ]
    )
    assert table is not None
    assert column(table, "rule set") == ["paper-wide", "paper-narrow", "paper-wide"]
    assert column(table, "malicious batches admitted") == ["0 of 2", "2 of 2", "2 of 2"]
    assert table.finding == (
        "In total, the gate admits 4 of 6 malicious batches and refuses 1 of 3 honest batches."
    )


def test_the_papers_admission_is_of_replay_alone_and_never_beside_a_stand_in() -> None:
    table = admission_table(
        [
            *gated(()),
            *gated((), asked=replace(ASKED, attack="scaling")),
            *gated((), asked=replace(ASKED, stand_in="treatment")),
            *gated((), asked=replace(ASKED, record="batadal")),
        ]
    )
    assert column(table, "paper") == ["6 of 15", None, None, "6 of 6"]
    assert column(table, "difference") == [pytest.approx(0.6), None, None, 0.0]


def test_a_federation_without_malicious_clients_has_no_share_of_them() -> None:
    (cell,) = gated(("plant-0",))
    assert cell.result is not None
    table = admission_table([replace(cell, result=replace(cell.result, liars=()))])
    assert column(table, "malicious batches admitted") == ["0 of 0"]
    assert column(table, "from") == column(table, "to") == column(table, "difference") == [None]
    assert column(table, "honest batches refused") == [f"1 of {len(CLIENTS)}"]
    assert column(table, "malicious clients refused per federation") == [0]


def test_failed_and_waiting_cells_are_not_counted_as_refusals() -> None:
    table = admission_table([*gated(()), failed("gated", 1, "why"), waiting("gated", 2)])
    assert column(table, "seeds") == [1]
    assert column(table, "malicious batches admitted") == ["2 of 2"]


def test_without_a_gated_mode_there_is_no_admission() -> None:
    assert admission_table([]) is None
    assert admission_table(recalling("naive", (0.1,))) is None


# -- sweep ----------------------------------------------------------------------------------------


def test_a_sweep_line_is_exactly_this() -> None:
    cells = [*recalling("clean", (0.5, 0.4)), *recalling("naive", (0.3, 0.3))]
    table = sweep_table(cells)
    assert table is not None
    (found,) = groups(cells)
    saved = saved_by(found, "naive", against="clean")
    assert saved is not None
    (row,) = table.rows
    assert list(row) == [
        "swat",
        "replay",
        "fedavg",
        2,
        pytest.approx(15),
        8.6,
        pytest.approx(6.4),
        0.0,
        pytest.approx(-100 * saved.high),
        pytest.approx(-100 * saved.low),
    ]
    low, high = column(table, "lost from")[0], column(table, "to")[0]
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert low <= 15 <= high


def test_a_loss_is_against_the_clean_federation_of_the_same_rule() -> None:
    table = sweep_table(
        [
            *recalling("clean", (0.5,), asked=UNATTACKED),
            *recalling("clean", (0.9,), asked=replace(UNATTACKED, rule="krum")),
            *recalling("naive", (0.4,)),
            *recalling("naive", (0.4,), asked=KRUM),
        ]
    )
    assert column(table, "rule") == ["fedavg", "krum"]
    assert column(table, "points lost") == pytest.approx([10.0, 50.0])
    assert column(table, "paper") == [8.6, 9.2]


def test_a_rule_without_a_clean_federation_is_left_out() -> None:
    table = sweep_table([*recalling("clean", (0.5,)), *recalling("naive", (0.4,), asked=KRUM)])
    assert table is None
    assert sweep_table([]) is None


def test_one_seed_has_a_loss_and_no_interval() -> None:
    table = sweep_table([done("clean"), *recalling("naive", (0.25,))])
    assert column(table, "points lost") == [25.0]
    assert column(table, "lost from") == column(table, "to") == [None]


def test_seeds_that_the_clean_federation_lacks_are_not_compared() -> None:
    table = sweep_table([*recalling("clean", (0.5,)), *recalling("naive", (0.4, 0.0))])
    assert column(table, "seeds") == [1]
    assert column(table, "points lost") == pytest.approx([10.0])


def test_without_a_shared_seed_the_loss_is_unknown() -> None:
    table = sweep_table([*recalling("clean", (None, 0.5)), *recalling("naive", (0.4,))])
    assert table is not None
    assert column(table, "seeds") == [0]
    assert column(table, "points lost") == column(table, "difference") == [None]
    assert table.finding == ""


def test_accepted_updates_are_those_of_malicious_clients_over_all_seeds() -> None:
    table = sweep_table(
        [
            done("clean"),
            accepted({"plant-0": 0.0, "plant-1": 1.0, "plant-2": 0.5}),
            accepted({"plant-0": 1.0}, 1),
        ]
    )
    assert column(table, "malicious updates accepted") == [(1.0 + 0.5 + 0.0 + 0.0) / 4]


def test_the_papers_loss_is_beside_its_own_record_alone() -> None:
    tanks, stood = replace(ASKED, record="wadi"), replace(ASKED, stand_in="treatment")
    cells = [
        done(mode, asked=asked) for asked in (ASKED, tanks, stood) for mode in ("clean", "naive")
    ]
    table = sweep_table(cells)
    assert column(table, "record") == ["swat", "wadi", "treatment for swat"]
    assert column(table, "paper") == [8.6, None, None]


def test_the_largest_loss_is_named_with_how_many_are_beyond_chance() -> None:
    table = sweep_table(
        [
            *recalling("clean", (0.5, 0.5)),
            *recalling("naive", (0.25, 0.125)),
            *recalling("naive", (0.5, 0.5), asked=replace(ASKED, attack="scaling")),
        ]
    )
    assert table is not None
    assert table.finding == (
        "The largest loss is 31.2 points, by replay under fedavg on swat; the loss is beyond "
        "chance in 1 of 2 lines."
    )


@pytest.mark.parametrize("recall", [0.5, 0.75], ids=["the same", "more"])
def test_an_attack_that_costs_nothing_is_said_to(recall: float) -> None:
    table = sweep_table([done("clean"), *recalling("naive", (recall,))])
    assert table is not None
    assert table.finding == "No attack lowers recall."
