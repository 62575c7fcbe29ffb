"""A plant small enough to compute by hand: one pump, one meter, one tank, a row every 10 s.

The spans are chosen so that one register is exactly 3 units and register 0 is a reading of 0.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from sluice.arrays import Floats
from sluice.invariants.relations import (
    ActuatorState,
    Balance,
    Bound,
    Constant,
    Coupling,
    Invariant,
    Mean,
    Rate,
    Relation,
    Spectrum,
    SwitchBand,
    Term,
    Tie,
    Transition,
    Window,
)
from sluice.invariants.ruleset import CleanFacts, CleanShare, Liveness, Profile, RuleSet
from sluice.telemetry.channel import Channel, Codes, Role, Span
from sluice.telemetry.record import Record

STRIDE_S = 10.0
STEP = 3.0
BY_THREES = Span(low=10_922.5, high=185_682.5)
PUMP = Channel(name="P1", role=Role.ACTUATOR, codes=Codes(off=0, on=(1,), moving=(2,)))
METER = Channel(name="F1", role=Role.FLOW, unit="m3/h", span=BY_THREES)
TANK = Channel(name="L1", role=Role.LEVEL, unit="mm", span=BY_THREES)
PLANT = (PUMP, METER, TANK)

COUPLING = Coupling(
    name="P1~F1",
    actuator="P1",
    flow="F1",
    off=0,
    states=(ActuatorState(code=1, nominal=300.0),),
    settle=1,
    transition=Transition.ENVELOPE,
)
BALANCE = Balance(
    name="dL1",
    level="L1",
    terms=(Term(channel="F1", coefficient=0.5),),
    constant=0.0,
    averaged=False,
)
WINDOW = Window(name="dL1/4", level="L1", terms=BALANCE.terms, constant=0.0, rows=4, averaged=False)
BOUND = Bound(name="L1 in range", channel="L1", low=30.0, high=3_000.0)
RATE = Rate(name="L1 rate", channel="L1")
TIE = Tie(
    name="F1 by P1",
    channel="F1",
    terms=(Term(channel="P1", coefficient=300.0, on=(1,)),),
    constant=0.0,
)
IDLE = Constant(name="P1 idle", channel="P1", value=0.0)
FLAT = Constant(name="F1 constant", channel="F1", value=300.0)
BAND = SwitchBand(
    name="P1@L1",
    actuator="P1",
    on=(1,),
    level="L1",
    before=True,
    on_low=300.0,
    on_high=600.0,
    off_low=1_500.0,
    off_high=1_800.0,
)
SPECTRUM = Spectrum(
    name="L1 noise",
    channel="L1",
    rows=4,
    first_low=9.0 * 10,
    first_high=9.0 * 500,
    second_low=9.0 * 20,
    second_high=9.0 * 1_000,
)
MEAN = Mean(name="L1 mean", channel="L1", mean=900.0, rows=4)


def rule(relation: Relation, tolerance: float) -> Invariant:
    return Invariant(relation=relation, tolerance=tolerance)


COUPLED = rule(COUPLING, 6.0)
BALANCED = rule(BALANCE, 12.0)
WINDOWED = rule(WINDOW, 12.0)
BOUNDED = rule(BOUND, 3.0)
RATED = rule(RATE, 384.0)


def record_of(
    columns: Mapping[str, Sequence[float] | Floats],
    *,
    channels: tuple[Channel, ...] = PLANT,
    jumps: tuple[int, ...] = (),
    stride_s: float = STRIDE_S,
) -> Record:
    """The columns as a record; the clock jumps by ten more strides before each row of `jumps`."""
    rows = len(next(iter(columns.values())))
    steps = np.full(rows, stride_s)
    steps[list(jumps)] += 10 * stride_s
    start = np.datetime64("2026-03-01T00:00:00", "us")
    return Record(
        name="march",
        channels=tuple(channel for channel in channels if channel.name in columns),
        values=np.column_stack(
            [np.asarray(columns[c.name], np.float64) for c in channels if c.name in columns]
        ),
        times=start + np.cumsum((steps * 1e6).astype("timedelta64[us]")) - np.timedelta64(10, "s"),
        stride_s=stride_s,
        labels=np.zeros(rows, np.int8),
    )


def clean_facts(rules: Sequence[Invariant], channels: tuple[Channel, ...] = PLANT) -> CleanFacts:
    """Facts that leave every share at zero, and have each level move by 60 mm in 8 rows."""
    levels = [channel for channel in channels if channel.role is Role.LEVEL]
    kinds = {one.name: one.relation for one in rules}
    return CleanFacts(
        batch_rows=200,
        batches=400,
        effective_batches=10.0,
        refused_share=0.0,
        refused_upper=0.3,
        violating_share=0.0,
        segments_per_row=0.0,
        severe=tuple(
            CleanShare(rule=name, share=0.0)
            for name, relation in kinds.items()
            if isinstance(relation, Coupling | Balance | Rate | Tie)
        ),
        envelope=tuple(
            CleanShare(rule=name, share=0.0)
            for name, relation in kinds.items()
            if isinstance(relation, Coupling)
        ),
        anchors=tuple(
            CleanShare(rule=name, share=0.0)
            for name, relation in kinds.items()
            if isinstance(relation, Window | Mean)
        ),
        liveness=tuple(
            Liveness(level=level.name, rows=8, smallest_range=60.0)
            for level in levels
            if level.span
        ),
        repeats=tuple(CleanShare(rule=level.name, share=0.0) for level in levels),
        switches=tuple(
            CleanShare(rule=name, share=0.0)
            for name, relation in kinds.items()
            if isinstance(relation, SwitchBand)
        ),
        blocks=tuple(
            CleanShare(rule=name, share=0.0)
            for name, relation in kinds.items()
            if isinstance(relation, Spectrum)
        ),
    )


def rules_of(*rules: Invariant, channels: tuple[Channel, ...] = PLANT) -> RuleSet:
    """Hardened rules of the plant, with facts about clean rows."""
    return RuleSet(
        plant="march",
        profile=Profile.HARDENED,
        stride_s=STRIDE_S,
        channels=channels,
        invariants=rules,
        clean=clean_facts(rules, channels),
    )


EVERY_RULE = rules_of(COUPLED, BALANCED, WINDOWED, BOUNDED, RATED)

# The pump rests for four rows, runs for eight and rests again; the tank rises by half of the flow.
ROWS = 16
STATES = [0.0] * 4 + [1.0] * 8 + [0.0] * 4
FLOWS = [0.0] * 4 + [300.0] * 8 + [0.0] * 4
LEVELS = [600.0] * 4 + [750.0 + 150.0 * at for at in range(8)] + [1_800.0] * 4


def quiet_day() -> dict[str, list[float]]:
    """Sixteen rows that keep every rule, as columns to edit."""
    return {"P1": list(STATES), "F1": list(FLOWS), "L1": list(LEVELS)}
