"""What every simulated plant must do; a new one in `PLANTS` is found here by itself."""

import numpy as np
import pytest

from sluice.errors import SettingError
from sluice.lab.plants.catalogue import PLANTS, simulate
from sluice.telemetry.channel import Role
from sluice.telemetry.record import Label

NAMES = [plant.name.replace("NAME", "Net1") for plant in PLANTS]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_same_seed_gives_the_same_record_and_another_seed_another(name: str) -> None:
    one, same, other = (simulate(name, seed=seed, days=0.5) for seed in (5, 5, 6))
    assert np.array_equal(one.values, same.values)
    assert not np.array_equal(one.values, other.values)


def test_a_clean_record_is_whole_labelled_normal_and_has_physics_to_find(name: str) -> None:
    record = simulate(name, seed=1, days=1)
    assert set(record.labels) == {Label.NORMAL}
    assert record.gaps == ()
    assert not record.missing.any()
    assert record.of_role(Role.LEVEL)
    assert record.of_role(Role.FLOW)
    assert record.of_role(Role.ACTUATOR)


def test_actuators_show_only_legal_codes_and_readings_stay_in_their_span(name: str) -> None:
    record = simulate(name, seed=2, days=1)
    for channel in record.channels:
        readings = record.column(channel.name)
        if channel.codes:
            assert set(np.unique(readings)) <= channel.codes.legal, channel.name
        if channel.span:
            assert channel.span.low <= readings.min() <= readings.max() <= channel.span.high, (
                channel
            )


def test_attacks_are_labelled(name: str) -> None:
    record = simulate(name, seed=3, days=3, attacks=True)
    assert record.attack_segments
    assert (record.labels == Label.NORMAL).any()


@pytest.mark.parametrize("days", [0.0, -1.0, float("nan")])
def test_a_plant_cannot_run_for_no_time(name: str, days: float) -> None:
    with pytest.raises(SettingError, match="more than 0 days"):
        simulate(name, seed=0, days=days)
