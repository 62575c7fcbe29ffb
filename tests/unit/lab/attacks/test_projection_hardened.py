"""The projection under the hardened policy: budgets, severe rows, windows, instruments."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.admission.policy import HardenedPolicy
from sluice.invariants.budgets import Margins
from sluice.invariants.measure import measure
from sluice.invariants.relations import Balance, Coupling, Rate, Window
from sluice.invariants.residuals import anchors
from sluice.invariants.ruleset import CleanFacts, CleanShare, Profile, RuleSet
from sluice.lab.attacks.projection.attack import project
from sluice.telemetry.record import Record

from .projection_cases import balance, cases, coupling, drawn, record_of, rules_of


def hardened(rules: RuleSet, *, severe: float = 0.0) -> RuleSet:
    """Give rules the clean facts that budgets come from."""
    names = {rule.name: rule.relation for rule in rules.invariants}
    facts = CleanFacts(
        batch_rows=100,
        batches=1,
        effective_batches=1.0,
        refused_share=0.0,
        refused_upper=1.0,
        violating_share=0.0,
        segments_per_row=1.0,
        severe=tuple(
            CleanShare(rule=name, share=severe)
            for name, relation in names.items()
            if isinstance(relation, Coupling | Balance | Rate)
        ),
        envelope=tuple(
            CleanShare(rule=name, share=1.0)
            for name, relation in names.items()
            if isinstance(relation, Coupling)
        ),
        anchors=tuple(
            CleanShare(rule=name, share=0.0)
            for name, relation in names.items()
            if isinstance(relation, Window)
        ),
        liveness=(),
        repeats=(),
    )
    return replace(rules, clean=facts, profile=Profile.HARDENED)


def hardened_policy(alpha: float, **margins: float) -> HardenedPolicy:
    return HardenedPolicy(rows_min=1, margins=Margins(alpha=alpha, **margins))


@settings(max_examples=80, deadline=None)
@given(case=cases(), alpha=st.sampled_from([0.1, 0.3]), severe=st.sampled_from([0.0, 1.0, 2.0]))
def test_the_integer_evaluator_agrees(
    case: tuple[Record, RuleSet], alpha: float, severe: float
) -> None:
    record, rules = case[0], hardened(case[1], severe=severe)
    found = project(record, rules, hardened_policy(alpha))
    before, after = measure(rules, record), measure(rules, found.record)
    assert (found.violating_before, found.violating_after) == (
        before.violating.sum(),
        after.violating.sum(),
    )
    assert found.violating_after <= found.violating_before
    counted = before.missing | before.illegal
    counted[record.segment_starts] = True
    collided = {conflict.row for conflict in found.conflicts}
    assert len(found.sacrificed) <= max(found.budget, len(collided) + counted.sum())
    if not found.conflicts and counted.sum() == 1 <= found.budget:
        assert found.verdict.admitted, found.verdict.reasons


def test_a_sacrificed_row_stays_short_of_severe() -> None:
    values = np.tile([2.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0], (40, 1))
    values[20, 2] = 5.0
    rules = hardened(rules_of(coupling()), severe=2.0)  # times 1.5: severe beyond 3 tolerances
    found = project(record_of(values), rules, hardened_policy(0.05))
    assert found.record.column("F1")[20] == pytest.approx(2.9, abs=0.001)
    assert found.sacrificed.tolist() == [0, 20]
    assert found.verdict.admitted
    free = project(record_of(values), rules, hardened_policy(0.05, severe_share=1 / 40))
    assert free.moved_rows == 0
    assert free.verdict.admitted


def test_a_window_has_anchors_of_its_own_to_break() -> None:
    values = np.tile([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], (40, 1))
    values[:, 4] = np.minimum(np.arange(40), 14) * 0.25  # creeps up, row by row within tolerance
    window = Window(name="dL1/8", level="L1", terms=(), constant=0.0, rows=8, averaged=False)
    rules = hardened(rules_of(coupling(), window))
    for extra in range(5):
        share = (extra + 0.5) / (2 * 40 / 8)
        found = project(record_of(values), rules, hardened_policy(0.05, anchor_points=share))
        level = found.record.column("L1")
        at = anchors(40, 8)
        assert (np.abs(level[at] - level[at - 8]) > 0.3).sum() <= extra
        assert found.verdict.admitted
    assert found.moved_rows == 0


def test_readings_of_a_row_let_go_stay_within_the_instrument() -> None:
    rng = np.random.default_rng(5)
    values = drawn(rng, 60)
    values[:, 4] += np.where(np.arange(60) % 9 == 4, 25.0, 0.0)
    rules = hardened(
        rules_of(coupling(), balance(averaged=True), Rate(name="L1 rate", channel="L1"))
    )
    found = project(record_of(values), rules, hardened_policy(0.1))
    moved = found.record.values != values
    assert np.abs(found.record.values[moved]).max() <= 10.0 * (1 + 2 / 16)
