"""A detector is calibrated again: what changes, where it is listed, how it is taken back."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sluice.detector import (
    Detector,
    Fusion,
    RateThreshold,
    calibration_changes,
    last_calibration,
    load_detector,
    recalibrated,
    restored,
    save_detector,
    train,
)
from sluice.errors import ModelFileError, SettingError
from sluice.invariants import RuleSet, mine
from sluice.telemetry import Record

LATER = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def rules(plant: Record) -> RuleSet:
    return mine(plant.rows(0, 2_500), plant.rows(2_500, 5_000))


@pytest.fixture(scope="module")
def fused(plant: Record, rules: RuleSet) -> Detector:
    return train(plant.rows(0, 6_000), rules=rules, false_alarms_per_week=20)


def test_a_detector_with_rules_is_recalibrated_listed_and_taken_back(
    fused: Detector, plant: Record, tmp_path: Path
) -> None:
    changed = recalibrated(fused, plant.rows(6_000, 8_500), time=LATER)
    assert isinstance(changed.threshold, RateThreshold)
    assert changed.threshold.false_alarms_per_week == 20
    assert [one.act for one in changed.calibrations] == ["trained", "recalibrated"]
    names = [change.voter for change in calibration_changes(changed)]
    assert names == [
        "threshold",
        "model's score in clean peaks",
        "rules' score in clean peaks",
    ]
    assert any(change.before != change.after for change in calibration_changes(changed))
    assert last_calibration(changed).time == "2026-06-01T00:00:00+00:00"
    path = tmp_path / "changed.safetensors"
    save_detector(changed, path)
    loaded = load_detector(path)
    assert loaded.calibrations == changed.calibrations
    rows = plant.rows(8_000, 8_600)
    assert loaded.score(rows).scores.tolist() == changed.score(rows).scores.tolist()
    back = restored(loaded, time=LATER)
    assert back.score(rows).scores.tolist() == fused.score(rows).scores.tolist()
    assert back.threshold == fused.threshold
    assert back.calibrations[-1].act == "restored from training"
    assert isinstance(back.fusion, Fusion)
    assert fused.calibrations == ()
    assert calibration_changes(fused) == ()


def test_other_false_alarms_can_be_asked_for(fused: Detector, plant: Record) -> None:
    rare = recalibrated(fused, plant.rows(6_000, 8_500), time=LATER, false_alarms_per_week=5)
    often = recalibrated(fused, plant.rows(6_000, 8_500), time=LATER, false_alarms_per_week=40)
    assert rare.threshold.score > often.threshold.score


def test_a_quantile_stays_a_quantile(plant: Record) -> None:
    alone = train(plant.rows(0, 6_000), kind="moments")
    changed = recalibrated(alone, plant.rows(6_000, 8_500), time=LATER)
    assert changed.threshold.origin.startswith("the 99.5% quantile")
    assert last_calibration(changed).clean_events is None
    asked = recalibrated(
        alone, plant.rows(6_000, 8_500), time=LATER, false_alarms_per_week=20
    ).threshold
    assert isinstance(asked, RateThreshold)


def test_the_first_calibration_of_any_detector_cannot_be_taken_back(fused: Detector) -> None:
    with pytest.raises(SettingError, match="none to go back to"):
        restored(fused, time=LATER)


def test_a_file_whose_threshold_is_not_that_of_its_list_is_refused(
    fused: Detector, plant: Record, tmp_path: Path
) -> None:
    path = tmp_path / "changed.safetensors"
    changed = recalibrated(fused, plant.rows(6_000, 8_500), time=LATER)
    save_detector(changed, path)
    score = f'"threshold":{{"score":{changed.threshold.score!r}'.encode()
    content = path.read_bytes()
    escaped = score.replace(b'"', b'\\"')
    assert content.count(escaped) == 2  # in use, and in the list
    other = escaped[:-1] + (b"1" if escaped[-1:] != b"1" else b"2")
    path.write_bytes(content.replace(escaped, other, 1))
    with pytest.raises(ModelFileError, match="not that of its last calibration"):
        load_detector(path)
