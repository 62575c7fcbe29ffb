"""One rules file for each kind of objection, and the objection it gets."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from sluice.admission.objections import Objection, ObjectionKind
from sluice.invariants.relations import Invariant
from sluice.invariants.ruleset import CleanFacts, CleanShare, Liveness, Profile, RuleSet
from sluice.telemetry.channel import Channel, Codes, Span
from tests.unit.invariants.small_plant import (
    BALANCE,
    BALANCED,
    BAND,
    BOUND,
    BOUNDED,
    COUPLED,
    COUPLING,
    EVERY_RULE,
    METER,
    PLANT,
    PUMP,
    RATED,
    SPECTRUM,
    TANK,
    WINDOWED,
    clean_facts,
    rule,
)

Kind = ObjectionKind
SPARE = replace(PUMP, name="P2")
SECOND_TANK = replace(TANK, name="L2")
RENEW = "mine with --update, or get a second approval"


def declare(name: str) -> str:
    return (
        f"declare why: {name} in [acceptance.reasons] of the policy, or sluice rules approve "
        f"--declare {name}=REASON"
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """Rules, the last accepted ones, and what is objected to."""

    rules: RuleSet
    last: RuleSet | None = None
    objection: Objection


def ruled(*rules: Invariant) -> RuleSet:
    """The rules, and facts about clean rows that fit them."""
    return replace(EVERY_RULE, invariants=rules, clean=clean_facts(rules))


def described(*channels: Channel) -> RuleSet:
    """Every rule, and more channels that no rule reads, with facts that fit them."""
    known = (*PLANT, *channels)
    return replace(EVERY_RULE, channels=known, clean=clean_facts(EVERY_RULE.invariants, known))


def facts() -> CleanFacts:
    assert EVERY_RULE.clean is not None
    return EVERY_RULE.clean


def claiming(change: Callable[[CleanFacts], CleanFacts]) -> RuleSet:
    return replace(EVERY_RULE, clean=change(facts()))


def severe(rule: str, size: float) -> tuple[CleanShare, ...]:
    """The facts about residuals, with another for one rule."""
    return tuple(
        replace(fact, share=size) if fact.rule == rule else fact for fact in facts().severe
    )


def share(rule: str, size: float) -> tuple[CleanShare, ...]:
    return (CleanShare(rule=rule, share=size),)


def case(
    kind: Kind,
    rules: RuleSet,
    *,
    remedy: str,
    subject: str = "",
    found: str = "",
    allowed: str = "",
    last: RuleSet | None = None,
) -> Case:
    objection = Objection(kind=kind, subject=subject, found=found, allowed=allowed, remedy=remedy)
    return Case(rules=rules, last=last, objection=objection)


LIMITED = ruled(COUPLED, BALANCED, WINDOWED, rule(BAND, 3.0), rule(SPECTRUM, 3.0))
"""Rules with budgets of their own for switches and for blocks."""
WIDE_BAND = replace(BAND, on_low=0.0, on_high=90_000.0)


def limited(change: Callable[[CleanFacts], CleanFacts]) -> RuleSet:
    assert LIMITED.clean is not None
    return replace(LIMITED, clean=change(LIMITED.clean))


WIDE = replace(TANK, span=Span(low=10_922.5, high=185_685.5))
BIASED = rule(replace(BOUND, low=27.0), 3.0)
UNSOUND = (
    case(
        Kind.DUPLICATE_NAME,
        ruled(COUPLED, BALANCED, WINDOWED, RATED, RATED),
        subject="L1 rate",
        found="2",
        remedy="rename them",
    ),
    case(
        Kind.BAD_TOLERANCE,
        ruled(replace(COUPLED, tolerance=-0.0), BALANCED, WINDOWED),
        subject="P1~F1",
        found="-0",
        allowed="0",
        remedy="mine the rule again",
    ),
    case(
        Kind.UNDESCRIBED_CHANNEL,
        replace(EVERY_RULE, channels=(PUMP, TANK), invariants=(COUPLED, RATED)),
        subject="P1~F1",
        found="F1",
        remedy="add the channel or drop the rule",
    ),
    case(
        Kind.CLEAN_FACTS,
        claiming(lambda clean: replace(clean, envelope=())),
        subject="P1~F1",
        found="0 facts about clean rows on rows in transition",
        allowed="exactly 1",
        remedy="mine the rules again",
    ),
    case(
        Kind.NOT_ENCODABLE,
        replace(EVERY_RULE, channels=(PUMP, replace(METER, span=None), TANK)),
        found="rule 'P1~F1' reads 'F1', which has no instrument span; state one in the plant file",
        remedy="mine the rules again",
    ),
)
LOOSE = (
    case(Kind.NO_PHYSICS, ruled(BOUNDED, RATED), remedy="mine other rows"),
    case(
        Kind.TOO_FEW_RULES,
        ruled(COUPLED, BALANCED),
        found="2",
        allowed="3",
        remedy="mine more rows or more channels",
    ),
    case(
        Kind.NO_CLEAN_FACTS,
        replace(EVERY_RULE, profile=Profile.PAPER_WIDE, clean=None),
        found="paper-wide",
        remedy="mine with --profile hardened",
    ),
    case(
        Kind.LOOSE_TOLERANCE,
        ruled(replace(COUPLED, tolerance=150.0), BALANCED, WINDOWED),
        subject="P1~F1",
        found="150 m3/h",
        allowed="150 m3/h (50% of its nominal flow)",
        remedy="mine it on calmer rows or drop the rule",
    ),
    case(
        Kind.UNCOVERED_TANK,
        described(SECOND_TANK),
        subject="L2",
        found="0",
        allowed="50%",
        remedy=f"mine other rows, or {declare('L2')}",
    ),
    case(
        Kind.UNCOVERED_ACTUATOR,
        described(SPARE),
        subject="P2",
        found="0",
        allowed="1",
        remedy=f"mine other rows, or {declare('P2')}",
    ),
    case(
        Kind.REFUSES_CLEAN_BATCHES,
        claiming(lambda clean: replace(clean, refused_share=0.006)),
        found="0.6%",
        allowed="0.5%",
        remedy="mine on rows that show the plant's normal range",
    ),
    case(
        Kind.CLAIMED_RESIDUAL,
        claiming(lambda clean: replace(clean, severe=severe("P1~F1", 50.5))),
        subject="P1~F1",
        found="303",
        allowed="300",
        remedy="mine it on calmer rows",
    ),
    case(
        Kind.CLAIMED_TRANSITIONS,
        claiming(lambda clean: replace(clean, envelope=share("P1~F1", 0.301))),
        subject="P1~F1",
        found="30.1%",
        allowed="30.0%",
        remedy="mine it on other rows",
    ),
    case(
        Kind.CLAIMED_WINDOWS,
        claiming(lambda clean: replace(clean, anchors=share("dL1/4", 0.011))),
        subject="dL1/4",
        found="1.1%",
        allowed="1.0%",
        remedy="mine it on other rows",
    ),
    case(
        Kind.CLAIMED_REPEATS,
        claiming(lambda clean: replace(clean, repeats=share("L1", 0.11))),
        subject="L1",
        found="11.0%",
        allowed="10.0%",
        remedy="mine it on other rows",
    ),
    case(
        Kind.WIDE_LIMITS,
        ruled(COUPLED, BALANCED, WINDOWED, rule(WIDE_BAND, 3.0)),
        subject="P1@L1",
        found="a band of 90,000 mm",
        allowed="87,380 mm (50% of the span of L1)",
        remedy="mine it on other rows or drop the rule",
    ),
    case(
        Kind.UNTIED_CHANNELS,
        described(*(replace(METER, name=f"F{at}") for at in range(2, 4))),
        found="2 of 5 channels (F2, F3)",
        allowed="35%",
        remedy="mine more rows, or declare why for each of them",
    ),
    case(
        Kind.CLAIMED_SWITCHES,
        limited(lambda clean: replace(clean, switches=share("P1@L1", 0.011))),
        subject="P1@L1",
        found="1.1%",
        allowed="1.0%",
        remedy="mine it on other rows",
    ),
    case(
        Kind.CLAIMED_BLOCKS,
        limited(lambda clean: replace(clean, blocks=share("L1 noise", 0.051))),
        subject="L1 noise",
        found="5.1%",
        allowed="5.0%",
        remedy="mine it on other rows",
    ),
    case(
        Kind.CLAIMED_JUMPS,
        claiming(lambda clean: replace(clean, segments_per_row=0.0101)),
        found="1.01%",
        allowed="1.00%",
        remedy="mine a record with fewer gaps",
    ),
    case(
        Kind.MAY_STAND_STILL,
        claiming(lambda clean: replace(clean, liveness=())),
        subject="L1",
        found="0 mm",
        allowed="35 mm within 1,024 rows",
        remedy=f"mine rows in which it moves, or {declare('L1')}",
    ),
    case(
        Kind.LONGER_THAN_BATCHES,
        claiming(
            lambda clean: replace(
                clean,
                liveness=(
                    *clean.liveness,
                    Liveness(level="L1", rows=(1 << 20) + 1, smallest_range=60.0),
                ),
            )
        ),
        found="1,048,577",
        allowed="1,048,576",
        remedy="drop it, or mine rows in which levels move more often",
    ),
)
AFTER_LAST = (
    case(
        Kind.UNEXPLAINED_STANDBY,
        replace(
            EVERY_RULE,
            channels=(*PLANT, SPARE),
            invariants=(rule(replace(COUPLING, standby=(("P2", 0),)), 6.0), BALANCED, WINDOWED),
            clean=clean_facts((COUPLED, BALANCED, WINDOWED)),
        ),
        subject="P1~F1",
        found="P2",
        remedy=f"drop it from the rule's standby pumps, or {declare('P2')}",
    ),
    case(
        Kind.MISSING_SINCE_LAST,
        ruled(COUPLED, BALANCED, replace(WINDOWED, relation=replace(WINDOWED.relation, name="w"))),
        last=ruled(COUPLED, rule(replace(COUPLING, name="P1~F9"), 6.0)),
        subject="P1~F9",
        remedy="mine it again, or declare why in [acceptance.reasons]",
    ),
    case(
        Kind.WIDER_RANGE,
        ruled(COUPLED, BALANCED, WINDOWED, BIASED),
        last=EVERY_RULE,
        subject="L1 in range",
        found="27 to 3,000 mm",
        allowed="30 to 3,000 mm",
        remedy="keep the last accepted range",
    ),
    case(
        Kind.LONGER_SETTLING,
        ruled(rule(replace(COUPLING, settle=2), 6.0), BALANCED, WINDOWED),
        last=EVERY_RULE,
        subject="P1~F1",
        found="2",
        allowed="1",
        remedy="keep it, or get a second approval",
    ),
    case(
        Kind.OTHER_PREDICTION,
        ruled(COUPLED, rule(replace(BALANCE, constant=1.0), 12.0), WINDOWED),
        last=EVERY_RULE,
        subject="dL1",
        found="13 mm",
        allowed="12 mm",
        remedy=RENEW,
    ),
    case(
        Kind.LOOSER_THAN_LAST,
        ruled(COUPLED, replace(BALANCED, tolerance=12.5), WINDOWED),
        last=EVERY_RULE,
        subject="dL1",
        found="12.5 mm",
        allowed="12 mm",
        remedy=RENEW,
    ),
    case(
        Kind.NOT_COMPARABLE,
        EVERY_RULE,
        last=claiming(lambda clean: replace(clean, anchors=())),
        found=(
            "dL1/4 has 0 facts about clean rows on windows out of balance; it must be exactly 1"
        ),
        allowed="facts about clean rows, from which its budgets follow",
        remedy="get a second approval",
    ),
    case(
        Kind.LARGER_RESIDUAL,
        claiming(lambda clean: replace(clean, severe=severe("P1~F1", 2.0))),
        last=EVERY_RULE,
        subject="P1~F1",
        found="18 m3/h",
        allowed="6 m3/h",
        remedy=RENEW,
    ),
    case(
        Kind.MORE_JUMPS,
        claiming(lambda clean: replace(clean, segments_per_row=0.01)),
        last=EVERY_RULE,
        found="5 of 200",
        allowed="1",
        remedy=RENEW,
    ),
    case(
        Kind.MORE_TRANSITIONS,
        claiming(lambda clean: replace(clean, envelope=share("P1~F1", 0.3))),
        last=EVERY_RULE,
        subject="P1~F1",
        found="77 of 200",
        allowed="2",
        remedy=RENEW,
    ),
    case(
        Kind.MORE_WINDOWS,
        claiming(lambda clean: replace(clean, anchors=share("dL1/4", 0.01))),
        last=EVERY_RULE,
        subject="dL1/4",
        found="2 of 200",
        allowed="0",
        remedy=RENEW,
    ),
    case(
        Kind.MORE_REPEATS,
        claiming(lambda clean: replace(clean, repeats=share("L1", 0.1))),
        last=EVERY_RULE,
        subject="L1",
        found="40 of 200",
        allowed="0",
        remedy=RENEW,
    ),
    case(
        Kind.MORE_SWITCHES,
        limited(lambda clean: replace(clean, switches=share("P1@L1", 0.01))),
        last=LIMITED,
        subject="P1@L1",
        found="4 of 200",
        allowed="0",
        remedy=RENEW,
    ),
    case(
        Kind.MORE_BLOCKS,
        limited(lambda clean: replace(clean, blocks=share("L1 noise", 0.04))),
        last=LIMITED,
        subject="L1 noise",
        found="4 of 200",
        allowed="0",
        remedy=RENEW,
    ),
    case(
        Kind.LESS_MOVEMENT,
        claiming(
            lambda clean: replace(
                clean, liveness=(Liveness(level="L1", rows=8, smallest_range=53.0),)
            )
        ),
        last=EVERY_RULE,
        subject="L1",
        found="24 mm",
        allowed="30 mm within 8 rows",
        remedy=RENEW,
    ),
    case(
        Kind.CHANGED_CHANNEL,
        EVERY_RULE,
        last=replace(EVERY_RULE, channels=(*PLANT, replace(METER, name="F2"))),
        subject="F2",
        allowed="flow",
        remedy="restore it, or declare why in [acceptance.reasons]",
    ),
    case(
        Kind.WIDER_SPAN,
        replace(EVERY_RULE, channels=(PUMP, METER, WIDE)),
        last=EVERY_RULE,
        subject="L1",
        found="10,922 to 185,686",
        allowed="10,922 to 185,682",
        remedy="state the instrument's span in the plant file",
    ),
    case(
        Kind.CHANGED_CODES,
        replace(EVERY_RULE, channels=(replace(PUMP, codes=Codes(off=0, on=(1,))), METER, TANK)),
        last=EVERY_RULE,
        subject="P1",
        remedy="restore them in the plant file",
    ),
)
CASES = {one.objection.kind: one for one in (*UNSOUND, *LOOSE, *AFTER_LAST)}
