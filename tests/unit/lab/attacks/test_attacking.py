"""An attack by its name: the same as the attack itself, or a sentence that says what is missing."""

import numpy as np
import pytest

from sluice.errors import SettingError
from sluice.invariants.ruleset import RuleSet
from sluice.lab.attacks.attacking import attack
from sluice.lab.attacks.fabrications import FABRICATIONS, ChannelRoll, RollLasting
from sluice.lab.attacks.registry import DATA_ATTACKS, Means
from sluice.lab.attacks.replay import ReplayFrom
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record

LABELLED = simulate("line", seed=1, days=3, attacks=True)


@pytest.mark.parametrize("name", ["permutation", "scaling", "splicing"])
def test_a_fabrication_by_name_is_the_fabrication(shard: Record, name: str) -> None:
    by_name = attack(shard, name, seed=3)
    np.testing.assert_array_equal(by_name.values, FABRICATIONS[name](shard, seed=3).values)
    assert (by_name.values != shard.values).any()


def test_a_roll_lasts_as_long_as_the_attacker_has(shard: Record) -> None:
    rolled = attack(shard, "channel-roll")
    np.testing.assert_array_equal(rolled.values, ChannelRoll(rows=7)(shard, seed=0).values)
    longer = attack(shard, "channel-roll", means=Means(roll=RollLasting(seconds=1_200.0)))
    np.testing.assert_array_equal(longer.values, ChannelRoll(rows=20)(shard, seed=0).values)


def test_a_replay_takes_the_share_that_the_attacker_has(shard: Record) -> None:
    means = Means(labelled=LABELLED, share=0.1)
    replayed = attack(shard, "replay", seed=5, means=means)
    expected = ReplayFrom(labelled=LABELLED, share=0.1)(shard, seed=5)
    np.testing.assert_array_equal(replayed.values, expected.values)
    changed = (replayed.values != shard.values).any(axis=1)
    assert 0 < changed.sum() <= 100


def test_a_projection_obeys_rules_that_the_replay_breaks(
    shard: Record, paper_rules: RuleSet
) -> None:
    means = Means(labelled=LABELLED, rules=paper_rules)
    replayed, projected = (attack(shard, n, means=means) for n in ("replay", "projection"))
    alone = attack(shard, "projection", means=Means(rules=paper_rules))
    assert (projected.values != replayed.values).any()
    assert np.abs(alone.values - shard.values).sum() < np.abs(projected.values - shard.values).sum()


@pytest.mark.parametrize("name", ["channel-roll", "permutation", "scaling"])
def test_the_same_seed_gives_the_same_record_with_its_channels_clock_and_labels(
    shard: Record, name: str
) -> None:
    one, again = attack(shard, name, seed=2), attack(shard, name, seed=2)
    np.testing.assert_array_equal(one.values, again.values)
    assert one.channels == shard.channels
    np.testing.assert_array_equal(one.times, shard.times)
    np.testing.assert_array_equal(one.labels, shard.labels)


def test_another_seed_gives_another_record(shard: Record) -> None:
    one, other = (attack(shard, "permutation", seed=seed) for seed in (0, 1))
    assert (one.values != other.values).any()
    np.testing.assert_array_equal(one.values, attack(shard, "permutation").values)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("replai", "; did you mean 'replay'?"), ("chanel-roll", "; did you mean 'channel-roll'?")],
)
def test_a_misspelt_attack_gets_a_hint(shard: Record, name: str, hint: str) -> None:
    with pytest.raises(SettingError) as refused:
        attack(shard, name)
    assert str(refused.value) == (
        f"unknown attack {name!r}; known are {', '.join(DATA_ATTACKS)}{hint}"
    )


def test_an_attack_like_no_other_gets_the_known_ones_alone(shard: Record) -> None:
    with pytest.raises(
        SettingError, match="unknown attack 'bribery'; known are .*foreign-simulator$"
    ):
        attack(shard, "bribery")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("replay", "replay writes labelled attacks into the record; give a record with some"),
        ("projection", "projection moves readings onto rules; give them"),
    ],
)
def test_what_an_attacker_lacks_is_said(shard: Record, name: str, why: str) -> None:
    with pytest.raises(SettingError, match=why):
        attack(shard, name)
