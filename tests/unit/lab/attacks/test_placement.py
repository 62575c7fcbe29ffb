"""Attack rows where a gate sees least of them."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy, PaperPolicy
from sluice.errors import SettingError
from sluice.invariants.budgets import budgets_for
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.placement import Aligned, Jumps, joins
from sluice.lab.attacks.replay import Targets
from sluice.telemetry.record import Record

from .malicious import facing

PAPER = PaperPolicy()
HOUR = np.timedelta64(1, "h")


def test_joins_are_where_planted_stretches_begin_and_end() -> None:
    planted = np.array([1, 1, 0, 0, 1, 0, 1, 1], bool)
    assert joins(planted).tolist() == [2, 4, 5, 6]


def test_aligned_rows_are_attack_rows_unchanged_and_pass(
    shard: Record, paper_rules: RuleSet, targets: Targets
) -> None:
    poison = Aligned()(shard, facing(targets, paper_rules, PAPER), seed=0)
    attacks = {row.tobytes() for row in targets.labelled.select(shard.names).values[targets.rows]}
    assert poison.planted.sum() > 20
    assert all(row.tobytes() in attacks for row in poison.trained.values[poison.planted])
    assert np.array_equal(poison.trained.values[~poison.planted], shard.values[~poison.planted])
    assert Gate.of(paper_rules, PAPER).judge(poison.shown).admitted


def test_where_nothing_passes_one_piece_is_planted_all_the_same(
    shard: Record, hardened_rules: RuleSet, targets: Targets
) -> None:
    poison = Aligned(places=2)(shard, facing(targets, hardened_rules, HardenedPolicy()), seed=0)
    assert 0 < poison.planted.sum() <= 12
    assert not Gate.of(hardened_rules, HardenedPolicy()).judge(poison.shown).admitted


def test_jumps_hide_every_row_from_the_papers_gate(
    shard: Record, paper_rules: RuleSet, targets: Targets
) -> None:
    poison = Jumps()(shard, facing(targets, paper_rules, PAPER), seed=0)
    gate = Gate.of(paper_rules, PAPER)
    assert not gate.judge(poison.trained).admitted
    assert gate.judge(poison.shown).admitted
    assert np.array_equal(poison.shown.values, poison.trained.values)
    assert len(poison.shown.segment_starts) > 10
    assert len(poison.trained.segment_starts) == 1


def test_jumps_have_no_budget_where_clean_rows_had_none(
    shard: Record, hardened_rules: RuleSet, targets: Targets
) -> None:
    poison = Jumps()(shard, facing(targets, hardened_rules, HardenedPolicy()), seed=0)
    assert len(poison.shown.segment_starts) == 1


def test_without_rules_there_is_nothing_to_hide_from(shard: Record, targets: Targets) -> None:
    for maker in (Aligned(), Jumps()):
        with pytest.raises(SettingError, match="rules to .* them, but knows no gate"):
            maker(shard, Knowledge(targets=targets), seed=0)


def test_where_clean_rows_had_gaps_a_few_jumps_are_believed(
    plant: Record, shard: Record, targets: Targets
) -> None:
    gapped = replace(plant, times=plant.times + (np.arange(len(plant)) // 600) * HOUR)
    rules = mine(gapped.rows(0, 3_000), gapped.rows(3_000, 6_000), profile=Profile.HARDENED)
    assert rules.clean is not None
    most = budgets_for(rules, rules.clean, HardenedPolicy().margins, rows=len(shard)).segments
    poison = Jumps()(shard, facing(targets, rules, HardenedPolicy()), seed=0)
    starts = poison.shown.segment_starts
    assert 1 < len(starts) <= most
    assert np.isin(starts[1:], joins(poison.planted)).all()
