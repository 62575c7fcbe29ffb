"""Poison within the share of rows that a gate forgives."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy, PaperPolicy
from sluice.errors import SettingError
from sluice.invariants.budgets import Margins
from sluice.invariants.ruleset import RuleSet
from sluice.lab.attacks.forgiven import Dilution, Reweighting, forgiven_rows, padded
from sluice.lab.attacks.replay import Replay, Targets
from sluice.telemetry.record import Record

from .malicious import facing

PAPER = PaperPolicy()


def test_alpha_forgives_a_share_of_rows_rounded_down() -> None:
    assert forgiven_rows(1_099, PAPER) == 10
    assert forgiven_rows(1_000, PaperPolicy(alpha=0.02)) == 20
    assert forgiven_rows(1_000, HardenedPolicy(margins=Margins(alpha=0.005))) == 5


def test_reweighting_would_pass_even_if_every_planted_row_violated(
    shard: Record, rules: RuleSet, targets: Targets
) -> None:
    poison = Reweighting()(shard, facing(targets, rules, PAPER), seed=1)
    after = np.append(poison.planted, False)[1:] != poison.planted
    assert 0 < poison.planted.sum() < 0.01 * len(shard)
    assert poison.planted.sum() + np.count_nonzero(after & poison.planted) <= 10
    spoilt = poison.shown.values.copy()
    spoilt[poison.planted] = 1e6
    assert Gate.of(rules, PAPER).judge(poison.shown.with_values(spoilt)).admitted


def test_a_short_shard_leaves_reweighting_no_room(
    shard: Record, rules: RuleSet, targets: Targets
) -> None:
    with pytest.raises(SettingError, match="alpha forgives 1 rows"):
        Reweighting()(shard.rows(0, 150), facing(targets, rules, PAPER), seed=0)


def test_dilution_keeps_every_planted_row_of_a_replay_that_four_copies_hide(
    shard: Record, rules: RuleSet, targets: Targets
) -> None:
    mild = replace(targets, stretches=(targets.stretches[1],))
    gate = Gate.of(rules, PAPER)
    poison = Dilution(copies=40)(shard, facing(mild, rules, PAPER), seed=0)
    bare = poison.trained.rows(0, len(shard))
    assert not gate.judge(bare).admitted
    assert gate.judge(poison.shown).admitted
    assert poison.planted.sum() == mild.stretches[0].rows
    assert np.array_equal(poison.trained.values[-len(shard) :], shard.values)
    assert len(poison.trained.segment_starts) == 1


def test_dilution_plants_less_where_copies_do_not_do(
    shard: Record, rules: RuleSet, targets: Targets
) -> None:
    poison = Dilution(copies=1)(shard, facing(targets, rules, PAPER), seed=0)
    assert Gate.of(rules, PAPER).judge(poison.shown).admitted
    assert 0 < poison.planted.sum() < 250


def test_no_copies_are_no_change(shard: Record, targets: Targets) -> None:
    poison = Replay(targets=targets).plant(shard, rng=np.random.default_rng(0))
    assert padded(poison, shard, 0) is poison
