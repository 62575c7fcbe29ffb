"""The nearest record that obeys the rules: what it must leave alone, obey, prove and say."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.admission.gate import EmptyRulesWarning
from sluice.admission.policy import PaperPolicy
from sluice.errors import MissingChannelError, SolverError
from sluice.invariants.relations import Balance, Bound, Rate, Term
from sluice.invariants.ruleset import RuleSet
from sluice.lab.attacks.fabrications import ChannelRoll
from sluice.lab.attacks.projection.assembly import assemble
from sluice.lab.attacks.projection.attack import Projected, project
from sluice.lab.attacks.projection.by_paper import paper_demands
from sluice.lab.attacks.projection.certificate import certify
from sluice.lab.attacks.projection.outcome import Conflict
from sluice.lab.attacks.projection.sacrifice import plan
from sluice.telemetry.record import Record

from .projection_cases import (
    ACTUATORS,
    STRICT,
    balance,
    broken,
    cases,
    coupling,
    drawn,
    record_of,
    rules_of,
)


@settings(max_examples=80, deadline=None)
@given(case=cases(), alpha=st.sampled_from([0.0, 0.1, 0.3]))
def test_no_row_more_violates_and_only_what_rules_read_moves(
    case: tuple[Record, RuleSet], alpha: float
) -> None:
    record, rules = case
    found = project(record, rules, PaperPolicy(alpha=alpha))
    before, after = broken(rules, record), broken(rules, found.record)
    assert (found.violating_before, found.violating_after) == (before, after)
    assert after <= before
    assert found.budget / len(record) <= alpha < (found.budget + 1) / len(record)
    collided = {conflict.row for conflict in found.conflicts}
    assert len(found.sacrificed) <= max(found.budget, len(collided))
    moved = (found.record.values != record.values) & ~record.missing
    read = sorted({name for rule in rules.invariants for name in rule.relation.channels})
    assert set(np.flatnonzero(moved.any(axis=0))) <= {record.index(name) for name in read}
    assert not moved[:, : len(ACTUATORS)].any()
    assert not moved[record.missing[:, [record.index(name) for name in read]].any(axis=1)].any()
    assert np.array_equal(found.record.missing, record.missing)
    assert found.moved_rows == int(moved.any(axis=1).sum())


def test_a_reading_goes_to_its_limit_and_no_further() -> None:
    values = np.tile([2.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0], (8, 1))
    values[4, 2] = 3.0
    found = project(record_of(values), rules_of(coupling()), STRICT)
    assert found.record.column("F1")[4] == pytest.approx(2.3, abs=1e-6)
    assert found.record.column("F1")[4] <= 2.3
    assert found.moved_rows == 1
    assert found.verdict.admitted


def test_a_clean_record_is_returned_as_it_is() -> None:
    values = np.tile([2.0, 1.0, 2.3, 0.0, 0.0, 0.0, 0.0], (8, 1))  # on the boundary
    record = record_of(values)
    found = project(record, rules_of(coupling()))
    assert found.record is record
    assert found.frobenius == 0
    assert found.certificate.cost == found.certificate.least == 0


def test_what_the_budget_lets_pass_is_not_touched() -> None:
    values = np.tile([2.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0], (10, 1))
    values[4, 2] = 3.0
    record = record_of(values)
    assert project(record, rules_of(coupling()), PaperPolicy(alpha=0.1)).record is record
    assert project(record, rules_of(coupling()), PaperPolicy(alpha=0.09)).record is not record


def test_the_dearest_rows_are_sacrificed() -> None:
    values = np.tile([2.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0], (20, 1))
    values[3:18:2, 2] = 2.5 + np.arange(8) / 10
    found = project(record_of(values), rules_of(coupling()), PaperPolicy(alpha=0.15))
    assert found.budget == 3
    assert found.sacrificed.tolist() == [13, 15, 17]
    assert found.violating_before == 8
    assert found.violating_after == 3


def test_a_jump_of_a_level_is_sacrificed_before_a_farther_flow() -> None:
    # Mending the jump moves the level on many rows; mending the flow moves one reading.
    values = np.tile([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], (40, 1))
    values[20:, 4] = 4.0
    values[10, 2] = 0.6
    relation = Balance(name="dL1", level="L1", terms=(), constant=0.0, averaged=False)
    found = project(record_of(values), rules_of(coupling(), relation), PaperPolicy(alpha=0.025))
    assert found.sacrificed.tolist() == [20]
    assert found.moved_rows == 1


def test_the_certificate_fails_for_anything_but_the_optimum() -> None:
    record = record_of(drawn(np.random.default_rng(1), 24))
    rules = rules_of(coupling(), balance())
    assembly = assemble(record, rules, paper_demands(rules, STRICT, record), fixed=())
    programme, chosen = assembly.programme, plan(assembly)
    bounds, best = programme.bounds(chosen.grade), chosen.solution
    certify(programme, bounds, best.moves, best.on_moves, best.on_links).demand()
    tampered = [
        (best.moves * 0.99, best.on_moves, best.on_links),
        (best.moves * 1.01, best.on_moves, best.on_links),
        (best.moves, best.on_moves, best.on_links * 1.01),
        (best.moves, np.zeros_like(best.on_moves), best.on_links),
    ]
    for moves, on_moves, on_links in tampered:
        with pytest.raises(SolverError, match="not a certified optimum"):
            certify(programme, bounds, moves, on_moves, on_links).demand()
    farther = best.moves.copy()
    farther[np.argmin(np.abs(farther))] += 1e-3
    found = certify(programme, bounds, farther, best.on_moves, best.on_links)
    assert found.distance >= 1e-3
    with pytest.raises(SolverError):
        found.demand()


# -- rows that nothing can mend -------------------------------------------------------------------


def test_couplings_that_collide_on_one_flow_are_named() -> None:
    values = np.tile([2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0], (12, 1))
    values[6:9, 1] = 1.0  # P2 off, P1 on: both bind F1
    rules = rules_of(coupling(), coupling("P2"), coupling("P2", "F2"), tolerance=0.9)
    found = project(record_of(values), rules, PaperPolicy(alpha=0.2))
    rows = [7, 8]  # on row 6 the one that switched is silent
    assert found.conflicts == tuple(Conflict(row=row, rules=("P1~F1", "P2~F1")) for row in rows)
    assert found.sacrificed.tolist() == rows
    assert found.verdict.admitted
    over = project(record_of(values), rules, PaperPolicy(alpha=0.1))
    assert (over.budget, over.violating_after) == (1, 2)
    assert not over.verdict.admitted


def test_rules_that_collide_over_several_readings_are_named() -> None:
    values = np.tile([2.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0], (10, 1))
    filling = Balance(
        name="dL1",
        level="L1",
        terms=(Term(channel="F1", coefficient=1.0),),
        constant=0.0,
        averaged=False,
    )
    rules = rules_of(coupling(), filling, Rate(name="L1 rate", channel="L1"))
    values[:, 4] = np.arange(10) * 2.0
    values[5:, 0] = values[5:, 2] = 1.0  # the pump stops, the tank is full
    values[6:, 2] = 0.0
    values[5:, 4] = 8.0
    found = project(record_of(values), rules, PaperPolicy(alpha=0.0))
    assert {conflict.row for conflict in found.conflicts} == {1, 2, 3, 4}
    assert {conflict.rules for conflict in found.conflicts} == {("P1~F1", "dL1", "L1 rate")}
    assert found.violating_after == 4


def test_a_channel_held_fixed_stays_and_what_it_breaks_is_a_conflict() -> None:
    values = np.tile([2.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0], (8, 1))
    values[4, 2] = 3.0
    found = project(record_of(values), rules_of(coupling()), STRICT, fixed=("F1",))
    assert found.moved_rows == 0
    assert found.conflicts == (Conflict(row=4, rules=("P1~F1",)),)


# -- what is not evaluated ------------------------------------------------------------------------


def test_a_time_jump_frees_the_step_over_it() -> None:
    values = np.tile([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], (8, 1))
    values[4:, 4] = 5.0
    rules = rules_of(coupling(), Rate(name="L1 rate", channel="L1"))
    assert project(record_of(values), rules, STRICT).moved_rows > 0
    record = record_of(values, jumps=(4,))
    assert project(record, rules, STRICT).record is record


def test_rows_with_a_missing_reading_are_left_alone() -> None:
    values = np.tile([2.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0], (10, 1))
    values[4:7, 2] = 4.0
    values[5, 4] = np.nan
    found = project(record_of(values), rules_of(coupling(), balance()), STRICT)
    assert np.array_equal(found.record.values[5], values[5], equal_nan=True)
    assert found.sacrificed.tolist() == [5]
    assert Conflict(row=5, rules=("P1~F1",)) in found.conflicts


def test_rules_without_physics_are_said_aloud() -> None:
    record = record_of(drawn(np.random.default_rng(0), 12))
    with pytest.warns(EmptyRulesWarning):
        assert project(record, rules_of(), STRICT).record is record
    bound = Bound(name="F1 in range", channel="F1", low=0.0, high=1.0)
    with pytest.warns(EmptyRulesWarning):
        assert project(record, rules_of(bound), STRICT).violating_after == 0


def test_a_channel_that_a_rule_reads_must_be_there() -> None:
    record = record_of(drawn(np.random.default_rng(0), 12))
    with pytest.raises(MissingChannelError, match="'F1'"):
        project(record.without("F1"), rules_of(coupling()))


def test_it_projects_what_another_attack_made() -> None:
    record = record_of(drawn(np.random.default_rng(2), 40))
    rules = rules_of(coupling(), balance())
    roll = ChannelRoll(rows=5)
    attack = Projected(of=roll, rules=rules)
    made = attack(record, seed=1)
    assert np.array_equal(made.values, project(roll(record, seed=1), rules).record.values)
    assert np.array_equal(made.column("P1"), roll(record, seed=1).column("P1"))
    assert np.array_equal(made.labels, record.labels)
    alone = Projected(rules=rules)(record, seed=1)
    assert np.array_equal(alone.values, project(record, rules).record.values)


def test_nothing_heavy_loads_until_something_is_projected() -> None:
    program = (
        "import sys, sluice.lab.attacks.projection; "
        "print({'piqp', 'scipy.sparse', 'scipy.optimize'} & set(sys.modules))"
    )
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert seen.stdout.decode().strip() == "set()"
