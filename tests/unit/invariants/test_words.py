"""Rules in words: tags, units, tolerances and what each rule detects."""

import pytest

from sluice.invariants.relations import (
    ActuatorState,
    Balance,
    Bound,
    Coupling,
    Evidence,
    Invariant,
    Rate,
    Relation,
    Term,
    Transition,
    Window,
)
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.invariants.words import (
    duration,
    evidence_in_words,
    number,
    power_in_words,
    rule_in_words,
    unit_of,
)
from sluice.telemetry.channel import Channel, Codes, Role, Span

VALVE = Codes(off=1, on=(2,), moving=(0,))
RAISE = Term(channel="FIT101", coefficient=0.95)
DRAIN = Term(channel="FIT201", coefficient=-0.95)


def stage_one(*rules: Invariant) -> RuleSet:
    return RuleSet(
        plant="stage one",
        profile=Profile.HARDENED,
        stride_s=5.0,
        channels=(
            Channel(name="LIT101", role=Role.LEVEL, unit="mm", span=Span(low=0, high=1200)),
            Channel(name="FIT101", role=Role.FLOW, unit="m3/h", span=Span(low=0, high=5)),
            Channel(name="FIT201", role=Role.FLOW, span=Span(low=0, high=5)),
            Channel(name="MV101", role=Role.ACTUATOR, codes=VALVE),
            Channel(name="P101", role=Role.ACTUATOR, codes=VALVE),
        ),
        invariants=rules,
    )


def coupling(
    *, states: tuple[ActuatorState, ...] = (ActuatorState(code=2, nominal=2.56),), settle: int = 7
) -> Coupling:
    return Coupling(
        name="MV101~FIT101",
        actuator="MV101",
        flow="FIT101",
        off=1,
        states=states,
        settle=settle,
        transition=Transition.ENVELOPE,
    )


def balance(*terms: Term, constant: float = 0.0) -> Balance:
    return Balance(name="dLIT101", level="LIT101", terms=terms, constant=constant, averaged=True)


def window(rows: int = 32) -> Window:
    return Window(
        name=f"dLIT101/{rows}",
        level="LIT101",
        terms=(RAISE,),
        constant=0.0,
        rows=rows,
        averaged=True,
    )


@pytest.mark.parametrize(
    ("relation", "tolerance", "sentence"),
    [
        (
            coupling(),
            0.18,
            (
                "MV101 on: FIT101 reads 2.56 ± 0.18 m3/h; off: 0; "
                "for 7 rows from a switch: between 0 and 2.56"
            ),
        ),
        (
            coupling(
                states=(ActuatorState(code=2, nominal=2.5), ActuatorState(code=3, nominal=4.0)),
                settle=0,
            ),
            0.18,
            ("MV101 at 2: FIT101 reads 2.5 ± 0.18 m3/h; at 3: FIT101 reads 4 ± 0.18 m3/h; off: 0"),
        ),
        (
            balance(RAISE, DRAIN),
            4.6,
            (
                "in 5 s, LIT101 rises 0.95 mm per m3/h of FIT101 and falls 0.95 mm per unit of "
                "FIT201, ± 4.6 mm"
            ),
        ),
        (
            balance(RAISE, Term(channel="P101", coefficient=-2.0, on=(2,)), constant=-0.41),
            4.6,
            (
                "in 5 s, LIT101 rises 0.95 mm per m3/h of FIT101, falls 2 mm while P101 is on and "
                "loses 0.41 mm that no meter measures, ± 4.6 mm"
            ),
        ),
        (balance(), 4.6, "in 5 s, LIT101 does not change, ± 4.6 mm"),
        (
            window(),
            4.8,
            (
                "over 32 rows (160 s), LIT101 rises 0.95 mm per m3/h of FIT101 per row, "
                "± 4.8 mm in total: detects a ramp of 0.15 mm per row"
            ),
        ),
        (
            Bound(name="LIT101 in range", channel="LIT101", low=0, high=1200),
            1.0,
            "LIT101 stays between 0 and 1,200 mm",
        ),
        (
            Rate(name="LIT101 rate", channel="LIT101"),
            12.5,
            "LIT101 changes by at most 12.5 mm in 5 s",
        ),
    ],
)
def test_every_kind_has_its_sentence(relation: Relation, tolerance: float, sentence: str) -> None:
    rule = Invariant(relation=relation, tolerance=tolerance)
    assert rule_in_words(rule, stage_one(rule)) == sentence


def test_a_coupling_says_that_it_is_not_checked_while_a_standby_pump_runs() -> None:
    relation = Coupling(
        name="P101~FIT201",
        actuator="P101",
        flow="FIT201",
        off=1,
        states=(ActuatorState(code=2, nominal=2.45),),
        settle=1,
        transition=Transition.SILENT,
        standby=(("P102", 1),),
    )
    rule = Invariant(relation=relation, tolerance=0.1)
    sentence = rule_in_words(rule, stage_one(rule))
    assert sentence.endswith("not checked on the row of a switch; not checked while P102 runs")
    assert unit_of(relation, stage_one(rule)) == ""


@pytest.mark.parametrize(
    ("relation", "evidence", "sentence"),
    [
        (
            coupling(),
            Evidence(smallest_offset=0.18, sees_contradiction=True),
            "detects an offset of 0.18 m3/h (7% of nominal); detects on reported as off",
        ),
        (
            coupling(),
            Evidence(smallest_offset=2.8, sees_contradiction=False),
            "detects an offset of 2.8 m3/h (109% of nominal); does not detect on reported as off",
        ),
        (
            balance(RAISE),
            Evidence(smallest_offset=4.6, smallest_freeze_rows=1),
            "detects a jump of 4.6 mm; detects a freeze of 1 row",
        ),
        (
            window(),
            Evidence(smallest_offset=0.15, smallest_freeze_rows=32),
            "detects a ramp of 0.15 mm per row; detects a freeze of 32 rows",
        ),
        (
            balance(RAISE),
            Evidence(smallest_offset=4.6),
            "detects a jump of 4.6 mm; does not detect a freeze by itself",
        ),
        (balance(RAISE), Evidence(), ""),
    ],
)
def test_power_is_what_a_rule_detects(
    relation: Relation, evidence: Evidence, sentence: str
) -> None:
    rule = Invariant(relation=relation, tolerance=1.0, evidence=evidence)
    assert power_in_words(rule, stage_one(rule)) == sentence


def test_evidence_says_where_rows_were_few() -> None:
    known = Evidence(r2=0.9, r2_held_out=0.85, support=0.25, judged_rows=312, few_rows=True)
    reasons = evidence_in_words(Invariant(relation=balance(RAISE), tolerance=1.0, evidence=known))
    assert reasons == (
        "R2 0.900 (0.850 on held-out rows); rarer state on 25.0% of rows; tolerance set on 312 "
        "clean rows, too few for a percentile: the largest residuals set it"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (2.5, "2.5"),
        (2.4449, "2.44"),
        (-0.000168, "-0.000168"),
        (14_202.4, "14,202"),
        (1200.0, "1,200"),
        (3.2e-9, "3.2e-09"),
        (8.1e12, "8.1e+12"),
    ],
)
def test_numbers_read_as_a_person_writes_them(value: float, text: str) -> None:
    assert number(value) == text


def test_durations_take_the_largest_whole_unit() -> None:
    assert [duration(s) for s in (5, 60, 90, 3600, 86_400, 0.5)] == [
        "5 s",
        "1 min",
        "90 s",
        "1 h",
        "1 d",
        "0.5 s",
    ]
