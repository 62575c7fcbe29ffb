"""The hardened profile: balances true to the pipes, settled couplings, and why candidates fall."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy
from sluice.invariants.measure import measure
from sluice.invariants.mining.profiles import mine
from sluice.invariants.relations import Balance, Coupling, RelationKind
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.channel import Channel, Codes, Role
from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Record

PlantData = Callable[..., Path]


@pytest.fixture(scope="module")
def treatment() -> RuleSet:
    plant = simulate("treatment", seed=0, days=2).without_first(21_600).every(5)
    return mine(plant.rows(0, 14_000), plant.rows(14_000, 28_000), profile=Profile.HARDENED)


def balance(rules: RuleSet, name: str) -> dict[str, float]:
    found = next(rule.relation for rule in rules.invariants if rule.name == name)
    assert isinstance(found, Balance)
    return {term.channel: term.coefficient for term in found.terms}


def test_a_tanks_balance_reads_the_pipes_that_touch_it(treatment: RuleSet) -> None:
    first, third = balance(treatment, "dLIT101"), balance(treatment, "dLIT301")
    assert first == pytest.approx({"FIT101": 0.95, "FIT201": -0.95}, abs=0.03)
    assert third == pytest.approx({"FIT201": 0.95, "FIT301": -0.95}, abs=0.03)


def test_no_pipe_raises_or_lowers_two_tanks(treatment: RuleSet) -> None:
    claims = [
        (term.channel, term.coefficient > 0)
        for rule in treatment.of_kind(RelationKind.BALANCE)
        if isinstance(rule.relation, Balance)
        for term in rule.relation.terms
    ]
    assert len(claims) == len(set(claims)) > 3


def test_no_coupling_is_vacuous_and_each_tells_on_from_off(treatment: RuleSet) -> None:
    couplings = treatment.of_kind(RelationKind.COUPLING)
    assert len(couplings) >= 6
    for rule in couplings:
        assert isinstance(rule.relation, Coupling)
        assert rule.tolerance < rule.relation.nominal / 2
        assert rule.evidence.sees_contradiction


def test_settling_makes_p101_tight_where_the_paper_tolerates_most_of_the_flow(
    treatment: RuleSet,
) -> None:
    rule = next(rule for rule in treatment.invariants if rule.name == "P101~FIT201")
    assert rule.tolerance < 0.1 * 2.45  # the paper's rule on SWaT tolerates 75 %


def test_a_standby_pump_is_known_by_its_neighbour(treatment: RuleSet) -> None:
    rule = next(rule for rule in treatment.invariants if rule.name == "P101~FIT201")
    assert isinstance(rule.relation, Coupling)
    assert ("P102", 1) in rule.relation.standby


def test_candidates_that_fell_say_why(treatment: RuleSet) -> None:
    why = {dropped.name: dropped.why for dropped in treatment.dropped}
    assert why["P201~flow"] == "it hardly ever switched in the clean record"
    assert all(reason for reason in why.values())


def test_longer_windows_see_slower_ramps(treatment: RuleSet) -> None:
    by_level: dict[str, list[float]] = {}
    for rule in treatment.of_kind(RelationKind.BALANCE, RelationKind.WINDOW):
        level = rule.name.split("/")[0]
        by_level.setdefault(level, []).append(rule.evidence.smallest_offset or np.inf)
    assert set(by_level) == {"dLIT101", "dLIT301", "dLIT401"}
    for ramps in by_level.values():
        assert all(later <= earlier / 2 for earlier, later in pairwise(ramps))


def test_the_file_says_what_clean_batches_showed(treatment: RuleSet) -> None:
    assert treatment.clean is not None
    assert treatment.clean.refused_share <= 0.01
    assert treatment.clean.refused_upper >= 3 / treatment.clean.effective_batches - 1e-9


def two_speed_pump(seed: int, rows: int = 4_000) -> Record:
    """A pump with a slow and a fast state, each with a flow of its own, filling no tank."""
    rng = np.random.default_rng(seed)
    states = np.repeat(rng.choice([0.0, 1.0, 2.0], rows // 40), 40)
    flow = np.array([0.0, 20.0, 55.0])[states.astype(int)] + rng.normal(0, 0.3, rows)
    return Record(
        name="two speeds",
        channels=(
            Channel(name="PUMP", role=Role.ACTUATOR, codes=Codes(off=0, on=(1, 2))),
            Channel(name="FLOW", role=Role.FLOW, unit="m3/h"),
        ),
        values=np.column_stack([states, flow]),
        times=np.datetime64("2024-01-01", "us") + (np.arange(rows) * 60).astype("timedelta64[s]"),
        stride_s=60.0,
        labels=np.zeros(rows, np.int8),
    )


def test_an_actuator_of_several_speeds_has_a_flow_for_each() -> None:
    rules = mine(two_speed_pump(1), two_speed_pump(2), profile=Profile.HARDENED)
    (rule,) = rules.of_kind(RelationKind.COUPLING)
    assert isinstance(rule.relation, Coupling)
    nominal = {state.code: state.nominal for state in rule.relation.states}
    assert nominal == pytest.approx({1: 20.0, 2: 55.0}, abs=0.1)
    batch = two_speed_pump(3)
    gate = Gate.of(rules, HardenedPolicy())
    assert gate.judge(batch).admitted
    values = batch.values.copy()
    values[values[:, 0] == 2, 0] = 1  # the fast state is read as the slow one
    assert not gate.judge(batch.with_values(values)).admitted


def test_slices_of_two_plants_are_refused() -> None:
    line = simulate("line", seed=0, days=3)
    with pytest.raises(Exception, match="not of one plant"):
        mine(line.rows(0, 1_000), line.every(2).rows(0, 1_000), profile=Profile.HARDENED)


@pytest.mark.data
@pytest.mark.parametrize("stride", [5, 6, 8, 10])
def test_wdt_has_a_balance_for_all_eight_tanks(plant_data: PlantData, stride: int) -> None:
    record = read_record(plant_data("wdt", "phy_norm.csv")).every(stride)
    half, later = len(record) // 2, int(0.7 * len(record))
    rules = mine(record.rows(0, half), record.rows(half, later), profile=Profile.HARDENED)
    r2 = [rule.evidence.r2_held_out or 0.0 for rule in rules.of_kind(RelationKind.BALANCE)]
    assert len(r2) == 8
    assert min(r2) > 0.8
    assert np.median(r2) > 0.9
    couplings = rules.of_kind(RelationKind.COUPLING)
    assert couplings
    assert all(rule.tolerance > 0 for rule in couplings)
    rest = record.rows(later, len(record))
    broken = measure(rules, rest).violating[1:]  # the first row has no row before it
    assert broken.mean() < 0.01


@pytest.mark.data
def test_batadal_levels_that_freeze_for_a_day_are_found(plant_data: PlantData) -> None:
    record = read_record(plant_data("batadal", "dataset03.csv"))
    rules = mine(record.rows(0, 2_628), record.rows(2_628, 4_380), profile=Profile.HARDENED)
    gate = Gate.of(rules, HardenedPolicy())
    rng = np.random.default_rng(7)
    for level in record.of_role(Role.LEVEL):
        for _ in range(6):
            start = int(rng.integers(4_380, 8_761 - 600))
            assert not gate.judge(frozen(record.rows(start, start + 600), level.name, rng)).admitted


def frozen(batch: Record, level: str, rng: np.random.Generator) -> Record:
    """Hold a level for 24 rows, with a jitter that hides that it is held."""
    values = batch.values.copy()
    column, start = batch.index(level), int(rng.integers(1, 570))
    jitter = 0.02 * float(np.std(np.diff(values[:, column])))
    values[start : start + 24, column] = values[start, column] + rng.normal(0, jitter, 24)
    return batch.with_values(values)


@pytest.mark.data
def test_batadal_shards_are_admitted_and_all_seven_attacks_covered(plant_data: PlantData) -> None:
    record = read_record(plant_data("batadal", "dataset03.csv"))
    rules = mine(record.rows(0, 2_628), record.rows(2_628, 4_380), profile=Profile.HARDENED)
    gate = Gate.of(rules, HardenedPolicy())
    for start in range(4_380, 8_761 - 600, 600):
        verdict = gate.judge(record.rows(start, start + 600))
        assert verdict.admitted, verdict.reasons
    attacked = read_record(plant_data("batadal", "dataset04_full_labels.csv"))
    suspect = gate.judge(attacked).suspect
    shares = [float(suspect[run.slice].mean()) for run in attacked.attack_segments]
    assert len(shares) == 7
    assert min(shares) > 0.01


@pytest.mark.data
def test_rules_of_a_batadal_year_admit_a_later_record_of_coarser_readings(
    plant_data: PlantData,
) -> None:
    year = read_record(plant_data("batadal", "dataset03.csv"))
    rules = mine(year.rows(0, 5_256), year.rows(5_256, 8_761), profile=Profile.HARDENED)
    gate = Gate.of(rules, HardenedPolicy())
    later = read_record(plant_data("batadal", "dataset04_full_labels.csv"))
    attacked = later.attack_segments[0].start
    for start in range(0, attacked - 300, 300):
        verdict = gate.judge(later.rows(start, start + 300))
        assert verdict.admitted, verdict.reasons
