"""Ties, constants, switch bands, spectra and means, mined from plants whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.admission.acceptance import Acceptance
from sluice.arrays import Floats
from sluice.invariants.mining.balances import mine_balances
from sluice.invariants.mining.bands import band_of, mine_bands
from sluice.invariants.mining.constants import constant_rules, with_constant_spans
from sluice.invariants.mining.couplings import mine_couplings
from sluice.invariants.mining.folds import clean_record
from sluice.invariants.mining.hardened import MINED_KINDS, TYING_KINDS, mine_hardened
from sluice.invariants.mining.means import mean_of, mine_means
from sluice.invariants.mining.spans import with_spans
from sluice.invariants.mining.spectra import mine_spectra
from sluice.invariants.mining.ties import mine_ties
from sluice.invariants.relations import Constant, Coupling, Mean, RelationKind, SwitchBand
from sluice.invariants.residuals import residuals
from sluice.lab.plants import simulate
from sluice.seeding import stream
from sluice.telemetry.channel import Channel, Codes, Role, Span
from sluice.telemetry.record import Record
from tests.unit.invariants.small_plant import METER, PUMP, TANK, record_of

PRESSURE = Channel(name="PI1", role=Role.PRESSURE, unit="bar")
OTHER = Channel(name="PI2", role=Role.PRESSURE, unit="bar")
CHANNELS = (PUMP, METER, TANK, PRESSURE, OTHER)
ROWS = 3_000


def noise(name: str, rows: int = ROWS) -> Floats:
    return np.asarray(stream(5, "tying", name).normal(size=rows))


def pumped(*, sign: float = 1.0) -> Record:
    """A pump switched on below 2 m and off above 8 m; pressure by level and pump."""
    on, level = np.zeros(ROWS), np.zeros(ROWS)
    level[0] = 5.0
    for row in range(1, ROWS):
        on[row] = on[row - 1]
        if level[row - 1] < 2:
            on[row] = 1.0
        elif level[row - 1] > 8:
            on[row] = 0.0
        level[row] = level[row - 1] + (0.31 if on[row] else -0.17)
    level += 0.01 * noise("level")
    pressure = 1.0 + sign * 0.4 * level + 2.0 * on + 0.01 * noise("pressure")
    columns = {"P1": on, "F1": 300.0 * on, "L1": level, "PI1": pressure, "PI2": noise("other")}
    return record_of(columns, channels=CHANNELS)


def test_a_pressure_is_tied_to_the_level_and_the_pump_that_make_it() -> None:
    record = pumped()
    ((found,), dropped) = mine_ties(record, clean_record(record).folds, [PRESSURE])
    terms = {term.channel: term for term in found.relation.terms}
    assert set(terms) <= {"L1", "P1", "F1"}
    assert terms["L1"].coefficient == pytest.approx(0.4, rel=0.02)
    assert found.r2_held_out > 0.99
    assert dropped == ()


def test_two_gauges_side_by_side_are_also_tied_to_what_is_apart_from_them() -> None:
    record = pumped()
    both = record.column("PI1") + 0.001 * noise("second gauge")
    columns = {name: record.column(name) for name in record.names} | {"PI2": both}
    twins = record_of(columns, channels=CHANNELS)
    found, _ = mine_ties(twins, clean_record(twins).folds, [PRESSURE])
    assert [find.relation.name for find in found] == ["PI1 tie", "PI1 tie apart"]
    by_twin, apart = ({term.channel for term in find.relation.terms} for find in found)
    assert "PI2" in by_twin
    assert "PI2" not in apart
    assert "L1" in apart


@pytest.mark.parametrize(
    ("zero", "size", "explains"),
    [
        (3.0, 0.0005, False),
        (3.0, 0.02, True),
        (3_000.0, 1.0, True),  # measured from another zero, as a level above the sea is
    ],
)
def test_a_channel_that_moves_by_less_than_its_meters_error_explains_no_other(
    zero: float, size: float, *, explains: bool
) -> None:
    pressure = pumped().column("PI1")
    twin = zero + size * (pressure - pressure.mean())
    pair = record_of({"PI1": pressure, "PI2": twin}, channels=(PRESSURE, OTHER))
    found, _ = mine_ties(pair, clean_record(pair).folds, [PRESSURE])
    assert bool(found) is explains


def test_a_reading_that_nothing_explains_is_dropped_with_its_fit() -> None:
    record = pumped()
    found, (dropped,) = mine_ties(record, clean_record(record).folds, [OTHER])
    assert found == ()
    assert dropped.name == "PI2 tie"
    assert "no other channel explains it" in dropped.why


def test_a_pressure_that_would_fall_with_a_tanks_level_is_not_tied_to_it() -> None:
    record = pumped(sign=-1.0)
    found, _ = mine_ties(record, clean_record(record).folds, [PRESSURE])
    assert all(term.channel != "L1" for find in found for term in find.relation.terms)


def test_a_term_with_the_opposite_sign_of_what_rows_show_is_not_used() -> None:
    """PI1 = 3 x PI2 - 2 x L1 fits exactly, although PI1 and L1 rise together."""
    common = noise("common", ROWS)
    level = common + 0.3 * noise("level alone")
    other = common + 0.3 * noise("other alone")
    columns = {"L1": level, "PI1": 3 * other - 2 * level, "PI2": other}
    record = record_of(columns, channels=(replace(TANK, role=Role.FLOW), PRESSURE, OTHER))
    assert np.corrcoef(record.column("PI1"), level)[0, 1] > 0.2
    found, _ = mine_ties(record, clean_record(record).folds, [PRESSURE])
    assert all(term.coefficient > 0 for find in found for term in find.relation.terms)


def test_a_band_is_found_around_each_set_point() -> None:
    ((band,), dropped) = mine_bands(pumped())
    assert (band.actuator, band.level) == ("P1", "L1")
    assert band.on_low < 2 < band.on_high + 0.1
    assert band.off_low - 0.1 < 8 < band.off_high
    assert band.on_high < 3
    assert band.off_low > 7
    assert dropped == ()


def test_a_wide_band_with_a_sharp_edge_is_found() -> None:
    """Rows are far apart: the level passes its set-points by up to a third of its range."""
    record = pumped()
    sparse = record_of(
        {name: record.column(name)[::8] for name in record.names}, channels=record.channels
    )
    ((band,), _) = mine_bands(sparse)
    assert (band.actuator, band.level) == ("P1", "L1")
    shown = sparse.column("L1")
    assert band.on_high - band.on_low > 0.2 * np.ptp(shown)
    for offset in (0.1, -0.1):
        readings = shown + offset * np.ptp(shown)
        moved = replace(sparse, values=np.column_stack([
            readings if name == "L1" else sparse.column(name) for name in sparse.names
        ]))  # fmt: skip
        judged = residuals(band, moved)
        assert np.count_nonzero(judged.values[judged.applies]) > 2
    judged = residuals(band, sparse)
    assert judged.applies.any()
    assert not np.count_nonzero(judged.values[judged.applies])


def washed() -> Record:
    """A pump between 2 m and 8 m that also pauses by the clock, and one that knows only the clock.

    It pauses at any level, so its switches lie all over the range of the level.
    """
    rows = 2 * ROWS
    filling, level = np.zeros(rows), np.full(rows, 5.0)
    other = (np.arange(rows) // 17 % 2).astype(np.float64)
    running = np.arange(rows) % 47 >= 4
    for row in range(1, rows):
        shown = level[row - 1]
        filling[row] = 1.0 if shown < 2 else 0.0 if shown > 8 else filling[row - 1]
        level[row] = shown + (0.11 if filling[row] and running[row] else -0.083)
    columns = {
        "P1": filling * running,
        "P2": other,
        "L1": level + 0.01 * stream(5, "w").normal(size=rows),
    }
    return record_of(columns, channels=(PUMP, replace(PUMP, name="P2"), TANK))


def test_a_pump_that_also_stops_for_other_reasons_has_a_band_with_sharp_ends() -> None:
    record = washed()
    ((band,), (dropped,)) = mine_bands(record)
    assert (band.actuator, band.level) == ("P1", "L1")
    assert dropped.name == "P2 switches"
    shown = record.column("L1")
    assert band.on_high - band.on_low > 0.8 * np.ptp(shown)
    assert np.count_nonzero(residuals(band, record).values > 0) == 0
    for offset in (0.1, -0.1):
        moved = record.values.copy()
        moved[:, record.index("L1")] += offset * np.ptp(shown)
        judged = residuals(band, record.with_values(moved))
        outside = np.count_nonzero(judged.values[judged.applies])
        assert outside > 0.08 * np.count_nonzero(judged.applies)


@pytest.mark.parametrize("channel", [TANK, PRESSURE], ids=["level", "pressure"])
def test_a_pressure_needs_a_narrow_band(channel: Channel) -> None:
    """The pump stops for another reason, at any reading of the upper half."""
    draw = stream(5, "tying", "stops")
    on: list[float] = []
    shown: list[float] = []
    while len(on) < ROWS:
        stops = 0.5 + 0.5 * draw.random()
        rising = np.arange(0.0, stops, 0.02)
        on += [1.0] * len(rising) + [0.0] * 10
        shown += [*rising, *np.linspace(stops, 0.0, 10)]
    columns = {"P1": np.array(on), channel.name: np.array(shown)}
    found, _ = mine_bands(record_of(columns, channels=(PUMP, channel)))
    assert bool(found) is (channel is TANK)


def test_a_pump_by_the_clock_has_no_band() -> None:
    on = np.tile(np.repeat([0.0, 1.0], 12), ROWS // 24)
    columns = {"P1": on, "L1": 5 + noise("elsewhere")}
    found, (dropped,) = mine_bands(record_of(columns))
    assert found == ()
    assert dropped.name == "P1 switches"


def test_few_switches_give_no_band_and_more_of_them_a_narrower_one() -> None:
    record = pumped()
    ((band,), _) = mine_bands(record)
    assert band_of(band, [record.rows(0, 200)]) is None
    some, many = (band_of(band, [record.rows(0, rows)]) for rows in (900, ROWS))
    assert some is not None
    assert many is not None
    assert many.on_high - many.on_low < some.on_high - some.on_low


def test_a_band_forbids_a_tank_that_falls_with_its_own_inflow() -> None:
    """The level mirrors a second tank, so that its true inflow seems to lower it."""
    record = pumped()
    couplings, _ = mine_couplings(record)
    assert [find.relation.name for find in couplings] == ["P1~F1"]
    free, _ = mine_balances(record, couplings)
    assert free[0].relation.terms[0].coefficient > 0
    drains = SwitchBand(
        name="P1 by L1", actuator="P1", on=(1,), level="L1", before=True,
        on_low=7.0, on_high=8.0, off_low=1.0, off_high=2.0,
    )  # fmt: skip
    held, dropped = mine_balances(record, couplings, (drains,))
    assert held == ()
    assert [candidate.name for candidate in dropped] == ["dL1"]


def test_idle_channels_stay_where_they_were() -> None:
    idle = Channel(name="F9", role=Role.FLOW, unit="m3/h")
    pump = Channel(name="P9", role=Role.ACTUATOR, codes=Codes(off=1, on=(2,)))
    columns: dict[str, list[float]] = {
        "P1": [0, 1, 0],
        "F1": [0, 300, 0],
        "P9": [1, 1, 1],
        "F9": [0, 0, 0],
    }
    record = record_of(columns, channels=(PUMP, METER, pump, idle))
    channels = with_constant_spans(record, with_spans(record))
    spans = {channel.name: channel.span for channel in channels}
    half = (METER.span.high - METER.span.low) / 2 if METER.span else 0.0
    assert spans["F9"] == Span(low=-half, high=half)
    rules = constant_rules(replace(record, channels=channels))
    assert [rule.relation for rule in rules] == [
        Constant(name="P9 idle", channel="P9", value=1.0),
        Constant(name="F9 idle", channel="F9", value=0.0),
    ]
    assert [rule.tolerance for rule in rules] == [0.5, pytest.approx(0.002 * half)]


def test_a_noisy_channel_has_a_spectrum_that_smoothing_leaves() -> None:
    readings = 50 + noise("spectrum", 6_000)
    record = record_of({"L1": readings})
    (spectrum,) = mine_spectra(record, [TANK], [record], share=1e-7)
    smoothed = np.convolve(readings, np.ones(4) / 4, mode="valid")[: spectrum.rows]
    assert np.square(np.diff(smoothed, n=2)).sum() < spectrum.second_low
    louder = 2.5 * readings[: spectrum.rows]
    assert np.square(np.diff(louder, n=2)).sum() > spectrum.second_high
    usual = np.square(np.diff(readings[: spectrum.rows], n=2)).sum()
    assert spectrum.second_low < usual < spectrum.second_high


def test_blocks_are_long_enough_to_notice_a_mean_over_three_rows() -> None:
    """The size of a slow swell differs from block to block, its smoothed form differs more."""
    rough = 1 + 0.35 * np.sin(np.arange(6_000) / 7)
    readings = 50 + np.cumsum(rough * noise("swell", 6_000))
    record = record_of({"L1": readings})
    (spectrum,) = mine_spectra(record, [TANK], [record], share=1e-7)
    smoothed = np.convolve(readings, np.ones(3) / 3, mode="valid")
    blocks = smoothed[: 20 * spectrum.rows].reshape(20, spectrum.rows)
    below = np.square(np.diff(blocks, n=2, axis=1)).sum(axis=1) < spectrum.second_low
    assert below.mean() > 0.8


def filling(*, at_rest: int, rate: float) -> Floats:
    """Return a level that stands still, fills, stands still and empties, with a meter's noise."""
    steps = np.repeat([0.0, rate, 0.0, -rate], [at_rest, 150, at_rest, 150])
    course = np.cumsum(np.tile(steps, 6_000 // len(steps) + 1)[:6_000])
    return np.asarray(500 + course + 0.7 * noise("filling", 6_000))


def test_a_level_that_stands_still_and_then_fills_has_noise_limits_that_a_policy_accepts() -> None:
    """Sums of blocks at rest and of blocks that fill are two groups, and no normal logarithm."""
    readings = filling(at_rest=300, rate=5.0)
    record = record_of({"L1": readings})
    (spectrum,) = mine_spectra(record, [TANK], [record], share=1e-7)
    noise_max = Acceptance().noise_max
    assert spectrum.first_high <= noise_max * spectrum.first_low
    assert spectrum.second_high <= noise_max * spectrum.second_low


def test_noise_limits_hold_blocks_that_only_rest_or_only_fill() -> None:
    readings = filling(at_rest=300, rate=5.0)
    record = record_of({"L1": readings})
    (spectrum,) = mine_spectra(record, [TANK], [record], share=1e-7)
    ramp = 5.0 * np.arange(spectrum.rows)
    for course in (0.0 * ramp, ramp, -ramp):
        for start in range(0, 6_000 - spectrum.rows, spectrum.rows):
            block = course + 0.7 * noise("later", 6_000)[start : start + spectrum.rows]
            first = np.square(np.diff(block)).sum()
            assert spectrum.first_low < first < spectrum.first_high


def test_a_low_limit_of_changes_is_no_lower_than_bends_allow() -> None:
    """Squared bends sum to at most four times squared changes; a lower limit says nothing."""
    readings = filling(at_rest=300, rate=5.0)
    record = record_of({"L1": readings})
    (spectrum,) = mine_spectra(record, [TANK], [record], share=1e-7)
    assert spectrum.first_low >= spectrum.second_low / 4
    steep = np.abs(np.diff(readings)).max()
    assert spectrum.first_high <= 1.5 * (spectrum.rows - 1) * steep**2


def switching(*, cycles: int = 20) -> tuple[Floats, Floats]:
    """Return the states of a pump that runs every other 250 rows, and its flow."""
    on = np.tile(np.repeat([0.0, 1.0], 250), cycles)
    return on, 300.0 * on + np.where(on, 0.5 * noise("flow", 500 * cycles), 0.0)


def claimed_residual(on: Floats, flow: Floats) -> tuple[float, Coupling]:
    """Return the largest residual that a mined coupling claims for clean rows, and the coupling."""
    meter = replace(METER, span=Span(low=0.0, high=600.0))
    record = record_of({"P1": on, "F1": flow}, channels=(PUMP, meter), stride_s=10.0)
    rules = mine_hardened(record).rules
    (coupling,) = (rule for rule in rules.invariants if isinstance(rule.relation, Coupling))
    assert rules.clean is not None
    (claimed,) = (fact.share for fact in rules.clean.severe if fact.rule == coupling.name)
    assert isinstance(coupling.relation, Coupling)
    return claimed * coupling.tolerance, coupling.relation


FEWER = [180.0, 270.0, 240.0, 255.0, 275.0, 180.0, 240.0]


def test_a_valve_that_begins_to_close_misses_at_most_all_of_its_flow() -> None:
    """The last row before a few stops shows part of the flow; a tail of them reaches further."""
    on, flow = switching()
    flow[np.arange(499, len(on), 500)[::3]] = FEWER
    claimed, relation = claimed_residual(on, flow)
    assert 300.0 - min(FEWER) < claimed <= relation.nominal * (1 + 1e-9)


def test_a_row_before_one_stop_that_no_other_stop_foretells_refuses_no_clean_batch() -> None:
    """The fold with this row is judged by rules that know of none."""
    on, flow = switching()
    flow[3_499] = 230.0
    meter = replace(METER, span=Span(low=0.0, high=600.0))
    record = record_of({"P1": on, "F1": flow}, channels=(PUMP, meter), stride_s=10.0)
    mined = mine_hardened(record)
    assert mined.honest.blamed == ()
    (coupling,) = (rule for rule in mined.rules.invariants if isinstance(rule.relation, Coupling))
    assert coupling.tolerance < 30.0


def test_rows_far_from_a_switch_claim_what_their_tail_reaches() -> None:
    """The same readings in the middle of a run are no switch: acceptance is to see them."""
    on, flow = switching()
    flow[np.arange(375, len(on), 500)[::3]] = FEWER
    claimed, relation = claimed_residual(on, flow)
    assert claimed > relation.nominal


def test_a_pressure_that_a_pump_makes_does_not_say_when_the_pump_switches() -> None:
    """As a filter clogs, the pressure at a stop rises; all rows of the pump's run have it."""
    on = np.concatenate([np.repeat([0.0, 1.0], [40 + at % 7, 60 + at % 5]) for at in range(27)])
    rows = len(on)
    pressure = 2.0 + (18.0 + np.arange(rows) / rows) * on + 0.1 * noise("clogging", rows)
    record = record_of({"P1": on, "PI1": pressure}, channels=(PUMP, PRESSURE))
    bands, (dropped,) = mine_bands(record)
    assert bands == ()
    assert dropped.name == "P1 switches"


def test_a_channel_that_rests_for_whole_blocks_has_no_spectrum() -> None:
    readings = np.where(np.arange(ROWS) % 600 < 300, noise("resting"), 0.0)
    record = record_of({"L1": readings})
    assert mine_spectra(record, [TANK], [record], share=1e-7) == ()


def test_a_channel_that_moves_when_a_pump_switches_has_no_spectrum() -> None:
    """Its sums count switches: a pump that runs on for two days would leave any limit."""
    on = np.tile(np.repeat([0.0, 1.0], 4), 6_000 // 8)
    steady, switched = 50 + noise("spectrum", 6_000), 50 + 10 * on + noise("spectrum", 6_000)
    for readings, spectra in ((steady, 1), (switched, 0)):
        record = record_of({"P1": on, "L1": readings})
        assert len(mine_spectra(record, [TANK], [record], share=1e-7)) == spectra


def test_a_level_that_cycles_has_a_mean_that_an_offset_leaves() -> None:
    record = record_of({"L1": 5.0 + 3.0 * np.sin(np.arange(ROWS) / 3) + 0.1 * noise("cycle")})
    (found,) = mine_means([TANK], [record], share=1e-7)
    rule = mean_of(found, [record], share=1e-7)
    assert rule is not None
    assert found.mean == pytest.approx(5.0, abs=0.2)
    assert rule.tolerance < 0.1 * float(np.ptp(record.column("L1")))
    for offset, holds in ((0.0, True), (0.6, False), (-0.6, False)):
        shown = record.with_values(record.values + offset)
        judged = residuals(rule.relation, shown)
        assert (np.abs(judged.values[judged.applies]) <= rule.tolerance).all() == holds


def test_a_channel_that_wanders_and_one_that_never_moved_have_no_mean() -> None:
    walk = record_of({"L1": np.cumsum(noise("walk")), "F1": np.full(ROWS, 3.0)})
    assert mine_means([TANK, METER], [walk], share=1e-7) == ()


def test_a_pump_that_rested_in_all_rows_but_a_few_has_no_mean_of_the_rest() -> None:
    """Its limit was 0, so no rules could be mined of a network whose pump ran in one month."""
    flow = Mean(name="F1 mean", channel="F1", mean=1.0, rows=64)
    rested = record_of({"F1": np.zeros(ROWS)})
    assert mean_of(flow, [rested], share=1e-7) is None
    ran = record_of({"F1": np.where(np.arange(ROWS) < 64, 3.0, 0.0)})
    assert mean_of(flow, [rested, ran], share=1e-7) is not None


def test_a_short_record_has_no_mean() -> None:
    assert mine_means([TANK], [pumped().rows(0, 64 * 12)], share=1e-7) == ()


def test_a_level_has_a_mean_that_notices_no_less_than_a_quarter_of_its_range() -> None:
    """Beside a wide switch band it is all that limits an offset of the level."""
    wave = 0.3 * np.sin(np.arange(ROWS) / 50) + np.sin(np.arange(ROWS) / 3)
    record = record_of({"L1": wave + 0.02 * noise("level"), "F1": wave + 0.02 * noise("flow")})
    (found,) = mine_means([TANK, METER], [record], share=1e-7)
    rule = mean_of(found, [record], share=1e-7)
    assert rule is not None
    assert found.channel == "L1"
    assert 0.1 < rule.tolerance / float(np.ptp(record.column("L1"))) <= 0.25


def test_means_are_mined_of_channels_that_no_tie_and_no_coupling_explains() -> None:
    record = pumped()
    other = np.asarray(np.sin(np.arange(ROWS) / 5) + 0.05 * noise("sine"))
    values = record.values.copy()
    values[:, record.index("PI2")] = other
    record = replace(
        record.with_values(values),
        channels=tuple(replace(channel, span=None) for channel in record.channels),
    )
    rules = mine_hardened(record).rules
    assert [rule.name for rule in rules.of_kind(RelationKind.MEAN)] == ["L1 mean", "PI2 mean"]
    (band,) = (rule.relation for rule in rules.of_kind(RelationKind.SWITCH_BAND))
    assert isinstance(band, SwitchBand)
    assert band.level == "L1"
    assert "PI2" in (rules.untied or ())


def test_a_tie_that_its_register_cannot_resolve_is_dropped() -> None:
    """A span of ten million metres leaves one register for every reading."""
    channels = (PUMP, *(replace(one, span=None) for one in (METER, TANK)), PRESSURE, OTHER)
    record = replace(pumped(), channels=channels)
    huge = replace(PRESSURE, span=Span(low=0.0, high=1e7))
    channels = tuple(huge if one is PRESSURE else one for one in channels)
    names = {
        wide: {rule.name for rule in mine_hardened(made).rules.invariants}
        for wide, made in ((False, record), (True, replace(record, channels=channels)))
    }
    assert "PI1 tie" in names[False]
    assert "PI1 tie" not in names[True]


def test_every_kind_is_mined_by_default() -> None:
    assert MINED_KINDS == TYING_KINDS


@pytest.mark.parametrize("kinds", [frozenset[RelationKind](), TYING_KINDS])
def test_kinds_are_mined_as_asked_and_untied_channels_are_listed(
    kinds: frozenset[RelationKind],
) -> None:
    plant = simulate("line", seed=3, days=6)
    rules = mine_hardened(plant, kinds=kinds).rules
    assert {rule.kind for rule in rules.invariants} & TYING_KINDS <= kinds
    assert rules.untied is not None
    assert ("S_PU4" in rules.untied) == (RelationKind.CONSTANT not in kinds)
    assert rules.clean is not None
