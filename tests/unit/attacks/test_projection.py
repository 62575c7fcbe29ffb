"""The nearest record that obeys the rules: what it must leave alone, obey, prove and say."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_matrix, identity, vstack

from sluice.admission import EmptyRulesWarning, HardenedPolicy, PaperPolicy
from sluice.arrays import Floats
from sluice.attacks import ChannelRoll, Projected, project
from sluice.attacks.projection import Conflict
from sluice.attacks.projection.assembly import assemble
from sluice.attacks.projection.by_paper import paper_demands
from sluice.attacks.projection.certificate import certify
from sluice.attacks.projection.sacrifice import plan
from sluice.errors import MissingChannelError, SolverError
from sluice.invariants import (
    Balance,
    Bound,
    CleanFacts,
    Coupling,
    Invariant,
    Margins,
    Profile,
    Rate,
    Relation,
    RuleSet,
    Share,
    State,
    Term,
    Transition,
    Window,
    measure,
    residuals,
)
from sluice.invariants.residuals import anchors
from sluice.telemetry import Channel, Codes, Label, Record, Role, Span

ACTUATORS = ("P1", "P2")
READINGS = ("F1", "F2", "L1", "L2")
NAMES = (*ACTUATORS, *READINGS, "IDLE")
STRICT = PaperPolicy(alpha=0.0)


def record_of(values: Floats, *, jumps: tuple[int, ...] = ()) -> Record:
    """Two pumps, two flows, two levels and a channel that no rule reads."""
    seconds = np.full(len(values), 5)
    seconds[list(jumps)] = 600
    return Record(
        name="bench",
        channels=tuple(
            Channel(name=name, role=Role.ACTUATOR, codes=Codes(off=1, on=(2,), moving=(0,)))
            if name in ACTUATORS
            else Channel(name=name, role=Role.OTHER, span=Span(low=-10.0, high=10.0))
            for name in NAMES
        ),
        values=np.asarray(values, np.float64),
        times=np.datetime64("2026-01-01T00:00", "us") + np.cumsum(seconds) * np.timedelta64(1, "s"),
        stride_s=5.0,
        labels=np.full(len(values), Label.NORMAL, np.int8),
    )


def drawn(rng: np.random.Generator, rows: int) -> Floats:
    states = [np.repeat(rng.integers(1, 3, rows), 4)[:rows] for _ in ACTUATORS]
    flows = [rng.normal(1.0, 1.0, rows) for _ in range(2)]
    levels = [np.cumsum(rng.normal(0.0, 0.6, rows)) for _ in range(2)]
    return np.column_stack([*states, *flows, *levels, rng.normal(size=rows)])


def rules_of(*found: Relation, tolerance: float = 0.3, record: Record | None = None) -> RuleSet:
    channels = (record or record_of(np.ones((1, len(NAMES))))).channels
    return RuleSet(
        plant="bench",
        profile=Profile.PAPER_WIDE,
        stride_s=5.0,
        channels=channels,
        invariants=tuple(Invariant(relation=each, tolerance=tolerance) for each in found),
    )


def coupling(actuator: str = "P1", flow: str = "F1", **more: object) -> Coupling:
    settled: dict[str, object] = {"settle": 1, "transition": Transition.SILENT, **more}
    return Coupling(
        name=f"{actuator}~{flow}",
        actuator=actuator,
        flow=flow,
        off=1,
        states=(State(code=2, nominal=2.0),),
        **settled,  # type: ignore[arg-type]
    )


def balance(level: str = "L1", *, averaged: bool = False) -> Balance:
    return Balance(
        name=f"d{level}",
        level=level,
        terms=(Term(channel="F1", coefficient=0.5), Term(channel="P2", coefficient=-0.7, on=(2,))),
        constant=0.05,
        averaged=averaged,
    )


def broken(rules: RuleSet, record: Record) -> int:
    """Count violating rows with the float reference."""
    violating = np.zeros(len(record), bool)
    for rule in rules.invariants:
        found = residuals(rule.relation, record)
        violating |= found.applies & (np.abs(found.values) > rule.tolerance)
    return int(violating.sum())


numbers = st.floats(-1.0, 1.0, allow_subnormal=False).map(lambda value: round(value, 3))
terms = st.lists(
    st.one_of(
        st.builds(Term, channel=st.sampled_from(["F1", "F2", "L2"]), coefficient=numbers),
        st.builds(Term, channel=st.sampled_from(ACTUATORS), coefficient=numbers, on=st.just((2,))),
    ),
    max_size=3,
).map(tuple)
relations: st.SearchStrategy[Relation] = st.one_of(
    st.builds(
        Coupling,
        name=st.just("coupling"),
        actuator=st.sampled_from(ACTUATORS),
        flow=st.sampled_from(["F1", "F2"]),
        off=st.just(1),
        states=st.builds(State, code=st.just(2), nominal=st.floats(0.5, 3.0)).map(lambda s: (s,)),
        settle=st.integers(0, 2),
        transition=st.sampled_from(Transition),
        standby=st.sampled_from([(), (("P2", 1),)]),
    ),
    st.builds(
        Balance,
        name=st.just("balance"),
        level=st.sampled_from(["L1", "L2"]),
        terms=terms,
        constant=numbers,
        averaged=st.booleans(),
    ),
    st.builds(
        Window,
        name=st.just("window"),
        level=st.sampled_from(["L1", "L2"]),
        terms=terms,
        constant=numbers,
        rows=st.integers(2, 6),
        averaged=st.booleans(),
    ),
    st.builds(
        Bound,
        name=st.just("bound"),
        channel=st.sampled_from(READINGS),
        low=st.floats(-3.0, 0.0),
        high=st.floats(0.5, 3.0),
    ),
    st.builds(Rate, name=st.just("rate"), channel=st.sampled_from(["L1", "L2"])),
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Record, RuleSet]:
    rows = draw(st.integers(6, 24))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = drawn(rng, rows)
    if draw(st.booleans()):
        values[rng.random(values.shape) < 0.02] = np.nan
    jumps = tuple(np.flatnonzero(rng.random(rows) < draw(st.sampled_from([0.0, 0.1]))).tolist())
    record = record_of(values, jumps=jumps)
    found = [coupling(), *draw(st.lists(relations, min_size=1, max_size=5))]
    named = [replace(each, name=f"{each.name} {nth}") for nth, each in enumerate(found)]
    tolerance = draw(st.sampled_from([0.05, 0.3, 1.0]))
    return record, rules_of(*named, tolerance=tolerance, record=record)


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


# -- the optimum ----------------------------------------------------------------------------------


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
        assert np.abs(moves - theirs).max() < 1e-4
        assert mine.frobenius == pytest.approx(np.linalg.norm(theirs), abs=1e-4)
        assert mine.max_shift == pytest.approx(np.abs(theirs).max(), abs=1e-4)
        assert mine.mean_shift * len(record) <= np.abs(theirs).sum() + 1e-4


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


# -- the hardened policy --------------------------------------------------------------------------


def hardened(rules: RuleSet, *, severe: float = 0.0) -> RuleSet:
    """Give rules the clean facts that budgets come from."""
    names = [rule.name for rule in rules.invariants]
    windows = [rule.name for rule in rules.invariants if isinstance(rule.relation, Window)]
    facts = CleanFacts(
        batch_rows=100,
        batches=1,
        effective_batches=1.0,
        refused_share=0.0,
        refused_upper=1.0,
        violating_share=0.0,
        segments_per_row=1.0,
        severe=tuple(Share(rule=name, share=severe) for name in names),
        envelope=(),
        anchors=tuple(Share(rule=name, share=0.0) for name in windows),
        liveness=(),
        repeats=(),
    )
    return replace(rules, clean=facts, profile=Profile.HARDENED)


def hardened_policy(alpha: float, **margins: float) -> HardenedPolicy:
    return HardenedPolicy(rows_min=1, margins=Margins(alpha=alpha, **margins))  # type: ignore[arg-type]


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
    free = project(record_of(values), rules, hardened_policy(0.05, severe_rows=1))
    assert free.moved_rows == 0
    assert free.verdict.admitted


def test_a_window_has_anchors_of_its_own_to_break() -> None:
    values = np.tile([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], (40, 1))
    values[:, 4] = np.minimum(np.arange(40), 14) * 0.25  # creeps up, row by row within tolerance
    window = Window(name="dL1/8", level="L1", terms=(), constant=0.0, rows=8, averaged=False)
    rules = hardened(rules_of(coupling(), window))
    for extra in range(5):
        found = project(record_of(values), rules, hardened_policy(0.05, anchor_extra=extra))
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


# -- as an attack ---------------------------------------------------------------------------------


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
        "import sys, sluice.attacks.projection; "
        "print({'piqp', 'scipy.sparse', 'scipy.optimize'} & set(sys.modules))"
    )
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert seen.stdout.decode().strip() == "set()"
