"""A plant tries to choose its own gate through its rules file."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sluice.admission.acceptance import Acceptance, objections, unsound
from sluice.admission.gate import Gate
from sluice.admission.objections import ObjectionKind
from sluice.admission.policy import HardenedPolicy, accept
from sluice.attestation.messages.messages import RegistrationTerms
from sluice.attestation.systems.full.statement import derive
from sluice.attestation.systems.registry import circuit_for, find_system
from sluice.attestation.systems.unsafe import Unsafe
from sluice.errors import RecordError, RulesFileError, SettingError
from sluice.invariants.budgets import Margins, budgets_for, fact_faults
from sluice.invariants.encoding import TOLERANCE, encode
from sluice.invariants.mining.profiles import mine
from sluice.invariants.relations import (
    ActuatorState,
    Bound,
    Rate,
    Term,
)
from sluice.invariants.ruleset import CleanFacts, CleanShare, Dropped, Liveness, Profile, RuleSet
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.channel import Codes, Span
from sluice.telemetry.record import Record
from tests.unit.admission.objectionable import claiming, facts, ruled, share
from tests.unit.invariants.small_plant import (
    BALANCE,
    BALANCED,
    BOUNDED,
    COUPLED,
    COUPLING,
    EVERY_RULE,
    METER,
    PLANT,
    PUMP,
    TANK,
    WINDOW,
    WINDOWED,
    quiet_day,
    record_of,
    rule,
)

Kind = ObjectionKind
Facts = Callable[[CleanFacts], CleanFacts]
REQUIRED = Acceptance()
HARDENED = HardenedPolicy()
SPARE = replace(PUMP, name="P2")
NEVER = "it hardly ever switched in the clean record"


def kinds(rules: RuleSet, last: RuleSet | None = None, **declared: str) -> set[Kind]:
    return {one.kind for one in objections(rules, REQUIRED, last=last, declared=declared)}


def without(field: str) -> Facts:
    return lambda clean: replace(clean, **{field: ()})  # type: ignore[arg-type]


def doubled(field: str) -> Facts:
    return lambda clean: replace(clean, **{field: getattr(clean, field) * 2})


def stating(field: str, value: float) -> Facts:
    def edit(clean: CleanFacts) -> CleanFacts:
        stated: tuple[CleanShare, ...] = getattr(clean, field)
        return replace(clean, **{field: tuple(replace(fact, share=value) for fact in stated)})  # type: ignore[arg-type]

    return edit


def about(field: str, rule: str) -> Facts:
    return lambda clean: replace(clean, **{field: (*getattr(clean, field), *share(rule, 0.0))})  # type: ignore[arg-type]


def living(*blocks: tuple[str, int, float]) -> Facts:
    return lambda clean: replace(
        clean,
        liveness=tuple(
            Liveness(level=level, rows=rows, smallest_range=size) for level, rows, size in blocks
        ),
    )


MISSTATED = {
    "no transitions": without("envelope"),
    "no windows": without("anchors"),
    "no residuals": without("severe"),
    "no repeats": without("repeats"),
    "transitions twice": doubled("envelope"),
    "windows twice": doubled("anchors"),
    "residuals twice": doubled("severe"),
    "repeats twice": doubled("repeats"),
    "a block twice": living(("L1", 8, 60.0), ("L1", 8, 0.0)),
    "transitions of no coupling": about("envelope", "P9~F9"),
    "transitions of a balance": about("envelope", "dL1"),
    "windows of no window": about("anchors", "dL1/999"),
    "repeats of no level": about("repeats", "F1"),
    "a residual of a range": about("severe", "L1 in range"),
    "a residual of a window": about("severe", "dL1/4"),
    "a negative share": stating("envelope", -0.1),
    "no number of windows": stating("anchors", math.nan),
    "endless residuals": stating("severe", math.inf),
    "negative repeats": stating("repeats", -1.0),
    "a negative range": living(("L1", 8, -60.0)),
    "no number of a range": living(("L1", 8, math.nan)),
    "a block of one row": living(("L1", 1, 60.0)),
    "a block of an unknown level": living(("L9", 8, 60.0)),
    "a block of a meter": living(("F1", 8, 60.0)),
    "jumps without number": lambda clean: replace(clean, segments_per_row=math.nan),
    "negative jumps": lambda clean: replace(clean, segments_per_row=-1.0),
    "refuses less than nothing": lambda clean: replace(clean, refused_share=-0.5),
}


@pytest.mark.parametrize("edit", MISSTATED.values(), ids=MISSTATED)
def test_a_fact_that_is_missing_repeated_invented_or_no_number_gives_no_budget(
    edit: Facts,
) -> None:
    rules = claiming(edit)
    assert rules.clean is not None
    assert fact_faults(rules, rules.clean)
    with pytest.raises(RulesFileError, match="the rules of 'march' give no budgets: .* mine them"):
        budgets_for(rules, rules.clean, Margins(), rows=200)
    assert {one.kind for one in unsound(rules)} == {Kind.CLEAN_FACTS}
    assert objections(rules, REQUIRED) == unsound(rules)


def test_the_facts_of_mined_rules_have_no_fault() -> None:
    plant = simulate("line", seed=0, days=6)
    rules = mine(plant.rows(0, 4_320), plant.rows(4_320, 8_640), profile=Profile.HARDENED)
    assert rules.clean is not None
    assert fact_faults(rules, rules.clean) == ()


@pytest.fixture(scope="module")
def treatment() -> Record:
    return simulate("treatment", seed=0, days=2).every(10)


def test_a_pump_toggled_in_every_row_is_not_admitted_for_want_of_a_fact(treatment: Record) -> None:
    """`envelope=()` once gave each coupling a budget of all rows; gate and proof followed it."""
    mined = mine(treatment.rows(0, 6_000), treatment.rows(6_000, 12_000), profile=Profile.HARDENED)
    assert mined.clean is not None
    own = replace(mined, clean=replace(mined.clean, envelope=()))
    values = treatment.values.copy()
    values[:, treatment.index("P101")] = np.where(np.arange(len(treatment)) % 2, 1.0, 2.0)
    toggled = treatment.with_values(values).rows(12_000, 13_000)
    with pytest.raises(RulesFileError, match="P101~FIT201 .* rows in transition|MV101~FIT101"):
        Gate.of(own, HARDENED).judge(toggled)
    with pytest.raises(RulesFileError, match="rows in transition"):
        derive(own, HARDENED)
    with pytest.raises(RulesFileError, match="rows in transition"):
        circuit_for(Unsafe(reveal_rows=True), own, HARDENED, rows_max=1_024)
    assert {one.kind for one in accept(own, HARDENED)} == {Kind.CLEAN_FACTS}
    assert not Gate.of(mined, HARDENED).judge(toggled).admitted


def test_a_reading_out_of_range_stays_severe_whatever_the_file_states_about_the_range() -> None:
    budgets = budgets_for(EVERY_RULE, facts(), Margins(), rows=200)
    assert budgets.severe["L1 in range"] == TOLERANCE
    assert kinds(claiming(about("severe", "L1 in range"))) == {Kind.CLEAN_FACTS}


# Renewal: what follows from two files is compared, not what is written in them.
LOOSER: dict[str, tuple[Facts, Kind, str, str]] = {
    "transitions": (stating("envelope", 0.3), Kind.MORE_TRANSITIONS, "77 of 200", "2"),
    "windows": (stating("anchors", 0.01), Kind.MORE_WINDOWS, "2 of 200", "0"),
    "repeats": (stating("repeats", 0.1), Kind.MORE_REPEATS, "40 of 200", "0"),
    "jumps": (
        lambda clean: replace(clean, segments_per_row=0.01),
        Kind.MORE_JUMPS,
        "5 of 200",
        "1",
    ),
    "movement": (living(("L1", 8, 1e-9)), Kind.LESS_MOVEMENT, "0 mm", "30 mm within 8 rows"),
    "longer blocks": (living(("L1", 9, 60.0)), Kind.LESS_MOVEMENT, "0 mm", "30 mm within 8 rows"),
    "less movement": (living(("L1", 8, 53.0)), Kind.LESS_MOVEMENT, "24 mm", "30 mm within 8 rows"),
}


@pytest.mark.parametrize(("edit", "kind", "found", "allowed"), LOOSER.values(), ids=LOOSER)
def test_a_budget_that_grew_since_the_last_file_is_objected_to(
    edit: Facts, kind: Kind, found: str, allowed: str
) -> None:
    """Each of these claims is within what a first registration may claim, or was once."""
    (one,) = (o for o in objections(claiming(edit), REQUIRED, last=EVERY_RULE) if o.kind is kind)
    assert (one.found, one.allowed) == (found, allowed)
    assert one.remedy == "mine with --update, or get a second approval"


def test_residuals_that_would_no_longer_be_severe_are_objected_to() -> None:
    rules = claiming(stating("severe", 2.0))
    found = objections(rules, REQUIRED, last=EVERY_RULE)
    assert {o.kind for o in found} == {Kind.LARGER_RESIDUAL}
    assert {(o.subject, o.found, o.allowed) for o in found} >= {("P1~F1", "18 m3/h", "6 m3/h")}


def test_a_tighter_tolerance_with_the_same_severe_residual_is_no_looser() -> None:
    before = replace(EVERY_RULE, clean=stating("severe", 2.0)(facts()))
    tighter = ruled(
        replace(COUPLED, tolerance=3.0), BALANCED, WINDOWED, BOUNDED, *EVERY_RULE.invariants[4:]
    )
    assert tighter.clean is not None
    same = tuple(
        replace(fact, share=4.0 if fact.rule == "P1~F1" else 2.0) for fact in tighter.clean.severe
    )
    assert kinds(replace(tighter, clean=replace(tighter.clean, severe=same)), before) == set()


def test_budgets_may_grow_by_the_share_that_the_policy_leaves() -> None:
    before, after = claiming(stating("envelope", 0.1)), claiming(stating("envelope", 0.109))
    assert kinds(after, before) == {Kind.MORE_TRANSITIONS}
    room = Acceptance(looser_than_last=1.1)
    assert objections(after, room, last=before) == ()


def test_the_room_that_a_policy_leaves_is_rounded_down_to_whole_rows() -> None:
    room, more = Acceptance(looser_than_last=1.1), claiming(stating("envelope", 0.005))
    # 1.1 times 2 rows are 2 rows
    (one,) = objections(more, room, last=EVERY_RULE, rows_min=200, rows_max=200)
    assert (one.kind, one.found, one.allowed) == (Kind.MORE_TRANSITIONS, "3 of 200", "2")


def test_a_budget_that_grows_only_in_the_longest_batch_is_found() -> None:
    rules = claiming(stating("repeats", 1e-6))
    (one,) = objections(rules, REQUIRED, last=EVERY_RULE)
    assert (one.kind, one.found, one.allowed) == (Kind.MORE_REPEATS, "1 of 524,288", "0")
    shorter = objections(rules, REQUIRED, last=EVERY_RULE, rows_max=100_000)
    assert shorter == ()


def test_the_last_file_of_an_earlier_release_without_facts_needs_a_second_approval() -> None:
    last = claiming(without("envelope"))
    assert kinds(EVERY_RULE, last) == {Kind.NOT_COMPARABLE}
    assert kinds(EVERY_RULE, replace(EVERY_RULE, clean=None)) == {Kind.NOT_COMPARABLE}


def test_rows_further_apart_are_not_compared_with_closer_ones() -> None:
    slower = replace(EVERY_RULE, stride_s=3_600.0)
    (one,) = objections(slower, REQUIRED, last=EVERY_RULE)
    assert (one.kind, one.found, one.allowed) == (
        Kind.NOT_COMPARABLE,
        "one row every 1 h",
        "one every 10 s",
    )


@pytest.mark.parametrize(
    "other",
    [
        replace(COUPLED, relation=replace(COUPLING, actuator="P2")),
        replace(COUPLED, relation=replace(COUPLING, flow="F2")),
    ],
)
def test_a_coupling_of_other_channels_under_the_old_name_is_a_missing_one(other: object) -> None:
    plant = (*PLANT, SPARE, replace(METER, name="F2"))
    last = replace(EVERY_RULE, channels=plant)
    now = replace(last, invariants=(other, *last.invariants[1:]))  # type: ignore[arg-type]
    found = objections(now, REQUIRED, last=last, declared={"P1": "manual", "P2": "manual"})
    assert {(o.kind, o.subject) for o in found} == {(Kind.MISSING_SINCE_LAST, "P1~F1")}


def test_a_longer_window_under_the_old_name_is_a_missing_one() -> None:
    longer = rule(replace(WINDOW, rows=400), 12.0)
    now = ruled(COUPLED, BALANCED, longer, *EVERY_RULE.invariants[3:])
    assert kinds(now, EVERY_RULE) == set()  # it detects a slower ramp
    blunt = rule(replace(WINDOW, rows=400), 1_201.0)
    now = ruled(COUPLED, BALANCED, blunt, *EVERY_RULE.invariants[3:])
    assert kinds(now, EVERY_RULE) == {Kind.MISSING_SINCE_LAST}


def test_a_window_with_more_exceptions_does_not_replace_another() -> None:
    other = rule(replace(WINDOW, name="dL1/8", rows=8), 24.0)
    now = ruled(COUPLED, BALANCED, other, *EVERY_RULE.invariants[3:])
    assert kinds(now, EVERY_RULE) == set()
    assert now.clean is not None
    loose = replace(now, clean=replace(now.clean, anchors=share("dL1/8", 0.01)))
    assert kinds(loose, EVERY_RULE) == {Kind.MISSING_SINCE_LAST}


@pytest.mark.parametrize("kind", [Bound, Rate])
def test_a_range_or_a_rate_does_not_go_unnoticed(kind: type) -> None:
    fewer = ruled(*(one for one in EVERY_RULE.invariants if not isinstance(one.relation, kind)))
    assert kinds(fewer, EVERY_RULE) == {Kind.MISSING_SINCE_LAST}


def test_a_rule_named_after_a_declared_channel_is_not_excused() -> None:
    named = replace(COUPLED, relation=replace(COUPLING, name="P2"))
    last = replace(ruled(named, *EVERY_RULE.invariants[1:]), channels=(*PLANT, SPARE))
    wide = replace(named, tolerance=100.0)
    now = replace(ruled(wide, *EVERY_RULE.invariants[1:]), channels=(*PLANT, SPARE))
    assert Kind.LOOSER_THAN_LAST in kinds(now, last, P2="standby of P1")


# First registration.
def test_levels_that_may_stand_still_are_refused_at_the_first_registration() -> None:
    (one,) = objections(claiming(living()), REQUIRED)
    assert (one.kind, one.subject, one.found) == (Kind.MAY_STAND_STILL, "L1", "0 mm")
    assert one.allowed == "35 mm within 1,024 rows"
    assert kinds(claiming(living()), L1="a clear well that is always full") == set()


@pytest.mark.parametrize(
    ("blocks", "still"),
    [
        ([("L1", 8, 1e-9)], True),
        ([("L1", 8, 34.9)], True),
        ([("L1", 8, 35.0)], False),
        ([("L1", 1_024, 35.0)], False),
        ([("L1", 1_025, 9_000.0)], True),
        ([("L1", 8, 0.0), ("L1", 9, 60.0)], False),
    ],
)
def test_a_level_moves_by_a_least_share_of_its_span_within_a_block(
    blocks: list[tuple[str, int, float]],
    still: bool,  # noqa: FBT001
) -> None:
    assert (Kind.MAY_STAND_STILL in kinds(claiming(living(*blocks)))) is still


def test_a_tank_that_moves_does_not_move_for_another() -> None:
    moved = living(("L2", 8, 60.0))
    rules = claiming(lambda clean: moved(about("repeats", "L2")(clean)))
    rules = replace(rules, channels=(*PLANT, replace(TANK, name="L2")))
    still = (o for o in objections(rules, REQUIRED) if o.kind is Kind.MAY_STAND_STILL)
    assert [one.subject for one in still] == ["L1"]


def test_a_level_that_needs_to_move_by_nothing_stands_still_under_any_policy() -> None:
    lenient = Acceptance(liveness_min=0.0)
    found = {one.kind for one in objections(claiming(living(("L1", 8, 0.0))), lenient)}
    assert found == {Kind.MAY_STAND_STILL}


def test_a_tank_without_a_span_still_needs_a_rule_or_a_reason() -> None:
    """A file that leaves the span out has no rule that reads the tank, and no objection, once."""
    hidden = replace(TANK, name="L2", span=None)
    rules = replace(EVERY_RULE, channels=(*PLANT, hidden))
    rules = replace(rules, clean=replace(facts(), repeats=(*share("L1", 0.0), *share("L2", 0.0))))
    assert kinds(rules) == {Kind.UNCOVERED_TANK}
    assert kinds(rules, L2="out of service") == set()


@pytest.mark.parametrize("why", [NEVER, "hardly ever switched", "idle", "standby"])
def test_the_text_of_a_rules_file_excuses_no_pump(why: str) -> None:
    """The plant writes `dropped`; its words once made any pump an idle one."""
    rules = replace(
        EVERY_RULE,
        channels=(*PLANT, SPARE),
        dropped=(Dropped(name="P2~flow", why=why),),
        invariants=(
            replace(COUPLED, relation=replace(COUPLING, standby=(("P2", 0),))),
            *EVERY_RULE.invariants[1:],
        ),
    )
    found = {(one.kind, one.subject, one.found) for one in objections(rules, REQUIRED)}
    assert found == {
        (Kind.UNCOVERED_ACTUATOR, "P2", "0"),
        (Kind.UNEXPLAINED_STANDBY, "P1~F1", "P2"),
    }
    assert kinds(rules, P2="standby of P1, tested once a year") == set()
    by_policy = Acceptance(reasons={"P2": "standby of P1, tested once a year"})
    assert objections(rules, by_policy) == ()


def test_an_idle_pump_is_answered_with_both_ways_to_declare_it() -> None:
    gone = Dropped(name="P2~flow", why=NEVER)
    rules = replace(EVERY_RULE, channels=(*PLANT, SPARE), dropped=(gone,))
    (one,) = objections(rules, REQUIRED)
    assert one.remedy == (
        "mine other rows, or declare why: P2 in [acceptance.reasons] of the policy, or "
        f"sluice rules approve --declare P2=REASON (the miner says: {NEVER})"
    )


def test_a_declaration_reaches_acceptance_through_the_policy() -> None:
    rules = replace(EVERY_RULE, channels=(*PLANT, SPARE))
    assert {one.kind for one in accept(rules, HARDENED)} == {Kind.UNCOVERED_ACTUATOR}
    assert accept(rules, HARDENED, declared={"P2": "standby"}) == ()
    assert HARDENED.objections(rules, declared={"P2": "standby"}) == ()


@pytest.mark.parametrize(
    ("coefficient", "read"), [(0.0, False), (1e-3, False), (1.5, False), (-1.6, True), (1.6, True)]
)
def test_a_term_too_small_to_notice_a_pump_does_not_read_it(
    coefficient: float,
    read: bool,  # noqa: FBT001
) -> None:
    """A term of weight zero once made any pump one that a rule reads, without a declaration."""
    spare = Term(channel="P2", coefficient=coefficient, on=(1,))
    terms = (*WINDOW.terms, spare)  # 4 rows, with a tolerance of 12 mm
    rules = ruled(COUPLED, BALANCED, rule(replace(WINDOW, terms=terms), 12.0))
    rules = replace(rules, channels=(*PLANT, SPARE))
    assert (kinds(rules) == set()) is read
    assert read or kinds(rules) == {Kind.UNCOVERED_ACTUATOR}
    assert kinds(rules, P2="standby of P1") == set()


@pytest.mark.parametrize(("coefficient", "tied"), [(0.0, False), (1e-9, False), (0.5, True)])
def test_terms_too_small_to_notice_a_channel_do_not_tie_it(
    coefficient: float,
    tied: bool,  # noqa: FBT001
) -> None:
    """Terms of weight zero once tied every channel of a plant."""
    meters = tuple(replace(METER, name=f"F{at}") for at in range(2, 12))
    more = (Term(channel=each.name, coefficient=coefficient) for each in meters)
    balanced = rule(replace(BALANCE, terms=(*BALANCE.terms, *more)), 12.0)
    rules = replace(ruled(COUPLED, balanced, WINDOWED), channels=(*PLANT, *meters))
    assert kinds(rules) == (set() if tied else {Kind.UNTIED_CHANNELS})


def test_a_flow_that_the_pump_never_reaches_does_not_widen_the_tolerance() -> None:
    """The largest of a pump's flows once set the tolerance for all: off looked like on."""
    pump = replace(PUMP, codes=Codes(off=0, on=(1, 3), moving=(2,)))
    high = ActuatorState(code=3, nominal=150_000.0)
    relation = replace(COUPLING, states=(*COUPLING.states, high))

    def tolerating(tolerance: float) -> set[Kind]:
        rules = ruled(rule(relation, tolerance), BALANCED, WINDOWED)
        return kinds(replace(rules, channels=(pump, METER, TANK)))

    assert tolerating(149.0) == set()
    assert tolerating(150.0) == tolerating(70_000.0) == {Kind.LOOSE_TOLERANCE}


@pytest.mark.parametrize(("nominal", "wide"), [(185_682.5, False), (185_683.0, True), (1e6, True)])
def test_a_flow_beyond_the_span_of_its_meter_is_objected_to(
    nominal: float,
    wide: bool,  # noqa: FBT001
) -> None:
    """No reading reaches such a flow, and half of it was the tolerance of a pump that is off."""
    relation = replace(COUPLING, states=(ActuatorState(code=1, nominal=nominal),))
    found = objections(ruled(rule(relation, 6.0), BALANCED, WINDOWED), REQUIRED)
    assert [one.kind for one in found] == [Kind.WIDE_LIMITS] * wide
    if wide:
        assert found[0].sentence.startswith(f"P1~F1: a flow of {nominal:,.0f} m3/h; the policy")
        assert found[0].allowed == "185,682 m3/h (the span of F1)"


# Batches chosen so short that rules say nothing.
LONG = ruled(COUPLED, BALANCED, WINDOWED, rule(replace(WINDOW, name="dL1/300", rows=300), 99.0))


def day(rows: int) -> Record:
    columns = quiet_day()
    return record_of({name: (values * (rows // 16 + 1))[:rows] for name, values in columns.items()})


def test_a_batch_shorter_than_a_window_is_not_judged() -> None:
    """The longest window was judged at no row of such a batch, and the batch was admitted."""
    gate = Gate.of(LONG, HARDENED)
    with pytest.raises(RecordError, match="has 300 rows; the policy and its rules take 301 to"):
        gate.judge(day(300))
    judged = {one.rule.name: one for one in gate.judge(day(301)).measured.integers.judged}
    assert judged["dL1/300"].anchors.size == 1


def test_a_batch_shorter_than_a_block_is_not_judged() -> None:
    rules = claiming(living(("L1", 8, 60.0), ("L1", 512, 600.0)))
    with pytest.raises(RecordError, match="has 511 rows; the policy and its rules take 512 to"):
        Gate.of(rules, HARDENED).judge(day(511))
    Gate.of(rules, HARDENED).judge(day(512))


def test_no_batch_shorter_than_its_rules_is_registered_for_or_proven() -> None:
    for rules, least in ((LONG, 301), (EVERY_RULE, 200)):
        circuit = circuit_for(Unsafe(reveal_rows=True), rules, HARDENED, rows_max=4_096)
        assert RegistrationTerms.of(circuit).rows_min == least
    with pytest.raises(SettingError, match="largest batch is 300 rows; .* take batches of 301 to"):
        circuit_for(find_system("full"), LONG, HARDENED, rows_max=300)


def test_rules_longer_than_any_batch_are_refused() -> None:
    short = HardenedPolicy(rows_max=300)
    (one,) = accept(LONG, short)
    assert (one.kind, one.found, one.allowed) == (Kind.LONGER_THAN_BATCHES, "301", "300")
    assert accept(LONG, HardenedPolicy(rows_max=301)) == ()


@pytest.mark.parametrize(("rows", "windows"), [(64, 64), (200, 16), (200, 4), (1_000, 16)])
def test_a_short_batch_has_no_window_free(rows: int, windows: int) -> None:
    """One window was free at any length: 1 of 5 in 200 rows of a 64-row window."""
    one = rule(replace(WINDOW, name="w", rows=windows), 12.0)
    rules = ruled(COUPLED, BALANCED, one)
    assert rules.clean is not None
    assert budgets_for(rules, rules.clean, Margins(), rows=rows).anchors == {"w": 0}


def test_a_share_of_windows_is_free_only_where_a_batch_is_long_enough() -> None:
    def allowed(rows: int) -> int:
        return budgets_for(EVERY_RULE, facts(), Margins(), rows=rows).anchors["dL1/4"]

    assert [allowed(rows) for rows in (1_999, 2_000, 3_999, 4_000)] == [0, 1, 1, 2]


@pytest.mark.parametrize(("rows", "segments"), [(200, 1), (499, 1), (500, 2), (1_000, 3)])
def test_a_tiny_share_of_jumps_allows_none_in_a_short_batch(rows: int, segments: int) -> None:
    """It was rounded up: one jump in a thousand rows, or in a billion, allowed one in any batch."""
    clean = replace(facts(), segments_per_row=0.001)
    assert budgets_for(EVERY_RULE, clean, Margins(), rows=rows).segments == segments
    rare = replace(facts(), segments_per_row=1e-9)
    assert budgets_for(EVERY_RULE, rare, Margins(), rows=rows).segments == 1


# Files that could be read in two ways, or that overflow.
def coupled(**changes: object) -> RuleSet:
    return ruled(replace(COUPLED, relation=replace(COUPLING, **changes)), BALANCED, WINDOWED)  # type: ignore[arg-type]


def balanced(*terms: Term, tolerance: float = 12.0) -> RuleSet:
    return ruled(COUPLED, rule(replace(BALANCE, terms=terms), tolerance), WINDOWED)


PHANTOM = Term(channel="P1", coefficient=1e6, on=(99,))
FLOW = Term(channel="F1", coefficient=0.5)
AMBIGUOUS = {
    "two spans of one channel": (
        replace(EVERY_RULE, channels=(*PLANT, replace(TANK, span=Span(low=0, high=1e6)))),
        "2 channels named 'L1'",
    ),
    "a term that is never on": (balanced(FLOW, PHANTOM), "'P1' as on at 99"),
    "codes of a meter": (
        balanced(Term(channel="F1", coefficient=0.5, on=(1,))),
        "'F1', which is no actuator",
    ),
    "terms that cancel": (
        balanced(replace(FLOW, coefficient=1e3), replace(FLOW, coefficient=-1e3)),
        "2 terms of 'F1', which could cancel",
    ),
    "off is on": (coupled(off=1), "'P1' as off at 1"),
    "no state": (coupled(states=()), r"'P1' as off at 0 and on at \[\]"),
    "a state of no code": (
        coupled(states=(ActuatorState(code=7, nominal=300.0),)),
        r"on at \[7\]",
    ),
    "two flows of a code": (
        coupled(states=(ActuatorState(code=1, nominal=300.0), ActuatorState(code=1, nominal=1.0))),
        "two flows for one code",
    ),
    "a settle time before the switch": (coupled(settle=-1), "settles in -1 rows"),
    "a standby that always runs": (coupled(standby=(("P1", 7),)), "'P1' as off at 7"),
    "a window of no rows": (
        ruled(COUPLED, BALANCED, rule(replace(WINDOW, rows=0), 12.0)),
        "a window of 0 rows",
    ),
    "a coefficient beyond the floats": (
        balanced(replace(FLOW, coefficient=1e306), tolerance=1e-3),
        "a number that is too large",
    ),
    "a coefficient beyond the proof field": (
        balanced(replace(FLOW, coefficient=1e290), tolerance=1.0),
        "beyond half the proof field",
    ),
    "a tolerance too small to divide by": (
        ruled(replace(COUPLED, tolerance=5e-324), BALANCED, WINDOWED),
        "a number that is too large",
    ),
    "a span without steps": (
        replace(EVERY_RULE, channels=(PUMP, METER, replace(TANK, span=Span(low=0, high=5e-324)))),
        "cannot be divided into",
    ),
    "an endless span": (
        replace(
            EVERY_RULE, channels=(PUMP, METER, replace(TANK, span=Span(low=-1e308, high=1e308)))
        ),
        "cannot be divided into",
    ),
    "rows at one time": (replace(EVERY_RULE, stride_s=0.0), "one row every 0 s"),
}


@pytest.mark.parametrize(("rules", "why"), AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_rules_that_can_be_read_in_two_ways_or_overflow_are_refused(
    rules: RuleSet, why: str
) -> None:
    with pytest.raises(RulesFileError, match=why):
        encode(rules)
    with pytest.raises(RulesFileError, match=why):
        Gate.of(rules, HARDENED)
    assert {one.kind for one in objections(rules, REQUIRED)} == {Kind.NOT_ENCODABLE}


def test_an_endless_tolerance_is_no_tolerance() -> None:
    endless = ruled(replace(COUPLED, tolerance=math.inf), BALANCED, WINDOWED)
    assert {one.kind for one in unsound(endless)} == {Kind.BAD_TOLERANCE}
    with pytest.raises(RulesFileError, match="the tolerance inf"):
        encode(endless)


def test_two_rules_of_one_name_open_no_gate() -> None:
    twice = replace(EVERY_RULE, invariants=(*EVERY_RULE.invariants, rule(BALANCE, 1e6)))
    with pytest.raises(RulesFileError, match="2 rules named 'dL1'"):
        Gate.of(twice, HARDENED)
