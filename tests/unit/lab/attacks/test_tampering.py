"""Tampering changes what the rules do not read, and as much of it as the gate admits."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import PaperPolicy
from sluice.errors import RecordError, SettingError
from sluice.invariants.relations import Balance, Bound, Invariant, Term
from sluice.invariants.ruleset import Profile, RuleSet, untied_channels
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.replay import Targets, choose_targets
from sluice.lab.attacks.tampering import (
    TAMPERINGS,
    ArNoise,
    ChannelSwap,
    ForeignSimulator,
    IdleFlip,
    LevelOffset,
    LowPass,
    ShapedReplay,
    Tampered,
    TankSwap,
    UntiedReplay,
)
from sluice.telemetry.channel import Channel, Codes, Role, Span
from sluice.telemetry.record import Label, Record

ROWS = 600
NAMES = ("L1", "L2", "L3", "F", "P1", "P2", "S", "M")


def made(seed: int, *, name: str = "tanks", attacks: bool = False) -> Record:
    """A tank L1 that a flow fills, two more tanks, two pressures, an idle pump and meter."""
    random = np.random.default_rng(seed)
    flow = 1 + 0.5 * np.sin(np.arange(ROWS) / 20 + seed) + 0.01 * random.normal(size=ROWS)
    level = 5 + np.cumsum(0.1 * (flow - flow.mean()))
    waves = [np.sin(np.arange(ROWS) / period + seed) for period in (15, 31)]
    values = np.column_stack(
        [
            level,
            4 + waves[0] + 0.01 * random.normal(size=ROWS),
            6 + waves[1] + 0.01 * random.normal(size=ROWS),
            flow,
            30 + waves[1] + 0.02 * random.normal(size=ROWS),
            28 + waves[0] + 0.02 * random.normal(size=ROWS),
            np.zeros(ROWS),
            np.full(ROWS, 7.0),
        ]
    )
    labels = np.full(ROWS, Label.NORMAL, np.int8)
    if attacks:
        labels[100:300] = Label.ATTACK
        values[100:300, 4:6] += 5.0
    return Record(
        name=name,
        channels=channels(),
        values=values,
        times=np.datetime64("2026-01-01", "us") + np.arange(ROWS) * np.timedelta64(60, "s"),
        stride_s=60.0,
        labels=labels,
    )


def channels() -> tuple[Channel, ...]:
    roles = {"L": (Role.LEVEL, "m"), "F": (Role.FLOW, "m3/h"), "P": (Role.PRESSURE, "m")}
    described = []
    for name in NAMES:
        if name == "S":
            codes = Codes(off=0, on=(1,))
            described.append(Channel(name=name, role=Role.ACTUATOR, codes=codes))
        else:
            role, unit = roles.get(name[0], (Role.QUALITY, "pH"))
            described.append(Channel(name=name, role=role, unit=unit, span=Span(low=0, high=50)))
    return tuple(described)


def bound(channel: str, low: float, high: float) -> Invariant:
    relation = Bound(name=f"{channel} range", channel=channel, low=low, high=high)
    return Invariant(relation=relation, tolerance=1e-3)


def gate(*more: Invariant) -> Gate:
    own = made(0)
    flow = own.column("F").mean()
    balance = Balance(
        name="dL1",
        level="L1",
        terms=(Term(channel="F", coefficient=0.1),),
        constant=-0.1 * float(flow),
        averaged=False,
    )
    bounds = [bound("L2", 2.0, 6.0), bound("L3", 3.0, 9.0), bound("P1", 20.0, 40.0)]
    rules = RuleSet(
        plant="tanks",
        profile=Profile.PAPER_WIDE,
        stride_s=60.0,
        channels=own.channels,
        invariants=(Invariant(relation=balance, tolerance=0.005), *bounds, *more),
    )
    return Gate.of(rules, PaperPolicy())


def changed(before: Record, after: Record) -> set[str]:
    return {
        name for name in before.names if not np.array_equal(before.column(name), after.column(name))
    }


def test_the_untouched_record_is_admitted() -> None:
    assert gate().judge(made(0)).admitted


def test_the_untied_channels_are_those_with_a_bound_at_most() -> None:
    assert untied_channels(gate().rules) == ("L2", "L3", "P1", "P2", "S", "M")


def test_an_offset_stays_in_the_bounds_and_is_admitted() -> None:
    own, known = made(0), gate()
    offset = LevelOffset(gate=known)(own, seed=0)
    assert known.judge(offset).admitted
    assert changed(own, offset) == {"L1", "L2", "L3"}
    for name, low, high in (("L2", 2.0, 6.0), ("L3", 3.0, 9.0)):
        moved = offset.column(name) - own.column(name)
        assert np.ptp(moved) == pytest.approx(0, abs=1e-9)
        assert abs(moved[0]) > 0.1 * np.ptp(own.column(name))
        assert low < offset.column(name).min() < offset.column(name).max() < high


def test_a_part_that_the_gate_refuses_is_left_alone_and_the_others_are_not() -> None:
    """L1's balance breaks when it is smoothed over many rows; L2 and L3 have none."""
    own, known = made(0), gate()
    smooth = LowPass(gate=known, rows=(61,))(own, seed=0)
    assert known.judge(smooth).admitted
    assert changed(own, smooth) == {"L2", "L3"}
    rough = np.diff(own.column("L2")).std()
    assert np.diff(smooth.column("L2")).std() < rough


def test_noise_is_as_large_as_is_admitted() -> None:
    own, known = made(0), gate()
    noisy = ArNoise(gate=known, sizes=(0.3, 0.1))(own, seed=0)
    assert known.judge(noisy).admitted
    assert changed(own, noisy) == {"L2", "L3"}
    spread = own.column("L2").std()
    assert np.std(noisy.column("L2") - own.column("L2")) == pytest.approx(0.3 * spread, rel=0.6)
    without_gate = ArNoise(sizes=(0.3, 0.1))(own, seed=0)
    assert changed(own, without_gate) == {"L1", "L2", "L3"}


def test_tanks_without_a_balance_change_places() -> None:
    own, rules = made(0), gate().rules
    unbounded = tuple(
        rule for rule in rules.invariants if rule.name not in {"L2 range", "L3 range"}
    )
    known = Gate.of(replace(rules, invariants=unbounded), PaperPolicy())
    swapped = TankSwap(gate=known)(own, seed=0)
    assert known.judge(swapped).admitted
    assert np.array_equal(swapped.column("L2"), own.column("L3"))
    assert np.array_equal(swapped.column("L3"), own.column("L2"))
    assert np.array_equal(swapped.column("L1"), own.column("L1"))


def test_a_swap_that_nothing_admits_is_submitted_and_refused() -> None:
    own = made(0).select(["L1", "F", "L2"])
    known = gate()
    rules = replace(
        known.rules,
        channels=own.channels,
        invariants=known.rules.invariants[:2],
    )
    two = Gate.of(rules, PaperPolicy())
    swapped = TankSwap(gate=two)(own, seed=0)
    assert changed(own, swapped) == {"L1", "L2"}
    assert not two.judge(swapped).admitted


def test_channels_of_one_role_and_unit_change_places() -> None:
    own = made(0)
    swapped = ChannelSwap(gate=gate())(own, seed=0)
    assert {"P1", "P2"} <= changed(own, swapped) <= {"P1", "P2", "L2", "L3"}
    assert np.array_equal(swapped.column("P1"), own.column("P2"))
    with pytest.raises(RecordError, match="nothing to swap"):
        ChannelSwap()(own.select(["L1", "F", "S"]), seed=0)


def test_idle_channels_move_within_their_bounds() -> None:
    own, known = made(0), gate(bound("M", 6.9, 7.1))
    flipped = IdleFlip(gate=known)(own, seed=0)
    assert known.judge(flipped).admitted
    assert changed(own, flipped) == {"S", "M"}
    assert (flipped.column("S") == 1).mean() == pytest.approx(0.9, abs=0.01)
    assert 6.9 <= flipped.column("M").min() < flipped.column("M").max() <= 7.1
    with pytest.raises(RecordError, match="no idle channel"):
        IdleFlip()(own.select(["L1", "F"]), seed=0)


def test_attacks_are_written_into_untied_channels_alone() -> None:
    own, known = made(0), gate()
    labelled = made(1, name="incident", attacks=True)
    replayed = UntiedReplay(labelled=labelled, gate=known)(own, seed=0)
    assert known.judge(replayed).admitted
    assert {"P1", "P2"} <= changed(own, replayed)
    assert not {"L1", "F"} & changed(own, replayed)
    written = replayed.column("P2") != own.column("P2")
    assert written.mean() == pytest.approx(0.9, abs=0.01)
    assert set(replayed.column("P2")[written]) <= set(labelled.column("P2")[100:300])


def test_a_plant_without_untied_channels_cannot_be_replayed_into() -> None:
    known = gate()
    tied = replace(known.rules, invariants=known.rules.invariants[:1], channels=channels()[:1])
    labelled = made(1, name="incident", attacks=True)
    with pytest.raises(RecordError, match="no untied channel"):
        UntiedReplay(labelled=labelled, gate=Gate.of(tied, PaperPolicy()))(made(0), seed=0)


@pytest.mark.parametrize("attack", [ShapedReplay, ForeignSimulator])
def test_nine_tenths_of_a_shard_are_planted_and_admitted(
    attack: Callable[..., ShapedReplay | ForeignSimulator],
) -> None:
    known, labelled = gate(), made(1, name="incident", attacks=True)
    poison = attack(labelled=labelled, gate=known).poison(made(0), seed=0)
    assert known.judge(poison.shown).admitted
    assert poison.planted.mean() == pytest.approx(0.9, abs=0.01)


def test_a_replay_shows_the_attacks_pressures_and_a_simulator_what_the_plant_would_show() -> None:
    own, labelled = made(0), made(1, name="incident", attacks=True)
    replayed, simulated = (
        attack(labelled=labelled, gate=gate()).poison(own, seed=0)
        for attack in (ShapedReplay, ForeignSimulator)
    )
    assert np.median(replayed.shown.column("P1")[replayed.planted]) > 33
    usual = own.column("P1")
    shown = simulated.shown.column("P1")[simulated.planted]
    assert usual.min() < np.median(shown) < usual.max()
    assert len(set(shown) & set(usual)) < 0.05 * len(shown), "no reading of its own is shown again"


def test_a_simulator_needs_whole_rows() -> None:
    values = made(0).values.copy()
    values[3, 0] = np.nan
    labelled = made(1, name="incident", attacks=True)
    with pytest.raises(RecordError, match="simulator cannot be fitted"):
        ForeignSimulator(labelled=labelled, gate=gate())(made(0).with_values(values), seed=0)


def test_another_stride_is_refused() -> None:
    labelled = replace(made(1, attacks=True), stride_s=30.0)
    with pytest.raises(RecordError, match=r"thin one of them"):
        ShapedReplay(labelled=labelled, gate=gate())(made(0), seed=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LevelOffset(sizes=(0.1, 0.2)), "each below the one before"),
        (lambda: LowPass(rows=(4,)), "odd number of rows"),
        (lambda: LowPass(rows=()), "each below the one before"),
        (lambda: ArNoise(memory=1.0), "memory is from 0 to below 1"),
        (lambda: IdleFlip(shares=(1.5,)), "at most 1"),
        (lambda: ShapedReplay(labelled=made(1), gate=gate(), shares=(0.1, 0.9)), "shares of rows"),
    ],
)
def test_settings_out_of_range_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make()


@pytest.fixture(scope="module")
def incident() -> Targets:
    return choose_targets(made(1, name="incident", attacks=True), rows=100, seed=0)


@pytest.mark.parametrize("name", sorted(TAMPERINGS))
def test_a_poison_marks_the_rows_that_it_changes(name: str, incident: Targets) -> None:
    own = made(0)
    poison = Tampered(name=name)(own, Knowledge(targets=incident, gate=gate()), seed=0)
    assert poison.shown is poison.trained
    assert np.array_equal(poison.planted, (poison.shown.values != own.values).any(axis=1))
    assert poison.exposure == (None if poison.planted.mean() > 0.5 else 0.5)


@pytest.mark.parametrize("name", ["untied-replay", "shaped-replay", "foreign-simulator"])
def test_a_replay_that_adapts_needs_a_gate(name: str, incident: Targets) -> None:
    with pytest.raises(SettingError, match="knows no gate"):
        Tampered(name=name)(made(0), Knowledge(targets=incident), seed=0)
