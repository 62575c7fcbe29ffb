"""A small plant for the circuit: one rule of every kind, and batches that use every way out."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sluice.admission.policy import HardenedPolicy
from sluice.arrays import Bools
from sluice.invariants.budgets import Margins
from sluice.invariants.measure import measure
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
    RelationKind,
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

START = np.datetime64("2024-03-01T00:00:00", "us")
STRIDE = np.timedelta64(5, "s")

CHANNELS = (
    Channel(name="L", role=Role.LEVEL, span=Span(low=0, high=10)),
    Channel(name="F", role=Role.FLOW, span=Span(low=-0.5, high=5)),
    Channel(name="G", role=Role.FLOW, span=Span(low=0, high=3)),
    Channel(name="Q", role=Role.QUALITY, span=Span(low=0, high=100)),
    Channel(name="S", role=Role.ACTUATOR, codes=Codes(off=1, on=(2, 3), moving=(0,))),
    Channel(name="P", role=Role.ACTUATOR, codes=Codes(off=0, on=(1,))),
    Channel(name="R", role=Role.ACTUATOR, codes=Codes(off=0, on=(1,))),
    Channel(name="U", role=Role.ACTUATOR, codes=Codes(off=0, on=(1, 2, 3))),
    Channel(name="X", role=Role.OTHER),
)
TERMS = (
    Term(channel="F", coefficient=0.010),
    Term(channel="G", coefficient=-0.015),
    Term(channel="S", coefficient=0.004, on=(2, 3)),
)
NOMINAL = {1: 0.0, 2: 2.0, 3: 3.5, 0: 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """What differs from plant to plant."""

    settle: int = 2
    averaged: bool = True
    windows: tuple[int, ...] = (4, 8, 7)
    blocks: tuple[int, ...] = (9, 6)
    severe_rows: int = 0
    severe_multiple: float = 1.0
    jumps: bool = False
    standby: tuple[tuple[str, int], ...] = (("P", 0),)
    tied: bool = False
    idle: bool = False
    flow_range: bool = True  # the range of a flow, which only flags
    bands: tuple[bool, ...] = ()  # whether the row before the switch decides
    spectra: tuple[tuple[str, int, int], ...] = ()  # channel, rows, offset
    means: tuple[int, ...] = ()  # rows


def rules_of(wiring: Wiring) -> RuleSet:
    """The rules of the plant."""
    balance = Balance(name="dL", level="L", terms=TERMS, constant=0.001, averaged=wiring.averaged)
    relations: list[tuple[Relation, float]] = [
        (
            Coupling(
                name="S~F",
                actuator="S",
                flow="F",
                off=1,
                states=(ActuatorState(code=2, nominal=2.0), ActuatorState(code=3, nominal=3.5)),
                settle=wiring.settle,
                transition=Transition.ENVELOPE,
                standby=wiring.standby,
            ),
            0.3,
        ),
        (
            Coupling(
                name="P~G",
                actuator="P",
                flow="G",
                off=0,
                states=(ActuatorState(code=1, nominal=1.0),),
                settle=min(1, wiring.settle),
                transition=Transition.ENVELOPE,
            ),
            0.2,
        ),
        (balance, 0.05),
        *(
            (
                Window(
                    name=f"dL/{rows}",
                    level="L",
                    terms=TERMS,
                    constant=0.001,
                    rows=rows,
                    averaged=wiring.averaged,
                ),
                0.06,
            )
            for rows in wiring.windows
        ),
        *(
            [(Bound(name="F in range", channel="F", low=-0.4, high=4.6), 0.01)]
            if wiring.flow_range
            else []
        ),
        (Bound(name="Q in range", channel="Q", low=5, high=95), 0.01),
        (Rate(name="L rate", channel="L"), 0.2),
        (Rate(name="Q rate", channel="Q"), 9.0),
        *own_limits(wiring),
    ]
    return RuleSet(
        plant="small",
        profile=Profile.HARDENED,
        stride_s=5.0,
        channels=CHANNELS,
        invariants=tuple(Invariant(relation=each, tolerance=far) for each, far in relations),
        clean=clean_facts(wiring),
    )


def own_limits(wiring: Wiring) -> Iterator[tuple[Relation, float]]:
    """Ties, constants, switch bands, spectra and means, as far as the plant has them."""
    if wiring.tied:
        terms = (
            Term(channel="G", coefficient=-1.5),
            Term(channel="S", coefficient=1.9, on=(2, 3)),
        )
        yield Tie(name="F by S", channel="F", terms=terms, constant=1.45), 1.9
    if wiring.idle:
        yield Constant(name="R idle", channel="R", value=0.0), 0.5
        yield Constant(name="G constant", channel="G", value=0.01), 0.08
    for at, before in enumerate(wiring.bands):
        actuator, on, level = (("S", (2, 3), "L"), ("P", (1,), "Q"))[at % 2]
        middle, half = {"L": (5.2, 0.1), "Q": (50.0, 1.0)}[level]
        yield (
            SwitchBand(
                name=f"{actuator}@{level} {at}",
                actuator=actuator,
                on=on,
                level=level,
                before=before,
                on_low=middle - half,
                on_high=middle + half,
                off_low=middle,
                off_high=middle + 3 * half,
            ),
            0.01,
        )
    for channel, rows, offset in wiring.spectra:
        step = {"L": 0.012, "Q": 0.5}[channel] ** 2
        yield (
            Spectrum(
                name=noise(channel, rows, offset),
                channel=channel,
                rows=rows,
                offset=offset,
                first_low=0.3 * step * (rows - 1),
                first_high=2.0 * step * (rows - 1),
                second_low=0.2 * step * (rows - 2),
                second_high=3.0 * step * (rows - 2),
            ),
            1e-6,
        )
    for rows in wiring.means:
        yield Mean(name=mean(rows), channel="Q", mean=50.0, rows=rows), 1.5


def mean(rows: int) -> str:
    """The name of a mean."""
    return f"Q mean {rows}"


def noise(channel: str, rows: int, offset: int) -> str:
    """The name of a spectrum."""
    return f"{channel} noise {rows}+{offset}"


def clean_facts(wiring: Wiring) -> CleanFacts:
    """What clean rows are said to have shown."""
    return CleanFacts(
        batch_rows=100,
        batches=400,
        effective_batches=10,
        refused_share=0.0,
        refused_upper=0.3,
        violating_share=0.0,
        segments_per_row=0.01 if wiring.jumps else 0.0,
        severe=(
            CleanShare(rule="dL", share=0.9),
            CleanShare(rule="S~F", share=1.4),
            CleanShare(rule="P~G", share=0.0),
            CleanShare(rule="L rate", share=0.0),
            CleanShare(rule="Q rate", share=0.0),
            *((CleanShare(rule="F by S", share=0.9),) if wiring.tied else ()),
        ),
        envelope=(CleanShare(rule="S~F", share=0.2), CleanShare(rule="P~G", share=0.1)),
        anchors=(
            *(CleanShare(rule=f"dL/{rows}", share=0.1) for rows in wiring.windows),
            *(CleanShare(rule=mean(rows), share=0.1) for rows in wiring.means),
        ),
        liveness=tuple(
            Liveness(level="L", rows=rows, smallest_range=0.004 * rows) for rows in wiring.blocks
        ),
        repeats=(CleanShare(rule="L", share=0.0),),
        switches=tuple(
            CleanShare(rule=relation.name, share=0.01)
            for relation, _ in own_limits(wiring)
            if isinstance(relation, SwitchBand)
        ),
        blocks=tuple(CleanShare(rule=noise(*each), share=0.1) for each in wiring.spectra),
    )


def policy_of(wiring: Wiring) -> HardenedPolicy:
    """The policy under which the plant is judged."""
    margins = Margins(
        alpha=0.1, severe_share=wiring.severe_rows / 100, severe_multiple=wiring.severe_multiple
    )
    return HardenedPolicy(rows_min=2, margins=margins)


def clean_batch(rows: int, seed: int, *, averaged: bool = True) -> Record:
    """Rows as the plant makes them: nothing about them is wrong but where a pump is switched."""
    rng = np.random.default_rng(seed)
    changes = np.sort(rng.choice(np.arange(5, rows), size=max(1, rows // 25), replace=False))
    status = np.repeat(
        rng.choice([1, 2, 3], size=len(changes) + 1), np.diff([0, *changes, rows])
    ).astype(float)
    pump = np.zeros(rows)
    pump[rows // 3 : rows // 3 + 4] = 1.0
    flow = np.array([NOMINAL[int(code)] for code in status])
    flow[pump == 1] = 0.7
    other = pump * 1.0
    flow += rng.normal(0, 0.03, rows)
    other += rng.normal(0, 0.02, rows)
    inflow = 0.010 * flow - 0.015 * other + 0.004 * (status >= 2)
    if averaged:
        inflow[1:] = (inflow[1:] + inflow[:-1]) / 2
    level = 5 + np.cumsum(inflow + 0.001) + rng.normal(0, 0.002, rows)
    level += 0.03 * np.sin(np.arange(rows) / 2)
    values = np.column_stack(
        [
            level,
            flow,
            other,
            50 + np.cumsum(rng.normal(0, 0.5, rows)),
            status,
            pump,
            np.zeros(rows),
            rng.integers(0, 4, rows).astype(float),
            rng.normal(0, 1, rows),
        ]
    )
    return Record(
        name="small",
        channels=CHANNELS,
        values=values,
        times=START + np.arange(rows) * STRIDE,
        stride_s=5.0,
        labels=np.zeros(rows, np.int8),
    )


def with_cell(batch: Record, row: int, channel: str, value: float) -> Record:
    """The batch with one reading changed."""
    values = batch.values.copy()
    values[row, batch.index(channel)] = value
    return batch.with_values(values)


def with_jump(batch: Record, row: int) -> Record:
    """The batch with a time jump before a row."""
    times = batch.times.copy()
    times[row:] += np.timedelta64(600, "s")
    return replace(batch, times=times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the evaluator finds in a batch, in the order in which the circuit counts it."""

    violating: int
    severe: int
    segments: int
    unsteady: tuple[int, ...]
    windows: tuple[int, ...]
    switches: tuple[int, ...] = ()
    blocks: tuple[int, ...] = ()
    still: bool

    def document(self) -> dict[str, object]:
        """Budgets that the batch just keeps."""
        return {
            "violating": self.violating,
            "severe": self.severe,
            "segments": self.segments,
            "unsteady": list(self.unsteady),
            "windows": list(self.windows),
            "switches": list(self.switches),
            "blocks": list(self.blocks),
        }


def shown(rules: RuleSet, policy: HardenedPolicy, batch: Record) -> Shown:
    """Ask the normative evaluator."""
    from sluice.attestation.systems.full.statement import derive  # noqa: PLC0415

    budgets = derive(rules, policy).budgets(len(batch))
    measured = measure(rules, batch)
    severe: Bools = np.zeros(len(batch), bool)
    unsteady = []
    own: dict[RelationKind, list[int]] = defaultdict(list)
    for found in measured.judged:
        if found.own_budget:
            own[found.rule.kind].append(int(found.violating.sum()))
            continue
        severe |= found.size > budgets.severe[found.rule.name]
        if isinstance(found.rule.relation, Coupling):
            unsteady.append(int(found.envelope.sum()))
    return Shown(
        violating=int(measured.violating.sum()),
        severe=int(severe.sum()),
        segments=measured.segments,
        unsteady=tuple(unsteady),
        windows=(*own[RelationKind.WINDOW], *own[RelationKind.MEAN]),
        switches=tuple(own[RelationKind.SWITCH_BAND]),
        blocks=tuple(own[RelationKind.SPECTRUM]),
        still=any(
            (ranges < budgets.quietest[fact.level, fact.rows]).any()
            for fact, ranges in measured.quietest
        ),
    )
