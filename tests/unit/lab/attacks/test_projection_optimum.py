"""The projection is the optimum: another solver, given every limit one by one, finds the same."""

from collections.abc import Iterator
from dataclasses import replace

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_matrix, identity, vstack

from sluice.arrays import Floats
from sluice.invariants.relations import Balance, Bound, Coupling, Rate, Relation, Window
from sluice.invariants.residuals import anchors, residuals
from sluice.invariants.ruleset import RuleSet
from sluice.lab.attacks.projection.attack import project
from sluice.telemetry.record import Record

from .projection_cases import (
    ACTUATORS,
    NAMES,
    STRICT,
    coupling,
    drawn,
    record_of,
    relations,
    rules_of,
)

Cells = list[tuple[int, str, float]]


def row_by_row(rules: RuleSet, record: Record) -> tuple[Floats, Floats, Floats]:
    """Write all limits down one by one, in plant units: low <= A x <= high."""
    lines, lows, highs = [], [], []
    for rule in rules.invariants:
        for low, high, cells in limits_of(rule.relation, record):
            line = np.zeros(record.values.size)
            for row, name, weight in cells:
                line[row * len(NAMES) + NAMES.index(name)] += weight
            lines.append(line)
            lows.append(low - rule.tolerance)
            highs.append(high + rule.tolerance)
    return np.array(lines), np.array(lows), np.array(highs)


def limits_of(relation: Relation, record: Record) -> Iterator[tuple[float, float, Cells]]:
    """Yield what a relation's sum of cells lies between, give or take the tolerance."""
    match relation:
        case Coupling():
            judged = residuals(relation, record)
            for row in np.flatnonzero(judged.applies).tolist():
                nominal = relation.nominal if record.column(relation.actuator)[row] == 2 else 0.0
                either = (0.0, relation.nominal) if judged.envelope[row] else (nominal, nominal)
                yield *either, [(row, relation.flow, 1.0)]
        case Bound():
            for row in range(len(record)):
                yield relation.low, relation.high, [(row, relation.channel, 1.0)]
        case Rate(channel=name):
            for row in range(1, len(record)):
                yield 0.0, 0.0, [(row, name, 1.0), (row - 1, name, -1.0)]
        case Balance() | Window():
            span = relation.rows if isinstance(relation, Window) else 1
            at = anchors(len(record), span).tolist() if span > 1 else range(1, len(record))
            for row in at:
                cells = [(row, relation.level, 1.0), (row - span, relation.level, -1.0)]
                constant = 0.0
                for later in range(row - span + 1, row + 1):
                    more, near = inflow(relation, record, later)
                    constant, cells = constant + more, cells + near
                yield constant, constant, cells


def inflow(relation: Balance | Window, record: Record, row: int) -> tuple[float, Cells]:
    """Return a row's constant inflow and the cells that count against it."""
    constant, cells = relation.constant, []
    for term in relation.terms:
        for at in (row, row - 1) if relation.averaged else (row,):
            weight = term.coefficient / (2 if relation.averaged else 1)
            if term.on:
                constant += weight * (record.column(term.channel)[at] in term.on)
            else:
                cells.append((at, term.channel, -weight))
    return constant, cells


def by_clarabel(rules: RuleSet, record: Record, spread: Floats) -> Floats | None:
    """Solve equation 5 in spreads with another solver, from limits written down another way."""
    lines, low, high = row_by_row(rules, record)
    free = np.tile([name not in ACTUATORS for name in NAMES], len(record))
    start, unit = record.values.ravel(), np.tile(spread, len(record))
    matrix = csc_matrix((lines * unit)[:, free])
    still = lines @ start
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-11
    found = clarabel.DefaultSolver(
        identity(int(free.sum()), format="csc"),
        np.zeros(int(free.sum())),
        csc_matrix(vstack([matrix, -matrix])),
        np.concatenate([high - still, still - low]),
        [clarabel.NonnegativeConeT(2 * len(lines))],
        options,
    ).solve()
    if found.status != clarabel.SolverStatus.Solved:
        return None
    moves = np.zeros(len(start))
    moves[free] = found.x
    return moves.reshape(record.values.shape)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(6, 16),
    found=st.lists(relations, min_size=1, max_size=4),
)
def test_another_solver_finds_the_same_moves(seed: int, rows: int, found: list[Relation]) -> None:
    record = record_of(drawn(np.random.default_rng(seed), rows))
    named = [replace(each, name=f"{each.name} {nth}") for nth, each in enumerate(found)]
    rules = rules_of(coupling(), *named, record=record)
    mine = project(record, rules, STRICT)
    spread = np.maximum(record.values.std(axis=0), 0.01 * 20.0)
    theirs = by_clarabel(rules, record, spread)
    if mine.conflicts:  # limits that just touch have no room for the margin
        inside = (replace(rule, tolerance=0.9999 * rule.tolerance) for rule in rules.invariants)
        assert by_clarabel(replace(rules, invariants=tuple(inside)), record, spread) is None
    else:
        assert theirs is not None
        moves = (mine.record.values - record.values) / spread
        near = 1e-5 * max(10.0, float(np.linalg.norm(theirs)))  # solvers end at a relative gap
        assert np.abs(moves - theirs).max() < near
        assert mine.frobenius == pytest.approx(np.linalg.norm(theirs), abs=near)
        assert mine.max_shift == pytest.approx(np.abs(theirs).max(), abs=near)
        assert mine.mean_shift * len(record) <= np.abs(theirs).sum() + near
