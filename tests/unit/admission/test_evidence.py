"""What an operator reads."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.admission.evidence import operator_sentence, worst_rows
from sluice.admission.gate import judge
from sluice.admission.policy import HardenedPolicy
from sluice.admission.reasons import ReasonKind
from sluice.arrays import Bools
from sluice.invariants.mining.profiles import mine
from sluice.invariants.relations import Invariant, RelationKind
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record


@pytest.fixture(scope="module")
def plant() -> Record:
    return simulate("line", seed=0, days=8)


@pytest.fixture(scope="module")
def rules(plant: Record) -> RuleSet:
    return mine(plant.rows(0, 4320), plant.rows(4320, 8640), profile=Profile.HARDENED)


@pytest.fixture(scope="module")
def batch(plant: Record) -> Record:
    return plant.rows(8640, 9640)  # within one day


DAY = np.datetime64("2024-01-07")


def rule(rules: RuleSet, name: str) -> Invariant:
    return next(found for found in rules.invariants if found.name == name)


def forged(batch: Record, channel: str, start: int, stop: int, value: float) -> Record:
    values = batch.values.copy()
    values[start:stop, batch.index(channel)] = value
    return batch.with_values(values)


def marked(batch: Record, start: int, stop: int) -> Bools:
    mask = np.zeros(len(batch), bool)
    mask[start:stop] = True
    return mask


@pytest.mark.parametrize(
    ("name", "channel", "value", "sentence"),
    [
        ("S_PU1~F_PU1", "F_PU1", 2.4, "S_PU1 reads {state} while F_PU1 shows 2.4 m3/h"),
        ("S_PU1~F_PU1", "F_PU1", np.nan, "S_PU1 reads {state} while F_PU1 shows no value"),
        ("S_PU1~F_PU1", "S_PU1", 7.0, "S_PU1 reads moving while F_PU1 shows {flow} m3/h"),
        ("S_PU1~F_PU1", "S_PU1", np.nan, "S_PU1 reads no value while F_PU1 shows {flow} m3/h"),
        ("dL_T1", "L_T1", 5.0, "L_T1 does not change as its flows predict"),
        ("L_T1 in range", "L_T1", 99.0, "L_T1 shows 99 m, outside"),
        ("L_T1 rate", "L_T1", 9.0, "L_T1 jumps by more than"),
    ],
)
def test_sentences_name_tags_readings_and_units(
    rules: RuleSet, batch: Record, *, name: str, channel: str, value: float, sentence: str
) -> None:
    lied = forged(batch, channel, 100, 412, value)
    told = operator_sentence(rule(rules, name), lied, marked(batch, 100, 412))
    state = "on" if lied.column("S_PU1")[100] == 1 else "off"
    flow = f"{lied.column('F_PU1')[100]:.3g}"
    assert told.startswith(sentence.format(state=state, flow=flow))
    when = str(batch.times[100].astype("datetime64[s]")).split("T")[1]
    assert {time.astype("datetime64[D]") for time in batch.times[[0, -1]]} == {DAY}
    assert told.endswith(f"on 312 of 1,000 rows, first at {when}")


def test_a_batch_of_several_days_is_told_with_dates(rules: RuleSet, plant: Record) -> None:
    days = plant.rows(0, 3000)
    told = operator_sentence(rule(rules, "dL_T1"), days, marked(days, 1500, 1501))
    assert told.endswith("on 1 of 3,000 rows, first at 2024-01-02 01:00:00")


def test_nothing_found_says_nothing(rules: RuleSet, batch: Record) -> None:
    nothing = np.zeros(len(batch), bool)
    assert operator_sentence(rules.invariants[0], batch, nothing) == ""
    assert worst_rows(rules.invariants[0], batch, nothing, np.zeros(len(batch))) == ()


def test_worst_rows_come_furthest_first_in_plant_units(rules: RuleSet, batch: Record) -> None:
    values = batch.values.copy()
    column = batch.index("L_T1")
    values[500:, column] += 1.0
    values[700:, column] += 3.0
    found = rule(rules, "dL_T1")
    verdict = judge(batch.with_values(values), rules, HardenedPolicy())
    finding = next(f for f in verdict.findings if f.name == "dL_T1")
    assert [row.row for row in finding.worst[:2]] == [700, 500]
    assert [round(row.residual) for row in finding.worst[:2]] == [3, 1]
    assert {row.tolerance for row in finding.worst} == {found.tolerance}
    assert finding.worst[0].time == str(batch.times[700].astype("datetime64[s]"))


def test_a_window_over_a_time_jump_violates_without_a_residual(
    rules: RuleSet, batch: Record
) -> None:
    times = batch.times.copy()
    times[500:] += np.timedelta64(1, "D")
    verdict = judge(replace(batch, times=times), rules, HardenedPolicy())
    windows = [found for found in verdict.findings if found.kind is RelationKind.WINDOW]
    assert all(found.violating_rows for found in windows)
    assert all(np.isfinite(row.residual) for found in windows for row in found.worst)


def test_a_window_is_over_its_limit_exactly_when_a_reason_says_so(
    rules: RuleSet, batch: Record
) -> None:
    values = batch.values.copy()
    values[:, batch.index("L_T1")] += np.linspace(0, 3, len(batch))
    verdict = judge(batch.with_values(values), rules, HardenedPolicy())
    over = {f.name for f in verdict.findings if f.violating_share > f.limit and "/" in f.name}
    named = {reason.rule for reason in verdict.reasons if reason.kind is ReasonKind.WINDOWS}
    assert over == named != set()
