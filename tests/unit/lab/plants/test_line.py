"""The `line` plant obeys its own laws, and breaks them only where it is attacked."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.arrays import Floats, Run
from sluice.errors import SettingError
from sluice.lab.plants.line.attacks import LineAttackKind
from sluice.lab.plants.line.design import ExactRelation, LineDesign, exact_relations
from sluice.lab.plants.line.plant import simulate
from sluice.telemetry.channel import Role
from sluice.telemetry.record import Label, Note, Record

LEVEL_NOISE_M = 0.004
FLOW_NOISE_M3H = 0.020 * 60

BALANCE_BOUND_M = 3.5 * np.sqrt(2) * LEVEL_NOISE_M
"""3.5 deviations of the difference of two noisy levels: 0.0198 m, exceeded on 0.05 % of rows."""

COUPLING_BOUND_M3H = 3.5 * FLOW_NOISE_M3H


@cache
def clean() -> Record:
    return simulate(seed=1, days=30)


@cache
def attacked() -> Record:
    return simulate(seed=1, days=30, attacks=True)


def residual(record: Record, relation: ExactRelation) -> Floats:
    """Residual of every row; row 0, which has no row before it, keeps the law by convention."""
    rows = len(record)
    found = np.zeros(rows)
    found[1:] = relation.constant + sum(
        term.coefficient * record.column(term.channel)[1 - term.rows_back : rows - term.rows_back]
        for term in relation.terms
    )
    return found


def bound(relation: ExactRelation) -> float:
    return BALANCE_BOUND_M if relation.kind == "balance" else COUPLING_BOUND_M3H


def struck(note: Note) -> Run:
    assert note.first_row is not None
    return Run(note.first_row, note.first_row + note.rows)


def attacks_of(kind: LineAttackKind) -> list[Note]:
    return [note for note in attacked().notes if note.what == f"attack {kind.value}"]


def test_a_record_says_what_each_channel_is() -> None:
    record = clean()
    assert record.names == (
        *("L_T1", "L_T2", "L_T3"),
        *("F_PU1", "F_PU2", "F_PU3", "F_PU4"),
        *("S_PU1", "S_PU2", "S_PU3", "S_PU4"),
    )
    assert len(record) == 30 * 1440
    assert record.stride_s == 60
    assert {channel.unit for channel in record.of_role(Role.FLOW)} == {"m3/h"}
    for channel in record.channels:
        readings = record.column(channel.name)
        if channel.codes is not None:
            assert set(readings) <= channel.codes.legal
        else:
            assert channel.span is not None
            assert channel.span.low <= readings.min() < readings.max() <= channel.span.high


@pytest.mark.parametrize("relation", exact_relations(), ids=lambda relation: relation.name)
def test_a_clean_plant_keeps_every_law_to_its_noise(relation: ExactRelation) -> None:
    within = np.abs(residual(clean(), relation)) <= bound(relation)
    assert within.mean() > 0.999


@settings(max_examples=10, deadline=None)
@given(shift=st.floats(-3, 3), seed=st.integers(0, 2**32))
def test_every_site_keeps_its_own_laws_and_never_spills_or_runs_dry(
    shift: float, seed: int
) -> None:
    site = LineDesign(shift=shift)
    record = simulate(seed=seed, days=4, site=site)
    for relation in exact_relations(site):
        residuals = np.abs(residual(record, relation))
        assert (residuals <= bound(relation)).mean() > 0.998
        assert residuals.max() < 2 * bound(relation)
    for tank in record.of_role(Role.LEVEL):
        levels = record.column(tank.name)
        assert 0.1 < levels.min() < levels.max() < 11.9


def test_a_shifted_site_has_other_tanks_pumps_and_set_points() -> None:
    reference, other = LineDesign(), LineDesign(shift=1.0)
    np.testing.assert_allclose(other.areas_m2, 1.10 * reference.areas_m2)
    np.testing.assert_allclose(other.nominal_flows_m3h, 1.12 * reference.nominal_flows_m3h)
    np.testing.assert_allclose(other.stop_above_m, 1.06 * reference.stop_above_m)
    for law, least in zip(exact_relations(other), (0.01,) * 3 + (0.5,) * 3, strict=True):
        assert (np.abs(residual(clean(), law)) > bound(law)).mean() > least, law.name


def test_a_pump_obeys_two_rows_after_its_tank_crosses_the_set_point() -> None:
    record, site = clean(), LineDesign()
    level, state = record.column("L_T1"), record.column("S_PU1")
    for start in np.flatnonzero(np.diff(state) > 0) + 1:
        assert level[start - 2] < site.start_below_m[0]


def test_the_same_seed_makes_the_same_record_and_another_seed_another() -> None:
    first, again, other = (simulate(seed=seed, days=1) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.values, again.values)
    assert not np.array_equal(first.values, other.values)


def test_attacks_leave_the_record_as_it_was_until_the_first_of_them() -> None:
    first = int(np.argmax(attacked().labels == Label.ATTACK))
    np.testing.assert_array_equal(clean().values[:first], attacked().values[:first])


def test_the_labels_are_the_attacks_of_the_notes_apart_and_in_the_middle() -> None:
    record = attacked()
    assert tuple(struck(note) for note in record.notes) == record.attack_segments
    assert len(record.attack_segments) == 12
    assert record.attack_segments[0].start >= 0.12 * len(record)
    assert record.attack_segments[-1].stop <= 0.88 * len(record)
    assert [note.what.removeprefix("attack ") for note in record.notes[:4]] == list(LineAttackKind)
    assert not (clean().labels == Label.ATTACK).any()


def test_a_record_of_one_day_still_has_eight_attacks() -> None:
    assert len(simulate(seed=2, days=1, attacks=True).attack_segments) == 8


@pytest.mark.parametrize("kind", LineAttackKind)
def test_every_kind_of_attack_breaks_a_law(kind: LineAttackKind) -> None:
    laws = exact_relations()
    for note in attacks_of(kind):
        run = struck(note)
        around = slice(run.start, run.stop + 1)  # an offset shows where it comes and goes
        worst = max(
            float((np.abs(residual(attacked(), law)) / bound(law))[around].max()) for law in laws
        )
        assert worst > 1.5, note


def test_a_frozen_level_holds_one_value_while_the_tank_moves_on() -> None:
    for note in attacks_of(LineAttackKind.LEVEL_FREEZE):
        run = struck(note)
        assert set(attacked().column(note.channel)[run.slice]) == {
            attacked().column(note.channel)[run.start]
        }
        tank = int(note.channel[-1])
        since = slice(run.start + 1, run.stop + 1)  # a flow moves the level of its own row
        inflow = attacked().column(f"F_PU{tank}")[since].sum()
        outflow = attacked().column(f"F_PU{tank + 1}")[since].sum()
        moved_m = (inflow - outflow) / 60 / LineDesign().areas_m2[tank - 1]
        assert abs(moved_m) > 0.5
        held, released = attacked().column(note.channel)[[run.start, run.stop]]
        spilled_m = moved_m - (released - held)
        assert spilled_m > -8 * LEVEL_NOISE_M  # what went in is in the tank or over its brim


def test_a_stuck_pump_reads_on_while_its_tank_drains_below_the_set_point() -> None:
    for note in attacks_of(LineAttackKind.PUMP_STUCK_OFF):
        run, stage = struck(note), int(note.channel[-1])
        flow = attacked().column(f"F_PU{stage}")[run.slice]
        level = attacked().column(f"L_T{stage}")[run.slice]
        state = attacked().column(f"S_PU{stage}")[run.slice]
        assert not flow.any()
        assert state[-1] == 1
        assert level.min() < 0.6 * LineDesign().start_below_m[stage - 1]


def test_a_dry_tank_starves_the_pump_behind_it() -> None:
    (longest,) = sorted(attacks_of(LineAttackKind.PUMP_STUCK_OFF), key=lambda note: note.rows)[-1:]
    run, stage = struck(longest), int(longest.channel[-1])
    level = attacked().column(f"L_T{stage}")[run.slice]
    dry = level < 0.05 + 4 * LEVEL_NOISE_M
    assert dry.any()
    behind = attacked().column(f"F_PU{stage + 1}")[run.slice]
    assert behind[dry][-1] < 1.0


def test_an_offset_level_misleads_the_controller() -> None:
    for note in attacks_of(LineAttackKind.LEVEL_OFFSET):
        run = struck(note)
        step = np.diff(attacked().column(note.channel))[run.start - 1]
        assert 0.3 < step < 1.2
        assert not np.array_equal(
            attacked().column("S_PU" + note.channel[-1])[run.slice],
            clean().column("S_PU" + note.channel[-1])[run.slice],
        )


def test_a_scaled_flow_reads_low_and_moves_no_water() -> None:
    for note in attacks_of(LineAttackKind.FLOW_SCALE):
        run, pump = struck(note), int(note.channel[-1])
        on = attacked().column(f"S_PU{pump}")[run.slice] == 1
        share = (
            attacked().column(note.channel)[run.slice][on]
            / LineDesign().nominal_flows_m3h[pump - 1]
        )
        assert 0.28 < share.mean() < 0.62


@pytest.mark.parametrize("days", [0.0, -1.0, float("nan"), float("inf")])
def test_a_record_without_rows_is_refused(days: float) -> None:
    with pytest.raises(SettingError, match="at least 2 rows"):
        simulate(seed=1, days=days)


def test_a_record_too_short_for_an_attack_is_refused() -> None:
    with pytest.raises(SettingError, match="too short for an attack"):
        simulate(seed=1, days=0.05, attacks=True)


@pytest.mark.parametrize("shift", [3.1, -4.0, float("nan")])
def test_a_site_of_another_make_is_refused(shift: float) -> None:
    with pytest.raises(SettingError, match="site shift"):
        LineDesign(shift=shift)
