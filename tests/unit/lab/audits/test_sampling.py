"""Table 8 in small: how often drawn rows let a batch pass, drawn and by the formula."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import PaperPolicy
from sluice.attestation.systems.sampled.system import Sampling
from sluice.errors import RecordError
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.attacks.data_attack import DataAttack
from sluice.lab.attacks.fabrications import RollLasting
from sluice.lab.attacks.projection.attack import Projected
from sluice.lab.attacks.replay import ReplayFrom
from sluice.lab.audits.sampling import SamplingTable, sampling
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Record

ONE, TWO = Sampling(violations=1), Sampling(violations=2)


def attacks(labelled: Record, rules: RuleSet) -> list[tuple[str, DataAttack]]:
    replay = ReplayFrom(labelled=labelled)
    return [
        ("channel-roll", RollLasting()),
        ("replay", replay),
        ("projected", Projected(of=replay, rules=rules, policy=PaperPolicy())),
    ]


def agree(table: SamplingTable) -> None:
    """Draws and formula differ by what draws differ from each other."""
    for row in table.rows:
        assert row.passed == pytest.approx(row.exact, abs=4 * row.error + 1e-9), row
    for kind in {row.kind for row in table.rows}:
        assert table.of(kind, ONE).exact <= table.of(kind, TWO).exact


def test_on_batadal(plant_data: Callable[..., Path]) -> None:
    year = read_record(plant_data("batadal", "dataset03.csv"))
    labelled = read_record(plant_data("batadal", "dataset04_full_labels.csv"))
    rules = mine(year.rows(0, 2_628), year.rows(2_628, 4_380), profile=Profile.PAPER_WIDE)
    found = sampling(
        year.rows(4_380, 8_761),
        rules,
        attacks(labelled, rules),
        draws=(ONE, TWO),
        batches=2,
        size=1_024,
    )
    assert found.skipped == ()
    agree(found)
    assert found.of("honest", ONE).exact > 0.98
    assert found.of("channel-roll", ONE).exact < 0.05
    assert found.of("replay", ONE).exact > 0.3, "a quarter of attack rows are few violating ones"
    assert found.of("projected", ONE).exact > found.of("replay", ONE).exact


def test_on_a_plant_whose_flows_follow_its_pumps(paper: Gate, unseen: Record) -> None:
    labelled = simulate("line", seed=1, days=8, attacks=True)
    found = sampling(
        unseen,
        paper.rules,
        attacks(labelled, paper.rules),
        draws=(ONE, TWO),
        batches=3,
        size=600,
    )
    agree(found)
    assert found.of("honest", TWO).exact > 0.999
    assert found.of("honest", TWO).within_silence > 0.99
    assert found.of("channel-roll", TWO).violating_share > 0.02


def test_attacked_and_short_records_are_refused(paper: Gate, unseen: Record) -> None:
    for record in (unseen.rows(0, 100), simulate("line", seed=1, days=8, attacks=True)):
        with pytest.raises(RecordError):
            sampling(record, paper.rules, [], draws=(ONE,), size=600)
