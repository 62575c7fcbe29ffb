"""The simulated treatment plant: its tags, its water, its set-points and its attacks."""

import time
from collections.abc import Callable
from datetime import timedelta
from functools import cache

import numpy as np
import pytest

from sluice.arrays import Bools, Floats
from sluice.errors import SettingError
from sluice.lab.plants import treatment
from sluice.lab.plants.treatment.attacks import TreatmentAttack
from sluice.lab.plants.treatment.published import PUBLISHED_ATTACKS
from sluice.lab.plants.treatment.simulation import ATTACKED, CLEAN, SimulationRun
from sluice.telemetry.channel import Role
from sluice.telemetry.record import Label, Record

SEED = 0
TELLING_SEED = 3  # P101 rests when attack 16 begins; were it running, the attack would be idle
START_UP_S = 21_600
TANKS = ("T101", "T301", "T401")

Runs = Callable[[], SimulationRun]

SWAT_TAGS = """
FIT101 LIT101 MV101 P101 P102 AIT201 AIT202 AIT203 FIT201 MV201 P201 P202 P203 P204 P205 P206
DPIT301 FIT301 LIT301 MV301 MV302 MV303 MV304 P301 P302 AIT401 AIT402 FIT401 LIT401 P401 P402 P403
P404 UV401 AIT501 AIT502 AIT503 AIT504 FIT501 FIT502 FIT503 FIT504 P501 P502 PIT501 PIT502 PIT503
FIT601 P601 P602 P603
""".split()  # noqa: SIM905  (51 quoted names would hide the order)


@cache
def clean() -> SimulationRun:
    return treatment.simulate(seed=SEED)


@cache
def attacked() -> SimulationRun:
    return treatment.simulate(seed=SEED, attacks=True)


@cache
def spared(seed: int = SEED) -> SimulationRun:
    return treatment.run_period(seed=seed, period=ATTACKED)


def published(number: int) -> TreatmentAttack:
    return next(attack for attack in PUBLISHED_ATTACKS if attack.number == number)


def steady(record: Record) -> Record:
    return record.without_first(START_UP_S)


def before_switch(code: Floats, old: int, new: int) -> Bools:
    """Return the rows on which an actuator has just left `old` for `new`, less the last row."""
    return np.asarray((code[:-1] == old) & (code[1:] == new))


# -- the record ------------------------------------------------------------------------------


def test_the_tags_are_swats_in_swats_order() -> None:
    assert list(clean().record.names) == SWAT_TAGS
    assert len(SWAT_TAGS) == 51


def test_roles_units_and_codes_follow_the_tag() -> None:
    prefixes = {"LIT": Role.LEVEL, "FIT": Role.FLOW, "PIT": Role.PRESSURE, "DPI": Role.PRESSURE}
    prefixes["AIT"] = Role.QUALITY
    units = {Role.LEVEL: "mm", Role.FLOW: "m3/h", Role.PRESSURE: "kPa"}
    for channel in clean().record.channels:
        role = prefixes.get(channel.name[:3], Role.ACTUATOR)
        assert channel.role is role
        if channel.codes is None:
            assert channel.span is not None
            assert channel.unit == units.get(role, channel.unit) != ""
        else:
            assert (channel.codes.off, channel.codes.on) == (1, (2,))
            assert channel.codes.moving == ((0,) if channel.name.startswith("MV") else ())
    assert len(clean().record.of_role(Role.ACTUATOR)) == 26


@pytest.mark.parametrize("run", [clean, attacked], ids=["clean", "attacked"])
def test_every_reading_is_within_its_span_and_every_code_is_legal(run: Runs) -> None:
    record = run().record
    assert not record.missing.any()
    for channel in record.channels:
        readings = record.column(channel.name)
        if channel.codes is not None:
            assert set(np.unique(readings)) <= channel.codes.legal
        else:
            assert channel.span is not None
            assert channel.span.low <= readings.min() <= readings.max() <= channel.span.high


def test_the_clean_record_has_the_published_shape() -> None:
    record = clean().record
    assert len(record) == 495_000
    assert record.times[0] == np.datetime64("2015-12-22T16:00:00")
    assert record.stride_s == 1.0
    assert (record.labels == Label.NORMAL).all()
    assert record.gaps == ()


def test_the_attacked_record_has_the_published_shape_and_one_gap_of_81_s() -> None:
    record = attacked().record
    assert len(record) == 449_919
    assert record.times[0] == np.datetime64("2015-12-28T10:00:00")
    (gap,) = record.gaps
    assert record.times[gap.after] - record.times[gap.before] == np.timedelta64(81, "s")
    assert len(attacked().truth.values) == len(record)


# -- one seed, one plant ---------------------------------------------------------------------


def test_a_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    first, second = (treatment.simulate(seed=5, days=0.1) for _ in range(2))
    other = treatment.simulate(seed=6, days=0.1)
    assert first.record.values.tobytes() == second.record.values.tobytes()
    assert first.truth.values.tobytes() == second.truth.values.tobytes()
    assert not np.array_equal(first.record.values, other.record.values)


@pytest.mark.parametrize("attacks", [False, True])
def test_a_short_run_is_the_beginning_of_the_long_one(attacks: bool) -> None:  # noqa: FBT001
    long = (attacked if attacks else clean)().record
    short = treatment.simulate(seed=SEED, days=0.9, attacks=attacks).record
    assert len(short) == round(0.9 * 86_400)
    assert np.array_equal(short.values, long.values[: len(short)])
    assert np.array_equal(short.times, long.times[: len(short)])
    assert np.array_equal(short.labels, long.labels[: len(short)])


def test_a_run_of_no_length_is_refused() -> None:
    with pytest.raises(SettingError, match="at least one second"):
        treatment.simulate(seed=SEED, days=0.0)


def test_both_records_take_seconds_not_minutes() -> None:
    attacked()  # compiled by now
    begun = time.perf_counter()
    treatment.simulate(seed=1)
    treatment.simulate(seed=1, attacks=True)
    assert time.perf_counter() - begun < 20.0


# -- control ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actuator", "level", "low", "high"),
    [
        ("MV101", "LIT101", 500.0, 800.0),
        ("P101", "LIT301", 800.0, 1000.0),
    ],
)
def test_set_points_are_obeyed(actuator: str, level: str, low: float, high: float) -> None:
    record = steady(clean().record)
    code, reading = record.column(actuator), record.column(level)[:-1]
    leaves_off, leaves_on = (0, 0) if actuator.startswith("MV") else (2, 1)
    starts = reading[before_switch(code, 1, leaves_off)]
    stops = reading[before_switch(code, 2, leaves_on)]
    assert min(len(starts), len(stops)) > 50
    assert starts.max() <= low
    assert starts.min() > low - 10
    assert stops.min() >= high
    assert stops.max() < high + 10


def test_filtration_keeps_t401_between_its_set_points() -> None:
    reading = steady(clean().record).column("LIT401")
    assert reading.max() < 1010
    assert reading.min() > 740  # a backwash may fall due just as the tank runs low


def test_six_actuators_never_change_in_the_clean_record() -> None:
    standing = {"P102": 1, "P201": 1, "P402": 2, "P403": 1, "P501": 2, "UV401": 2}
    for tag, code in standing.items():
        assert (clean().record.column(tag) == code).all()


def test_actuators_rest_and_run_for_the_published_shares_of_time() -> None:
    record = steady(clean().record)
    closed = {"MV101": (0.281, 0.03), "P101": (0.268, 0.03), "MV201": (0.264, 0.03)}
    closed["P203"] = (0.270, 0.03)
    for tag, (share, slack) in closed.items():
        assert (record.column(tag) == 1).mean() == pytest.approx(share, abs=slack)
    for tag, share in {"MV301": 0.0075, "P602": 0.0064}.items():
        assert (record.column(tag) == 2).mean() == pytest.approx(share, abs=0.0015)


def test_valves_travel_for_seconds_and_never_jump() -> None:
    for tag in ("MV101", "MV201", "MV301", "MV302", "MV303", "MV304"):
        code = clean().record.column(tag)
        assert not before_switch(code, 1, 2).any()
        assert not before_switch(code, 2, 1).any()
        moving = np.flatnonzero(np.diff((code == 0).astype(int), prepend=0, append=0))
        assert set(np.diff(moving)[::2]) <= {6, 7, 8, 9}


def test_membranes_foul_while_filtering_and_recover_by_backwash() -> None:
    record = steady(clean().record)
    pressure, washing = record.column("DPIT301"), record.column("P602")
    starts = np.flatnonzero(before_switch(washing, 1, 2))
    pumping = record.column("P302") == 2
    drops = [
        pressure[row - 40 : row - 20].mean() - pressure[row + 240 : row + 260].mean()
        for row in starts[1:-1]
        if pumping[row - 50 : row - 20].all() and pumping[row + 230 : row + 260].all()
    ]
    assert len(drops) > 50
    assert min(drops) > 2
    assert pressure.max() < 40


# -- water -----------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [clean, attacked], ids=["clean", "attacked"])
@pytest.mark.parametrize(
    ("tank", "area_m2", "enters", "leaves"),
    [
        ("T101", 1.462, "inlet", "transfer"),
        ("T301", 1.462, "transfer", "filtration"),
        ("T401", 1.50, "filtrate", "osmosis"),
    ],
)
def test_no_water_appears_or_vanishes(
    run: Runs, tank: str, area_m2: float, enters: str, leaves: str
) -> None:
    truth, record = run().truth, run().record
    net_m3_h = truth.column(enters) - truth.column(leaves) - truth.column(f"spill {tank}")
    gained_mm = np.diff(truth.column(tank))
    expected_mm = net_m3_h[1:] / 3600 / area_m2 * 1000
    together = np.diff(record.times) == np.timedelta64(1, "s")
    assert np.abs(gained_mm - expected_mm)[together].max() < 1e-6
    assert truth.column(tank).min() >= 0


def test_osmosis_splits_its_feed_without_loss() -> None:
    truth = attacked().truth
    into = truth.column("osmosis") + truth.column("recirculation")
    out = truth.column("permeate") + truth.column("concentrate")
    assert np.abs(into - out).max() < 1e-9


def test_meters_add_up_to_what_the_tank_holds() -> None:
    record, truth = clean().record, clean().truth
    metered_m3 = (record.column("FIT101") - record.column("FIT201")).sum() / 3600
    held_m3 = np.ptp(truth.column("T101")[[0, -1]]) * 1.462 / 1000
    through_m3 = record.column("FIT101").sum() / 3600
    assert abs(metered_m3 - held_m3) < 0.005 * through_m3


@pytest.mark.parametrize(
    ("level", "enters", "leaves", "slope", "fit"),
    [
        ("LIT101", "FIT101", "FIT201", 0.95, 0.60),
        ("LIT301", "FIT201", "FIT301", 0.95, 0.60),
        ("LIT401", "FIT301", "FIT401", 0.88, 0.45),
    ],
)
def test_levels_follow_flows_with_the_published_slopes(
    level: str, enters: str, leaves: str, slope: float, fit: float
) -> None:
    record = steady(clean().record).every(5)
    gained_mm = np.diff(record.column(level))
    flows = np.stack([record.column(tag)[1:] for tag in (enters, leaves)], axis=1)
    design = np.column_stack([flows, np.ones(len(flows))])
    found, *_ = np.linalg.lstsq(design, gained_mm, rcond=None)
    unexplained = np.var(gained_mm - design @ found) / np.var(gained_mm)
    assert found[0] == pytest.approx(slope, abs=0.02)
    if level != "LIT401":  # in the clean record its outflow hardly changes
        assert found[1] == pytest.approx(-slope, abs=0.02)
    assert fit < 1 - unexplained < 0.85  # noise as in the published fits: .62, .70, .55


@pytest.mark.parametrize(
    ("actuator", "meter", "nominal"),
    [
        ("MV101", "FIT101", 2.54),
        ("P101", "FIT201", 2.45),
        ("MV201", "FIT201", 2.45),
        ("P203", "FIT201", 2.45),
        ("P302", "FIT301", 2.2),
        ("P602", "FIT601", 1.55),
        ("MV301", "FIT601", 1.55),
    ],
)
def test_flows_follow_their_actuators(actuator: str, meter: str, nominal: float) -> None:
    record = steady(clean().record).every(5)
    code, flow = record.column(actuator)[1:], record.column(meter)[1:]
    settled = code == record.column(actuator)[:-1]
    assert flow[settled & (code == 2)].mean() == pytest.approx(nominal, abs=0.04)
    assert np.quantile(flow[settled & (code == 1)], 0.99) == 0.0


def test_osmosis_flows_are_the_published_ones() -> None:
    record = steady(clean().record)
    expected = {"FIT401": 1.7, "FIT501": 1.7, "FIT502": 1.28, "FIT503": 0.74, "FIT504": 0.31}
    for tag, flow in expected.items():
        assert record.column(tag).mean() == pytest.approx(flow, rel=0.02)


def test_analysers_shift_between_the_records_by_many_deviations() -> None:
    before, after = steady(clean().record), attacked().record
    shifts = {
        channel.name: abs(after.column(channel.name).mean() - before.column(channel.name).mean())
        / before.column(channel.name).std()
        for channel in before.of_role(Role.QUALITY)
    }
    assert sum(shift > 3 for shift in shifts.values()) >= 6


# -- attacks ---------------------------------------------------------------------------------


def test_the_36_attacks_are_labelled_at_their_published_seconds() -> None:
    assert len(PUBLISHED_ATTACKS) == 36
    record = attacked().record
    expected = np.zeros(len(record), dtype=bool)
    for attack in PUBLISHED_ATTACKS:
        start, end = np.datetime64(attack.start), np.datetime64(attack.end)
        first, last = np.searchsorted(record.times, [start, end])
        assert (record.times[first], record.times[last]) == (start, end)
        expected[first : last + 1] = True
    assert np.array_equal(record.labels == Label.ATTACK, expected)
    assert len(record.attack_segments) == 34  # 10 and 11 touch, 27 and 28 touch
    first = record.attack_segments[0]
    assert (first.start, first.rows) == (29 * 60 + 14, 15 * 60 + 40)


def test_spoofed_readings_are_what_the_list_says() -> None:
    record = attacked().record

    def during(number: int, tag: str) -> Floats:
        attack = published(number)
        times = record.times
        return record.column(tag)[
            (times >= np.datetime64(attack.start)) & (times <= np.datetime64(attack.end))
        ]

    assert np.allclose(np.diff(during(3, "LIT101")), 1.0)
    assert np.allclose(np.diff(during(16, "LIT301")), -1.0)
    assert (during(6, "AIT202") == 6).all()
    assert (during(8, "DPIT301") > 40).all()
    assert (during(11, "FIT401") == 0).all()
    assert (during(19, "AIT504") == 16).all()
    assert (during(22, "UV401") == 1).all()
    assert (during(22, "P501") == 2).all()
    assert (during(28, "P302") == 1).all()
    assert (during(27, "LIT401")[:534] == 600).all()
    assert (during(27, "LIT401")[540:] > 700).all()
    assert (during(37, "FIT502")[94:] == 1.29).all()


def test_without_attacks_the_same_period_is_the_same_until_the_first_attack() -> None:
    first = attacked().record.attack_segments[0].start
    assert np.array_equal(spared().record.values[:first], attacked().record.values[:first])
    assert (spared().record.labels == Label.NORMAL).all()


@pytest.mark.parametrize("number", [3, 16, 33, 36])
def test_under_the_published_attacks_water_and_actuators_part_from_the_spared_run(
    number: int,
) -> None:
    times, attack = attacked().record.times, published(number)
    hit = (times >= np.datetime64(attack.start)) & (times <= np.datetime64(attack.end))
    apart_mm = [
        np.abs(attacked().truth.column(tank) - spared().truth.column(tank))[hit].max()
        for tank in TANKS
    ]
    assert max(apart_mm) > 10
    differing = attacked().record.values[hit] != spared().record.values[hit]
    actuators = [spared().record.index(c.name) for c in spared().record.of_role(Role.ACTUATOR)]
    assert differing[:, actuators].any()


@pytest.mark.parametrize(
    ("number", "tank"), [(3, "T101"), (16, "T301"), (33, "T101"), (36, "T101")]
)
def test_the_water_follows_a_spoofed_level(number: int, tank: str) -> None:
    attack = published(number)
    days = (attack.end + timedelta(minutes=2) - ATTACKED.begins) / timedelta(days=1)
    alone = treatment.run_period(seed=TELLING_SEED, period=ATTACKED, attacks=(attack,), days=days)
    rows = len(alone.record)
    hit = int(np.flatnonzero(alone.record.labels == Label.ATTACK)[0])
    other = spared(TELLING_SEED)
    true_mm, spared_mm = alone.truth.column(tank), other.truth.column(tank)[:rows]
    assert np.array_equal(true_mm[:hit], spared_mm[:hit])
    assert np.abs(true_mm - spared_mm).max() > 10
    switched = [
        tag
        for tag in ("MV101", "P101", "MV201", "P302")
        if not np.array_equal(alone.record.column(tag), other.record.column(tag)[:rows])
    ]
    assert switched


def test_losing_the_duty_pump_starts_the_standby_unless_it_is_held_too() -> None:
    record = attacked().record
    clock = record.times
    for number, starts in ((34, True), (35, False)):
        attack = published(number)
        within = (clock >= np.datetime64(attack.start)) & (clock <= np.datetime64(attack.end))
        wanted = (record.column("MV201")[within] == 2).any()
        started = (record.column("P102")[within] == 2).any()
        assert started == (starts and wanted)


def test_an_attack_on_an_unknown_tag_is_refused() -> None:
    with pytest.raises(SettingError, match="'MV504' is not an actuator"):
        treatment.ForceActuator(tag="MV504", code=2)
    with pytest.raises(SettingError, match="'P101' is not an instrument"):
        treatment.SpoofConstant(tag="P101", value=1.0)
    with pytest.raises(SettingError, match="forced 1"):
        treatment.ForceActuator(tag="MV101", code=0)


def test_an_attack_that_ends_before_it_starts_is_refused() -> None:
    start = ATTACKED.begins
    with pytest.raises(SettingError, match="attack 99 ends"):
        TreatmentAttack(
            number=99,
            targets=("MV101",),
            start=start,
            end=start - timedelta(seconds=1),
            what="never",
            effects=(),
        )


# -- sites -----------------------------------------------------------------------------------


def test_sites_differ_and_are_reproducible() -> None:
    ten = [treatment.site_of(3, index) for index in range(10)]
    assert len({site.t101_area for site in ten}) == 10
    assert ten[4] == treatment.site_of(3, 4)


@pytest.mark.parametrize("spread", [0.1, 0.25])
def test_a_varied_site_runs_as_steadily_as_the_published_plant(spread: float) -> None:
    site = treatment.site_of(SEED, 1, spread=spread)
    record = steady(treatment.simulate(seed=SEED, days=1.0, site=site).record)
    assert (record.column("P501") == 2).all()
    assert 0.5 < (record.column("MV101") == 2).mean() < 0.95
    usual = clean().record.column("FIT201").max()
    assert record.column("FIT201").max() / usual == pytest.approx(
        site.throughput * site.transfer, rel=0.02
    )
    assert record.name == f"treatment-{CLEAN.name}-site-1"


def test_a_site_beyond_what_the_plant_can_be_is_refused() -> None:
    with pytest.raises(SettingError, match="0 to 0.25"):
        treatment.site_of(0, 0, spread=0.5)
    with pytest.raises(SettingError, match="0.5 to 2"):
        treatment.TreatmentDesign(name="tiny", t101_area=0.1)
    with pytest.raises(SettingError, match="at most 100 mm"):
        treatment.TreatmentDesign(name="high", set_point_shift_mm=300.0)
