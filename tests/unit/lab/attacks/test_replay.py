"""Attacks written into a shard: which ones, where, and what of the shard stays."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.admission.gate import Gate
from sluice.admission.policy import PaperPolicy
from sluice.arrays import Run
from sluice.errors import MissingChannelError, RecordError, SettingError
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.lab.attacks.data_attack import InTurn
from sluice.lab.attacks.fabrications import ChannelRoll
from sluice.lab.attacks.poison import exposed
from sluice.lab.attacks.replay import Replay, ReplayFrom, Targets, choose_targets, target_rows
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.channel import Channel, Role
from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Label, Record
from sluice.telemetry.split import split
from sluice.telemetry.windows import Scaler, windows

PlantData = Callable[..., Path]

# Rows of SWaT's 35 labelled attacks at 5 s, in order.
SWAT_ATTACKS = (
    *(188, 89, 77, 78, 40, 86, 193, 145, 145, 47, 87, 56, 143, 52, 79, 145, 93, 140, 64, 123),
    *(289, 7180, 25, 235, 73, 120, 88, 20, 97, 108, 93, 56, 80, 59, 338),
)


def labelled_record(attacks: tuple[int, ...], *, apart: int = 5, names: str = "AB") -> Record:
    """Attacks of so many rows each, with a few normal rows around; every reading is its own."""
    labels: list[int] = [Label.NORMAL] * apart
    for rows in attacks:
        labels += [Label.ATTACK] * rows + [Label.NORMAL] * apart
    count = len(labels)
    return Record(
        name="seen",
        channels=tuple(Channel(name=name, role=Role.OTHER) for name in names),
        values=1000.0 + np.arange(count * len(names), dtype=np.float64).reshape(count, -1),
        times=np.datetime64("2024-03-01") + np.arange(count) * np.timedelta64(5, "s"),
        stride_s=5.0,
        labels=np.array(labels, np.int8),
    )


def shard(rows: int, *, names: str = "AB") -> Record:
    clean = labelled_record((), apart=rows, names=names)
    return replace(clean, name="shard", values=np.zeros_like(clean.values))


@pytest.mark.parametrize(
    ("seed", "taken"),
    [(0, {3: 78, 21: 1106}), (1, {4: 40, 34: 338, 11: 10}), (4, {22: 25, 27: 20, 4: 15})],
)
def test_swat_targets_are_those_the_paper_drew(seed: int, taken: dict[int, int]) -> None:
    """Only attack 21 has the 1,024 rows that the paper's window of attack rows (seed 0) needs."""
    labelled = labelled_record(SWAT_ATTACKS)
    targets = choose_targets(labelled, rows=target_rows(4_734), seed=seed)
    starts = [run.start for run in labelled.attack_segments]
    found = {starts.index(run.start): run.rows for run in targets.stretches}
    assert taken.items() <= found.items()
    assert sum(found.values()) == targets.rows.sum() == 1_184


def test_budgets_are_the_papers() -> None:
    assert [target_rows(rows) for rows in (876, 877, 4_734)] == [219, 219, 1_184]
    assert target_rows(12_096, share=0.10) == 1_210


@settings(deadline=None, max_examples=40)
@given(
    attacks=st.lists(st.integers(1, 30), min_size=1, max_size=6).map(tuple),
    rows=st.integers(4, 120),
    seed=st.integers(0, 50),
)
def test_no_more_than_the_share_is_overwritten_and_all_of_it_is_attack(
    attacks: tuple[int, ...], rows: int, seed: int
) -> None:
    labelled, own = labelled_record(attacks), shard(rows)
    targets = choose_targets(labelled, rows=target_rows(rows), seed=seed)
    assert targets.rows.sum() == min(sum(attacks), target_rows(rows))
    assert (labelled.labels[targets.rows] == Label.ATTACK).all()
    made = Replay(targets=targets).plant(own, rng=np.random.default_rng(seed))
    assert 0 < made.planted.sum() <= 0.25 * rows + 0.5
    assert (made.trained.values[~made.planted] == own.values[~made.planted]).all()
    seen = {tuple(row) for row in labelled.values[targets.rows]}
    assert {tuple(row) for row in made.trained.values[made.planted]} <= seen


def test_a_stretch_is_planted_row_by_row_and_channel_by_channel() -> None:
    labelled = labelled_record((7,), names="ABC")
    targets = Targets(labelled=labelled, stretches=labelled.attack_segments)
    made = Replay(targets=targets).plant(shard(40, names="CA"), rng=np.random.default_rng(2))
    start = int(made.planted.argmax())
    assert made.planted[start : start + 7].all()
    for name in "CA":
        planted = made.trained.column(name)[made.planted]
        assert np.array_equal(planted, labelled.column(name)[targets.rows])


def test_clock_labels_and_channels_are_the_shards() -> None:
    own = shard(40)
    changed = ReplayFrom(labelled=labelled_record((7, 3)))(own, seed=1)
    assert changed.channels == own.channels
    assert np.array_equal(changed.times, own.times)
    assert (changed.labels == Label.NORMAL).all()


def test_a_later_target_overwrites_an_earlier_one_and_long_ones_are_cut() -> None:
    labelled = labelled_record((50, 50))
    targets = Targets(labelled=labelled, stretches=labelled.attack_segments)
    own = shard(30)
    changed = Replay(targets=targets)(own, seed=0)
    assert np.array_equal(changed.values, labelled.values[60:90])


def test_rows_are_taken_over_a_time_jump() -> None:
    labelled = labelled_record((10,))
    times = labelled.times.copy()
    times[10:] += np.timedelta64(1, "h")
    jumping = replace(labelled, times=times)
    assert choose_targets(jumping, rows=10, seed=0).stretches == (Run(5, 15),)


def test_the_same_seed_gives_the_same_record_and_another_another() -> None:
    labelled, own = labelled_record((7, 3, 9)), shard(40)
    attack = ReplayFrom(labelled=labelled)
    assert np.array_equal(attack(own, seed=3).values, attack(own, seed=3).values)
    assert not np.array_equal(attack(own, seed=3).values, attack(own, seed=4).values)


def test_replay_then_roll_is_one_attack() -> None:
    clean = simulate("line", seed=0, days=1)
    labelled = simulate("line", seed=1, days=1, attacks=True)
    replay, roll = ReplayFrom(labelled=labelled), ChannelRoll(rows=7)
    changed = InTurn(attacks=(replay, roll))(clean, seed=5)
    assert np.array_equal(changed.values, roll(replay(clean, seed=5), seed=5).values)
    with pytest.raises(SettingError, match="at least one"):
        InTurn(attacks=())


def test_what_cannot_be_replayed_is_refused() -> None:
    labelled = labelled_record((7,))
    with pytest.raises(RecordError, match="'seen' has no row labelled attack"):
        choose_targets(labelled.rows(0, 5), rows=3, seed=0)
    with pytest.raises(SettingError, match="at least 1 row is replayed, got 0"):
        choose_targets(labelled, rows=0, seed=0)
    with pytest.raises(SettingError, match="at most 1, got 1.5"):
        target_rows(10, share=1.5)
    with pytest.raises(SettingError, match="stretches of record 'seen', which has 17 rows"):
        Targets(labelled=labelled, stretches=(Run(10, 18),))
    with pytest.raises(SettingError, match="stretches of record 'seen'"):
        Targets(labelled=labelled, stretches=())
    attack = ReplayFrom(labelled=labelled)
    with pytest.raises(MissingChannelError, match="'C', which the replay into 'shard' reads"):
        attack(shard(40, names="ABC"), seed=0)
    with pytest.raises(RecordError, match="a row every 5 s, the shard 'shard' one every 10 s"):
        attack(shard(80).every(2), seed=0)


@pytest.mark.data
@pytest.mark.parametrize(
    ("seed", "liars", "violating"),
    [
        (0, (3, 4), (0.0354, 0.0468)),
        (1, (1, 2), (0.0422, 0.0400)),
        (2, (1, 3), (0.0445, 0.0468)),
    ],
)
def test_batadal_shards_violate_as_much_as_the_paper_recorded(
    plant_data: PlantData, seed: int, liars: tuple[int, ...], violating: tuple[float, ...]
) -> None:
    """One generator draws who lies, then for each liar in turn its splices and its exposure."""
    clean = read_record(plant_data("batadal", "dataset03.csv"))
    labelled = read_record(plant_data("batadal", "BATADAL_dataset04.csv"))
    parts = split(clean, clients=5)
    scaler = Scaler.fit(parts.shards, clean.names)
    gate = Gate.of(mine(parts.fit, parts.calibration, profile=Profile.PAPER_WIDE), PaperPolicy())
    targets = choose_targets(labelled, rows=target_rows(len(parts.shards[0])), seed=seed)
    assert targets.rows.sum() == 219
    rng = np.random.default_rng(seed)
    assert tuple(sorted(rng.choice(5, 2, replace=False))) == liars
    for liar, share in zip(liars, violating, strict=True):
        made = Replay(targets=targets).plant(parts.shards[liar], rng=rng)
        exposed(windows(made.trained, scaler), made.planted, 0.5, rng=rng)
        assert round(gate.judge(made.shown).violating_share, 4) == share
