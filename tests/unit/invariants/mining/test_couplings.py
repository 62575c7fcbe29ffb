"""Mining couplings from two dozen typed rows: what is found, and why the rest is dropped."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from sluice.invariants.mining.couplings import (
    CouplingFind,
    _are_neighbours,
    _commonest,
    _settle,
    mine_couplings,
)
from sluice.invariants.relations import ActuatorState, Transition
from sluice.invariants.ruleset import Dropped
from sluice.telemetry.channel import Channel, Codes
from tests.unit.invariants.small_plant import METER, PLANT, PUMP, record_of

NAN = float("nan")
STATES = [0.0] * 14 + [1.0] * 14
FLOWS = [0.0] * 14 + [30.0] * 14


def mined(
    columns: Mapping[str, Sequence[float]],
    *,
    channels: tuple[Channel, ...] = PLANT,
    jumps: tuple[int, ...] = (),
    stride_s: float = 10.0,
) -> tuple[tuple[CouplingFind, ...], tuple[Dropped, ...]]:
    record = record_of(columns, channels=channels, jumps=jumps, stride_s=stride_s)
    return mine_couplings(record)


def test_a_flow_that_follows_its_pump_is_coupled() -> None:
    (find,), dropped = mined({"P1": STATES, "F1": FLOWS})
    assert dropped == ()
    coupling = find.relation
    assert (coupling.name, coupling.actuator, coupling.flow, coupling.off) == (
        "P1~F1", "P1", "F1", 0,
    )  # fmt: skip
    assert coupling.states == (ActuatorState(code=1, nominal=30.0),)
    assert (coupling.settle, coupling.transition) == (0, Transition.ENVELOPE)
    assert (find.spread, find.support, find.variation) == (0.0, 0.5, 0.0)


def test_nominal_is_the_median_and_spread_and_variation_are_shares_of_it() -> None:
    noisy = [0.0] * 14 + [30.0] * 12 + [33.0, 27.0]
    (find,), _ = mined({"P1": STATES, "F1": noisy})
    assert find.relation.nominal == 30.0
    assert find.spread == pytest.approx(0.1)
    assert find.variation == pytest.approx(np.sqrt(18 / 14) / 30)


def test_support_is_the_share_of_the_rarer_state() -> None:
    (find,), _ = mined({"P1": [0.0] * 30 + [1.0] * 12, "F1": [0.0] * 30 + [30.0] * 12})
    assert find.support == 12 / 42


@pytest.mark.parametrize(("off", "on", "found"), [(12, 12, 1), (11, 20, 0), (20, 11, 0)])
def test_a_state_needs_a_dozen_rows(off: int, on: int, found: int) -> None:
    finds, dropped = mined({"P1": [0.0] * off + [1.0] * on, "F1": [0.0] * off + [30.0] * on})
    assert len(finds) == found
    why = "it hardly ever switched in the clean record"
    assert dropped == (() if found else (Dropped(name="P1~flow", why=why),))


@pytest.mark.parametrize(
    ("on", "drip", "found"), [(2, 0.0, 1), (1, 0.0, 0), (11, 0.0, 1), (11, 0.1, 0)]
)
def test_a_rare_pump_is_coupled_if_its_meter_is_zero_on_all_other_rows(
    on: int, drip: float, found: int
) -> None:
    states = [0.0] * 300 + [1.0] * on + [0.0] * 300
    flows = [drip] * 300 + [30.0] * on + [0.0] * 300
    finds, _ = mined({"P1": states, "F1": flows})
    assert [find.relation.nominal for find in finds] == [30.0] * found


@pytest.mark.parametrize(("leak", "found"), [(4.5, 1), (4.6, 0), (-4.6, 0)])
def test_a_leak_of_fifteen_in_a_hundred_is_allowed(leak: float, found: int) -> None:
    finds, dropped = mined({"P1": STATES, "F1": [leak] * 14 + [30.0] * 14})
    assert len(finds) == found
    if not found:
        assert dropped == (Dropped(name="P1~flow", why="the flow goes on while it is off"),)


def test_a_flow_that_runs_backward_is_not_coupled() -> None:
    _, (gone,) = mined({"P1": STATES, "F1": [0.0] * 14 + [-30.0] * 14})
    assert gone.why == "the flow goes on while it is off"


@pytest.mark.parametrize(("worst", "found"), [(40.0, 1), (40.1, 0)])
def test_a_spread_beyond_a_third_of_nominal_is_vacuous(worst: float, found: int) -> None:
    """The last three on rows read `worst`, so the 99.9th percentile is the largest residual."""
    flow = [0.0] * 14 + [30.0] * 11 + [worst] * 3
    finds, dropped = mined({"P1": STATES, "F1": flow})
    assert len(finds) == found
    if not found:
        assert dropped[0].why == "vacuous: the flow varies too much to tell on from off"


def test_a_plant_without_meters_says_so() -> None:
    finds, (gone,) = mined({"P1": STATES, "L1": FLOWS})
    assert finds == ()
    assert gone == Dropped(name="P1~flow", why="the plant meters no flow")


def test_of_two_meters_the_tighter_is_kept_and_the_other_named() -> None:
    second = replace(METER, name="F2")
    loose = [0.0] * 14 + [30.0] * 12 + [33.0, 27.0]
    (find,), dropped = mined(
        {"P1": STATES, "F1": loose, "F2": FLOWS}, channels=(PUMP, METER, second)
    )
    assert find.relation.name == "P1~F2"
    assert dropped == (Dropped(name="P1~F1", why="redundant: P1~F2 is tighter"),)


def test_of_two_equal_meters_the_first_column_is_kept() -> None:
    second = replace(METER, name="F2")
    (find,), _ = mined({"P1": STATES, "F1": FLOWS, "F2": FLOWS}, channels=(PUMP, METER, second))
    assert find.relation.name == "P1~F1"


def test_a_slow_valve_settles_in_as_many_rows_as_it_is_slow() -> None:
    states = ([0.0] * 16 + [1.0] * 16) * 2
    flows = ([0.0] * 16 + [10.0, 20.0] + [30.0] * 14) * 2
    (find,), _ = mined({"P1": states, "F1": flows})
    assert find.relation.settle == 2
    assert find.spread == 0.0


def test_a_transient_on_one_row_in_two_thousand_is_settling_not_noise() -> None:
    """Read every 10 s, a valve is seen half open after few switches only, but after switches."""
    cycles = 40
    states = ([0.0] * 250 + [1.0] * 250) * cycles
    flows = np.array(([0.0] * 250 + [30.0] * 250) * cycles) + 0.1 * np.sin(np.arange(500 * cycles))
    first = np.arange(250, 500 * cycles, 500)
    flows[first[::4]] -= 3.0
    (find,), _ = mined({"P1": states, "F1": flows.tolist()})
    assert find.relation.settle == 1


def test_a_flow_that_also_varies_while_it_runs_does_not_wait_to_settle() -> None:
    cycles = 40
    states = ([0.0] * 250 + [1.0] * 250) * cycles
    flows = np.array(([0.0] * 250 + [30.0] * 250) * cycles)
    flows += np.where(flows > 0, 3.0 * np.sin(np.arange(500 * cycles) / 40), 0.0)
    flows[np.arange(250, 500 * cycles, 500)[::4]] = 27.1
    (find,), _ = mined({"P1": states, "F1": flows.tolist()})
    assert find.relation.settle == 0


def test_settling_is_not_looked_for_beyond_a_minute() -> None:
    """At 30 s a row, three rows of ramp are longer than a minute: no settle time helps."""
    states = ([0.0] * 16 + [1.0] * 16) * 2
    flows = ([0.0] * 16 + [15.0, 20.0, 25.0] + [30.0] * 13) * 2
    (find,), _ = mined({"P1": states, "F1": flows}, stride_s=20.0)
    assert find.relation.settle == 3
    (find,), _ = mined({"P1": states, "F1": flows}, stride_s=30.0)
    assert find.relation.settle == 2


def test_without_a_settled_row_the_settle_time_is_zero() -> None:
    states = np.array([0.0, 1.0, 0.0, 1.0])
    record = record_of({"P1": list(states), "F1": [0, 30, 0, 30]})
    assert _settle(states, record.column("F1"), states == 0, [1], record) == 0


def test_missing_flows_are_not_judged() -> None:
    holed = [*FLOWS]
    holed[3] = holed[20] = NAN
    (find,), _ = mined({"P1": STATES, "F1": holed})
    assert find.relation.nominal == 30.0
    assert find.variation == 0.0


def test_too_few_settled_rows_are_said_by_state() -> None:
    holed = [NAN] * 3 + [0.0] * 11 + [30.0] * 14
    _, (gone,) = mined({"P1": STATES, "F1": holed})
    assert gone.why == "too few rows settled in the off state"
    holed = [0.0] * 14 + [30.0] * 11 + [NAN] * 3
    _, (gone,) = mined({"P1": STATES, "F1": holed})
    assert gone.why == "too few rows settled in an on state"


def test_each_speed_that_ran_long_enough_has_a_nominal() -> None:
    pump = replace(PUMP, codes=Codes(off=0, on=(1, 2, 3)))
    states = [0.0] * 12 + [1.0] * 12 + [2.0] * 12 + [3.0] * 11
    flows = [0.0] * 12 + [30.0] * 12 + [60.0] * 12 + [90.0] * 11
    (find,), _ = mined({"P1": states, "F1": flows}, channels=(pump, METER))
    assert find.relation.states == (
        ActuatorState(code=1, nominal=30.0),
        ActuatorState(code=2, nominal=60.0),
    )


def test_a_neighbour_that_never_ran_is_a_standby() -> None:
    spare, other = replace(PUMP, name="P2"), replace(PUMP, name="P9")
    still = [0.0] * 28
    (find,), dropped = mined(
        {"P1": STATES, "P2": still, "P9": still, "F1": FLOWS}, channels=(PUMP, spare, other, METER)
    )
    assert find.relation.standby == (("P2", 0),)
    assert [gone.name for gone in dropped] == ["P2~flow", "P9~flow"]


@pytest.mark.parametrize(("rows", "standby"), [(11, (("P2", 0),)), (12, ())])
def test_a_neighbour_that_hardly_ever_ran_is_a_standby(
    rows: int, standby: tuple[tuple[str, int], ...]
) -> None:
    """So few rows do not show what its running does to the flow."""
    columns = {name: [*part] * 20 for name, part in {"P1": STATES, "F1": FLOWS}.items()}
    columns["F1"] = [flow + 0.1 * (at % 3) for at, flow in enumerate(columns["F1"])]
    columns["P2"] = [1.0] * rows + [0.0] * (len(columns["P1"]) - rows)
    (find, *_), _ = mined(columns, channels=(PUMP, replace(PUMP, name="P2"), METER))
    assert find.relation.standby == standby


def rare(rows: int) -> dict[str, Sequence[float]]:
    """Forty rows off and forty on; while P9 runs, amid the off rows, the meter shows 4."""
    runs = [0.0] * 20 + [1.0] * rows + [0.0] * (60 - rows)
    states = [0.0] * 40 + [1.0] * 40
    flows = [4.0 * run + 30.0 * on for run, on in zip(runs, states, strict=True)]
    return {"P1": states, "P9": runs, "F1": flows}


@pytest.mark.parametrize(("rows", "standby"), [(4, (("P9", 0),)), (5, ())])
def test_a_pump_that_ran_rarely_explains_where_the_flow_was_not_nominal(
    rows: int, standby: tuple[tuple[str, int], ...]
) -> None:
    """Rarely is one row in twenty."""
    (find,), _ = mined(rare(rows), channels=(PUMP, replace(PUMP, name="P9"), METER))
    assert find.relation.standby == standby
    assert find.spread == pytest.approx(0.0 if standby else 4 / 30)


def test_a_rare_pump_that_explains_nothing_is_no_standby() -> None:
    columns = {**rare(4), "F1": [0.0] * 40 + [30.0] * 38 + [33.0] * 2}
    (find,), _ = mined(columns, channels=(PUMP, replace(PUMP, name="P9"), METER))
    assert find.relation.standby == ()


@pytest.mark.parametrize(
    ("one", "other", "neighbours"),
    [
        ("P101", "P102", True),
        ("P102", "P101", True),
        ("P101", "P103", False),
        ("P101", "P101", False),
        ("P9", "P10", True),
        ("P101", "MV102", False),
        ("1_P_005_STATUS", "1_P_006_STATUS", True),
        ("1_P_005_STATUS", "1_P_006_SPEED", False),
        ("1_P_005", "2_P_006", False),
        ("pump", "pump", False),
    ],
)
def test_neighbours_differ_by_one_in_their_last_number(
    one: str,
    other: str,
    neighbours: bool,  # noqa: FBT001
) -> None:
    assert _are_neighbours(one, other) is neighbours


def test_the_commonest_reason_is_given_and_of_two_the_first_in_the_alphabet() -> None:
    assert _commonest(["b", "a", "b"]) == "b"
    assert _commonest(["b", "a"]) == "a"
