"""A plant's rules as a detector, and its fusion with a model."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from sluice.detector.alone import train, trained_kinds
from sluice.detector.autoencoder import Descent
from sluice.detector.blame import Blame
from sluice.detector.calibration import Detector
from sluice.detector.modelfile import load_detector, save_detector
from sluice.detector.physics import Physics, rule_excess
from sluice.errors import EmptyRulesError, ModelFileError, SettingError
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import RuleSet
from sluice.invariants.rulesfile import dump_rules
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Label, Record


@pytest.fixture(scope="module")
def rules(plant: Record) -> RuleSet:
    return mine(plant.rows(0, 2_500), plant.rows(2_500, 5_000))


@pytest.fixture(scope="module")
def fused(plant: Record, rules: RuleSet) -> Detector:
    return train(plant, rules=rules)


def test_a_rows_value_uses_no_later_row(plant: Record, rules: RuleSet) -> None:
    whole = rule_excess(rules, plant.rows(5_000, 7_000))
    part = rule_excess(rules, plant.rows(5_000, 6_200))
    assert whole.names == part.names
    np.testing.assert_array_equal(whole.values[:1_200], part.values)


def test_clean_rows_stay_near_what_clean_rows_showed(plant: Record, rules: RuleSet) -> None:
    excess = rule_excess(rules, plant.rows(5_000, 8_640)).values
    assert (excess >= 0).all()
    assert np.mean(excess > 1) < 0.01


def test_a_broken_coupling_a_still_level_and_a_repeat_show(plant: Record, rules: RuleSet) -> None:
    batch = plant.rows(5_000, 7_000)
    values = batch.values.copy()
    values[1_000:, batch.index("L_T2")] = values[1_000, batch.index("L_T2")]
    excess = rule_excess(rules, batch.with_values(values))
    at = excess.names.index("L_T2 stands still")
    assert excess.values[:1_000, at].max() < 1 < excess.values[-1, at]
    values = batch.values.copy()
    values[1_000:1_100, batch.index("L_T2")] = values[500:600, batch.index("L_T2")]
    repeated = rule_excess(rules, batch.with_values(values))
    at = repeated.names.index("L_T2 repeats")
    assert repeated.values[1_050, at] == 1
    assert not repeated.values[:1_005, at].any()


def test_a_time_jump_alone_is_no_evidence(plant: Record, rules: RuleSet) -> None:
    first, second = plant.rows(5_000, 6_000), plant.rows(6_500, 7_500)
    jumped = replace(
        first,
        values=np.concatenate([first.values, second.values]),
        times=np.concatenate([first.times, second.times]),
        labels=np.concatenate([first.labels, second.labels]),
    )
    excess = rule_excess(rules, jumped)
    windows = [at for at, name in enumerate(excess.names) if "/" in name]
    assert windows
    assert excess.values[1_000:1_200][:, windows].max() < 1.5


def test_attacks_stand_out_and_are_blamed_on_rules_or_tags(fused: Detector) -> None:
    attacked = simulate("line", seed=1, days=4, attacks=True)
    scored = fused.score(attacked)
    attack = scored.labels == Label.ATTACK
    assert attack.any()
    assert scored.alarms[attack].mean() > 0.4
    assert scored.alarms[~attack].mean() < 0.05
    blame = fused.blame(attacked, scored)
    assert len(blame) == scored.alarms.sum()
    assert all(one.names for one in blame)
    named = {name for one in blame for name in one.rules}
    known = set(rule_excess(fused.fusion.physics.rules, attacked).names) if fused.fusion else set()
    assert named
    assert named <= known
    assert {name for one in blame for name in one.tags} <= set(fused.framing.scaler.names)


def test_the_worst_comes_first() -> None:
    assert Blame(tags=("a",), rules=("r",)).names == ("a", "r")
    assert Blame(tags=("a",), rules=("r",), rules_first=True).names == ("r", "a")


def test_without_alarms_nothing_is_blamed(fused: Detector, plant: Record) -> None:
    scored = fused.score(plant.rows(0, 500))
    quiet = replace(scored, alarms=np.zeros_like(scored.alarms))
    assert fused.blame(plant.rows(0, 500), quiet) == ()


def test_the_file_holds_the_rules_and_comes_back_whole(
    fused: Detector, plant: Record, tmp_path: Path
) -> None:
    save_detector(fused, tmp_path / "m.safetensors")
    again = load_detector(tmp_path / "m.safetensors")
    assert again.kind == fused.kind == "physics+moments"
    assert again.fusion == fused.fusion
    few = plant.rows(0, 400)
    assert np.array_equal(again.score(few).scores, fused.score(few).scores)
    assert again.blame(few, again.score(few)) == fused.blame(few, fused.score(few))


def rewritten(path: Path, rules: str | None) -> None:
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    metadata = {"sluice": header["__metadata__"]["sluice"]}
    if rules is not None:
        metadata["rules"] = rules
    path.write_bytes(save(load(content), metadata=metadata))


def test_a_file_with_other_rules_or_none_is_refused(
    fused: Detector, rules: RuleSet, tmp_path: Path
) -> None:
    path = tmp_path / "m.safetensors"
    save_detector(fused, path)
    rewritten(path, None)
    with pytest.raises(ModelFileError, match="its rules are missing"):
        load_detector(path)
    other = dump_rules(replace(rules, plant="other"))
    rewritten(path, other)
    with pytest.raises(ModelFileError, match="was calibrated with rules"):
        load_detector(path)
    rewritten(path, other.replace('"other"', '"another"'))
    with pytest.raises(ModelFileError, match="edited after it was sealed"):
        load_detector(path)


def test_any_model_can_be_fused_with_rules(plant: Record) -> None:
    assert "physics+autoencoder" in trained_kinds()
    detector = train(plant, kind="physics+autoencoder", descent=Descent(epochs=2, batch=256))
    assert detector.kind == "physics+autoencoder"
    assert np.isfinite(detector.score(plant.rows(0, 300)).scores).all()


def test_rules_for_a_model_alone_are_refused(plant: Record, rules: RuleSet) -> None:
    with pytest.raises(SettingError, match="'moments' reads no rules; train 'physics"):
        train(plant, kind="moments", rules=rules)


def test_a_plant_without_physics_is_told_what_to_do(plant: Record) -> None:
    noise = np.random.default_rng(0).normal(5, 1, plant.values.shape)
    unrelated = plant.select(["L_T1", "L_T2"])
    unrelated = unrelated.with_values(noise[:, :2])
    with pytest.raises(EmptyRulesError, match="train the detector 'moments'"):
        train(unrelated)
    assert train(unrelated, kind="moments").kind == "moments"


def test_rows_labelled_attack_do_not_calibrate(plant: Record) -> None:
    labels = plant.labels.copy()
    labels[-5] = Label.ATTACK
    with pytest.raises(SettingError, match="holds rows labelled attack"):
        train(replace(plant, labels=labels))


def test_rows_with_missing_readings_are_left_out(plant: Record) -> None:
    values = plant.values.copy()
    values[300:320, plant.index("L_T2")] = np.nan
    holed = plant.with_values(values)
    detector = train(holed, kind="moments")
    assert detector.training.windows < train(plant, kind="moments").training.windows
    with pytest.raises(SettingError, match="too few|needs at least"):
        train(plant.rows(0, 100), kind="moments")


def test_a_level_that_stands_still_in_two_ways_is_named_once(plant: Record, rules: RuleSet) -> None:
    """Blame of `sluice score` said `L_T1 stands still;L_T1 stands still`."""
    batch = plant.rows(5_000, 7_000)
    values = batch.values.copy()
    values[1_000:, batch.index("L_T1")] = values[1_000, batch.index("L_T1")]
    still = batch.with_values(values)
    names = rule_excess(rules, still).names
    assert names.count("L_T1 stands still") > 1  # blocks of two lengths
    (named,) = Physics(rules=rules).blame(still, np.array([1_999]), rows=10, most=len(names))
    assert "L_T1 stands still" in named
    assert len(set(named)) == len(named)
