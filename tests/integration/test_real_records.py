"""What is known of the public records, read from the files themselves."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Label, Record

pytestmark = pytest.mark.data
PlantData = Callable[..., Path]


def roles(record: Record) -> dict[str, int]:
    return dict(Counter(channel.role.value for channel in record.channels))


def rows_labelled(record: Record, label: Label) -> int:
    return int((record.labels == label).sum())


def test_batadal_training_1(plant_data: PlantData) -> None:
    record = read_record(plant_data("batadal", "dataset03.csv"))
    assert (len(record), record.stride_s) == (8_761, 3_600)
    assert roles(record) == {"level": 7, "flow": 12, "actuator": 12, "pressure": 12}
    assert (record.channel("L_T1").unit, record.channel("F_PU1").unit) == ("m", "L/s")
    assert rows_labelled(record, Label.NORMAL) == 8_761
    assert record.gaps == ()


def test_batadal_competition_form_keeps_unlabelled_apart(plant_data: PlantData) -> None:
    record = read_record(plant_data("batadal", "BATADAL_dataset04.csv"))
    assert rows_labelled(record, Label.ATTACK) == 219
    assert rows_labelled(record, Label.UNLABELLED) == 3_958
    assert rows_labelled(record, Label.NORMAL) == 0
    assert [run.rows for run in record.attack_segments] == [42, 60, 37, 7, 73]


def test_batadal_full_labels(plant_data: PlantData) -> None:
    record = read_record(plant_data("batadal", "dataset04_full_labels.csv"))
    assert rows_labelled(record, Label.ATTACK) == 492
    assert len(record.attack_segments) == 7


def test_wdt_normal(plant_data: PlantData) -> None:
    record = read_record(plant_data("wdt", "phy_norm.csv"))
    assert (len(record), record.stride_s) == (3_428, 1)
    assert roles(record) == {"level": 8, "actuator": 28, "flow": 4}
    assert rows_labelled(record, Label.NORMAL) == 3_428


def test_wdt_attack(plant_data: PlantData) -> None:
    record = read_record(plant_data("wdt", "phy_att_1.csv"))
    assert (len(record), record.stride_s) == (2_420, 1)
    assert rows_labelled(record, Label.ATTACK) == 533 + 277


def test_hai_20_07(plant_data: PlantData) -> None:
    record = read_record(plant_data("hai", "hai2007_train_100s.csv"))
    assert (len(record), len(record.channels), record.stride_s) == (3_096, 59, 100)
