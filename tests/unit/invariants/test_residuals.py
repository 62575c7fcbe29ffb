"""Relations on rows: what the reference says, and that the fast evaluator says the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.arrays import Bools, Floats
from sluice.errors import MissingChannelError
from sluice.invariants import rowcheck
from sluice.invariants.relations import (
    ActuatorState,
    Balance,
    Bound,
    Coupling,
    Invariant,
    Rate,
    Relation,
    Term,
    Transition,
    Window,
)
from sluice.invariants.residuals import residuals
from sluice.invariants.rowcheck import violations
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.telemetry.channel import Channel, Role
from sluice.telemetry.record import Record

ACTUATORS = ("P1", "P2", "MV1")
READINGS = ("F1", "F2", "L1", "L2")
STRIDE_S = 5.0


def record_of(values: Floats, jumps: Bools, names: tuple[str, ...]) -> Record:
    """A record whose clock jumps where told."""
    steps = np.where(jumps, 60.0, STRIDE_S) * 1e6
    times = np.datetime64("2026-01-01T00:00:00", "us") + np.cumsum(steps.astype("timedelta64[us]"))
    channels = tuple(Channel(name=name, role=Role.OTHER) for name in names)
    return Record(
        name="plant",
        channels=channels,
        values=values,
        times=times,
        stride_s=STRIDE_S,
        labels=np.zeros(len(values), np.int8),
    )


def rules_of(record: Record, *rules: Invariant) -> RuleSet:
    return RuleSet(
        plant="plant",
        profile=Profile.PAPER_WIDE,
        stride_s=record.stride_s,
        channels=record.channels,
        invariants=rules,
    )


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Switching actuators, readings on a coarse grid (so that ties happen), gaps and jumps."""
    rows = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    holds = draw(st.sampled_from([1, 3, 9]))
    states = [np.repeat(rng.integers(0, 4, rows), holds)[:rows] for _ in ACTUATORS]
    readings = [rng.integers(-4, 12, rows) / 4 for _ in READINGS]
    values = np.column_stack([*states, *readings]).astype(np.float64)
    values[:, : len(ACTUATORS)] += rng.choice([0.0, 0.4], (rows, len(ACTUATORS)), p=[0.9, 0.1])
    values[rng.random(values.shape) < draw(st.sampled_from([0.0, 0.02, 0.2]))] = np.nan
    jumps = rng.random(rows) < draw(st.sampled_from([0.0, 0.1]))
    return record_of(values, jumps, (*ACTUATORS, *READINGS))


numbers = st.one_of(
    st.sampled_from([0.0, 0.25, -0.5, 1.0, 2.5]), st.floats(-3, 3, allow_subnormal=False)
)
flow_terms = st.builds(Term, channel=st.sampled_from(READINGS), coefficient=numbers)
on_terms = st.builds(
    Term,
    channel=st.sampled_from(ACTUATORS),
    coefficient=numbers,
    on=st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple),
)
terms = st.one_of(
    st.lists(flow_terms, max_size=4), st.lists(st.one_of(flow_terms, on_terms), max_size=4)
).map(tuple)
couplings = st.builds(
    Coupling,
    name=st.just("coupling"),
    actuator=st.sampled_from(ACTUATORS),
    flow=st.sampled_from(READINGS),
    off=st.integers(0, 1),
    states=st.lists(
        st.builds(ActuatorState, code=st.integers(0, 3), nominal=numbers), min_size=1, max_size=3
    ).map(tuple),
    settle=st.integers(0, 3),
    transition=st.sampled_from(Transition),
    standby=st.one_of(
        st.just(()),
        st.lists(st.tuples(st.sampled_from(ACTUATORS), st.integers(0, 1)), max_size=2).map(tuple),
    ),
)
level = st.sampled_from(READINGS)
relations: st.SearchStrategy[Relation] = st.one_of(
    couplings,
    st.builds(
        Balance,
        name=st.just("balance"),
        level=level,
        terms=terms,
        constant=numbers,
        averaged=st.booleans(),
    ),
    st.builds(
        Window,
        name=st.just("window"),
        level=level,
        terms=terms,
        constant=numbers,
        rows=st.integers(2, 12),
        averaged=st.booleans(),
    ),
    st.builds(Bound, name=st.just("bound"), channel=level, low=numbers, high=numbers),
    st.builds(Rate, name=st.just("rate"), channel=level),
)
tolerances = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 4))
invariants = st.lists(
    st.builds(Invariant, relation=relations, tolerance=tolerances), min_size=1, max_size=4
)


@settings(max_examples=300, deadline=None)
@given(record=records(), found=invariants, at_once=st.sampled_from([1, 2, 7, 32_768]))
def test_blocks_and_stretches_name_the_rows_that_residuals_name(
    record: Record, found: list[Invariant], at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rowcheck, "SHORT_ROWS", 0)
        patch.setattr(rowcheck, "BLOCK_ROWS", at_once)
        patch.setattr(rowcheck, "STRETCH_ROWS", at_once)
        check = violations(rules_of(record, *found), record)
    anywhere = np.zeros(len(record), bool)
    for rule, seen in zip(found, check.rules, strict=True):
        want = residuals(rule.relation, record)
        broken = want.applies & (np.abs(want.values) > rule.tolerance)
        anywhere |= broken
        assert seen.rule is rule
        np.testing.assert_array_equal(seen.broken, broken)
        assert seen.violating_rows == broken.sum()
        assert seen.applicable_rows == want.applies.sum()
        assert seen.envelope_rows == want.envelope.sum()
    np.testing.assert_array_equal(check.violating, anywhere)


def tank(flow: list[float], level_: list[float]) -> Record:
    values = np.column_stack([flow, level_])
    return record_of(values, np.zeros(len(flow), bool), ("F1", "L1"))


def test_a_window_with_a_missing_flow_is_not_judged() -> None:
    window = Window(
        name="window",
        level="L1",
        terms=(Term(channel="F1", coefficient=1.0),),
        constant=0.0,
        rows=2,
        averaged=False,
    )
    record = tank([1, 1, np.nan, 1, 1, 1], [0, 1, 2, 3, 4, 5])
    found = residuals(window, record)
    assert list(np.flatnonzero(found.applies)) == [4, 5]
    np.testing.assert_array_equal(found.values[[4, 5]], [0.0, 0.0])


def test_no_step_is_judged_over_a_time_jump() -> None:
    record = record_of(
        np.array([[0.0], [0.1], [9.0], [9.1]]), np.array([False, False, True, False]), ("L1",)
    )
    rate = Invariant(relation=Rate(name="rate", channel="L1"), tolerance=0.5)
    check = violations(rules_of(record, rate), record)
    assert not check.violating.any()
    assert check.rules[0].applicable_rows == 2


def test_a_missing_channel_is_named_with_the_rule_that_reads_it() -> None:
    record = tank([1.0], [0.0])
    rate = Invariant(relation=Rate(name="rate of L9", channel="L9"), tolerance=0.5)
    with pytest.raises(MissingChannelError, match="'L9', which rule 'rate of L9'"):
        violations(rules_of(record, rate), record)
