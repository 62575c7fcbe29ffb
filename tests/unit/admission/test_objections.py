"""Each kind of objection on a typed rules file, and each limit of acceptance at its edge."""

import math
from dataclasses import replace

import pytest

from sluice.admission.acceptance import Acceptance, objections, unsound
from sluice.admission.objections import Objection, ObjectionKind
from sluice.admission.policy import HardenedPolicy, PaperPolicy, accept
from sluice.invariants.budgets import Margins
from sluice.invariants.encoding import TOLERANCE
from sluice.invariants.relations import ActuatorState, Bound, Relation, Term, Tie, Transition
from sluice.invariants.ruleset import Dropped, Liveness, Profile, RuleSet
from sluice.telemetry.channel import Codes, Span
from tests.unit.admission.objectionable import (
    CASES,
    SECOND_TANK,
    SPARE,
    UNSOUND,
    Case,
    claiming,
    described,
    ruled,
    severe,
    share,
)
from tests.unit.invariants.small_plant import (
    BALANCE,
    BALANCED,
    BAND,
    BOUNDED,
    COUPLED,
    COUPLING,
    EVERY_RULE,
    FLAT,
    IDLE,
    MEAN,
    METER,
    PLANT,
    PUMP,
    RATED,
    SPECTRUM,
    TANK,
    TIE,
    WINDOW,
    WINDOWED,
    clean_facts,
    rule,
)

Kind = ObjectionKind
REQUIRED = Acceptance()


def kinds(
    rules: RuleSet, required: Acceptance = REQUIRED, last: RuleSet | None = None
) -> set[Kind]:
    return {objection.kind for objection in objections(rules, required, last=last)}


def test_the_typed_rules_are_accepted_and_again_after_themselves() -> None:
    assert objections(EVERY_RULE, REQUIRED) == ()
    assert objections(EVERY_RULE, REQUIRED, last=EVERY_RULE) == ()


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_is_objected_to_in_the_plants_units(kind: Kind) -> None:
    case = CASES[kind]
    found = objections(case.rules, REQUIRED, last=case.last)
    assert case.objection in found
    assert case.objection.sentence.endswith(f"; {case.objection.remedy}")


@pytest.mark.parametrize("case", UNSOUND, ids=lambda case: case.objection.kind.value)
def test_rules_that_contradict_themselves_get_no_other_objection(case: Case) -> None:
    assert unsound(case.rules) == objections(case.rules, REQUIRED) == (case.objection,)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (Kind.DUPLICATE_NAME, "2 rules are named 'L1 rate'; rename them"),
        (
            Kind.BAD_TOLERANCE,
            "P1~F1: the tolerance is -0; it must be above 0; mine the rule again",
        ),
        (
            Kind.TOO_FEW_RULES,
            (
                "2 rules relate channels to each other; the policy requires 3; mine more rows or "
                "more channels"
            ),
        ),
        (
            Kind.UNEXPLAINED_STANDBY,
            (
                "P1~F1 is not checked while P2 runs, and nothing declares that P2 is on standby; "
                "drop it from the rule's standby pumps, or declare why: P2 in "
                "[acceptance.reasons] of the policy, or sluice rules approve --declare P2=REASON"
            ),
        ),
        (
            Kind.CHANGED_CHANNEL,
            (
                "channel F2 is no longer described as a flow with its span; restore it, or declare "
                "why in [acceptance.reasons]"
            ),
        ),
        (
            Kind.CLAIMED_JUMPS,
            (
                "the file claims that 1.01% of clean rows follow a time jump; the policy accepts "
                "1.00%; mine a record with fewer gaps"
            ),
        ),
    ],
)
def test_sentences_say_what_was_found_and_what_to_do(kind: Kind, sentence: str) -> None:
    assert CASES[kind].objection.sentence == sentence


def test_an_infinite_tolerance_is_unsound_with_and_without_clean_facts() -> None:
    rules = ruled(replace(COUPLED, tolerance=math.inf), BALANCED, WINDOWED)
    for each in (rules, replace(rules, clean=None)):
        assert [one.kind for one in unsound(each)] == [Kind.BAD_TOLERANCE]


def test_the_paper_requires_nothing_and_the_hardened_policy_its_acceptance() -> None:
    bad = CASES[Kind.NO_PHYSICS].rules
    assert accept(bad, PaperPolicy()) == ()
    assert Kind.NO_PHYSICS in {one.kind for one in accept(bad, HardenedPolicy())}
    strict = HardenedPolicy(acceptance=Acceptance(rules_min=4))
    assert [one.kind for one in accept(EVERY_RULE, strict)] == [Kind.TOO_FEW_RULES]


@pytest.mark.parametrize(("tolerance", "loose"), [(4.9, False), (5.0, True), (149.9, True)])
def test_a_coupling_must_be_tighter_than_half_of_its_smallest_flow(
    tolerance: float,
    loose: bool,  # noqa: FBT001
) -> None:
    speeds = (ActuatorState(code=1, nominal=300.0), ActuatorState(code=3, nominal=10.0))
    geared = replace(PUMP, codes=Codes(off=0, on=(1, 3)))
    coupled = rule(replace(COUPLING, states=speeds), tolerance)
    rules = replace(ruled(coupled, BALANCED, WINDOWED), channels=(geared, METER, TANK))
    assert (Kind.LOOSE_TOLERANCE in kinds(rules)) is loose


@pytest.mark.parametrize(("nominal", "wide"), [(185_682.5, False), (185_682.6, True)])
def test_a_nominal_flow_may_reach_the_end_of_the_meters_span(
    nominal: float,
    wide: bool,  # noqa: FBT001
) -> None:
    coupled = rule(replace(COUPLING, states=(ActuatorState(code=1, nominal=nominal),)), 6.0)
    assert (Kind.WIDE_LIMITS in kinds(ruled(coupled, BALANCED, WINDOWED))) is wide


@pytest.mark.parametrize(("rows_max", "longer"), [(8, False), (7, True)])
def test_rules_may_need_as_many_rows_as_the_longest_batch_has(
    rows_max: int,
    longer: bool,  # noqa: FBT001
) -> None:
    """The tank moves within 8 rows, and a window needs 5."""
    found = {one.kind for one in objections(EVERY_RULE, REQUIRED, rows_max=rows_max)}
    assert found == ({Kind.LONGER_THAN_BATCHES} if longer else set())


@pytest.mark.parametrize(("tolerance", "loose"), [(43_690.0, False), (43_690.1, True)])
def test_a_balance_may_reach_a_quarter_of_the_span(
    tolerance: float,
    loose: bool,  # noqa: FBT001
) -> None:
    rules = ruled(COUPLED, rule(BALANCE, tolerance), WINDOWED)
    assert (Kind.LOOSE_TOLERANCE in kinds(rules)) is loose


@pytest.mark.parametrize(("tolerance", "loose"), [(48.0, False), (48.1, True)])
def test_a_window_may_be_as_loose_as_its_rows_together(
    tolerance: float,
    loose: bool,  # noqa: FBT001
) -> None:
    rules = ruled(COUPLED, BALANCED, rule(WINDOW, tolerance))
    assert (Kind.LOOSE_TOLERANCE in kinds(rules)) is loose


@pytest.mark.parametrize(("tolerance", "covered"), [(74.9, True), (75.0, False)])
def test_a_tank_needs_a_rule_that_sees_half_of_what_its_pump_moves(
    tolerance: float,
    covered: bool,  # noqa: FBT001
) -> None:
    """Half of 0.5 x 300 is 75 a row; the meter's span does not count where a coupling limits it."""
    found = kinds(ruled(COUPLED, rule(BALANCE, tolerance)))
    assert (Kind.UNCOVERED_TANK not in found) is covered


def test_an_unmetered_pump_moves_its_coefficient_and_a_window_all_its_rows() -> None:
    pumped = replace(WINDOW, terms=(Term(channel="P1", coefficient=-100.0, on=(1,)),))
    assert Kind.UNCOVERED_TANK not in kinds(ruled(COUPLED, rule(pumped, 199.0)))
    assert Kind.UNCOVERED_TANK in kinds(ruled(COUPLED, rule(pumped, 200.0)))


def test_without_a_coupling_a_meter_reaches_the_further_end_of_its_span() -> None:
    """0.5 x 185,682.5 m3/h: half of that is 46,420.625 a row."""
    assert Kind.UNCOVERED_TANK not in kinds(ruled(rule(BALANCE, 46_420.0)))
    assert Kind.UNCOVERED_TANK in kinds(ruled(rule(BALANCE, 46_421.0)))


def test_rules_on_channels_without_spans_are_judged_by_what_else_they_say() -> None:
    rules = ruled(COUPLED, BALANCED, WINDOWED, rule(TIE, 6.0), rule(BAND, 3.0))
    bare = (PUMP, replace(METER, span=None), replace(TANK, span=None))
    found = kinds(replace(rules, channels=bare, clean=None, profile=Profile.PAPER_WIDE))
    assert found == {Kind.NO_CLEAN_FACTS}


def test_a_dropped_balance_is_quoted_for_its_tank() -> None:
    gone = Dropped(name="dL2", why="unmetered flow dominates")
    (found,) = objections(replace(described(SECOND_TANK), dropped=(gone,)), REQUIRED)
    assert found.remedy.endswith("(the miner says: unmetered flow dominates)")


@pytest.mark.parametrize("subject", ["P2", "L2"])
def test_a_declared_reason_or_a_milder_policy_stands_in_for_a_rule(subject: str) -> None:
    rules = described(SPARE, SECOND_TANK)
    required = Acceptance(untied_max=0.5)
    missing = {one.subject for one in objections(rules, required)}
    assert missing == {"P2", "L2"}
    declared = replace(required, reasons={subject: "out of service"})
    assert {one.subject for one in objections(rules, declared)} == missing - {subject}
    assert objections(rules, replace(required, every_pump=False, every_tank=False)) == ()


@pytest.mark.parametrize(
    ("rules", "kind"),
    [
        (claiming(lambda clean: replace(clean, refused_share=0.005)), Kind.REFUSES_CLEAN_BATCHES),
        (
            claiming(lambda clean: replace(clean, severe=severe("P1~F1", 50.0))),
            Kind.CLAIMED_RESIDUAL,
        ),
        (
            claiming(lambda clean: replace(clean, envelope=share("P1~F1", 0.3))),
            Kind.CLAIMED_TRANSITIONS,
        ),
        (
            claiming(lambda clean: replace(clean, anchors=share("dL1/4", 0.01))),
            Kind.CLAIMED_WINDOWS,
        ),
        (claiming(lambda clean: replace(clean, repeats=share("L1", 0.1))), Kind.CLAIMED_REPEATS),
        (claiming(lambda clean: replace(clean, segments_per_row=0.01)), Kind.CLAIMED_JUMPS),
    ],
)
def test_a_claim_may_reach_its_ceiling(rules: RuleSet, kind: Kind) -> None:
    assert objections(rules, REQUIRED) == ()
    assert kind in kinds(CASES[kind].rules)


@pytest.mark.parametrize(
    ("factor", "tolerance", "looser"), [(1.0, 12.0, False), (1.5, 18.0, False), (1.5, 18.1, True)]
)
def test_a_policy_may_leave_room_over_the_last_file(
    factor: float,
    tolerance: float,
    looser: bool,  # noqa: FBT001
) -> None:
    rules = ruled(COUPLED, rule(BALANCE, tolerance), WINDOWED, BOUNDED, RATED)
    found = kinds(rules, Acceptance(looser_than_last=factor), last=EVERY_RULE)
    assert found == ({Kind.LOOSER_THAN_LAST, Kind.LARGER_RESIDUAL} if looser else set())


@pytest.mark.parametrize(
    ("low", "high", "wider"),
    [(30.0, 3_000.0, False), (33.0, 2_997.0, False), (27.0, 900.0, True), (90.0, 3_003.0, True)],
)
def test_neither_end_of_a_range_may_move_outward(
    low: float,
    high: float,
    wider: bool,  # noqa: FBT001
) -> None:
    moved = rule(Bound(name="L1 in range", channel="L1", low=low, high=high), 99.0)
    found = kinds(ruled(COUPLED, BALANCED, WINDOWED, moved, RATED), last=EVERY_RULE)
    assert found == ({Kind.WIDER_RANGE} if wider else set())


@pytest.mark.parametrize(("rows", "tolerance", "replaced"), [(8, 24.0, True), (8, 24.1, False)])
def test_a_window_that_sees_as_slow_a_ramp_replaces_another(
    rows: int,
    tolerance: float,
    replaced: bool,  # noqa: FBT001
) -> None:
    other = rule(replace(WINDOW, name=f"dL1/{rows}", rows=rows), tolerance)
    found = kinds(ruled(COUPLED, BALANCED, other, BOUNDED, RATED), last=EVERY_RULE)
    assert found == (set() if replaced else {Kind.MISSING_SINCE_LAST})


def test_a_rule_of_another_kind_under_the_old_name_is_a_missing_one() -> None:
    renamed = rule(Bound(name="dL1", channel="L1", low=0.0, high=1.0), 3.0)
    (found,) = objections(
        ruled(COUPLED, renamed, WINDOWED, rule(replace(BALANCE, name="d"), 12.0)),
        REQUIRED,
        last=ruled(BALANCED),
    )
    assert (found.kind, found.subject) == (Kind.MISSING_SINCE_LAST, "dL1")


def test_a_shifted_span_of_the_same_width_is_accepted_and_a_lost_one_is_not() -> None:
    shifted = replace(METER, span=Span(low=10_925.5, high=185_685.5))
    assert kinds(replace(EVERY_RULE, channels=(PUMP, shifted, TANK)), last=EVERY_RULE) == set()
    spare = replace(METER, name="F2")
    lost = replace(EVERY_RULE, channels=(*PLANT, replace(spare, span=None)))
    (found,) = objections(lost, REQUIRED, last=replace(EVERY_RULE, channels=(*PLANT, spare)))
    assert (found.kind, found.subject, found.found) == (Kind.CHANGED_CHANNEL, "F2", "flow")


def test_a_channel_may_get_a_span_at_renewal() -> None:
    spare = replace(METER, name="F2")
    last = replace(EVERY_RULE, channels=(*PLANT, replace(spare, span=None)))
    assert kinds(replace(EVERY_RULE, channels=(*PLANT, spare)), last=last) == set()


def test_a_declared_reason_covers_what_changed_since_the_last_file() -> None:
    for kind in (Kind.MISSING_SINCE_LAST, Kind.MAY_STAND_STILL, Kind.CHANGED_CHANNEL):
        case = CASES[kind]
        declared = Acceptance(reasons={case.objection.subject: "rebuilt"})
        assert kind not in kinds(case.rules, declared, last=case.last)


def test_a_level_that_may_move_by_nothing_may_stand_still() -> None:
    still = (Liveness(level="L1", rows=8, smallest_range=0.0),)
    rules = claiming(lambda clean: replace(clean, liveness=still))
    assert kinds(rules) == {Kind.MAY_STAND_STILL}
    assert kinds(rules, last=EVERY_RULE) == {Kind.MAY_STAND_STILL, Kind.LESS_MOVEMENT}


@pytest.mark.parametrize(
    ("rows", "smallest_range", "share", "still"),
    [
        (1_024, 60.0, REQUIRED.liveness_min, False),
        (1_025, 60.0, REQUIRED.liveness_min, True),
        (8, 43_690.0, 0.25, False),
        (8, 43_689.9, 0.25, True),
        (8, 0.0, 0.0, True),  # no policy lets a level stand still
        (8, 0.1, 0.0, False),
    ],
)
def test_a_level_moves_by_the_least_share_of_its_span_within_the_longest_block(
    rows: int,
    smallest_range: float,
    share: float,
    still: bool,  # noqa: FBT001
) -> None:
    moves = (Liveness(level="L1", rows=rows, smallest_range=smallest_range),)
    rules = claiming(lambda clean: replace(clean, liveness=moves))
    found = kinds(rules, replace(REQUIRED, liveness_min=share))
    assert found == ({Kind.MAY_STAND_STILL} if still else set())


@pytest.mark.parametrize(("smallest_range", "less"), [(60.0, False), (59.9, True), (54.0, True)])
def test_a_level_that_may_move_by_one_register_less_than_in_the_last_file_is_noticed(
    smallest_range: float,
    less: bool,  # noqa: FBT001
) -> None:
    """The last file asks for 10 registers of 3 mm, half of its 60 mm; each other range gives 9."""
    moves = (Liveness(level="L1", rows=8, smallest_range=smallest_range),)
    rules = claiming(lambda clean: replace(clean, liveness=moves))
    assert kinds(rules, last=EVERY_RULE) == ({Kind.LESS_MOVEMENT} if less else set())


def test_a_level_that_moves_as_much_in_a_longer_block_moves_less() -> None:
    moves = (Liveness(level="L1", rows=9, smallest_range=60.0),)
    rules = claiming(lambda clean: replace(clean, liveness=moves))
    assert kinds(rules, last=EVERY_RULE) == {Kind.LESS_MOVEMENT}


def test_a_level_may_move_less_in_a_shorter_block_beside_that_of_the_last_file() -> None:
    moves = [
        Liveness(level="L1", rows=rows, smallest_range=size) for rows, size in ((8, 60.0), (4, 6.0))
    ]
    rules = claiming(lambda clean: replace(clean, liveness=tuple(moves)))
    assert kinds(rules, last=EVERY_RULE) == set()


@pytest.mark.parametrize(("units", "larger"), [(2, False), (3, True)])
def test_a_clean_residual_may_grow_by_two_units_of_rounding(
    units: int,
    larger: bool,  # noqa: FBT001
) -> None:
    """The severe size is once the tolerance in both files; margins of 1.0 keep the sum exact."""
    rules = claiming(lambda clean: replace(clean, severe=severe("P1~F1", 1.0 + units / TOLERANCE)))
    found = objections(rules, REQUIRED, last=EVERY_RULE, margins=Margins(severe_factor=1.0))
    assert [one.kind for one in found] == ([Kind.LARGER_RESIDUAL] if larger else [])


def test_an_objection_without_details_is_a_whole_sentence() -> None:
    bare = Objection(kind=Kind.NO_PHYSICS, remedy="mine other rows")
    assert (bare.subject, bare.found, bare.allowed) == ("", "", "")
    assert bare.sentence.startswith("the rules hold no coupling, balance or window")


@pytest.mark.parametrize(
    ("relation", "tolerance", "kind"),
    [
        (TIE, 43_690.0, None),
        (TIE, 43_690.1, Kind.LOOSE_TOLERANCE),
        (FLAT, 8_738.0, None),
        (FLAT, 8_738.1, Kind.LOOSE_TOLERANCE),
        (replace(BAND, off_low=0.0, off_high=87_380.0), 3.0, None),
        (replace(BAND, off_low=0.0, off_high=87_380.1), 3.0, Kind.WIDE_LIMITS),
        (replace(SPECTRUM, second_low=1.0, second_high=1e4), 3.0, None),
        (replace(SPECTRUM, second_low=1.0, second_high=1.1e4), 3.0, Kind.WIDE_LIMITS),
        (replace(SPECTRUM, first_low=0.0), 3.0, Kind.WIDE_LIMITS),
        (MEAN, 43_690.0, None),
        (MEAN, 43_690.1, Kind.LOOSE_TOLERANCE),
    ],
)
def test_rules_that_tie_a_channel_must_say_something_about_it(
    relation: Relation, tolerance: float, kind: Kind | None
) -> None:
    rules = ruled(COUPLED, BALANCED, WINDOWED, rule(relation, tolerance))
    assert kinds(rules) == ({kind} if kind else set())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BAND, replace(BAND, on_low=299.0)),
        (BAND, replace(BAND, off_high=1_801.0)),
        (SPECTRUM, replace(SPECTRUM, first_low=89.0)),
        (SPECTRUM, replace(SPECTRUM, second_high=9_001.0)),
        (FLAT, replace(FLAT, value=303.0)),
    ],
)
def test_limits_may_not_widen_or_move_at_renewal(before: Relation, after: Relation) -> None:
    last, new = (ruled(COUPLED, BALANCED, WINDOWED, rule(one, 3.0)) for one in (before, after))
    assert kinds(last, last=last) == set()
    assert kinds(new, last=last) == {Kind.WIDER_RANGE}


MORE = (Term(channel="F1", coefficient=0.5 + 1e-6),)
FARTHEST = max(abs(METER.span.low), abs(METER.span.high)) if METER.span else 0.0
OTHERS = {
    "nominal flow": (
        COUPLING,
        replace(COUPLING, states=(ActuatorState(code=1, nominal=301.0),)),
        1,
    ),
    "silent": (COUPLING, replace(COUPLING, transition=Transition.SILENT), math.inf),
    "coefficient": (BALANCE, replace(BALANCE, terms=MORE), 1e-6 * FARTHEST),
    "no term": (BALANCE, replace(BALANCE, terms=()), 0.5 * FARTHEST),
    "constant": (BALANCE, replace(BALANCE, constant=-1.0), 1.0),
    "averaged": (BALANCE, replace(BALANCE, averaged=True), math.inf),
    "window": (WINDOW, replace(WINDOW, terms=MORE), 4e-6 * FARTHEST),
    "averaged window": (WINDOW, replace(WINDOW, averaged=True), math.inf),
    "tie": (
        TIE,
        replace(TIE, terms=(Term(channel="P1", coefficient=302.0, on=(1,)),), constant=-1.0),
        1.0,
    ),
}


@pytest.mark.parametrize(("before", "after", "shift"), OTHERS.values(), ids=OTHERS)
def test_a_renewed_rule_accepts_no_reading_that_the_last_one_refused(
    before: Relation, after: Relation, shift: float
) -> None:
    """Its prediction may move, if its tolerance shrinks by as much."""
    others = [each for each in (COUPLED, BALANCED, WINDOWED) if each.relation != before]
    wide = 100.0 + 2.0 * FARTHEST

    def judged(tolerance: float) -> set[Kind]:
        last = ruled(*others, rule(before, wide))
        found = kinds(ruled(*others, rule(after, tolerance)), last=last)
        return found & {Kind.OTHER_PREDICTION, Kind.LOOSER_THAN_LAST}

    assert judged(wide) == {Kind.OTHER_PREDICTION}
    if shift < math.inf:
        assert judged(wide - 0.99 * shift) == {Kind.OTHER_PREDICTION}
        assert judged(wide - 1.01 * shift) == set()


def test_a_prediction_may_move_by_all_that_the_tolerance_shrank() -> None:
    """The last tolerance is 12."""
    last = ruled(COUPLED, BALANCED, WINDOWED)
    for constant, found in ((1.0, set()), (1.01, {Kind.OTHER_PREDICTION})):
        moved = rule(replace(BALANCE, constant=constant), 11.0)
        assert kinds(ruled(COUPLED, moved, WINDOWED), last=last) == found


def test_a_coupling_may_not_leave_out_a_state_at_renewal() -> None:
    pump = replace(PUMP, codes=Codes(off=0, on=(1, 2)))
    slow = ActuatorState(code=2, nominal=200.0)

    def with_states(*states: ActuatorState) -> RuleSet:
        coupling = rule(replace(COUPLING, states=states), 6.0)
        return replace(ruled(coupling, BALANCED, WINDOWED), channels=(pump, *PLANT[1:]))

    last = with_states(*COUPLING.states, slow)
    assert Kind.OTHER_PREDICTION not in kinds(last, last=last)
    assert Kind.OTHER_PREDICTION in kinds(with_states(*COUPLING.states), last=last)


def test_a_rule_that_checks_transitions_from_now_on_is_no_looser() -> None:
    silent = ruled(rule(replace(COUPLING, transition=Transition.SILENT), 6.0), BALANCED, WINDOWED)
    assert Kind.OTHER_PREDICTION not in kinds(EVERY_RULE, last=silent)


def test_another_window_with_other_coefficients_replaces_none() -> None:
    longer = replace(WINDOW, name="dL1/8", rows=8)
    for terms, found in ((WINDOW.terms, set()), (MORE, {Kind.MISSING_SINCE_LAST})):
        new = ruled(COUPLED, BALANCED, rule(replace(longer, terms=terms), 24.0))
        assert (
            kinds(new, last=ruled(COUPLED, BALANCED, WINDOWED)) & {Kind.MISSING_SINCE_LAST} == found
        )


def test_a_window_on_another_tank_replaces_none() -> None:
    other = rule(replace(WINDOW, name="dL2/4", level="L2"), 12.0)
    invariants, channels = (COUPLED, BALANCED, other), (*PLANT, SECOND_TANK)
    facts = clean_facts(invariants, channels)
    new = replace(EVERY_RULE, invariants=invariants, channels=channels, clean=facts)
    found = objections(new, REQUIRED, last=ruled(COUPLED, BALANCED, WINDOWED))
    assert [(one.kind, one.subject) for one in found] == [(Kind.MISSING_SINCE_LAST, "dL1/4")]


def test_a_spectrum_of_longer_blocks_is_another_rule() -> None:
    last, new = (
        ruled(COUPLED, BALANCED, WINDOWED, rule(one, 3.0))
        for one in (SPECTRUM, replace(SPECTRUM, rows=8))
    )
    assert kinds(new, last=last) == {Kind.MISSING_SINCE_LAST}


def test_a_mean_over_more_rows_is_another_rule_and_one_that_moved_predicts_something_else() -> None:
    last, longer, moved = (
        ruled(COUPLED, BALANCED, WINDOWED, rule(one, 30.0))
        for one in (MEAN, replace(MEAN, rows=8), replace(MEAN, mean=901.0))
    )
    assert kinds(last, last=last) == set()
    assert kinds(longer, last=last) == {Kind.MISSING_SINCE_LAST}
    assert kinds(moved, last=last) == {Kind.OTHER_PREDICTION}


def test_declared_channels_may_be_untied() -> None:
    case = CASES[Kind.UNTIED_CHANNELS]
    declared = {"F2": "decommissioned"}
    assert Kind.UNTIED_CHANNELS not in {
        one.kind for one in objections(case.rules, REQUIRED, declared=declared)
    }
    assert Kind.UNTIED_CHANNELS in kinds(case.rules, replace(REQUIRED, untied_max=0.39))
    assert Kind.UNTIED_CHANNELS not in kinds(case.rules, replace(REQUIRED, untied_max=0.4))


@pytest.mark.parametrize(
    "relation", [TIE, replace(IDLE, channel="P2"), replace(BAND, actuator="P2")]
)
def test_a_rule_that_reads_an_actuators_state_covers_it(relation: Relation) -> None:
    spare = replace(PUMP, name="P2")
    if isinstance(relation, Tie):
        relation = replace(relation, terms=(replace(relation.terms[0], channel="P2"),))
    rules = (COUPLED, BALANCED, WINDOWED, rule(relation, 0.4))
    known = (*PLANT, spare)
    covered = replace(ruled(*rules), channels=known, clean=clean_facts(rules, known))
    bare = replace(covered, invariants=rules[:3], clean=clean_facts(rules[:3], known))
    assert Kind.UNCOVERED_ACTUATOR in kinds(bare)
    assert Kind.UNCOVERED_ACTUATOR not in kinds(covered)


def test_the_movement_of_one_level_does_not_stand_for_that_of_another() -> None:
    def moving(first: float, second: float) -> RuleSet:
        rules = described(SECOND_TANK)
        assert rules.clean is not None
        facts = tuple(
            Liveness(level=level, rows=8, smallest_range=size)
            for level, size in (("L1", first), ("L2", second))
        )
        return replace(rules, clean=replace(rules.clean, liveness=facts))

    last, required = moving(60.0, 60.0), Acceptance(reasons={"L2": "rebuilt"})
    for rules, less in ((moving(1e-9, 60.0), ["L1"]), (moving(60.0, 60.0), [])):
        found = objections(rules, required, last=last)
        assert [each.subject for each in found if each.kind is Kind.LESS_MOVEMENT] == less
