"""Mining balances from typed rows whose coefficients are known."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from sluice.invariants.mining.balances import _r2, _whole_steps, mine_balances
from sluice.invariants.mining.couplings import CouplingFind
from sluice.invariants.relations import Term
from sluice.invariants.ruleset import Dropped
from sluice.telemetry.channel import Channel
from tests.unit.invariants.small_plant import COUPLING, METER, PLANT, PUMP, TANK, record_of

NAN = float("nan")
INFLOW = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3]
OUTFLOW = [2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 9, 0, 4, 5, 2, 3, 5, 3, 6, 0, 2, 8, 7]
DRAIN = replace(METER, name="F2")


def level_of(steps: Sequence[float], start: float = 100.0) -> list[float]:
    """The level at each row; the first step is not seen."""
    return list(start + np.cumsum([0.0, *steps[1:]]))


def later(inward: float, outward: float, constant: float = 0.0) -> list[float]:
    return [inward * i - outward * o + constant for i, o in zip(INFLOW, OUTFLOW, strict=True)]


def averaged(inward: float, outward: float) -> list[float]:
    flow = np.array(later(inward, outward))
    return [0.0, *((flow[1:] + flow[:-1]) / 2)]


CHANNELS = (*PLANT, DRAIN)


def coefficients(terms: tuple[Term, ...]) -> dict[str, float]:
    return {term.channel: round(term.coefficient, 9) for term in terms}


def test_flows_at_the_later_row_are_found_with_their_constant() -> None:
    steps = later(0.5, 0.25, constant=-0.1)
    record = record_of({"F1": INFLOW, "F2": OUTFLOW, "L1": level_of(steps)}, channels=CHANNELS)
    (find,), dropped = mine_balances(record, ())
    assert dropped == ()
    balance = find.relation
    assert (balance.name, balance.level, balance.averaged) == ("dL1", "L1", False)
    assert coefficients(balance.terms) == {"F1": 0.5, "F2": -0.25}
    assert balance.constant == pytest.approx(-0.1)
    assert [find.r2, find.r2_held_out] == pytest.approx([1.0, 1.0])


def test_flows_averaged_over_both_rows_are_told_from_flows_at_the_later_row() -> None:
    steps = averaged(0.5, 0.25)
    record = record_of({"F1": INFLOW, "F2": OUTFLOW, "L1": level_of(steps)}, channels=CHANNELS)
    (find,), _ = mine_balances(record, ())
    assert find.relation.averaged
    assert coefficients(find.relation.terms) == {"F1": 0.5, "F2": -0.25}


def test_a_meter_that_does_not_matter_is_left_out() -> None:
    steps = later(0.5, 0.0)
    record = record_of({"F1": INFLOW, "F2": OUTFLOW, "L1": level_of(steps)}, channels=CHANNELS)
    (find,), _ = mine_balances(record, ())
    assert coefficients(find.relation.terms) == {"F1": 0.5}


def test_a_level_that_never_moves_is_dropped() -> None:
    finds, dropped = mine_balances(record_of({"F1": INFLOW, "L1": [7.0] * 25}), ())
    assert finds == ()
    assert dropped == (Dropped(name="dL1", why="the level never moves"),)


def test_a_level_whose_flows_are_not_metered_is_dropped_with_its_fit() -> None:
    steps = later(0.0, 1.0)
    finds, (gone,) = mine_balances(record_of({"F1": INFLOW, "L1": level_of(steps)}), ())
    assert finds == ()
    assert gone.name == "dL1"
    assert gone.why.endswith("is below 0.6: unmetered flow dominates")


def test_a_plant_without_pipes_has_no_balance() -> None:
    finds, (gone,) = mine_balances(record_of({"L1": level_of(later(1.0, 0.0))}), ())
    assert finds == ()
    assert gone.why.startswith("held-out R2 ")


def test_a_pumps_on_time_serves_where_no_meter_is() -> None:
    states = [0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1]
    record = record_of({"P1": states, "L1": level_of([6.0 * on - 1.0 for on in states])})
    (find,), _ = mine_balances(record, ())
    (term,) = find.relation.terms
    assert (term.channel, term.on) == ("P1", (1,))
    assert term.coefficient == pytest.approx(6.0)
    assert find.relation.constant == pytest.approx(-1.0)


def test_a_meter_is_preferred_to_the_on_time_of_its_pump() -> None:
    states = [0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1]
    columns: dict[str, Sequence[float]] = {
        "P1": states,
        "F1": [30.0 * on for on in states],
        "L1": level_of([6.0 * on for on in states]),
    }
    coupled = CouplingFind(relation=COUPLING, spread=0.0, support=0.5, variation=0.0)
    (find,), _ = mine_balances(record_of(columns), (coupled,))
    assert coefficients(find.relation.terms) == {"F1": 0.2}


def test_of_two_tanks_that_one_meter_seems_to_fill_the_one_in_need_keeps_it() -> None:
    """L2 copies L1 with an outflow of its own on top; a pipe fills only one tank."""
    second = replace(TANK, name="L2")
    columns: dict[str, Sequence[float]] = {
        "F1": INFLOW,
        "F2": OUTFLOW,
        "L1": level_of(later(0.5, 0.0)),
        "L2": level_of(later(0.2, 1.0)),
    }
    finds, dropped = mine_balances(record_of(columns, channels=(METER, DRAIN, TANK, second)), ())
    terms = {find.relation.level: coefficients(find.relation.terms) for find in finds}
    assert terms["L1"] == {"F1": 0.5}
    assert "F1" not in terms.get("L2", {})
    assert dropped == ()
    assert set(terms["L2"]) == {"F2"}


def test_steps_over_jumps_and_missing_readings_are_left_out() -> None:
    channels: tuple[Channel, ...] = (PUMP, METER, TANK)
    columns = {"P1": [0.0] * 6, "F1": [0, 0, NAN, 0, 0, 0], "L1": [1.0] * 6}
    whole = _whole_steps(record_of(columns, channels=channels, jumps=(5,)))
    assert list(whole) == [True, False, False, True, False]


def test_one_missing_reading_does_not_spoil_the_fit() -> None:
    inflow = [float(flow) for flow in INFLOW]
    inflow[10] = NAN
    record = record_of({"F1": inflow, "L1": level_of(later(0.5, 0.0))})
    (find,), _ = mine_balances(record, ())
    assert coefficients(find.relation.terms) == {"F1": 0.5}


def test_r2_is_the_share_of_variance_explained_and_zero_where_nothing_varies() -> None:
    assert _r2(np.array([0.0, 2.0]), np.array([0.0, 0.0])) == 1.0
    assert _r2(np.array([0.0, 2.0]), np.array([1.0, -1.0])) == 0.0
    assert _r2(np.array([0.0, 2.0]), np.array([2.0, -2.0])) == -3.0
    assert _r2(np.array([1.0, 1.0]), np.array([5.0, 5.0])) == 0.0
