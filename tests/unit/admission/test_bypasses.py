"""Every known way around the paper's gate, tried on the hardened one."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy, PaperPolicy
from sluice.admission.verdict import Verdict
from sluice.arrays import Floats
from sluice.errors import MissingChannelError, RecordError
from sluice.invariants.mining.profiles import mine
from sluice.invariants.relations import Window
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.attacks.fabrications import ChannelRoll, RegimeSplicing
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record

ROWS = 1_000


@pytest.fixture(scope="module")
def plant() -> Record:
    return simulate("treatment", seed=0, days=3).without_first(21_600).every(5)


@pytest.fixture(scope="module")
def rules(plant: Record) -> RuleSet:
    return mine(plant.rows(0, 14_000), plant.rows(14_000, 28_000), profile=Profile.HARDENED)


@pytest.fixture(scope="module")
def gate(rules: RuleSet) -> Gate:
    return Gate.of(rules, HardenedPolicy())


@pytest.fixture(scope="module")
def batch(plant: Record) -> Record:
    return plant.rows(40_000, 40_000 + ROWS)


def with_channel(batch: Record, name: str, readings: Floats | float) -> Record:
    values = batch.values.copy()
    values[:, batch.index(name)] = readings
    return batch.with_values(values)


def refused_for(verdict: Verdict, words: str) -> None:
    assert not verdict.admitted
    assert any(words in sentence for sentence in verdict.sentences), verdict.sentences


def test_an_untouched_batch_is_admitted(gate: Gate, batch: Record) -> None:
    verdict = gate.judge(batch)
    assert verdict.admitted, verdict.reasons
    assert verdict.violating_share < 0.01


def test_nan_readings_count_against_the_batch(gate: Gate, batch: Record) -> None:
    refused_for(gate.judge(with_channel(batch, "FIT101", np.nan)), "miss a reading")


def test_missing_readings_beyond_the_budget(gate: Gate, batch: Record) -> None:
    readings = batch.column("LIT301").copy()
    readings[100:111] = np.nan
    refused_for(gate.judge(with_channel(batch, "LIT301", readings)), "miss a reading")


def test_an_infinite_reading_never_becomes_a_batch(batch: Record) -> None:
    readings = batch.column("FIT101").copy()
    readings[5] = np.inf
    with pytest.raises(RecordError, match="'FIT101' reads inf at row 5"):
        with_channel(batch, "FIT101", readings)


def test_toggling_an_actuator_into_transition(gate: Gate, batch: Record) -> None:
    toggled = np.where(np.arange(ROWS) % 2, 1.0, 2.0)
    refused_for(gate.judge(with_channel(batch, "P101", toggled)), "P101~FIT201")


def test_an_actuator_that_moves_all_the_time(gate: Gate, batch: Record) -> None:
    refused_for(gate.judge(with_channel(batch, "MV101", 0.0)), "in transition")


def test_claiming_that_a_standby_pump_feeds_the_meter(gate: Gate, batch: Record) -> None:
    refused_for(gate.judge(with_channel(batch, "P102", 2.0)), "in transition")


def test_frozen_rows(gate: Gate, batch: Record) -> None:
    frozen = np.tile(batch.values[500], (ROWS, 1))
    refused_for(gate.judge(batch.with_values(frozen)), "moves by only")


def test_a_block_of_rows_repeated(gate: Gate, batch: Record) -> None:
    values = batch.values.copy()
    values[600:900] = values[200:500]
    refused_for(gate.judge(batch.with_values(values)), "repeats earlier readings")


def test_one_sensor_replayed_while_the_others_live(gate: Gate, batch: Record) -> None:
    readings = batch.column("LIT401").copy()
    readings[600:660] = readings[200:260]
    verdict = gate.judge(with_channel(batch, "LIT401", readings))
    refused_for(verdict, "LIT401 repeats earlier readings")
    (reason,) = (each for each in verdict.reasons if each.kind.about_a_level)
    assert reason.rule == "LIT401"
    assert np.flatnonzero(reason.rows).tolist() == list(range(600, 660))
    assert verdict.suspect[600:660].all()


@pytest.mark.parametrize("rows", [1, -1, 2, -2, 7, -7])
def test_small_rolls(gate: Gate, batch: Record, rows: int) -> None:
    assert not gate.judge(ChannelRoll(rows=rows)(batch, seed=0)).admitted


def test_a_ramp_that_the_rules_claim_to_see_is_seen(
    gate: Gate, rules: RuleSet, batch: Record
) -> None:
    power = min(
        rule.evidence.smallest_offset or np.inf
        for rule in rules.invariants
        if isinstance(rule.relation, Window) and rule.relation.level == "LIT301"
    )
    ramp = np.zeros(ROWS)
    ramp[100:400] = 2.5 * power * np.arange(300)
    ramp[400:] = ramp[399]
    readings = batch.column("LIT301") + ramp
    refused_for(gate.judge(with_channel(batch, "LIT301", readings)), "windows do not balance")


def test_a_ramp_far_below_the_stated_power_is_invisible_and_the_power_says_so(
    gate: Gate, rules: RuleSet, batch: Record
) -> None:
    power = min(
        rule.evidence.smallest_offset or np.inf
        for rule in rules.invariants
        if isinstance(rule.relation, Window) and rule.relation.level == "LIT301"
    )
    readings = batch.column("LIT301") + 0.1 * power * np.arange(ROWS)
    assert gate.judge(with_channel(batch, "LIT301", readings)).admitted


def test_a_dropped_channel(gate: Gate, batch: Record) -> None:
    with pytest.raises(MissingChannelError, match="no channel 'FIT101', which rule 'MV101~FIT101'"):
        gate.judge(batch.without("FIT101"))


@pytest.mark.parametrize("code", [3.0, 1.4, -1.0])
def test_a_code_that_the_actuator_does_not_have(gate: Gate, batch: Record, code: float) -> None:
    refused_for(gate.judge(with_channel(batch, "P101", code)), "unknown code")


def test_readings_out_of_range(gate: Gate, batch: Record) -> None:
    verdict = gate.judge(with_channel(batch, "FIT401", -62.0))
    refused_for(verdict, "break a rule")
    assert any("FIT401 shows -62 m3/h, outside" in finding.sentence for finding in verdict.findings)


def test_time_jumps_declared_at_every_splice(gate: Gate, batch: Record) -> None:
    spliced = RegimeSplicing(pieces=12)(batch, seed=1)
    times = batch.times.copy()
    for piece in range(1, 12):
        times[piece * 80 :] += np.timedelta64(3_600, "s")
    refused_for(gate.judge(replace(spliced, times=times)), "time jumps")


def test_a_contradiction_diluted_with_untouched_rows(gate: Gate, batch: Record) -> None:
    readings = batch.column("FIT201").copy()
    on = np.flatnonzero(batch.column("P101") == 2)[100:105]
    readings[on] = 0.0
    verdict = gate.judge(with_channel(batch, "FIT201", readings))
    assert verdict.violating_share < 0.01
    refused_for(verdict, "further from a rule than any clean row")


def test_a_batch_of_one_row(gate: Gate, batch: Record) -> None:
    with pytest.raises(RecordError, match="has 1 rows; the policy takes 200 to"):
        gate.judge(batch.rows(0, 1))


def test_a_batch_at_another_stride(gate: Gate, batch: Record) -> None:
    with pytest.raises(Exception, match="has a stride of 10 s, the rules of .* one of 5 s"):
        gate.judge(batch.every(2))


def test_the_paper_admits_what_the_hardened_gate_refuses(
    gate: Gate, plant: Record, batch: Record
) -> None:
    rules = mine(plant.rows(0, 14_000), plant.rows(14_000, 28_000), profile=Profile.PAPER_NARROW)
    papers = Gate.of(rules, PaperPolicy())
    held = (batch.with_values(np.tile(batch.values[row], (ROWS, 1))) for row in range(0, ROWS, 50))
    frozen = next(still for still in held if papers.judge(still).admitted)
    assert not gate.judge(frozen).admitted
    assert papers.judge(with_channel(batch, "FIT101", np.nan)).admitted
    assert papers.judge(with_channel(batch, "MV101", 0.0)).admitted


def test_rows_that_violate_are_not_trained_on(gate: Gate, batch: Record) -> None:
    verdict = gate.judge(batch)
    assert not verdict.trainable[0]  # the first row has no row before it to be judged by
    assert verdict.trainable.sum() == ROWS - verdict.violating_rows
