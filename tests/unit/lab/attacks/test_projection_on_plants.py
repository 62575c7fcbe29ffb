"""The projection on whole plants: beside the paper's own, and against the hardened gate."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, eye_array
from scipy.sparse.linalg import spsolve

from sluice.admission.policy import PaperPolicy
from sluice.admission.reasons import ReasonKind
from sluice.arrays import Floats
from sluice.invariants.mining.profiles import mine
from sluice.invariants.relations import Balance, Coupling
from sluice.invariants.rowcheck import violations
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.attacks.fabrications import ChannelRoll
from sluice.lab.attacks.projection.attack import project
from sluice.lab.attacks.replay import ReplayFrom
from sluice.lab.expert_rules import line_rules
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.channel import Role
from sluice.telemetry.record import Record

ROWS = 4_000
PASSES = 30
ENOUGH = 0.005  # of the rows: there the paper's loop stops
INSIDE = 0.95  # of the tolerance: there it puts a broken residual
STEPS_PER_HOUR = 60


def affine(record: Record, rules: RuleSet) -> tuple[csr_array, Floats, Floats]:
    """Return A, the constants and the tolerances of all residuals: r = A x + c, row by row."""
    rows, width = record.values.shape
    at = np.arange(rows)
    links, cells, weights, constants, tolerances = [], [], [], [], []
    for nth, rule in enumerate(rules.invariants):
        relation = rule.relation
        constant = np.zeros(rows)
        if isinstance(relation, Coupling):
            constant -= relation.nominal * record.column(relation.actuator)
            parts = [(relation.flow, 0, 1.0)]
        else:
            assert isinstance(relation, Balance)
            constant -= relation.constant
            parts = [(relation.level, 0, 1.0), (relation.level, 1, -1.0)]
            parts += [(term.channel, 0, -term.coefficient) for term in relation.terms]
        for name, back, weight in parts:
            links.append(nth * rows + at[1:])
            cells.append((at[1:] - back) * width + record.index(name))
            weights.append(np.full(rows - 1, weight))
        constants.append(constant)
        tolerances.append(np.full(rows, rule.tolerance))
    shape = (rows * len(rules.invariants), rows * width)
    where = (np.concatenate(links), np.concatenate(cells))
    matrix = coo_array((np.concatenate(weights), where), shape=shape).tocsr()
    return matrix, np.concatenate(constants), np.concatenate(tolerances)


def as_the_paper_does(record: Record, rules: RuleSet) -> Record:
    """Least norm in raw units, m and m3 per step; a constraint once broken stays in the set.

    The paper solves each pass by conjugate gradients to 1e-9; a direct solver is as good and fast.
    """
    matrix, constants, tolerances = affine(record, rules)
    flow = np.array([name.startswith("F_") for name in record.names])
    unit = np.tile(np.where(flow, STEPS_PER_HOUR, 1.0), len(record))
    moved = csr_array(matrix * unit[None, :])
    values = record.values.ravel().copy()
    working = np.zeros(len(tolerances), bool)
    for _ in range(PASSES):
        found = matrix @ values + constants
        found.reshape(-1, len(record))[:, 0] = 0.0
        active = np.abs(found) > tolerances
        if active.reshape(-1, len(record)).any(axis=0).mean() <= ENOUGH:
            break
        working |= active
        gap = (np.clip(found, -INSIDE * tolerances, INSIDE * tolerances) - found)[working]
        part = moved[working]
        normal = part @ part.T + 1e-10 * eye_array(len(gap))
        values += unit * (part.T @ spsolve(normal.tocsc(), gap))
    return record.with_values(values.reshape(record.values.shape))


@pytest.mark.parametrize("seed", [0, 5])
def test_ours_is_nearer_than_the_papers_at_no_more_violating_rows(seed: int) -> None:
    clean = simulate("line", seed=12_345, days=8_000 / 1_440)
    rules = line_rules(clean)
    rolled = ChannelRoll(rows=7)(simulate("line", seed=seed, days=ROWS / 1_440), seed=0)
    theirs = as_the_paper_does(rolled, rules)
    left = int(violations(rules, theirs).violating.sum())
    assert 0 < left <= ENOUGH * ROWS
    ours = project(rolled, rules, PaperPolicy(alpha=left / ROWS))
    spread = rolled.values.std(axis=0)
    shift = (theirs.values - rolled.values)[:, :7] / spread[:7]
    assert ours.violating_after <= left < ours.violating_before
    assert ours.frobenius < np.linalg.norm(shift)
    assert not ours.conflicts


def test_on_a_treatment_plant_all_that_is_convex_is_obeyed() -> None:
    clean = simulate("treatment", seed=0, days=1).every(5)
    labelled = simulate("treatment", seed=1, days=1, attacks=True).every(5)
    rules = mine(clean.rows(0, 6_000), clean.rows(6_000, 12_000), profile=Profile.HARDENED)
    shard = clean.rows(12_000, 13_500)
    poisoned = ReplayFrom(labelled=labelled, share=0.25)(shard, seed=3)
    found = project(poisoned, rules)
    assert found.violating_before > 5 * found.budget
    found.certificate.demand()
    kinds = {reason.kind for reason in found.verdict.reasons}
    assert ReasonKind.WINDOWS not in kinds
    if not found.conflicts:
        assert not kinds & {ReasonKind.VIOLATING_ROWS, ReasonKind.SEVERE_ROWS}
    assert {rule for each in found.conflicts for rule in each.rules} <= {
        rule.name for rule in rules.invariants
    }
    for channel in poisoned.of_role(Role.ACTUATOR):
        assert np.array_equal(found.record.column(channel.name), poisoned.column(channel.name))
