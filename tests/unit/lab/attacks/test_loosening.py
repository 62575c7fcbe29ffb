"""Calibration rows prepared by the plant whose tolerances they set."""

import numpy as np
import pytest

from sluice.errors import SettingError
from sluice.invariants.mining.profiles import mine
from sluice.invariants.relations import Balance, Coupling, RelationKind
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.attacks.loosening import LOOSENINGS, Loosening, Noise, Spikes
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record


@pytest.fixture(scope="module")
def plant() -> Record:
    return simulate("line", seed=0, days=6)


@pytest.fixture(scope="module")
def rules(plant: Record) -> RuleSet:
    return mine(plant.rows(0, 3_000), plant.rows(3_000, 6_000), profile=Profile.PAPER_WIDE)


@pytest.fixture(params=sorted(LOOSENINGS))
def prepare(request: pytest.FixtureRequest) -> Loosening:
    return LOOSENINGS[str(request.param)]


def test_every_tolerance_widens(prepare: Loosening, plant: Record, rules: RuleSet) -> None:
    prepared = prepare(plant.rows(3_000, 6_000), rules, seed=1)
    spoilt = mine(plant.rows(0, 3_000), prepared, profile=Profile.PAPER_WIDE)
    after = {rule.name: rule.tolerance for rule in spoilt.invariants}
    for rule in rules.of_kind(RelationKind.COUPLING, RelationKind.BALANCE):
        assert after[rule.name] > 1.5 * rule.tolerance


def test_the_same_seed_prepares_the_same_rows(
    prepare: Loosening, plant: Record, rules: RuleSet
) -> None:
    clean = plant.rows(3_000, 6_000)
    one, other = (prepare(clean, rules, seed=1) for _ in range(2))
    assert np.array_equal(one.values, other.values)
    assert not np.array_equal(one.values, prepare(clean, rules, seed=2).values)


def test_spikes_are_few_and_only_where_rules_look(plant: Record, rules: RuleSet) -> None:
    clean = plant.rows(3_000, 6_000)
    changed = Spikes(share=0.002)(clean, rules, seed=0).values != clean.values
    watched = {
        rule.relation.flow if isinstance(rule.relation, Coupling) else rule.relation.level
        for rule in rules.invariants
        if isinstance(rule.relation, Coupling | Balance)
    }
    assert {clean.names[at] for at in np.flatnonzero(changed.any(axis=0))} == watched
    assert changed.sum(axis=0).max() <= np.ceil(0.002 * len(clean))


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(SettingError, match="share of rows"):
        Spikes(share=0.0)
    with pytest.raises(SettingError, match="a multiple above 0"):
        Noise(times=0.0)
