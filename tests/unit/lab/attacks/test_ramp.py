"""The farthest a level drifts before any rule sees it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy, PaperPolicy, Policy
from sluice.errors import RecordError, SettingError
from sluice.invariants.mining.profiles import mine
from sluice.invariants.relations import Balance, Bound, Invariant, Rate, Window
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.ramp import Ramp, drift
from sluice.lab.attacks.replay import Targets, choose_targets
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.channel import Channel, Role, Span
from sluice.telemetry.record import Record

from .malicious import facing

ROWS = 240


@pytest.fixture(scope="module")
def rules(hardened_rules: RuleSet) -> RuleSet:
    return hardened_rules


def still_tank(rows: int = ROWS) -> Record:
    channel = Channel(name="L", role=Role.LEVEL, unit="m", span=Span(low=0.0, high=10.0))
    return Record(
        name="still",
        channels=(channel,),
        values=np.full((rows, 1), 4.0),
        times=np.datetime64("2026-01-01", "us") + np.arange(rows) * np.timedelta64(1, "m"),
        stride_s=60.0,
        labels=np.zeros(rows, np.int8),
    )


def rules_of(*invariants: Invariant) -> RuleSet:
    return RuleSet(
        plant="still",
        profile=Profile.PAPER_WIDE,
        stride_s=60.0,
        channels=still_tank().channels,
        invariants=invariants,
    )


def balance(tolerance: float) -> Invariant:
    relation = Balance(name="dL", level="L", terms=(), constant=0.0, averaged=False)
    return Invariant(relation=relation, tolerance=tolerance)


def test_one_row_after_the_other_each_by_the_tolerance() -> None:
    found = drift(still_tank(), rules_of(balance(0.01)), PaperPolicy(), level="L")
    assert found.reached == pytest.approx(0.01 * (ROWS - 1), rel=1e-4)
    assert found.sentence == "L drifts 2.39 m up over 240 rows before any rule sees it"


def test_a_rate_stops_it_as_a_balance_does() -> None:
    rate = Invariant(relation=Rate(name="L rate", channel="L"), tolerance=0.004)
    found = drift(still_tank(), rules_of(balance(0.01), rate), PaperPolicy(), level="L")
    assert found.reached == pytest.approx(0.004 * (ROWS - 1), rel=1e-4)


def test_windows_slow_it_down() -> None:
    window = Window(name="dL/8", level="L", terms=(), constant=0.0, rows=8, averaged=False)
    slow = rules_of(balance(0.01), Invariant(relation=window, tolerance=0.02))
    found = drift(still_tank(), slow, PaperPolicy(), level="L")
    spans = (ROWS - 1) // 8
    assert found.reached == pytest.approx(0.02 * spans + 0.01 * ((ROWS - 1) % 8), rel=1e-4)


def test_ranges_and_the_instrument_end_it() -> None:
    up = drift(still_tank(), rules_of(balance(1.0)), PaperPolicy(), level="L")
    assert up.record.column("L").max() == pytest.approx(10.0, abs=1e-4)
    bound = Invariant(
        relation=Bound(name="L in range", channel="L", low=3.0, high=5.0), tolerance=0.1
    )
    down = drift(still_tank(), rules_of(balance(1.0), bound), PaperPolicy(), level="L", up=False)
    assert down.record.column("L").min() == pytest.approx(2.9, abs=1e-4)


def test_a_level_that_was_wrong_all_along_shows_in_no_difference() -> None:
    found = drift(still_tank(), rules_of(balance(1e-3)), PaperPolicy(), level="L", from_truth=False)
    assert found.away == pytest.approx(np.full(ROWS, 6.0), abs=1e-4)


@settings(deadline=None, max_examples=10)
@given(start=st.integers(6_000, 7_600), up=st.booleans(), level=st.sampled_from(["L_T1", "L_T3"]))
def test_whatever_was_admitted_is_admitted_drifting(
    plant: Record, rules: RuleSet, *, start: int, up: bool, level: str
) -> None:
    batch = plant.rows(start, start + 400)
    gate = Gate.of(rules, HardenedPolicy())
    if gate.judge(batch).admitted:
        found = drift(batch, rules, HardenedPolicy(), level=level, up=up)
        assert gate.judge(found.record).admitted
        assert (found.reached > 0) == up
        assert found.away[0] == 0


def test_the_hardened_gate_stops_a_ramp_that_the_papers_does_not(
    shard: Record, plant: Record, rules: RuleSet
) -> None:
    paper = mine(plant.rows(0, 3_000), plant.rows(3_000, 6_000), profile=Profile.PAPER_WIDE)
    cases: tuple[tuple[RuleSet, Policy], ...] = ((rules, HardenedPolicy()), (paper, PaperPolicy()))
    hardened, wide = (drift(shard, r, policy, level="L_T1") for r, policy in cases)
    assert 0 < hardened.reached < 0.2 * wide.reached


def test_the_maker_drifts_the_level_that_the_targets_falsify(shard: Record, rules: RuleSet) -> None:
    labelled = simulate("line", seed=1, days=3, attacks=True)
    targets = choose_targets(labelled, rows=250, seed=0)
    poison = Ramp()(shard, facing(targets, rules, HardenedPolicy()), seed=0)
    changed = np.flatnonzero((poison.trained.values != shard.values).any(axis=0))
    assert len(changed) == 1
    assert shard.channels[changed[0]].role is Role.LEVEL
    assert 0 < poison.planted.sum() < len(shard)
    assert Gate.of(rules, HardenedPolicy()).judge(poison.shown).admitted


def test_what_cannot_be_ramped_says_so(shard: Record, rules: RuleSet) -> None:
    targets = Targets(labelled=shard, stretches=(shard.segments[0],))
    with pytest.raises(
        SettingError, match="rules to stay under their tolerances, but knows no gate"
    ):
        Ramp()(shard, Knowledge(targets=targets), seed=0)
    values = shard.values.copy()
    values[5, shard.index("L_T1")] = np.nan
    with pytest.raises(RecordError, match="missing readings"):
        drift(shard.with_values(values), rules, HardenedPolicy(), level="L_T1")
