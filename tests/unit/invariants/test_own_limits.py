"""Ties, constants, switch bands, spectra and means: at each limit and one unit beyond."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.admission.evidence import operator_sentence
from sluice.admission.judging import judge_integers
from sluice.admission.measured import MeasuredBatch
from sluice.admission.policy import HardenedPolicy
from sluice.admission.reasons import ReasonKind
from sluice.arrays import Bools
from sluice.errors import RulesFileError
from sluice.invariants.budgets import Margins, budgets_for, fact_faults
from sluice.invariants.encoding import (
    TOLERANCE,
    IntegerConstant,
    IntegerLimits,
    IntegerSpectrum,
    IntegerSwitchBand,
    IntegerTie,
    encode,
)
from sluice.invariants.integers import Judged, block_sums, evaluate
from sluice.invariants.measure import measure
from sluice.invariants.relations import Bound, Invariant, Relation, RelationKind, Term
from sluice.invariants.residuals import residuals
from sluice.invariants.ruleset import CleanFacts, CleanShare, staggered, untied_channels
from sluice.invariants.words import power_in_words, rule_in_words, unit_of
from sluice.telemetry.record import Record
from tests.unit.invariants.small_plant import (
    BAND,
    BOUNDED,
    COUPLED,
    FLAT,
    IDLE,
    MEAN,
    METER,
    PUMP,
    RATED,
    SPECTRUM,
    TANK,
    TIE,
    record_of,
    rule,
    rules_of,
)

NAN = float("nan")
TIED = rule(TIE, 6.0)
IDLED = rule(IDLE, 0.5)
FLATTENED = rule(FLAT, 6.0)
BANDED = rule(BAND, 3.0)
HEARD = rule(SPECTRUM, 9.0)
NEW_RULES = (TIED, IDLED, FLATTENED, BANDED, HEARD)
ROUGH = [600.0, 615.0, 600.0, 615.0]  # first differences of 5 registers, second of 10


def judged(invariant: Invariant, record: Record) -> Judged:
    (found,) = evaluate(encode(rules_of(invariant)), record)
    return found


def rows(marked: Bools) -> list[int]:
    return [int(row) for row in np.flatnonzero(marked)]


def switching(states: list[float], levels: list[float], jumps: tuple[int, ...] = ()) -> Record:
    return record_of({"P1": states, "F1": [0.0] * len(states), "L1": levels}, jumps=jumps)


# -- ties ---------------------------------------------------------------------------------------


def test_a_tie_judges_every_row_by_itself() -> None:
    columns = {"P1": [1, 1, 0, 0, 1], "F1": [306, 309, 6, 9, 294], "L1": [0] * 5}
    found = judged(TIED, record_of(columns, jumps=(1,)))
    half = TOLERANCE // 2
    assert list(found.size) == [TOLERANCE, 3 * half, TOLERANCE, 3 * half, TOLERANCE]
    assert rows(found.violating) == [1, 3]
    assert rows(measure(rules_of(TIED), record_of(columns)).violating) == [0, 1, 3]


def test_a_tie_reads_registers_and_indicators() -> None:
    terms = (
        Term(channel="L1", coefficient=0.5),
        Term(channel="P1", coefficient=-30.0, on=(1,)),
    )
    tie = rule(replace(TIE, terms=terms, constant=12.0), 3.0)
    (encoded,) = encode(rules_of(tie)).rules
    assert isinstance(encoded, IntegerTie)
    assert (encoded.weight, encoded.constant) == (TOLERANCE, 4 * TOLERANCE)
    assert [term.weight for term in encoded.terms] == [TOLERANCE // 2, -10 * TOLERANCE]
    record = record_of({"P1": [0, 1, 1], "F1": [312, 282, 285], "L1": [600] * 3})
    assert list(judged(tie, record).size) == [0, 0, TOLERANCE]
    assert list(residuals(tie.relation, record).values) == [0.0, 0.0, 3.0]


def test_a_row_far_from_its_tie_is_severe() -> None:
    columns = {"P1": [0.0] * 9, "F1": [0.0] * 8 + [18.0], "L1": [600.0 + 60 * n for n in range(9)]}
    rules = rules_of(TIED)
    assert rules.clean is not None
    for share, severe in ((0.0, 1), (1.9, 1), (2.0, 0)):  # times 1.5: severe beyond 3 tolerances
        facts = replace(rules.clean, severe=(CleanShare(rule=TIE.name, share=share),))
        budgets = budgets_for(rules, facts, Margins(alpha=0.5), rows=9)
        reasons = judge_integers(
            MeasuredBatch(rules=rules, record=record_of(columns)),
            budgets,
            alpha=0.5,
            policy=HardenedPolicy(),
        ).reasons
        found = [one for one in reasons if one.kind is ReasonKind.SEVERE_ROWS]
        assert len(found) == severe, share


# -- constants ----------------------------------------------------------------------------------


def test_a_constant_may_have_one_register_left() -> None:
    (encoded,) = encode(rules_of(rule(FLAT, 1.0))).rules  # a third of a register
    assert isinstance(encoded, IntegerConstant)
    assert encoded.allowed.low == encoded.allowed.high


def test_a_constant_meter_may_move_by_its_tolerance_alone() -> None:
    (encoded,) = encode(rules_of(FLATTENED)).rules
    assert isinstance(encoded, IntegerConstant)
    assert encoded.allowed == IntegerLimits(low=98, high=102)
    found = judged(FLATTENED, record_of({"P1": [0] * 5, "F1": [294, 306, 291, 309, NAN]}))
    assert rows(found.violating) == [2, 3, 4]


def test_an_idle_actuator_violates_on_every_row_that_shows_another_code() -> None:
    found = judged(IDLED, record_of({"P1": [0, 1, 0, 2, NAN]}))
    assert rows(found.violating) == [1, 3, 4]  # the missing code holds the one before


def test_a_channel_that_wakes_up_is_never_severe() -> None:
    rules = rules_of(IDLED, FLATTENED)
    assert rules.clean is not None
    record = record_of({"P1": [1.0] * 4, "F1": [900.0] * 4, "L1": [600.0] * 4})
    for multiple in (1.0, 1.5, 9.0):
        margins = Margins(severe_multiple=multiple)
        budgets = budgets_for(rules, rules.clean, margins, rows=4)
        for found in measure(rules, record).judged:
            assert rows(found.violating) == [0, 1, 2, 3]
            assert not (found.size > budgets.severe[found.rule.name]).any()


# -- switch bands -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "on", "off"),
    [
        (297.0, [1], [1]),  # one register below the band
        (300.0, [], [1]),
        (600.0, [], [1]),
        (615.0, [], [1]),  # 100 registers are rounded up to 105, which ends at 615
        (618.0, [1], [1]),
        (1_497.0, [1], [1]),
        (1_500.0, [1], []),
        (1_815.0, [1], []),
        (1_818.0, [1], [1]),
    ],
)
def test_a_switch_outside_its_band_violates(level: float, on: list[int], off: list[int]) -> None:
    assert rows(judged(BANDED, switching([0, 1], [level, 900.0])).violating) == on
    assert rows(judged(BANDED, switching([1, 0], [level, 900.0])).violating) == off
    here = rule(replace(BAND, before=False), 3.0)
    assert rows(judged(here, switching([0, 1], [900.0, level])).violating) == on
    assert rows(judged(here, switching([1, 0], [900.0, level])).violating) == off


def test_only_rows_of_a_switch_are_judged_and_a_segment_begins_with_none() -> None:
    record = switching([0, 1, 1, 0, 1, 2], [900.0] * 6, jumps=(3,))
    found = judged(BANDED, record)
    assert list(found.anchors) == [1, 4, 5]  # a moving pump is not on
    assert rows(found.violating) == [1, 4, 5]
    assert rows(measure(rules_of(BANDED), record).violating) == [0, 3]


def test_a_narrow_band_is_widened_to_what_the_circuit_can_state() -> None:
    narrow = rule(replace(BAND, on_low=300.0, on_high=300.0), 3.0)
    (encoded,) = encode(rules_of(narrow)).rules
    assert isinstance(encoded, IntegerSwitchBand)
    assert encoded.on == IntegerLimits(low=100, high=142)
    assert encoded.off == IntegerLimits(low=500, high=605)


def test_switches_out_of_band_have_a_budget_of_their_own() -> None:
    rules = rules_of(BANDED)
    assert rules.clean is not None
    facts = replace(rules.clean, switches=(CleanShare(rule=BAND.name, share=0.1),))
    margins = Margins(alpha=0.9, switch_factor=2.0, switch_points=0.05)
    budgets = budgets_for(rules, facts, margins, rows=8)
    assert budgets.switches == budgets.own == {BAND.name: 2}  # (0.2 + 0.05) x 8
    assert budgets_for(rules, facts, margins, rows=7).switches == {BAND.name: 1}  # 1.75
    levels = [900.0 + 60 * at for at in range(8)]
    for states, refused in (([0, 1, 0, 0, 0, 0, 0, 0], 0), ([0, 1, 0, 1, 0, 0, 0, 0], 1)):
        verdict = judge_integers(
            MeasuredBatch(rules=rules, record=switching(list(map(float, states)), levels)),
            budgets,
            alpha=0.9,
            policy=HardenedPolicy(),
        )
        assert [reason.kind for reason in verdict.reasons] == [ReasonKind.SWITCHES] * refused
        for reason in verdict.reasons:
            assert (reason.found, reason.allowed, reason.total) == (4, 2, 4)
            assert rows(verdict.suspect) == [0, 1, 2, 3, 4]


# -- spectra ------------------------------------------------------------------------------------


def test_sums_of_squares_are_taken_inside_blocks() -> None:
    first, second = block_sums(np.array([9, 1, 2, 4, 100, 0, 0, 3, 9]), 4, 0)
    assert list(first) == [64 + 1 + 4, 10_000 + 0 + 9]
    assert list(second) == [81 + 1, 10_000 + 9]
    first, second = block_sums(np.array([9, 1, 2, 4, 100, 0]), 4, 1)
    assert (list(first), list(second)) == ([1 + 4 + 96**2], [1 + 94**2])


@pytest.mark.parametrize(
    ("levels", "violates"),
    [
        (ROUGH, False),
        ([600.0] * 4, True),  # silent
        ([600.0, 606.0, 612.0, 618.0], True),  # smooth: the second differences are missing
        ([600.0, 660.0, 600.0, 660.0], True),  # rough
    ],
)
def test_a_block_that_is_too_smooth_or_too_rough_violates(
    levels: list[float],
    violates: bool,  # noqa: FBT001
) -> None:
    found = judged(HEARD, record_of({"L1": levels}))
    assert list(found.anchors) == [3]
    assert rows(found.violating) == [3] * violates
    value = residuals(SPECTRUM, record_of({"L1": levels})).values[3]
    assert (abs(value) > HEARD.tolerance) == violates


def test_limits_of_a_spectrum_are_squared_registers_widened_to_what_the_circuit_can_state() -> None:
    (encoded,) = encode(rules_of(HEARD)).rules
    assert isinstance(encoded, IntegerSpectrum)
    assert encoded.first == IntegerLimits(low=10, high=10 + 490)
    assert encoded.second == IntegerLimits(low=20, high=20 + 980)
    narrow = rule(replace(SPECTRUM, first_low=0.0, first_high=0.0, second_high=9.0 * 21), 9.0)
    (encoded,) = encode(rules_of(narrow)).rules
    assert isinstance(encoded, IntegerSpectrum)
    assert (encoded.first, encoded.second) == (
        IntegerLimits(low=0, high=112),
        IntegerLimits(low=20, high=132),
    )


@pytest.mark.parametrize(("first", "violates"), [(9, True), (10, False), (500, False), (501, True)])
def test_both_ends_of_a_spectrum_are_allowed(first: int, violates: bool) -> None:  # noqa: FBT001
    """Four squares give any sum; the second differences may be anything here."""
    steps = next(
        (a, b, c)
        for a in range(23)
        for b in range(23)
        for c in range(23)
        if a * a + b * b + c * c == first
    )
    wide = rule(replace(SPECTRUM, second_low=0.0, second_high=1e9), 9.0)
    levels = 3.0 * (200 + np.cumsum([0, *steps]))
    assert rows(judged(wide, record_of({"L1": list(levels)})).violating) == [3] * violates


def test_blocks_begin_at_the_offset_and_a_trailing_part_is_not_judged() -> None:
    late = rule(replace(SPECTRUM, offset=2), 9.0)
    levels = [600.0, 600.0, *ROUGH, *[600.0] * 4, 600.0, 600.0, 600.0]
    found = judged(late, record_of({"L1": levels}))
    assert list(found.anchors) == [5, 9]
    assert rows(found.violating) == [9]
    assert SPECTRUM.blocks(3) == 0
    assert (replace(SPECTRUM, offset=2).blocks(5), replace(SPECTRUM, offset=2).blocks(6)) == (0, 1)


@pytest.mark.parametrize(("jump", "violates"), [(4, []), (5, [7]), (7, [7]), (8, [])])
def test_a_block_with_a_time_jump_inside_violates(jump: int, violates: list[int]) -> None:
    """A block may begin with a segment; a jump in it cannot evade the rule."""
    record = record_of({"L1": ROUGH * 4}, jumps=(jump,))
    assert rows(judged(HEARD, record).violating) == violates


def test_violating_blocks_have_a_budget_of_their_own() -> None:
    rules = rules_of(HEARD)
    assert rules.clean is not None
    facts = replace(rules.clean, blocks=(CleanShare(rule=SPECTRUM.name, share=0.25),), liveness=())
    margins = Margins(alpha=0.9, block_factor=1.0, block_points=0.3)
    assert budgets_for(rules, facts, margins, rows=16).blocks == {SPECTRUM.name: 2}  # 0.55 x 4
    assert budgets_for(rules, facts, margins, rows=15).blocks == {SPECTRUM.name: 1}  # 0.55 x 3
    budgets = budgets_for(rules, facts, margins, rows=16)
    for calm, refused in ((2, 0), (3, 1)):
        record = record_of({"L1": [*[600.0] * 4 * calm, *ROUGH * (4 - calm)]})
        bare = replace(rules, clean=facts)
        verdict = judge_integers(
            MeasuredBatch(rules=bare, record=record), budgets, alpha=0.9, policy=HardenedPolicy()
        )
        assert [reason.kind for reason in verdict.reasons] == [ReasonKind.BLOCKS] * refused


def test_spectra_of_one_block_length_get_offsets_of_their_own() -> None:
    spectra = [rule(replace(SPECTRUM, name=f"n{at}"), 9.0) for at in range(6)]
    longer = rule(replace(SPECTRUM, name="long", rows=8), 9.0)
    made = staggered(rules_of(COUPLED, *spectra[:3], longer, *spectra[3:]))
    offsets = [getattr(one.relation, "offset", None) for one in made.invariants]
    assert offsets == [None, 0, 1, 2, 0, 3, 0, 1]


def test_a_batch_must_hold_one_block_of_every_spectrum() -> None:
    rules = replace(rules_of(rule(replace(SPECTRUM, rows=40, offset=7), 9.0)), clean=None)
    assert rules.rows_needed == 47


# -- what a file must say -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "tolerance", "message"),
    [
        (replace(TIE, terms=()), 6.0, "ties 'F1' to no other channel; mine it again"),
        (
            replace(TIE, terms=(Term(channel="F1", coefficient=1.0),)),
            6.0,
            "explains 'F1' by itself",
        ),
        (
            replace(TIE, terms=TIE.terms * 2),
            6.0,
            "has 2 terms of 'P1', which could cancel",
        ),
        (
            replace(TIE, terms=(Term(channel="P1", coefficient=1.0, on=(9,)),)),
            6.0,
            "reads 'P1' as on at 9, which is not its on code",
        ),
        (replace(IDLE, value=7.0), 0.5, "holds 'P1' at 7, which is not one of its codes"),
        (replace(IDLE, value=0.5), 0.5, "holds 'P1' at 0.5, which is not one of its codes"),
        (IDLE, 1.0, "has the tolerance 1, which hides another code of 'P1'"),
        (replace(FLAT, value=-900.0), 6.0, "holds 'F1' at -900, outside its instrument span"),
        (replace(BAND, actuator="F1"), 3.0, "reads the codes of 'F1', which is no actuator"),
        (replace(BAND, on=()), 3.0, r"takes 'P1' as on at \[\]; the file describes it as on at"),
        (replace(BAND, on=(0,)), 3.0, r"takes 'P1' as on at \[0\]"),
        (replace(BAND, on_high=299.0), 3.0, "has a band that ends below its beginning"),
        (replace(BAND, off_low=1_801.0), 3.0, "has a band that ends below its beginning"),
        (replace(BAND, level="P1"), 3.0, "reads 'P1', which has no instrument span"),
        (replace(SPECTRUM, rows=2), 9.0, "has blocks of 2 rows, not 3 to 4096"),
        (replace(SPECTRUM, rows=4_097), 9.0, "has blocks of 4097 rows, not 3 to 4096"),
        (replace(SPECTRUM, offset=4), 9.0, "begins its first block at row 4, beyond one block"),
        (replace(SPECTRUM, offset=-1), 9.0, "begins its first block at row -1"),
        (replace(SPECTRUM, first_low=-1.0), 9.0, "has limits that no sum of squares meets"),
        (replace(SPECTRUM, first_high=1.0), 9.0, "has limits that no sum of squares meets"),
        (replace(SPECTRUM, second_low=-1.0), 9.0, "has limits that no sum of squares meets"),
        (replace(SPECTRUM, second_high=1.0), 9.0, "has limits that no sum of squares meets"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(
    relation: Relation, tolerance: float, message: str
) -> None:
    with pytest.raises(RulesFileError, match=f"rule '{relation.name}' {message}"):
        encode(rules_of(rule(relation, tolerance)))


def test_a_constant_meter_needs_a_span() -> None:
    bare = replace(METER, span=None)
    with pytest.raises(RulesFileError, match="'F1 constant' reads 'F1', which has no instrument"):
        encode(rules_of(FLATTENED, channels=(PUMP, bare, TANK)))


@pytest.mark.parametrize("field", ["switches", "blocks"])
@pytest.mark.parametrize("copies", [0, 2])
def test_each_rule_has_exactly_one_fact(field: str, copies: int) -> None:
    rules = rules_of(*NEW_RULES)
    assert rules.clean is not None
    assert fact_faults(rules, rules.clean) == ()
    stated = {"switches": rules.clean.switches, "blocks": rules.clean.blocks}[field]
    facts: CleanFacts = replace(rules.clean, **{field: stated * copies})  # type: ignore[arg-type]
    (fault,) = fact_faults(rules, facts)
    assert fault.subject == stated[0].rule
    assert fault.found.startswith(f"{copies} facts about clean rows on ")
    with pytest.raises(RulesFileError, match="give no budgets"):
        budgets_for(rules, facts, Margins(), rows=100)


@pytest.mark.parametrize("field", ["switches", "blocks"])
@pytest.mark.parametrize("share", [-0.1, NAN, float("inf")])
def test_a_share_of_switches_or_blocks_is_a_number(field: str, share: float) -> None:
    rules = rules_of(*NEW_RULES)
    assert rules.clean is not None
    name = {"switches": BAND.name, "blocks": SPECTRUM.name}[field]
    stated = (CleanShare(rule=name, share=share),)
    facts: CleanFacts = replace(rules.clean, **{field: stated})  # type: ignore[arg-type]
    assert [fault.subject for fault in fact_faults(rules, facts)] == [name]


def test_a_tie_needs_a_fact_about_its_largest_residual() -> None:
    rules = rules_of(TIED)
    assert rules.clean is not None
    (fault,) = fact_faults(rules, replace(rules.clean, severe=()))
    assert fault.subject == TIE.name


def test_channels_are_untied_that_only_ranges_rates_and_noise_tell_about() -> None:
    assert untied_channels(rules_of(BOUNDED, RATED)) == ("P1", "F1", "L1")
    assert untied_channels(rules_of(BOUNDED, COUPLED)) == ("L1",)
    assert untied_channels(rules_of(TIED, BOUNDED)) == ("L1",)
    assert untied_channels(rules_of(IDLED, FLATTENED, HEARD)) == ("L1",)
    assert untied_channels(rules_of(BANDED)) == ("F1",)


def test_a_term_ties_its_channel_only_if_a_quarter_of_its_range_is_noticed() -> None:
    assert METER.span is not None
    quarter = (METER.span.high - METER.span.low) / 4

    def tied(coefficient: float, *more: Invariant) -> bool:
        term = Term(channel=METER.name, coefficient=coefficient)
        weak = replace(TIE, channel=TANK.name, terms=(term,))
        return METER.name not in untied_channels(rules_of(rule(weak, 6.0), *more))

    assert tied(1.01 * 6.0 / quarter)
    assert tied(-1.01 * 6.0 / quarter)
    assert not tied(0.99 * 6.0 / quarter)
    narrow = Bound(name="narrow", channel=METER.name, low=0.0, high=2 * quarter)
    assert not tied(1.01 * 6.0 / quarter, rule(narrow, 1.0))


def test_a_state_ties_its_actuator_only_if_a_switch_is_noticed() -> None:
    for coefficient, tied in ((6.1, True), (5.9, False)):
        term = Term(channel=PUMP.name, coefficient=coefficient, on=(1,))
        stated = rule(replace(TIE, terms=(term,)), 6.0)
        assert (PUMP.name not in untied_channels(rules_of(stated))) is tied


def test_ties_and_switch_bands_are_physics() -> None:
    physical = {one.name for one in NEW_RULES if one.kind.physical}
    assert physical == {TIE.name, BAND.name}
    assert {kind for kind in RelationKind if kind.own_budget} == {
        "window",
        "switch-band",
        "spectrum",
        "mean",
    }


# -- words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("invariant", "sentence", "power"),
    [
        (TIED, "F1 reads 300 m3/h while P1 is on, ± 6 m3/h", ""),
        (
            rule(
                replace(
                    TIE,
                    constant=12.0,
                    terms=(Term(channel="L1", coefficient=-0.5), *TIE.terms),
                ),
                6.0,
            ),
            "F1 reads 12 - 0.5 x L1 + 300 m3/h while P1 is on, ± 6 m3/h",
            "",
        ),
        (IDLED, "P1 stays off; it never switched in clean rows", "detects any switch"),
        (
            rule(replace(IDLE, value=1.0), 0.5),
            "P1 stays at code 1; it never switched in clean rows",
            "detects any switch",
        ),
        (
            FLATTENED,
            "F1 stays at 300 m3/h, ± 6 m3/h; it never moved in clean rows",
            "detects an offset of 6 m3/h",
        ),
        (
            BANDED,
            (
                "P1 switches on while L1 reads 300 to 600 mm, and off at 1,500 to 1,800 mm, on the "
                "row before the switch"
            ),
            "detects an offset of 300 mm at the next switch",
        ),
        (
            HEARD,
            (
                "over blocks of 4 rows (40 s), L1 moves by 5.48 to 38.7 mm from row to row (root "
                "mean square), and its steps differ by 9.49 to 67.1 mm"
            ),
            "detects noise below 9.49 mm or above 67.1 mm within 7 rows",
        ),
    ],
)
def test_every_rule_has_a_sentence_and_its_power(
    invariant: Invariant, sentence: str, power: str
) -> None:
    rules = rules_of(invariant)
    assert rule_in_words(invariant, rules) == sentence
    assert power_in_words(invariant, rules) == power


def test_a_tie_tells_the_offset_it_detects() -> None:
    known = replace(TIED, evidence=replace(TIED.evidence, smallest_offset=6.0))
    assert power_in_words(known, rules_of(known)) == "detects an offset of 6 m3/h"


def test_residuals_of_a_spectrum_are_in_the_unit_squared() -> None:
    assert unit_of(SPECTRUM, rules_of(HEARD)) == "(mm)^2"
    assert unit_of(BAND, rules_of(BANDED)) == "mm"


@pytest.mark.parametrize(
    ("invariant", "sentence"),
    [
        (TIED, "F1 shows 900 m3/h, which does not agree with P1 on"),
        (IDLED, "P1 shows 1 instead of its constant 0"),
        (FLATTENED, "F1 shows 900 m3/h instead of its constant 300 m3/h"),
        (BANDED, "P1 switches while L1 shows 900 mm"),
        (HEARD, "L1 is smoother or rougher over 4 rows than in clean rows"),
    ],
)
def test_an_operator_reads_tags_and_readings(invariant: Invariant, sentence: str) -> None:
    record = record_of({"P1": [0, 1, 1, 1], "F1": [900] * 4, "L1": [900] * 4})
    broken = judged(invariant, record).violating
    told = operator_sentence(invariant, record, broken)
    assert told.startswith(sentence)
    assert f"on {int(broken.sum())} of 4 rows, first at" in told


# -- means --------------------------------------------------------------------------------------

AVERAGED = rule(MEAN, 12.0)


def at_mean(last: float, *, jumps: tuple[int, ...] = ()) -> Record:
    """One row before a window of four rows, of which the last one shows something else."""
    levels = [1_500.0, 912.0, 912.0, 912.0, last]
    return record_of({"P1": [0.0] * 5, "F1": [0.0] * 5, "L1": levels}, jumps=jumps)


def test_a_mean_judges_whole_windows_to_the_last_register() -> None:
    assert rows(judged(AVERAGED, at_mean(912.0)).violating) == []
    assert judged(AVERAGED, at_mean(912.0)).size.max() == TOLERANCE
    assert rows(judged(AVERAGED, at_mean(915.0)).violating) == [4]
    found = residuals(MEAN, at_mean(915.0))
    assert (rows(found.applies), found.values[4]) == ([4], 12.75)


def test_a_window_of_a_mean_with_a_time_jump_inside_violates() -> None:
    assert rows(judged(AVERAGED, at_mean(912.0, jumps=(3,))).violating) == [4]
    assert rows(residuals(MEAN, at_mean(912.0, jumps=(3,))).applies) == []


def test_a_mean_without_rows_is_refused_and_another_is_put_into_words() -> None:
    with pytest.raises(RulesFileError, match="is a window of 1 rows, fewer than 2"):
        encode(rules_of(rule(replace(MEAN, rows=1), 12.0)))
    rules = rules_of(AVERAGED)
    assert rule_in_words(AVERAGED, rules) == (
        "over 4 rows (40 s), the mean of L1 is 900 mm, ± 12 mm"
    )
    sentence = operator_sentence(
        AVERAGED, at_mean(915.0), judged(AVERAGED, at_mean(915.0)).violating
    )
    assert sentence.startswith("the mean of L1 over 4 rows is not that of clean rows on 1 of 5")


def test_a_mean_alone_ties_no_channel_and_needs_a_fact() -> None:
    rules = rules_of(AVERAGED)
    assert "L1" in untied_channels(rules)
    assert rules.rows_needed >= 5
    assert rules.clean is not None
    assert fact_faults(rules, rules.clean) == ()
    (fault,) = fact_faults(rules, replace(rules.clean, anchors=()))
    assert fault.subject == MEAN.name
