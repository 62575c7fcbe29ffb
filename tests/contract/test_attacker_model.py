"""The attacker's model of the gate knows every kind of rule that the gate judges.

An attack that ignores a rule is not optimised against its gate. The kinds come from the code: a new
kind of rule fails here until the projection demands it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from sluice.admission import Gate, HardenedPolicy, PaperPolicy
from sluice.arrays import Floats
from sluice.invariants import (
    ActuatorState,
    Balance,
    Bound,
    CleanFacts,
    CleanShare,
    Constant,
    Coupling,
    IntegerRule,
    Invariant,
    Margins,
    Mean,
    Profile,
    Rate,
    Relation,
    RelationKind,
    RuleSet,
    Spectrum,
    SwitchBand,
    Term,
    Tie,
    Transition,
    Window,
    encode,
)
from sluice.invariants.budgets import SEVERE_KINDS, SUMMED_KINDS
from sluice.lab.attacks.projection import SpectrumTangents, hardened_demands, project
from sluice.lab.attacks.ramp import drift
from sluice.telemetry import Channel, Codes, Label, Record, Role, Span

pytestmark = pytest.mark.filterwarnings("ignore::sluice.admission.EmptyRulesWarning")

ROWS = 400
NAMES = ("PUMP", "SPARE", "FLOW", "LEVEL", "PRESSURE", "METER")

RELATIONS: dict[RelationKind, Relation] = {
    RelationKind.COUPLING: Coupling(
        name="PUMP~FLOW",
        actuator="PUMP",
        flow="FLOW",
        off=0,
        states=(ActuatorState(code=1, nominal=10.0),),
        settle=1,
        transition=Transition.ENVELOPE,
    ),
    RelationKind.BALANCE: Balance(
        name="LEVEL balance",
        level="LEVEL",
        terms=(Term(channel="FLOW", coefficient=0.02),),
        constant=-0.1,
        averaged=False,
    ),
    RelationKind.WINDOW: Window(
        name="LEVEL window",
        level="LEVEL",
        terms=(Term(channel="FLOW", coefficient=0.02),),
        constant=-0.1,
        rows=16,
        averaged=False,
    ),
    RelationKind.BOUND: Bound(name="LEVEL range", channel="LEVEL", low=1.0, high=9.0),
    RelationKind.RATE: Rate(name="LEVEL rate", channel="LEVEL"),
    RelationKind.TIE: Tie(
        name="PRESSURE tie",
        channel="PRESSURE",
        terms=(
            Term(channel="LEVEL", coefficient=1.0),
            Term(channel="PUMP", coefficient=3.0, on=(1,)),
        ),
        constant=20.0,
    ),
    RelationKind.CONSTANT: Constant(name="METER constant", channel="METER", value=7.0),
    RelationKind.SWITCH_BAND: SwitchBand(
        name="PUMP by LEVEL",
        actuator="PUMP",
        on=(1,),
        level="LEVEL",
        before=True,
        on_low=2.5,
        on_high=3.6,
        off_low=6.4,
        off_high=7.5,
    ),
    RelationKind.SPECTRUM: Spectrum(
        name="PRESSURE noise",
        channel="PRESSURE",
        rows=32,
        first_low=0.01,
        first_high=40.0,
        second_low=0.3,
        second_high=40.0,
    ),
    RelationKind.MEAN: Mean(name="LEVEL mean", channel="LEVEL", mean=5.0, rows=128),
}
TOLERANCES = {
    RelationKind.COUPLING: 0.5,
    RelationKind.BALANCE: 0.05,
    RelationKind.WINDOW: 0.15,
    RelationKind.RATE: 0.2,
    RelationKind.TIE: 0.4,
    RelationKind.CONSTANT: 0.1,
    RelationKind.SWITCH_BAND: 1e-3,
    RelationKind.SPECTRUM: 1e-3,
    RelationKind.MEAN: 0.5,
}


def honest(seed: int = 0) -> Record:
    """A pump fills a tank between two levels; a pressure follows the tank and the pump."""
    random = np.random.default_rng(seed)
    level, on, rows = 4.0, False, []
    for _ in range(ROWS):
        on = level <= 3.0 or (on and level < 7.0)
        flow = (10.0 if on else 0.0) + 0.05 * random.normal()
        level += 0.02 * flow - 0.1
        rows.append((float(on), 0.0, flow, level, 20.0 + level + 3.0 * on, 7.0))
    values = np.array(rows)
    values[:, 3] += 0.002 * random.normal(size=ROWS)
    values[:, 4] += 0.05 * random.normal(size=ROWS)
    return record_of(values)


def record_of(values: Floats) -> Record:
    spans = {"FLOW": (-5, 20), "LEVEL": (0, 10), "PRESSURE": (0, 50), "METER": (0, 20)}
    channels = [
        Channel(name=name, role=Role.ACTUATOR, codes=Codes(off=0, on=(1,)))
        if name not in spans
        else Channel(
            name=name,
            role=Role.LEVEL if name == "LEVEL" else Role.OTHER,
            span=Span(low=spans[name][0], high=spans[name][1]),
        )
        for name in NAMES
    ]
    return Record(
        name="tank",
        channels=tuple(channels),
        values=values,
        times=np.datetime64("2026-01-01", "us") + np.arange(len(values)) * np.timedelta64(60, "s"),
        stride_s=60.0,
        labels=np.full(len(values), Label.NORMAL, np.int8),
    )


def rules_of(*kinds: RelationKind, idle_actuator: bool = False) -> RuleSet:
    relations: list[Relation] = [RELATIONS[kind] for kind in kinds]
    if idle_actuator:
        relations.append(Constant(name="SPARE constant", channel="SPARE", value=0.0))
    rules = RuleSet(
        plant="tank",
        profile=Profile.HARDENED,
        stride_s=60.0,
        channels=honest().channels,
        invariants=tuple(
            Invariant(relation=relation, tolerance=TOLERANCES.get(relation.kind, 0.3))
            for relation in relations
        ),
    )

    def facts(*of: RelationKind, share: float = 0.0) -> tuple[CleanShare, ...]:
        return tuple(CleanShare(rule=rule.name, share=share) for rule in rules.of_kind(*of))

    return replace(
        rules,
        clean=CleanFacts(
            batch_rows=100,
            batches=1,
            effective_batches=1.0,
            refused_share=0.0,
            refused_upper=1.0,
            violating_share=0.0,
            segments_per_row=0.0,
            severe=facts(*SEVERE_KINDS, share=1.0),
            envelope=facts(RelationKind.COUPLING, share=1.0),
            anchors=facts(*SUMMED_KINDS),
            liveness=(),
            repeats=(CleanShare(rule="LEVEL", share=1.0),),
            switches=facts(RelationKind.SWITCH_BAND),
            blocks=facts(RelationKind.SPECTRUM),
        ),
    )


POLICY = HardenedPolicy(rows_min=1, margins=Margins(alpha=0.01))


def noisy(values: Floats, column: int, size: float, seed: int) -> None:
    values[100:300, column] += size * np.random.default_rng(seed).normal(size=200)


BREAKS: dict[RelationKind, Callable[[Floats], None]] = {
    RelationKind.COUPLING: lambda values: noisy(values, 2, 3.0, 1),
    RelationKind.BALANCE: lambda values: noisy(values, 3, 0.3, 2),
    RelationKind.WINDOW: lambda values: values.__setitem__(
        (slice(100, 300), 3), values[100:300, 3] + 0.015 * np.arange(200)
    ),
    RelationKind.BOUND: lambda values: values.__setitem__((slice(100, 300), 3), 9.6),
    RelationKind.RATE: lambda values: noisy(values, 3, 0.5, 3),
    RelationKind.TIE: lambda values: noisy(values, 4, 2.0, 4),
    RelationKind.CONSTANT: lambda values: noisy(values, 5, 2.0, 5),
    RelationKind.SWITCH_BAND: lambda values: values.__setitem__(
        (slice(100, 300), 3), values[100:300, 3] + 1.2
    ),
    RelationKind.SPECTRUM: lambda values: values.__setitem__(
        (slice(100, 300), 4), np.convolve(values[:, 4], np.full(31, 1 / 31), "same")[100:300]
    ),
    RelationKind.MEAN: lambda values: values.__setitem__(
        (slice(100, 300), 3), values[100:300, 3] + 1.5
    ),
}


def attacked(kind: RelationKind) -> Record:
    values = honest().values.copy()
    BREAKS[kind](values)
    return record_of(values)


def test_the_cases_cover_every_kind() -> None:
    assert set(RELATIONS) == set(BREAKS) == set(RelationKind)
    encoded = {type(rule) for rule in encode(rules_of(*RelationKind)).rules}
    assert encoded == set(get_args(IntegerRule))


@pytest.mark.parametrize("kind", RelationKind)
def test_the_honest_record_is_admitted_and_the_attacked_one_is_not(kind: RelationKind) -> None:
    gate = Gate.of(rules_of(kind), POLICY, allow_empty=True)
    assert gate.judge(honest()).admitted
    assert not gate.judge(attacked(kind)).admitted


@pytest.mark.parametrize("kind", RelationKind)
def test_every_kind_has_a_demand(kind: RelationKind) -> None:
    rules = rules_of(kind)
    gate = Gate.of(rules, POLICY, allow_empty=True)
    record = attacked(kind)
    tangents = SpectrumTangents(gate)
    tangents.add(record)
    demands = hardened_demands(rules, POLICY, record, encode(rules), tangents=tangents.chains())
    named = {slab.rule for slab in demands.slabs} | {chain.rule for chain in demands.chains}
    assert named == {RELATIONS[kind].name}


@pytest.mark.parametrize("kind", RelationKind)
@pytest.mark.parametrize("beside", [(), tuple(RelationKind)])
def test_the_claim_to_be_feasible_agrees_with_the_gate(
    kind: RelationKind, beside: tuple[RelationKind, ...]
) -> None:
    rules = rules_of(*dict.fromkeys((kind, *beside)))
    found = project(attacked(kind), rules, POLICY)
    assert found.feasible == found.verdict.admitted
    assert found.feasible or beside, "a rule by itself can always be obeyed"
    assert found.moved_rows > 0


@pytest.mark.parametrize("kind", RelationKind)
def test_the_paper_policy_is_modelled_too(kind: RelationKind) -> None:
    rules = rules_of(kind)
    gate = Gate.of(rules, PaperPolicy(alpha=0.0), allow_empty=True)
    assert not gate.judge(attacked(kind)).admitted
    found = project(attacked(kind), rules, PaperPolicy(alpha=0.0))
    assert found.feasible
    assert found.verdict.admitted


def test_an_idle_actuator_that_switches_cannot_be_projected() -> None:
    values = honest().values.copy()
    values[100:300, 1] = 1.0
    found = project(record_of(values), rules_of(RelationKind.TIE, idle_actuator=True), POLICY)
    assert not found.feasible
    assert not found.verdict.admitted
    assert {conflict.rules for conflict in found.conflicts} == {("SPARE constant",)}


@pytest.mark.parametrize("kind", RelationKind)
def test_a_ramp_stays_within_every_kind_of_rule(kind: RelationKind) -> None:
    rules = rules_of(kind)
    found = drift(honest(), rules, POLICY, level="LEVEL")
    assert Gate.of(rules, POLICY, allow_empty=True).judge(found.record).admitted


def test_a_ramp_takes_tied_channels_along() -> None:
    rules = rules_of(RelationKind.TIE)
    found = drift(honest(), rules, POLICY, level="LEVEL")
    assert abs(found.reached) > 4 * TOLERANCES[RelationKind.TIE]
    moved = found.record.column("PRESSURE") - honest().column("PRESSURE")
    assert moved == pytest.approx(found.away)


def rough() -> Record:
    """A pressure with noise beyond the upper limit of its spectrum."""
    values = honest().values.copy()
    noisy(values, 4, 1.5, 6)
    return record_of(values)


def test_a_rough_channel_is_smoothed_as_far_as_its_spectrum_demands() -> None:
    rules = rules_of(RelationKind.SPECTRUM)
    assert not Gate.of(rules, POLICY, allow_empty=True).judge(rough()).admitted
    found = project(rough(), rules, POLICY)
    assert found.feasible
    assert found.verdict.admitted


def test_a_spectrum_that_is_still_broken_is_not_called_feasible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sluice.lab.attacks.projection.search.TANGENT_ROUNDS", 1)
    found = project(rough(), rules_of(RelationKind.SPECTRUM), POLICY)
    assert not found.feasible
    assert not found.verdict.admitted
