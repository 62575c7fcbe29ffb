"""What every fabrication must do; a new one in `FABRICATIONS` is found here by itself."""

import numpy as np
import pytest

from sluice.errors import RecordError, SettingError
from sluice.lab.attacks.data_attack import DataAttack
from sluice.lab.attacks.fabrications import (
    FABRICATIONS,
    ChannelRoll,
    ConservationScaling,
    RegimePermutation,
    RegimeSplicing,
    RollLasting,
)
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.channel import Channel, Codes, Role
from sluice.telemetry.record import Label, Record

KEEPS_MARGINALS = {"channel-roll", "permutation", "splicing"}
KEEPS_SENSORS = {"channel-roll", "permutation"}


@pytest.fixture(scope="module")
def record() -> Record:
    return simulate("line", seed=3, days=1)


@pytest.fixture(params=sorted(FABRICATIONS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def attack(name: str) -> DataAttack:
    return FABRICATIONS[name]


def plain(
    values: list[list[float]], *names: str, actuators: tuple[str, ...] = ("MV101",)
) -> Record:
    rows = len(values)
    codes = Codes(off=1, on=(2,))
    return Record(
        name="bench",
        channels=tuple(
            Channel(name=name, role=Role.ACTUATOR, codes=codes)
            if name in actuators
            else Channel(name=name, role=Role.OTHER)
            for name in names
        ),
        values=np.array(values, dtype=np.float64),
        times=np.datetime64("2024-03-01") + np.arange(rows) * np.timedelta64(5, "s"),
        stride_s=5.0,
        labels=np.full(rows, Label.NORMAL, np.int8),
    )


def test_the_same_seed_gives_the_same_readings(attack: DataAttack, record: Record) -> None:
    assert np.array_equal(attack(record, seed=5).values, attack(record, seed=5).values)


def test_clock_channels_labels_and_shape_stay(attack: DataAttack, record: Record) -> None:
    changed = attack(record, seed=5)
    assert changed.channels == record.channels
    assert changed.values.shape == record.values.shape
    assert np.array_equal(changed.times, record.times)
    assert np.array_equal(changed.labels, record.labels)


def test_something_changes_and_the_original_does_not(attack: DataAttack, record: Record) -> None:
    before = record.values.copy()
    assert not np.array_equal(attack(record, seed=5).values, before)
    assert np.array_equal(record.values, before)


def test_each_channel_keeps_its_readings_where_that_is_the_point(
    name: str, attack: DataAttack, record: Record
) -> None:
    changed = attack(record, seed=5)
    same = np.array_equal(np.sort(changed.values, axis=0), np.sort(record.values, axis=0))
    assert same is (name in KEEPS_MARGINALS)
    sensors = [at for at, c in enumerate(record.channels) if c.role is not Role.ACTUATOR]
    kept = np.array_equal(changed.values[:, sensors], record.values[:, sensors])
    assert kept is (name in KEEPS_SENSORS)


def test_missing_readings_are_no_obstacle(attack: DataAttack, record: Record) -> None:
    values = record.values.copy()
    values[100:110, 0] = np.nan
    values[:, 1] = np.nan
    changed = attack(record.with_values(values), seed=5)
    assert np.isnan(changed.values).sum() == np.isnan(values).sum()


@pytest.mark.parametrize("name", ["permutation", "splicing"])
def test_another_seed_gives_other_readings(name: str, record: Record) -> None:
    attack = FABRICATIONS[name]
    assert not np.array_equal(attack(record, seed=5).values, attack(record, seed=6).values)


def test_a_roll_is_given_in_plant_time() -> None:
    assert ChannelRoll.lasting(300, stride_s=5).rows == 60
    assert ChannelRoll.lasting(300, stride_s=3600, least_rows=7).rows == 7
    assert ChannelRoll.lasting(300, stride_s=3600).rows == 1


def test_a_roll_that_lasts_is_converted_at_the_records_own_stride(record: Record) -> None:
    assert record.stride_s == 60
    for roll, rows in ((RollLasting(), 7), (RollLasting(seconds=900), 15)):
        expected = ChannelRoll(rows=rows)(record, seed=0)
        assert np.array_equal(roll(record, seed=0).values, expected.values)


def test_a_roll_moves_actuators_by_its_rows(record: Record) -> None:
    changed = ChannelRoll(rows=7)(record, seed=0)
    assert np.array_equal(changed.column("S_PU1")[7:], record.column("S_PU1")[:-7])
    assert np.array_equal(changed.column("S_PU1")[:7], record.column("S_PU1")[-7:])


def test_states_are_permuted_together_and_stay_in_their_regime() -> None:
    level = np.repeat([0.0, 100.0, 200.0, 300.0], 50)
    state = np.tile([1.0, 2.0], 100)
    both = np.column_stack([level, state, 3 - state]).tolist()
    record = plain(both, "L", "MV101", "MV102", actuators=("MV101", "MV102"))
    changed = RegimePermutation()(record, seed=1)
    assert not np.array_equal(changed.column("MV101"), state)
    assert (changed.column("MV101") + changed.column("MV102") == 3).all()
    for start in range(0, 200, 50):
        regime = changed.column("MV101")[start : start + 50]
        assert np.array_equal(np.sort(regime), np.sort(state[:50]))


def test_fewer_operating_points_than_regimes_is_fine() -> None:
    record = plain([[1.0, 1.0 + row % 2] for row in range(40)], "L", "MV101")
    changed = RegimePermutation()(record, seed=1)
    assert np.array_equal(np.sort(changed.column("MV101")), np.sort(record.column("MV101")))


def test_flows_are_told_by_tag_and_controllers_are_not_flows() -> None:
    names = (
        "FIT101",
        "2_FIT_001_PV",
        "P1_FT01Z",
        "2_FIC_101_CO",
        "2_FIC_101_SP",
        "PIT501",
        "F_PU1",
    )
    record = plain([[1.0] * len(names)] * 3, *names, actuators=())
    scaled = ConservationScaling()(record, seed=0).values[0]
    assert scaled.tolist() == [1.3, 1.3, 1.3, 1.0, 1.0, 1.0, 1.3]


def test_where_no_tag_says_flow_the_role_does() -> None:
    record = plain([[1.0, 1.0]] * 3, "north main", "tower", actuators=())
    north = Channel(name="north main", role=Role.FLOW)
    declared = Record(
        name="bench",
        channels=(north, record.channels[1]),
        values=record.values,
        times=record.times,
        stride_s=5.0,
        labels=record.labels,
    )
    assert ConservationScaling()(declared, seed=0).values[0].tolist() == [1.3, 1.0]


def test_splicing_keeps_rows_whole_and_makes_as_many_joins_as_cuts() -> None:
    record = plain([[float(row), float(row)] for row in range(500)], "L", "MV101")
    order = RegimeSplicing(pieces=12)(record, seed=4).values
    assert (order[:, 0] == order[:, 1]).all()
    assert 0 < (np.diff(order[:, 0]) != 1).sum() <= 11


def test_a_record_with_nothing_to_attack_is_refused() -> None:
    sensors = plain([[1.0]] * 20, "PIT501", actuators=())
    for name in ("channel-roll", "permutation"):
        with pytest.raises(RecordError, match="no actuator"):
            FABRICATIONS[name](sensors, seed=0)
    with pytest.raises(RecordError, match="no flow"):
        FABRICATIONS["scaling"](sensors, seed=0)
    with pytest.raises(RecordError, match="12 pieces need more"):
        FABRICATIONS["splicing"](sensors.rows(0, 5), seed=0)
    states = plain([[1.0]] * 20, "MV101")
    with pytest.raises(RecordError, match="regimes cannot be distinguished"):
        FABRICATIONS["permutation"](states, seed=0)
    with pytest.raises(RecordError, match="rolling by 7 needs more"):
        FABRICATIONS["channel-roll"](states.rows(0, 7), seed=0)


def test_settings_that_change_nothing_are_refused() -> None:
    with pytest.raises(SettingError, match="at least 1 row"):
        ChannelRoll(rows=0)
    with pytest.raises(SettingError, match="lasts more than 0 s"):
        RollLasting(seconds=0)
    with pytest.raises(SettingError, match="other than 1"):
        ConservationScaling(factor=1.0)
    with pytest.raises(SettingError, match="at least 2 pieces"):
        RegimeSplicing(pieces=1)
