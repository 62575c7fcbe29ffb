"""Work: an identity that covers what decides a result and nothing else."""

from dataclasses import replace

import pytest

from sluice.evaluation import Unlabelled
from sluice.lab.attacks.poisons import POISONS
from sluice.lab.attacks.updates import UPDATE_ATTACKS
from sluice.lab.grids.gridfile import TrainingTable
from sluice.lab.grids.sources import RecordSource
from sluice.lab.grids.work import Work, WorkLayout, depends_on_rules, work_from_json, work_to_json
from sluice.lab.trials.modes import MODES

SOURCE = RecordSource(
    name="own",
    content="abc def",
    plant=None,
    days=None,
    clean="/data/clean.csv",
    test="/data/test.csv",
    every=1,
    skip_s=0.0,
    unlabelled=Unlabelled.EXCLUDE,
)
LAYOUT = WorkLayout(
    record=SOURCE,
    clients=5,
    liars=2,
    target_share=0.25,
    training=TrainingTable(),
    screened=False,
    seed=0,
)
WORK = Work(layout=LAYOUT, rule="fedavg", mode="naive", attack="replay", invariants=None)


def test_an_identity_is_a_digest_of_128_bits() -> None:
    for digest in (LAYOUT.id, WORK.id):
        assert len(digest) == 32
        assert set(digest) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    "source",
    [
        replace(SOURCE, name="other"),
        replace(SOURCE, clean="/elsewhere/clean.csv"),
        replace(SOURCE, test="/elsewhere/test.csv"),
    ],
    ids=["name", "clean", "test"],
)
def test_names_and_paths_are_no_part_of_an_identity(source: RecordSource) -> None:
    assert replace(LAYOUT, record=source).id == LAYOUT.id


@pytest.mark.parametrize(
    "layout",
    [
        replace(LAYOUT, record=replace(SOURCE, content="abc xyz")),
        replace(LAYOUT, record=replace(SOURCE, plant="line")),
        replace(LAYOUT, record=replace(SOURCE, days=1.0)),
        replace(LAYOUT, record=replace(SOURCE, every=2)),
        replace(LAYOUT, record=replace(SOURCE, skip_s=1.0)),
        replace(LAYOUT, record=replace(SOURCE, unlabelled=Unlabelled.NORMAL)),
        replace(LAYOUT, record=replace(SOURCE, sites=True)),
        replace(LAYOUT, clients=6),
        replace(LAYOUT, liars=1),
        replace(LAYOUT, target_share=0.5),
        replace(LAYOUT, training=TrainingTable(rounds=3)),
        replace(LAYOUT, training=TrainingTable(detector="subspace")),
        replace(LAYOUT, screened=True),
        replace(LAYOUT, seed=1),
    ],
)
def test_everything_else_of_a_layout_is(layout: WorkLayout) -> None:
    assert layout.id != LAYOUT.id
    assert replace(WORK, layout=layout).id != WORK.id


@pytest.mark.parametrize(
    "work",
    [
        replace(WORK, rule="median"),
        replace(WORK, mode="gated"),
        replace(WORK, attack=None),
        replace(WORK, invariants="paper-wide"),
    ],
)
def test_rule_mode_attack_and_rule_set_make_other_work(work: Work) -> None:
    assert work.id != WORK.id


def test_swapped_attack_and_rule_set_are_not_confused() -> None:
    one = replace(WORK, attack="x", invariants=None)
    other = replace(WORK, attack=None, invariants="x")
    assert one.id != other.id


def test_work_read_from_json_is_the_same_work() -> None:
    again = work_from_json(work_to_json(WORK))
    assert again == WORK
    assert again.layout.record.clean == "/data/clean.csv"
    assert (again.id, again.layout.id) == (WORK.id, LAYOUT.id)


@pytest.mark.parametrize("attack", [None, "replay", "ramp", "sign-flip", "blend"])
def test_a_gated_result_depends_on_the_rules_whatever_the_attack(attack: str | None) -> None:
    assert depends_on_rules(MODES["gated"], attack)


def test_without_a_gate_only_adaptive_poison_depends_on_the_rules() -> None:
    adaptive = {name for name in POISONS if depends_on_rules(MODES["naive"], name)}
    shaped = {name for name, maker in POISONS.items() if maker.shaped}
    assert adaptive == shaped - set(UPDATE_ATTACKS)
    assert "replay" not in adaptive
    assert "ramp" in adaptive


def test_projected_poison_depends_on_the_rules_and_attacks_on_updates_do_not() -> None:
    mode = MODES["physics-aware"]
    for name in POISONS:
        assert depends_on_rules(mode, name) == (name not in UPDATE_ATTACKS)
    for name in (*UPDATE_ATTACKS, "blend"):
        assert not depends_on_rules(mode, name)
    assert not depends_on_rules(MODES["clean"], None)
