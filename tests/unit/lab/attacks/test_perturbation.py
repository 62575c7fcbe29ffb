"""The optimised perturbation: worse for the surrogate, within its reach, actuators untouched."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.detector.autoencoder import initial, scores
from sluice.errors import RecordError, SettingError
from sluice.lab.attacks.perturbation import OptimisedPerturbation
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.channel import Role
from sluice.telemetry.record import Record

QUICK = OptimisedPerturbation(steps=60, surrogate_steps=150)


@pytest.fixture(scope="module")
def record() -> Record:
    return simulate("line", seed=0, days=0.5)


@pytest.fixture(scope="module")
def moved(record: Record) -> Record:
    return QUICK(record, seed=2)


def columns(record: Record, *, discrete: bool) -> list[int]:
    return [at for at, one in enumerate(record.channels) if one.role.discrete is discrete]


def test_the_surrogate_has_learnt_the_shard(record: Record) -> None:
    surrogate = QUICK.surrogate(record, seed=2)
    cut = surrogate.framing.windows(record)
    untrained = scores(initial(surrogate.framing.width, seed=2), cut).mean()
    assert surrogate.mean_score(record) < 0.3 * untrained


def test_the_surrogate_errs_far_more_than_before(record: Record, moved: Record) -> None:
    surrogate = QUICK.surrogate(record, seed=2)
    assert surrogate.mean_score(moved) > 50 * surrogate.mean_score(record)


def test_every_step_against_the_surrogate_counts(record: Record) -> None:
    surrogate = QUICK.surrogate(record, seed=2)
    found = [
        surrogate.mean_score(replace(QUICK, steps=steps)(record, seed=2)) for steps in (1, 10, 30)
    ]
    assert found == sorted(found)


def test_sensors_stay_within_their_reach_and_use_it(record: Record, moved: Record) -> None:
    sensors = columns(record, discrete=False)
    spread = record.values[:, sensors].std(axis=0)
    shifts = np.abs(moved.values - record.values)[:, sensors] / spread
    assert shifts.max() == pytest.approx(2.5, rel=1e-6)  # float32 inside
    assert (shifts.mean(axis=0) > 1).all()


def test_actuators_are_left_alone(record: Record, moved: Record) -> None:
    actuators = columns(record, discrete=True)
    assert actuators
    assert np.array_equal(moved.values[:, actuators], record.values[:, actuators])


def test_the_seed_decides(record: Record, moved: Record) -> None:
    assert np.array_equal(QUICK(record, seed=2).values, moved.values)
    assert not np.array_equal(QUICK(record, seed=3).values, moved.values)


def test_dead_sensors_missing_readings_and_analysers_stay_as_they_were(record: Record) -> None:
    values = record.values.copy()
    still, empty, holed, analyser = (record.index(n) for n in ("L_T1", "L_T2", "L_T3", "F_PU1"))
    values[:, still] = 3.0
    values[:, empty] = np.nan
    values[100:110, holed] = np.nan
    channels = list(record.channels)
    channels[analyser] = replace(channels[analyser], role=Role.QUALITY)
    broken = replace(record, values=values, channels=tuple(channels))
    changed = replace(QUICK, steps=3, surrogate_steps=3)(broken, seed=0)
    kept = [still, empty, analyser]
    assert np.array_equal(changed.values[:, kept], values[:, kept], equal_nan=True)
    assert np.array_equal(changed.missing, broken.missing)
    assert not np.array_equal(changed.values[:, holed], values[:, holed], equal_nan=True)


def test_a_record_without_a_moving_sensor_is_refused(record: Record) -> None:
    sensors = columns(record, discrete=False)
    still = record.values.copy()
    still[:, sensors] = 1.0
    with pytest.raises(RecordError, match="no sensor that moves"):
        QUICK(record.with_values(still), seed=0)
    with pytest.raises(RecordError, match="no 10 consecutive rows"):
        QUICK(record.rows(0, 9), seed=0)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(SettingError, match="a reach and a rate above 0"):
        OptimisedPerturbation(sigmas=0)
    with pytest.raises(SettingError, match="at least 1 step"):
        OptimisedPerturbation(surrogate_steps=0)
