"""The paper's builders against the figures recorded of its own implementation."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sluice.admission.gate import judge
from sluice.admission.policy import PaperPolicy
from sluice.errors import EmptyRulesError
from sluice.invariants.mining.profiles import mine
from sluice.invariants.relations import Coupling, RelationKind
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Record
from sluice.telemetry.split import split

pytestmark = pytest.mark.data
PlantData = Callable[..., Path]

EXPERT = {  # nominal flow, tolerance
    "S_PU2~F_PU2": (95.0867831906731, 12.00512696970467),
    "S_PU4~F_PU4": (34.469143255624324, 5.17104827257665),
    "S_PU7~F_PU7": (49.28749929728329, 19.18602284757494),
    "S_PU8~F_PU8": (35.458695883602914, 4.809762061127858),
    "S_PU10~F_PU10": (30.894384605497617, 4.467632456081433),
}
EXPERT_BALANCES = {  # R2, tolerance
    "dL_T1": (0.8202, 0.65724),
    "dL_T2": (0.8114, 1.53040),
    "dL_T3": (0.6855, 1.33257),
    "dL_T5": (0.6260, 1.83541),
}
GENERIC = {
    "S_PU8~F_PU8": 4.805204878312901,
    "S_PU2~F_PU2": 11.890507801382114,
    "S_PU7~F_PU7": 19.113272613041378,
    "S_PU10~F_PU10": 7.476624885823421,
    "S_PU4~F_PU4": 5.062791580824804,
    "S_V2~F_V2": 52.78097062638095,
    "dL_T1": 0.69714,
    "dL_T2": 1.54641,
    "dL_T3": 1.38552,
    "dL_T5": 1.85627,
}


@pytest.fixture
def first_half(plant_data: PlantData) -> Record:
    return read_record(plant_data("batadal", "dataset03.csv")).rows(0, 4_380)


@pytest.fixture
def second_half(plant_data: PlantData) -> Record:
    return read_record(plant_data("batadal", "dataset03.csv")).rows(4_380, 8_761)


def tolerances(rules: RuleSet) -> dict[str, float]:
    return {rule.name: rule.tolerance for rule in rules.invariants}


def test_the_expert_set_of_batadal(first_half: Record, second_half: Record) -> None:
    rules = mine(first_half, first_half, profile=Profile.PAPER_EXPERT)
    assert [rule.name for rule in rules.invariants] == [*EXPERT, *EXPERT_BALANCES]
    for rule in rules.of_kind(RelationKind.COUPLING):
        assert isinstance(rule.relation, Coupling)
        nominal, tolerance = EXPERT[rule.name]
        assert rule.relation.nominal == pytest.approx(nominal, abs=1e-6)
        assert rule.tolerance == pytest.approx(tolerance, abs=1e-6)
    for rule in rules.of_kind(RelationKind.BALANCE):
        r2, tolerance = EXPERT_BALANCES[rule.name]
        assert rule.evidence.r2 == pytest.approx(r2, abs=0.002)
        assert rule.tolerance == pytest.approx(tolerance, abs=1e-4)
    assert judge(second_half, rules, PaperPolicy()).violating_rows == 0


def test_the_generic_set_of_batadal_in_its_order(first_half: Record, second_half: Record) -> None:
    rules = mine(first_half, first_half, profile=Profile.PAPER_GENERIC)
    assert list(tolerances(rules)) == list(GENERIC)
    assert tolerances(rules) == pytest.approx(GENERIC, abs=1e-5)
    assert judge(second_half, rules, PaperPolicy()).violating_rows == 0


def test_rows_not_judged_are_as_recorded(first_half: Record, second_half: Record) -> None:
    rules = mine(first_half, first_half, profile=Profile.PAPER_GENERIC)
    findings = {f.name: f for f in judge(second_half, rules, PaperPolicy()).findings}
    recorded = {"S_PU8~F_PU8": 0.1949, "S_PU2~F_PU2": 0.0399, "S_PU7~F_PU7": 0.2107}
    for name, share in recorded.items():
        assert findings[name].inapplicable_share == pytest.approx(share, abs=5e-5)


def test_the_federated_set_of_batadal(plant_data: PlantData) -> None:
    record = read_record(plant_data("batadal", "dataset03.csv"))
    parts = split(record, clients=5)
    rules = mine(parts.fit, parts.calibration, profile=Profile.PAPER_NARROW)
    assert len(rules.of_kind(RelationKind.COUPLING)) == 6
    r2 = {rule.name: rule.evidence.r2 for rule in rules.of_kind(RelationKind.BALANCE)}
    recorded = {"dL_T1": 0.8146, "dL_T2": 0.8043, "dL_T3": 0.6947, "dL_T5": 0.6086}
    assert r2 == pytest.approx(recorded, abs=0.002)


def test_dropped_balances_say_why(first_half: Record) -> None:
    rules = mine(first_half, first_half, profile=Profile.PAPER_EXPERT)
    why = {dropped.name: dropped.why for dropped in rules.dropped}
    assert set(why) == {"dL_T4", "dL_T6", "dL_T7"}
    assert why["dL_T4"] == "R2 0.1794 is below 0.60"


def test_hai_has_no_physics_to_find_and_says_so(plant_data: PlantData) -> None:
    record = read_record(plant_data("hai", "hai2007_train_100s.csv"))
    rules = mine(record.rows(0, 1_000), record.rows(1_000, 2_000), profile=Profile.PAPER_NARROW)
    assert rules.empty
    with pytest.raises(EmptyRulesError, match="no coupling, balance or window"):
        judge(record.rows(2_000, 3_000), rules)


def test_of_hai_hardened_rules_know_what_goes_together(plant_data: PlantData) -> None:
    record = read_record(plant_data("hai", "hai2007_train_100s.csv"))
    rules = mine(record.rows(0, 1_000), record.rows(1_000, 2_000), profile=Profile.HARDENED)
    kinds = {rule.kind for rule in rules.invariants}
    assert {RelationKind.TIE, RelationKind.CONSTANT} <= kinds
    assert not {RelationKind.COUPLING, RelationKind.BALANCE, RelationKind.WINDOW} & kinds


def test_nan_is_not_judged_by_the_paper(first_half: Record, second_half: Record) -> None:
    rules = mine(first_half, first_half, profile=Profile.PAPER_EXPERT)
    values = second_half.values.copy()
    values[:, :] = np.nan
    assert judge(second_half.with_values(values), rules, PaperPolicy()).admitted
