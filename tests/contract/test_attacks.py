"""What every attack on telemetry must do; a new one in `DATA_ATTACKS` is found here by itself."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from sluice.errors import InputError
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.attacks.data_attack import DataAttack
from sluice.lab.attacks.registry import DATA_ATTACKS, Means
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.channel import Channel, Role
from sluice.telemetry.record import Record

SWAPS = {"channel-swap", "tank-swap"}
ON_LEVELS = {"offset", "low-pass", "ar-noise"}
MOVES_NOTHING_AT_RANDOM = {"channel-roll", "scaling", "offset", "low-pass", *SWAPS}
KEEPS_ACTUATORS = {"scaling", "perturbation", *SWAPS, *ON_LEVELS}


def with_analyser(record: Record, seed: int) -> Record:
    """Add a channel that no rule can tie to another."""
    readings = np.random.default_rng(seed).normal(7.0, 0.1, len(record))
    return replace(
        record,
        channels=(*record.channels, Channel(name="Q_1", role=Role.QUALITY, unit="pH")),
        values=np.column_stack([record.values, readings]),
    )


@pytest.fixture(scope="module")
def plant() -> Record:
    return with_analyser(simulate("line", seed=0, days=3), 0)


@pytest.fixture(scope="module")
def record(plant: Record) -> Record:
    """Clean rows but for a pump that reads inverted for an hour, so that there is what to mend."""
    clean = plant.rows(2880, 3600)
    values = clean.values.copy()
    column = clean.index("S_PU1")
    values[200:260, column] = 1 - values[200:260, column]
    return clean.with_values(values)


@pytest.fixture(scope="module")
def rules(plant: Record) -> RuleSet:
    return mine(plant.rows(0, 1440), plant.rows(1440, 2880), profile=Profile.PAPER_WIDE)


@pytest.fixture(scope="module")
def means(rules: RuleSet) -> Means:
    labelled = with_analyser(simulate("line", seed=4, days=1, attacks=True), 4)
    return Means(labelled=labelled, rules=rules)


@pytest.fixture(scope="module", params=sorted(DATA_ATTACKS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def attack(name: str, means: Means) -> DataAttack:
    return DATA_ATTACKS[name](means)


@pytest.fixture(scope="module")
def changed(attack: DataAttack, record: Record) -> Record:
    return attack(record, seed=5)


def test_rows_channels_clock_and_labels_stay(changed: Record, record: Record) -> None:
    assert changed.channels == record.channels
    assert changed.values.shape == record.values.shape
    assert np.array_equal(changed.times, record.times)
    assert np.array_equal(changed.labels, record.labels)
    assert changed.stride_s == record.stride_s


def test_the_same_seed_gives_the_same_record(
    name: str, changed: Record, record: Record, means: Means
) -> None:
    again = DATA_ATTACKS[name](means)(record, seed=5)
    assert np.array_equal(changed.values, again.values)


def test_another_seed_gives_another_where_anything_is_drawn(
    name: str, attack: DataAttack, changed: Record, record: Record
) -> None:
    other = attack(record, seed=6)
    assert np.array_equal(changed.values, other.values) is (name in MOVES_NOTHING_AT_RANDOM)


def test_something_changes_and_the_record_given_does_not(
    attack: DataAttack, record: Record
) -> None:
    before = record.values.copy()
    changed = attack(record, seed=5)
    assert not np.array_equal(changed.values, before)
    assert np.array_equal(record.values, before)
    with pytest.raises(ValueError, match="read-only"):
        changed.values[0, 0] = 1.0


def test_actuators_show_legal_codes(name: str, changed: Record, record: Record) -> None:
    for channel in record.channels:
        if channel.codes is not None:
            shown = set(np.unique(changed.column(channel.name)))
            assert shown <= set(channel.codes.legal), channel.name
            same = np.array_equal(changed.column(channel.name), record.column(channel.name))
            assert same or name not in KEEPS_ACTUATORS


def test_readings_stay_finite(changed: Record) -> None:
    assert np.isfinite(changed.values).all()


def test_means_that_are_missing_are_asked_for(name: str, record: Record) -> None:
    adaptive = ("untied-replay", "shaped-replay", "foreign-simulator")
    needs = {"replay": "--target", "projection": "--rules", **dict.fromkeys(adaptive, "--target")}
    if name in needs:
        with pytest.raises(InputError, match=f"give .*{needs[name]}"):
            DATA_ATTACKS[name](Means())
    else:
        assert len(DATA_ATTACKS[name](Means())(record, seed=0)) == len(record)


def test_naming_the_attacks_waits_for_no_engine() -> None:
    program = (
        "import sys; from sluice.lab.attacks import DATA_ATTACKS, POISONS; "
        "names = [*DATA_ATTACKS, *POISONS]; "
        "print({'jax', 'sklearn', 'scipy.stats', 'piqp'} & set(sys.modules))"
    )
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert seen.stdout.decode().strip() == "set()"
