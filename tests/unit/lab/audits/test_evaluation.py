"""Evaluation: only true changes count, splices are tracked to their joins, and lies are found."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy
from sluice.admission.reasons import ReasonKind
from sluice.errors import SettingError
from sluice.invariants.budgets import Margins
from sluice.invariants.relations import RelationKind
from sluice.invariants.ruleset import RuleSet
from sluice.lab.attacks.fabrications import (
    ChannelRoll,
    ConservationScaling,
    RegimePermutation,
    RegimeSplicing,
)
from sluice.lab.audits.evaluation import (
    CAUSES,
    FABRICATED,
    Fabrication,
    Pool,
    Proportion,
    Reach,
    _forged,
    _order,
    admissible,
    fabricated,
    honest_batches,
)
from sluice.lab.audits.level_attacks import freeze, ramp, slowest_ramp
from sluice.telemetry.record import Record

REPOSITORY = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def pool(unseen: Record) -> Pool:
    return Pool.disjoint(unseen, 400)


def spliced(pieces: int, reach: Reach) -> Fabrication:
    return Fabrication(name="splice", attack=RegimeSplicing(pieces=pieces), reach=reach)


def test_nothing_is_known_of_none_and_the_interval_is_wilsons() -> None:
    assert (Proportion.counted(0, 0).low, Proportion.counted(0, 0).high) == (0, 1)
    all_of_twenty = Proportion.counted(20, 20)
    assert all_of_twenty.low == pytest.approx(20 / (20 + 1.959963984540054**2))
    assert all_of_twenty.share == 1


def test_pools_lie_end_to_end_or_evenly(unseen: Record) -> None:
    short = unseen.rows(0, 1_000)
    assert Pool.disjoint(short, 300).starts == (0, 300, 600)
    assert Pool.spread(short, 600, 5).starts == (0, 100, 200, 300, 400)


def test_every_honest_refusal_is_named_with_its_causes(hardened: Gate, pool: Pool) -> None:
    honest = pool.batch(0)
    lying = ConservationScaling(factor=1.3)(honest, seed=0)
    found = honest_batches(hardened, [("true", honest), ("scaled", lying)])
    assert (found.refused.count, found.refused.of) == (1, 2)
    assert found.refusals[0].where == "scaled"
    assert "violating rows" in found.refusals[0].causes
    assert "tolerances" in found.refusals[0].furthest


def test_each_kind_of_reason_the_gate_gives_is_told_apart(hardened: Gate, pool: Pool) -> None:
    honest = pool.batch(0)
    values = honest.values.copy()
    level = honest.index("L_T1")
    values[200:, level] = values[:200, level]  # a replay
    replayed = hardened.judge(honest.with_values(values))
    still = honest.values.copy()
    still[:, level] = still[0, level]
    times = honest.times.copy()
    times[200:] += np.timedelta64(3_600, "s")
    verdicts = (
        replayed,
        hardened.judge(honest.with_values(still)),
        hardened.judge(replace(honest, times=times)),
    )
    kinds = {reason.kind for verdict in verdicts for reason in verdict.reasons}
    assert kinds >= {
        ReasonKind.REPEATED_READINGS,
        ReasonKind.STILL_LEVEL,
        ReasonKind.TIME_JUMPS,
        ReasonKind.SEVERE_ROWS,
        ReasonKind.WINDOWS,
    }
    assert set(CAUSES) == set(ReasonKind)


@pytest.mark.parametrize("reach", Reach)
@pytest.mark.parametrize("pieces", [2, 4])
def test_a_splice_is_tracked_to_its_joins(pool: Pool, pieces: int, reach: Reach) -> None:
    batches = list(_forged(spliced(pieces, reach), (pool,), wanted=6, seed=3))
    assert len(batches) == 6
    rows = {tuple(row) for row in pool.record.values}
    for forged in batches:
        assert forged.joins.size
        assert forged.joins.min() > 0
        assert {tuple(row) for row in forged.batch.values} <= rows


def test_the_order_is_the_attacks_own(unseen: Record) -> None:
    attack = RegimeSplicing(pieces=5)
    order = _order(attack, unseen, seed=8)
    np.testing.assert_array_equal(attack(unseen, seed=8).values, unseen.values[order])


def test_a_lie_that_changes_nothing_is_none(hardened: Gate, pool: Pool) -> None:
    """Actuators that never switch can be rolled and permuted without a trace."""
    short = pool.record.rows(0, 400)
    values = short.values.copy()
    for name in ("S_PU1", "S_PU2", "S_PU3", "S_PU4"):
        values[:, short.index(name)] = 1.0
    idle = Pool.disjoint(short.with_values(values), 400)
    for attack in (ChannelRoll(rows=2), RegimePermutation()):
        for reach in Reach:
            lie = Fabrication(name="idle", attack=attack, reach=reach)
            assert fabricated(hardened, (idle,), lie, wanted=5, seed=0).admitted.of == 0


def test_fabrications_are_refused_and_repeat_themselves(hardened: Gate, pool: Pool) -> None:
    kept = admissible(hardened, pool)
    assert kept.starts
    for fabrication in FABRICATED:
        first, again = (
            fabricated(hardened, (kept,), fabrication, wanted=4, seed=0) for _ in range(2)
        )
        assert first == again
        assert first.admitted.of
        assert first.admitted.count == first.state_matched + len(first.unmatched)
        if not isinstance(fabrication.attack, RegimeSplicing):
            assert first.admitted.count == 0, fabrication.name


def test_an_admitted_splice_is_state_matched_only_if_every_rule_holds_at_its_joins(
    hardened_rules: RuleSet, pool: Pool
) -> None:
    margins = Margins(
        alpha=0.99,
        severe_multiple=1e9,
        envelope_points=1.0,
        anchor_points=1.0,
        liveness_share=0.0,
        repeat_points=1.0,
        switch_points=1.0,
        block_points=1.0,
    )
    policy = HardenedPolicy(margins=margins)  # admits whatever it is shown
    wide = replace(
        hardened_rules,
        invariants=tuple(
            rule
            if rule.kind is RelationKind.CONSTANT  # an idle actuator has no wider tolerance
            else replace(rule, tolerance=1_000 * rule.tolerance)
            for rule in hardened_rules.invariants
        ),
    )
    lie = spliced(12, Reach.BATCH)
    seen = fabricated(Gate.of(hardened_rules, policy), (pool,), lie, wanted=5, seed=0)
    unseen_ = fabricated(Gate.of(wide, policy), (pool,), lie, wanted=5, seed=0)
    assert (seen.admitted.count, seen.state_matched, len(seen.unmatched)) == (5, 0, 5)
    assert all("tolerances" in where for where in seen.unmatched)
    assert (unseen_.admitted.count, unseen_.state_matched, unseen_.unmatched) == (5, 5, ())


def test_state_matching_needs_the_integer_evaluator(paper: Gate, pool: Pool) -> None:
    with pytest.raises(SettingError, match="does not use; use a hardened policy"):
        fabricated(paper, (pool,), spliced(2, Reach.BATCH), wanted=3, seed=0)


def test_long_freezes_are_found(hardened: Gate, pool: Pool) -> None:
    kept = admissible(hardened, pool)
    found = freeze(hardened, (kept,), level="L_T1", rows=200, seed=0)
    assert found.refused.of == len(kept.starts)
    assert found.refused.share == 1


def test_a_ramp_of_twice_the_stated_power_is_found_by_a_window(hardened: Gate, pool: Pool) -> None:
    kept = admissible(hardened, pool)
    rule = slowest_ramp(hardened, "L_T1")
    assert rule is not None
    assert rule.evidence.smallest_offset is not None
    seen = ramp(hardened, (kept,), rule=rule, multiple=2)
    hidden = ramp(hardened, (kept,), rule=rule, multiple=0.1)
    assert seen.per_row == 2 * rule.evidence.smallest_offset
    assert seen.refused.share == 1
    assert seen.by_window == seen.refused.count
    assert hidden.refused.share < 0.5
    assert slowest_ramp(hardened, "F_PU1") is None


def test_the_benchmark_writes_its_page(tmp_path: Path) -> None:
    written = tmp_path / "gate.md"
    command = [sys.executable, "-m", "benchmarks", "evaluation"]
    told = ["--quick", "--plants", "line", "BATADAL", "--out", str(written)]
    subprocess.run(
        [*command, *told],
        check=True,
        capture_output=True,
        env={**os.environ, "SLUICE_DATA": str(tmp_path)},
    )
    page = written.read_text()
    assert "A quick run" in page
    assert "BATADAL was skipped" in page
    for heading in ("Coverage", "Honest batches", "Fabrications", "Frozen levels", "Slow ramps"):
        assert heading in page
