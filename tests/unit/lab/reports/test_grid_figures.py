"""The figures of a grid, by the data that they draw."""

from dataclasses import replace

import pytest

from sluice.lab.reports.grid_admission import sweep_table
from sluice.lab.reports.grid_figures import dial_figures, removal_figures, sweep_figures
from sluice.lab.reports.grid_tables import dial_table
from sluice.lab.results.cell import Asked
from sluice.lab.results.reading import StoredCell
from tests.unit.lab.reports.stored_cells import ASKED, SCORE, column, done, recalling

KRUM = replace(ASKED, rule="krum")
NARROW = replace(ASKED, invariants="paper-narrow")


def attacked(*, asked: Asked = ASKED, reference: str = "honest-only") -> list[StoredCell]:
    return [
        *recalling(reference, (0.30, 0.40), asked=asked),
        *recalling("naive", (0.10, 0.20), asked=asked),
        *recalling("gated", (0.25, 0.45), asked=asked),
    ]


# -- removal --------------------------------------------------------------------------------------


def test_a_bar_is_the_mean_of_the_dashes_on_it() -> None:
    (drawn,) = removal_figures(attacked())
    traces = {trace.name: trace for trace in drawn.figure.data}
    assert list(traces["naive"].y) == [pytest.approx(20)]
    assert list(traces["naive, by seed"].y) == pytest.approx([20, 20])
    assert list(traces["gated"].y) == [pytest.approx(0)]
    assert list(traces["gated, by seed"].y) == pytest.approx([5, -5])


def test_a_mode_without_cells_has_neither_bar_nor_dash() -> None:
    (drawn,) = removal_figures(attacked())
    traces = {trace.name: trace for trace in drawn.figure.data}
    assert list(traces["physics-aware"].y) == [None]
    assert list(traces["physics-aware, by seed"].y) == []


def test_dashes_stand_at_their_own_rule() -> None:
    cells = [*attacked(), *recalling("honest-only", (0.5,), asked=KRUM)]
    cells += recalling("naive", (0.1,), asked=KRUM)
    (drawn,) = removal_figures(cells)
    traces = {trace.name: trace for trace in drawn.figure.data}
    assert list(traces["naive"].x) == ["fedavg", "krum"]
    assert list(traces["naive, by seed"].x) == ["fedavg", "fedavg", "krum"]
    assert list(traces["naive, by seed"].y) == pytest.approx([20, 20, 40])


def test_the_text_of_a_removal_figure_names_its_reference_and_its_seeds() -> None:
    (drawn,) = removal_figures(attacked())
    assert drawn.topic == "removal"
    assert drawn.title == ("Damage, and damage left with the gate: swat, replay, rules: paper-wide")
    assert drawn.sentence.startswith("Bars are means over 2 seeds, each dash is one seed;")
    assert "zero is the honest-only federation" in drawn.sentence
    assert drawn.figure.layout.yaxis.title.text.endswith("lost against honest-only")
    (one,) = removal_figures([cell for cell in attacked() if cell.asked.seed == 0])
    assert one.sentence.startswith("Bars are means over 1 seed,")


def test_without_honest_only_the_damage_is_against_clean() -> None:
    (drawn,) = removal_figures(attacked(reference="clean"))
    assert "zero is the clean federation" in drawn.sentence
    both = [*attacked(), *recalling("clean", (0.9, 0.9))]
    (against_honest,) = removal_figures(both)
    assert "zero is the honest-only federation" in against_honest.sentence


def test_a_figure_without_a_rule_set_does_not_name_one() -> None:
    (drawn,) = removal_figures(attacked(asked=replace(ASKED, invariants=None)))
    assert drawn.title == "Damage, and damage left with the gate: swat, replay"


def test_records_rule_sets_and_attacks_are_drawn_apart() -> None:
    others = (NARROW, replace(ASKED, attack="scaling"), replace(ASKED, stand_in="treatment"))
    cells = [cell for asked in (ASKED, *others) for cell in attacked(asked=asked)]
    titles = [drawn.title.partition(": ")[2] for drawn in removal_figures(cells)]
    assert titles == [
        "swat, replay, rules: paper-wide",
        "swat, replay, rules: paper-narrow",
        "swat, scaling, rules: paper-wide",
        "treatment for swat, replay, rules: paper-wide",
    ]


def test_without_an_attack_or_a_reference_nothing_is_drawn() -> None:
    assert removal_figures([]) == []
    assert removal_figures(recalling("clean", (0.3,))) == []
    assert removal_figures([done("naive"), done("gated")]) == []


# -- heat map -------------------------------------------------------------------------------------


def test_the_heat_map_shows_the_sweeps_losses_by_rule_and_attack() -> None:
    passed = {"plant-1": 1.0, "plant-2": 0.5}
    cells = [
        *recalling("clean", (0.5,)),
        *recalling("clean", (0.5,), asked=KRUM),
        done("naive", score=replace(SCORE, targeted_recall=0.25, passed=passed)),
        *recalling("naive", (0.375,), asked=replace(ASKED, attack="scaling")),
        *recalling("naive", (0.5,), asked=KRUM),
    ]
    sweep = sweep_table(cells)
    assert sweep is not None
    (drawn,) = sweep_figures(sweep)
    (heat,) = drawn.figure.data
    assert list(heat.x) == ["replay", "scaling"]
    assert list(heat.y) == ["fedavg", "krum"]
    assert [list(row) for row in heat.z] == [[25.0, 12.5], [0.0, None]]
    assert [list(row) for row in heat.text] == [["25.0<br>75%", "12.5<br>0%"], ["0.0<br>0%", ""]]
    assert drawn.figure.layout.yaxis.autorange == "reversed"
    assert drawn.title == "Recall lost to each attack under each aggregation rule: swat"
    assert drawn.topic == sweep.slug


def test_each_record_has_its_own_heat_map() -> None:
    tanks = replace(ASKED, record="tanks", attack="scaling")
    sweep = sweep_table(
        [done(mode, asked=asked) for asked in (ASKED, tanks) for mode in ("clean", "naive")]
    )
    assert sweep is not None
    first, second = sweep_figures(sweep)
    assert list(first.figure.data[0].x) == ["replay"]
    assert list(second.figure.data[0].x) == ["scaling"]
    assert second.title.endswith(": tanks")


def test_an_unknown_loss_is_an_empty_field() -> None:
    sweep = sweep_table([*recalling("clean", (None, 0.5)), *recalling("naive", (0.4,))])
    assert sweep is not None
    (heat,) = sweep_figures(sweep)[0].figure.data
    assert [list(row) for row in heat.z] == [[None]]
    assert [list(row) for row in heat.text] == [[""]]


# -- dial -----------------------------------------------------------------------------------------


def test_the_dial_draws_what_its_table_says() -> None:
    cells = [cell for asked in (ASKED, NARROW, KRUM) for cell in attacked(asked=asked)] + attacked(
        asked=replace(NARROW, rule="krum")
    )
    (drawn,) = dial_figures(cells)
    table = dial_table(cells)
    assert drawn.topic == "dial"
    assert drawn.title == "The coverage dial: swat, replay"
    by_set = {trace.name: dict(zip(trace.x, trace.y, strict=True)) for trace in drawn.figure.data}
    assert list(by_set) == ["paper-wide", "paper-narrow"]
    rows = zip(
        column(table, "rule set"),
        column(table, "rule"),
        column(table, "gate removes %"),
        strict=True,
    )
    for invariants, rule, percent in rows:
        assert by_set[str(invariants)][str(rule)] == pytest.approx(percent)


def test_the_dial_has_no_bar_where_no_seed_showed_damage() -> None:
    unharmed = [
        *recalling("honest-only", (0.3,), asked=NARROW),
        *recalling("naive", (0.3,), asked=NARROW),
        *recalling("gated", (0.3,), asked=NARROW),
    ]
    (drawn,) = dial_figures([*attacked(), *unharmed])
    assert list(drawn.figure.data[1].y) == [None]


def test_one_rule_set_is_not_drawn_as_a_dial() -> None:
    assert dial_figures(attacked()) == []
    assert dial_figures([*attacked(), *recalling("naive", (0.3,), asked=NARROW)]) == []
