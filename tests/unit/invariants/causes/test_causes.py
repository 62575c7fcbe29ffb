"""Leaks, drifting meters, new pumps and changed set-points are called by their names."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sluice.invariants.causes import Cause, CauseKind, causes
from sluice.invariants.mining.profiles import mine
from sluice.invariants.relations import Balance
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.plants import distribution, line, treatment
from sluice.lab.plants.distribution.model import load
from sluice.lab.plants.line.design import LineDesign
from sluice.lab.plants.treatment import TreatmentDesign
from sluice.telemetry.record import Record

SETTLED = 100  # rows after which a network has left its initial levels
HALF = 0.5


@cache
def rules_of(plant: str) -> RuleSet:
    clean = record_of(plant, seed=0, longer=True)
    half = len(clean) // 2
    return mine(clean.rows(0, half), clean.rows(half, len(clean)), profile=Profile.HARDENED)


@cache
def record_of(plant: str, *, seed: int, longer: bool = False) -> Record:
    if plant == "line":
        return line.simulate(seed=seed, days=12 if longer else 8)
    if plant == "treatment":
        made = treatment.simulate(seed=seed, days=1.8 if longer else 1.5).record.every(5)
        return made.without_first(6 * 3600)
    made = distribution.simulate(network=plant, seed=seed, days=90 if longer else 40)
    return made.rows(SETTLED, len(made))


def throughput(plant: str, record: Record, level: str) -> float:
    """What a tank's meters count, in its level's unit per row: half of it flows in, half out."""
    balance = next(
        rule.relation
        for rule in rules_of(plant).invariants
        if isinstance(rule.relation, Balance) and rule.relation.level == level
    )
    drives = [
        abs(term.coefficient) * np.abs(record.column(term.channel)).mean() for term in balance.terms
    ]
    return float(sum(drives) / 2)


def leaking(plant: str, record: Record, level: str, share: float) -> Record:
    """Take a share of a tank's throughput out of it (or add it), from the middle on."""
    per_row, middle = share * throughput(plant, record, level), len(record) // 2
    values = record.values.copy()
    lost = per_row * np.arange(1, len(record) - middle + 1)
    values[middle:, record.index(level)] -= lost
    return record.with_values(values)


def drifting(record: Record, meter: str, factor: float) -> Record:
    values = record.values.copy()
    values[len(record) // 2 :, record.index(meter)] *= factor
    return record.with_values(values)


def joined(before: Record, after: Record) -> Record:
    """The second half of one record after the first half of another."""
    middle = len(before) // 2
    return before.with_values(np.vstack([before.values[:middle], after.values[middle:]]))


def only(found: tuple[Cause, ...]) -> Cause:
    assert len(found) == 1, [cause.sentence for cause in found]
    return found[0]


def begins_halfway(cause: Cause, record: Record) -> bool:
    return abs(cause.since_row / len(record) - HALF) < 0.15


TANKS = [("line", "L_T1"), ("line", "L_T3"), ("treatment", "LIT301"), ("Terraces", "L_T2")]


@pytest.mark.parametrize(("plant", "level"), TANKS)
def test_a_leak_is_called_a_leak(plant: str, level: str) -> None:
    record = leaking(plant, record_of(plant, seed=1), level, 0.15)
    found = only(causes(rules_of(plant), record))
    assert (found.kind, found.subject, found.unit) == (CauseKind.LEAK, level, "L/h")
    assert f"{level} loses about " in found.sentence
    assert " L/h beyond its meters since about " in found.sentence
    assert ": a leak, or a level sensor that drifts down" in found.sentence
    assert begins_halfway(found, record)


@pytest.mark.parametrize(("plant", "level"), TANKS)
def test_a_level_that_rises_without_inflow_is_no_leak(plant: str, level: str) -> None:
    record = leaking(plant, record_of(plant, seed=1), level, -0.15)
    found = only(causes(rules_of(plant), record))
    assert (found.kind, found.subject) == (CauseKind.INFLOW, level)
    assert "a level sensor that drifts up" in found.sentence


def test_a_leak_is_measured_in_litres_an_hour() -> None:
    """T1 of `line` has 12 m2, so 10 mm a minute are 7,200 litres an hour."""
    record = record_of("line", seed=2)
    values = record.values.copy()
    middle = len(record) // 2
    values[middle:, record.index("L_T1")] -= 0.01 * np.arange(1, len(record) - middle + 1)
    found = only(causes(rules_of("line"), record.with_values(values)))
    area_m2 = LineDesign().areas_m2[0]
    assert found.size == pytest.approx(0.01 * area_m2 * 1000 * 60, rel=0.1)


@pytest.mark.parametrize("factor", [0.88, 1.12])
@pytest.mark.parametrize(
    ("plant", "meter"),
    [("line", "F_PU1"), ("line", "F_PU2"), ("treatment", "FIT201"), ("Terraces", "F_P8")],
)
def test_a_meter_that_drifts_is_named_with_the_size_of_its_error(
    plant: str, meter: str, factor: float
) -> None:
    record = drifting(record_of(plant, seed=1), meter, factor)
    found = only(causes(rules_of(plant), record))
    assert (found.kind, found.subject) == (CauseKind.METER, meter)
    assert found.size == pytest.approx(factor - 1, abs=0.02)
    assert ("too low" if factor < 1 else "too high") in found.sentence
    assert "a meter that drifts" in found.sentence


def test_a_meter_that_always_reads_the_same_cannot_be_told_from_a_leak() -> None:
    record = drifting(record_of("line", seed=1), "F_PU4", 0.88)
    found = only(causes(rules_of("line"), record))
    assert found.kind is CauseKind.LEAK
    assert found.sentence.endswith("or F_PU4 reads about 12% too low")


@pytest.mark.parametrize(
    ("curve", "kind", "words"),
    [(" boost  30    56", 0.3, "a new pump"), (" boost  24    43", -0.09, "wear")],
)
def test_a_pump_that_delivers_another_flow_is_a_new_or_a_worn_pump(
    tmp_path: Path, curve: str, kind: float, words: str
) -> None:
    changed = network_with(tmp_path, "Ridge", " boost  24    48", curve)
    record = joined(record_of("Ridge", seed=1), changed)
    pumps = [c for c in causes(rules_of("Ridge"), record) if c.kind is CauseKind.PUMP]
    found = only(tuple(pumps))
    assert found.subject == "S_PU3"
    assert found.size == pytest.approx(kind, abs=0.05)
    assert words in found.sentence


def network_with(tmp_path: Path, network: str, old: str, new: str) -> Record:
    text = Path(str(load(network).name)).read_text()
    assert old in text
    path = tmp_path / f"{network}.inp"
    path.write_text(text.replace(old, new))
    made = distribution.simulate(network=str(path), seed=1, days=40)
    return made.rows(SETTLED, len(made))


@pytest.mark.parametrize(
    ("network", "old", "new", "sentence"),
    [
        ("Ridge", "PU3 CLOSED IF NODE T2 ABOVE 6.0", "4.8", "S_PU3 stops at 4.6"),
        ("Terraces", "P2 CLOSED IF NODE T1 ABOVE 4.6", "3.6", "S_P2 stops at 3."),
    ],
)
def test_a_changed_set_point_of_a_network_is_said(
    tmp_path: Path, network: str, old: str, new: str, sentence: str
) -> None:
    changed = network_with(tmp_path, network, old, f"{old.rsplit(' ', 1)[0]} {new}")
    found = only(causes(rules_of(network), joined(record_of(network, seed=1), changed)))
    assert found.kind is CauseKind.SET_POINT
    assert found.sentence.startswith(sentence)
    assert found.sentence.endswith("a changed set-point")


def test_a_changed_set_point_of_the_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    before = record_of("line", seed=1)
    lower = LineDesign().start_below_m + np.array((0.8, 0.0, 0.0))
    monkeypatch.setattr(LineDesign, "start_below_m", lower)
    after = line.simulate(seed=1, days=8)
    found = causes(rules_of("line"), joined(before, after))
    assert {(cause.kind, cause.subject) for cause in found} == {(CauseKind.SET_POINT, "S_PU1")}
    assert found[0].size == pytest.approx(2.8, abs=0.3), "a row after the level was reached"


def test_changed_set_points_of_a_treatment_plant_are_said() -> None:
    site = TreatmentDesign(name="shifted", set_point_shift_mm=-90.0)
    after = treatment.simulate(seed=1, days=1.5, site=site).record.every(5)
    after = after.without_first(6 * 3600)
    found = causes(rules_of("treatment"), joined(record_of("treatment", seed=1), after))
    assert found
    assert {cause.kind for cause in found} == {CauseKind.SET_POINT}
    assert "MV101" in {cause.subject for cause in found}


@pytest.mark.parametrize("seed", [100, 101, 102])
@pytest.mark.parametrize("plant", ["line", "Terraces", "Ridge", "Wells", "Net1"])
def test_nothing_is_claimed_of_a_plant_that_did_not_change(plant: str, seed: int) -> None:
    assert causes(rules_of(plant), record_of(plant, seed=seed)) == ()


def test_nothing_is_claimed_of_a_treatment_plant_that_did_not_change() -> None:
    assert causes(rules_of("treatment"), record_of("treatment", seed=100)) == ()


def test_a_leak_that_stops_is_not_claimed() -> None:
    record = record_of("line", seed=1)
    middle = len(record) // 2
    leak = leaking("line", record, "L_T1", 0.15).values[:, record.index("L_T1")]
    values = record.values.copy()
    values[middle : middle + middle // 2, record.index("L_T1")] = leak[
        middle : middle + middle // 2
    ]
    assert causes(rules_of("line"), record.with_values(values)) == ()


def cut(record: Record) -> Record:
    return record.rows(0, 60)


def thinned(record: Record) -> Record:
    return record.every(2)


@pytest.mark.parametrize("change", [cut, thinned])
def test_a_record_that_is_too_short_or_of_another_stride_shows_nothing(
    change: Callable[[Record], Record],
) -> None:
    record = drifting(record_of("line", seed=1), "F_PU1", 0.5)
    assert causes(rules_of("line"), record)
    assert causes(rules_of("line"), change(record)) == ()


def test_rules_of_channels_that_are_gone_are_left_out() -> None:
    record = leaking("line", record_of("line", seed=1), "L_T1", 0.15)
    kept = record.select([name for name in record.names if name != "F_PU3"])
    assert only(causes(rules_of("line"), kept)).subject == "L_T1"


def test_missing_readings_are_no_change() -> None:
    record = record_of("line", seed=1)
    values = record.values.copy()
    values[100:4000, record.index("L_T1")] = np.nan
    values[:, record.index("F_PU3")] = np.nan
    assert causes(rules_of("line"), record.with_values(values)) == ()
