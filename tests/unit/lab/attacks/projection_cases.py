"""Small records and rules to project: two pumps, two flows, two levels, one idle channel."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from sluice.admission.policy import PaperPolicy
from sluice.arrays import Floats
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
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.telemetry.channel import Channel, Codes, Role, Span
from sluice.telemetry.record import Label, Record

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
        states=(ActuatorState(code=2, nominal=2.0),),
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
    unique_by=lambda term: term.channel,
).map(tuple)
relations: st.SearchStrategy[Relation] = st.one_of(
    st.builds(
        Coupling,
        name=st.just("coupling"),
        actuator=st.sampled_from(ACTUATORS),
        flow=st.sampled_from(["F1", "F2"]),
        off=st.just(1),
        states=st.builds(ActuatorState, code=st.just(2), nominal=st.floats(0.5, 3.0)).map(
            lambda s: (s,)
        ),
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
    rows = draw(st.integers(7, 24))  # the longest window has an anchor
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
