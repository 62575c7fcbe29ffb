"""Rules as integers: exact weights, ties, saturation, and the limit before residuals wrap."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.errors import RulesFileError
from sluice.invariants import encoding as encoding_module
from sluice.invariants.encoding import (
    LARGEST_RESIDUAL,
    REGISTER_TOP,
    TOLERANCE,
    IntegerBalance,
    IntegerBound,
    IntegerCoupling,
    IntegerLimits,
    IntegerRate,
    IntegerRule,
    IntegerSpectrum,
    IntegerTerm,
    IntegerTie,
    Register,
    encode,
    held,
    largest_residual,
    register_of,
)
from sluice.invariants.relations import ActuatorState, Balance, Bound, Term
from sluice.telemetry.channel import Channel, Codes, Role, Span
from tests.unit.invariants.small_plant import (
    BALANCE,
    BALANCED,
    BOUND,
    COUPLED,
    COUPLING,
    METER,
    PUMP,
    RATE,
    RATED,
    SPECTRUM,
    STEP,
    TANK,
    WINDOWED,
    rule,
    rules_of,
)

NAN = float("nan")


def only(*found: IntegerRule) -> IntegerRule:
    (one,) = found
    return one


def test_headroom_of_a_sixteenth_lies_on_either_side_of_the_span() -> None:
    register = register_of(Channel(name="L", role=Role.LEVEL, span=Span(low=0.0, high=16.0)))
    assert register.low == -1.0
    assert register.step == 18.0 / 65_535
    assert list(register.quantise(np.array([-1.0, 17.0]))) == [0, 65_535]


def test_the_small_plants_registers_are_threes_from_zero() -> None:
    assert register_of(TANK) == Register(channel="L1", low=0.0, step=STEP)


@pytest.mark.parametrize(
    ("reading", "register"),
    [
        (0.0, 0),
        (1.5, 0),  # a tie goes to the even register
        (4.5, 2),
        (7.5, 2),
        (1.501, 1),
        (-1.5, 0),
        (-3_000.0, 0),
        (196_605.0, 65_535),
        (196_606.6, 65_535),
        (1e15, 65_535),
        (-1e15, 0),
    ],
)
def test_readings_round_to_even_and_saturate(reading: float, register: int) -> None:
    assert list(register_of(TANK).quantise(np.array([reading]))) == [register]


@pytest.mark.parametrize(
    ("readings", "filled"),
    [
        ([1.0, NAN, NAN, 4.0], [1.0, 1.0, 1.0, 4.0]),
        ([NAN, NAN, 3.0, NAN], [3.0, 3.0, 3.0, 3.0]),
        ([NAN, NAN], [-7.0, -7.0]),
        ([5.0, 6.0], [5.0, 6.0]),
    ],
)
def test_a_missing_reading_holds_the_last_one(readings: list[float], filled: list[float]) -> None:
    assert list(held(np.array(readings), empty=-7.0)) == filled


def test_a_channel_that_was_never_read_stays_at_register_zero() -> None:
    assert list(register_of(TANK).quantise(np.array([NAN, NAN]))) == [0, 0]


def test_a_coupling_weighs_flow_so_that_its_tolerance_is_exact() -> None:
    encoded = only(*encode(rules_of(COUPLED)).rules)
    assert isinstance(encoded, IntegerCoupling)
    assert encoded.weight == TOLERANCE // 2  # 3 units of a tolerance of 6
    assert encoded.off_offset == 0
    assert encoded.on_offsets == ((1, -50 * TOLERANCE),)
    assert encoded.envelope_offset == -50 * TOLERANCE


def test_a_couplings_residual_is_zero_at_nominal_and_signed_around_it() -> None:
    encoded = only(*encode(rules_of(COUPLED)).rules)
    assert isinstance(encoded, IntegerCoupling)
    flow = np.array([0, 98, 100, 103])
    half = TOLERANCE // 2
    assert list(encoded.steady(flow, 1)) == [-100 * half, -2 * half, 0, 3 * half]
    assert list(encoded.steady(flow, 0)) == [0, 98 * half, 100 * half, 103 * half]
    assert list(encoded.envelope(flow)) == [0, 0, 0, 3 * half]


def test_the_envelope_reaches_below_zero_where_the_span_does() -> None:
    low = replace(METER, span=Span(low=-3_000.0 + 10_922.5, high=-3_000.0 + 185_682.5))
    encoded = only(*encode(rules_of(COUPLED, channels=(PUMP, low, TANK))).rules)
    assert isinstance(encoded, IntegerCoupling)
    assert encoded.off_offset == -500 * TOLERANCE
    assert list(encoded.envelope(np.array([999, 1_000, 1_100, 1_101]))) == [
        -TOLERANCE // 2,
        0,
        0,
        TOLERANCE // 2,
    ]


def test_the_envelope_ends_at_the_largest_of_several_states() -> None:
    speeds = (ActuatorState(code=1, nominal=300.0), ActuatorState(code=2, nominal=600.0))
    geared = replace(PUMP, codes=Codes(off=0, on=(1, 2)))
    coupled = rule(replace(COUPLING, states=speeds), 6.0)
    encoded = only(*encode(rules_of(coupled, channels=(geared, METER, TANK))).rules)
    assert isinstance(encoded, IntegerCoupling)
    assert dict(encoded.on_offsets) == {1: -50 * TOLERANCE, 2: -100 * TOLERANCE}
    assert encoded.envelope_offset == -100 * TOLERANCE


def test_a_balance_weighs_level_and_flow_in_one_unit() -> None:
    encoded = only(*encode(rules_of(BALANCED)).rules)
    assert isinstance(encoded, IntegerBalance)
    assert encoded.level_weight == TOLERANCE // 4  # 3 units of a tolerance of 12
    assert encoded.terms == (IntegerTerm(channel="F1", weight=TOLERANCE // 8, on=()),)
    assert (encoded.constant, encoded.rows, encoded.averaged) == (0, 1, False)


def test_averaged_terms_weigh_half_because_both_rows_are_summed() -> None:
    pumped = Term(channel="P1", coefficient=-6.0, on=(1,))
    balance = replace(BALANCE, terms=(*BALANCE.terms, pumped), averaged=True, constant=-3.0)
    encoded = only(*encode(rules_of(rule(balance, 6.0))).rules)
    assert isinstance(encoded, IntegerBalance)
    assert encoded.terms == (
        IntegerTerm(channel="F1", weight=TOLERANCE // 8, on=()),  # 0.5 x 3 / 2 of 6
        IntegerTerm(channel="P1", weight=-TOLERANCE // 2, on=(1,)),
    )
    assert encoded.constant == -TOLERANCE // 2


def test_the_lowest_reading_of_a_flow_goes_into_the_constant() -> None:
    high = replace(METER, span=Span(low=12.0 + 10_922.5, high=12.0 + 185_682.5))
    encoded = only(*encode(rules_of(rule(BALANCE, 6.0), channels=(PUMP, high, TANK))).rules)
    assert isinstance(encoded, IntegerBalance)
    assert encoded.constant == TOLERANCE  # 0.5 x 12 of 6


def test_a_window_keeps_its_length() -> None:
    encoded = only(*encode(rules_of(WINDOWED)).rules)
    assert isinstance(encoded, IntegerBalance)
    assert encoded.rows == 4


@pytest.mark.parametrize(
    ("low", "high", "registers"),
    [
        (30.0, 300.0, (10, 100)),
        (31.4, 301.6, (10, 101)),
        (-50.0, 1e9, (1, 65_534)),  # a saturated reading is never in range
        (0.0, 196_605.0, (1, 65_534)),
        (4.5, 7.5, (2, 2)),  # ties go to the even register
    ],
)
def test_a_bound_leaves_the_saturated_registers_out(
    low: float, high: float, registers: tuple[int, int]
) -> None:
    bound = Bound(name="L1 in range", channel="L1", low=low, high=high)
    encoded = only(*encode(rules_of(rule(bound, 3.0))).rules)
    assert isinstance(encoded, IntegerBound)
    assert (encoded.low, encoded.high) == registers


def test_a_rate_weighs_one_register_by_its_share_of_the_tolerance() -> None:
    encoded = only(*encode(rules_of(rule(RATE, 12.0))).rules)
    assert isinstance(encoded, IntegerRate)
    assert encoded.weight == TOLERANCE // 4


@pytest.mark.parametrize(
    ("integer", "largest"),
    [
        (IntegerRate(rule=RATED, channel="L1", weight=7), 7 * REGISTER_TOP),
        (IntegerBound(rule=RATED, channel="L1", low=3, high=9), REGISTER_TOP),
        (
            IntegerCoupling(
                rule=COUPLED,
                relation=COUPLING,
                weight=2,
                off_offset=-5,
                on_offsets=((1, -900), (2, 40)),
                envelope_offset=-300,
            ),
            2 * REGISTER_TOP + 900,
        ),
        (
            IntegerBalance(
                rule=BALANCED,
                level="L1",
                level_weight=2,
                terms=(
                    IntegerTerm(channel="F1", weight=-3, on=()),
                    IntegerTerm(channel="P1", weight=11, on=(1,)),
                ),
                constant=-17,
                rows=4,
                averaged=True,
            ),
            2 * REGISTER_TOP + 4 * (2 * 3 * REGISTER_TOP + 2 * 11 + 17),
        ),
        (
            IntegerBalance(
                rule=BALANCED,
                level="L1",
                level_weight=2,
                terms=(IntegerTerm(channel="F1", weight=-3, on=()),),
                constant=17,
                rows=1,
                averaged=False,
            ),
            2 * REGISTER_TOP + 3 * REGISTER_TOP + 17,
        ),
        (
            IntegerTie(
                rule=BALANCED,
                channel="L1",
                weight=2,
                terms=(
                    IntegerTerm(channel="F1", weight=-3, on=()),
                    IntegerTerm(channel="P1", weight=11, on=(1,)),
                ),
                constant=-17,
            ),
            2 * REGISTER_TOP + 3 * REGISTER_TOP + 11 + 17,
        ),
        (
            IntegerSpectrum(
                rule=rule(SPECTRUM, 9.0),
                relation=SPECTRUM,
                first=IntegerLimits(low=10, high=500),
                second=IntegerLimits(low=20, high=1_000),
            ),
            4 * 4 * REGISTER_TOP**2 + 4 * 501,
        ),
    ],
)
def test_the_largest_residual_adds_every_part(integer: IntegerRule, largest: int) -> None:
    assert largest_residual(integer) == largest


HEAVIEST = (LARGEST_RESIDUAL - 1) // REGISTER_TOP


def test_a_residual_just_below_the_limit_is_encoded() -> None:
    encoded = only(*encode(rules_of(rule(RATE, STEP * TOLERANCE / HEAVIEST))).rules)
    assert isinstance(encoded, IntegerRate)
    assert encoded.weight == HEAVIEST
    assert largest_residual(encoded) < LARGEST_RESIDUAL == 1 << 62


def test_a_residual_that_could_wrap_is_refused_with_the_rules_name() -> None:
    tolerance = STEP * TOLERANCE / (HEAVIEST + 1)
    with pytest.raises(RulesFileError, match="rule 'L1 rate' could reach a residual of 4.61e\\+18"):
        encode(rules_of(rule(RATE, tolerance)))


def test_a_residual_of_exactly_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = rules_of(rule(RATE, 3.0))
    reach = largest_residual(only(*encode(rules).rules))
    monkeypatch.setattr(encoding_module, "LARGEST_RESIDUAL", reach + 1)
    encode(rules)
    monkeypatch.setattr(encoding_module, "LARGEST_RESIDUAL", reach)
    with pytest.raises(RulesFileError, match="rule 'L1 rate' could reach a residual"):
        encode(rules)


def test_a_rule_on_a_channel_without_a_span_is_refused() -> None:
    bare = replace(METER, span=None)
    with pytest.raises(RulesFileError, match="rule 'dL1' reads 'F1', which has no instrument span"):
        encode(rules_of(BALANCED, channels=(PUMP, bare, TANK)))


def test_a_channel_without_a_span_has_no_register() -> None:
    with pytest.raises(RulesFileError, match="channel 'F1' has no instrument span"):
        register_of(replace(METER, span=None))


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-1e308, 1e308),  # the width overflows
        (0.0, 1.7e308),  # the width and its headroom do
        (-1.75e308, -2e307),  # the low end and its headroom do
        (0.0, 5e-324),  # a step rounds to zero
    ],
)
def test_a_span_without_a_step_that_is_a_number_above_zero_is_refused(
    low: float, high: float
) -> None:
    with pytest.raises(RulesFileError, match="'F1' has a span .*cannot be divided into 65,535"):
        register_of(replace(METER, span=Span(low=low, high=high)))


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.5e308), (0.0, 1e-318), (-1.0, -1 + 2**-53)])
def test_the_widest_and_the_narrowest_spans_have_a_register(low: float, high: float) -> None:
    register = register_of(replace(METER, span=Span(low=low, high=high)))
    assert register.low < register.low + register.step * REGISTER_TOP < float("inf")


def test_channels_that_no_rule_reads_may_lack_a_span_and_actuators_are_left_out() -> None:
    encoding = encode(rules_of(rule(RATE, 3.0), channels=(PUMP, replace(METER, span=None), TANK)))
    assert [register.channel for register in encoding.registers] == ["L1"]
    assert encoding.actuators == ()
    assert encoding.register("L1").step == STEP


def test_actuators_are_those_that_a_rule_reads() -> None:
    spare = replace(PUMP, name="P2")
    encoding = encode(rules_of(COUPLED, channels=(spare, PUMP, METER, TANK)))
    assert encoding.actuators == (PUMP,)
    standby = replace(COUPLING, standby=(("P2", 0),))
    encoding = encode(rules_of(rule(standby, 6.0), channels=(spare, PUMP, METER, TANK)))
    assert encoding.actuators == (spare, PUMP)


def test_a_balance_may_have_no_terms() -> None:
    still = Balance(name="dL1", level="L1", terms=(), constant=-0.5, averaged=False)
    encoded = only(*encode(rules_of(rule(still, 1.0))).rules)
    assert isinstance(encoded, IntegerBalance)
    assert (encoded.terms, encoded.constant) == ((), -TOLERANCE // 2)


def test_a_bound_does_not_depend_on_its_tolerance() -> None:
    loose, tight = (only(*encode(rules_of(rule(BOUND, size))).rules) for size in (300.0, 1e-30))
    assert isinstance(loose, IntegerBound)
    assert isinstance(tight, IntegerBound)
    assert (loose.low, loose.high) == (tight.low, tight.high) == (10, 1_000)
