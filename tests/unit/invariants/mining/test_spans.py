"""Spans, operating ranges, window lengths and the paper's tolerance, from typed readings."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.invariants.mining.paper import calibrate_as_paper
from sluice.invariants.mining.spans import operating_range, resolution, span_of, with_spans
from sluice.invariants.mining.windows import sliding_residuals, window_lengths, window_of
from sluice.invariants.relations import Evidence, Term, Window
from sluice.telemetry.channel import Channel, Role, Span
from sluice.telemetry.record import Record
from tests.unit.invariants.small_plant import BALANCE, COUPLING, PUMP, RATE, TANK, record_of

NAN = float("nan")
BARE = replace(TANK, span=None)
STILL = replace(BALANCE, terms=())


def levels(*readings: float, jumps: tuple[int, ...] = (), channel: Channel = BARE) -> Record:
    return record_of({channel.name: readings}, channels=(channel,), jumps=jumps)


@pytest.mark.parametrize(
    ("readings", "step"),
    [
        ([0.0, 100.0, 200.0], 2.0),  # a hundredth of the range
        ([0.0, 0.5, 100.0], 0.5),  # the smallest step
        ([1.0, 0.0, NAN, 1.0], 0.01),
        ([5.0, 5.0], 0.0),
        ([NAN, NAN], 0.0),
        ([NAN, 5.0], 0.0),
        ([-3.0, -1.0, -1.015625], 0.015625),
    ],
)
def test_resolution_is_the_smallest_step_or_a_hundredth_of_the_range(
    readings: list[float], step: float
) -> None:
    assert resolution(np.array(readings)) == step


@pytest.mark.parametrize(
    ("role", "low", "high"),
    [(Role.LEVEL, -40.0, 120.0), (Role.FLOW, -40.0, 120.0), (Role.QUALITY, -800.0, 880.0)],
)
def test_a_span_has_room_of_half_its_width_and_an_analyser_of_ten(
    role: Role, low: float, high: float
) -> None:
    channel = Channel(name="X", role=role)
    assert span_of(channel, levels(0.0, 80.0, channel=channel)) == Span(low=low, high=high)


def saws(role: Role = Role.LEVEL, low: float = 20.0) -> tuple[Channel, list[Record]]:
    """Three blocks of a level that rises from 20 to 100 again and again."""
    channel = Channel(name="X", role=role)
    readings = [low + 80 * (at % 27) / 26 for at in range(810)]
    return channel, [levels(*readings, channel=channel)] * 3


def test_a_range_that_does_not_drift_has_room_of_a_fifth() -> None:
    channel, blocks = saws()
    found = operating_range(channel, blocks, share=1e-7)
    assert found is not None
    assert (found.low, found.high) == (4.0, 116.0)


def test_a_range_ends_at_zero_where_a_quantity_cannot_be_negative() -> None:
    channel, blocks = saws(low=10.0)
    found = operating_range(channel, blocks, share=1e-7)
    assert found is not None
    assert found.low == 0.0
    channel, blocks = saws(role=Role.OTHER, low=10.0)
    found = operating_range(channel, blocks, share=1e-7)
    assert found is not None
    assert found.low == -6.0


def test_a_range_that_drifts_has_more_room_but_at_most_half() -> None:
    channel, blocks = saws()
    drifting = [block.with_values(block.values + 30.0 * at) for at, block in enumerate(blocks)]
    found = operating_range(channel, drifting, share=1e-7)
    assert found is not None
    assert found.high == 160.0 + 0.5 * 140.0


def test_an_analyser_keeps_its_room() -> None:
    channel, blocks = saws(role=Role.QUALITY)
    assert operating_range(channel, blocks, share=1e-7) == Span(low=-780.0, high=900.0)


def test_missing_readings_do_not_count_and_a_constant_channel_has_no_range() -> None:
    assert operating_range(BARE, [levels(7.0, NAN, 7.0)], share=1e-7) is None
    assert operating_range(BARE, [levels(NAN, NAN)], share=1e-7) is None


def test_a_range_stays_within_the_instruments_span() -> None:
    channel, blocks = saws()
    declared = replace(channel, span=Span(low=10.0, high=110.0))
    assert operating_range(declared, blocks, share=1e-7) == Span(low=10.0, high=110.0)


def test_measured_channels_get_a_span_unless_declared_constant_or_discrete() -> None:
    constant = Channel(name="X", role=Role.OTHER)
    declared = replace(TANK, name="L2")
    columns = {"P1": [0, 1], "L1": [0, 80], "L2": [0, 80], "X": [4, 4]}
    record = record_of(columns, channels=(PUMP, BARE, declared, constant))
    assert with_spans(record) == (
        PUMP,
        replace(BARE, span=Span(low=-40.0, high=120.0)),
        declared,
        constant,
    )


def test_a_window_is_its_balance_over_several_rows() -> None:
    assert window_of(replace(BALANCE, constant=0.25, averaged=True), 8) == Window(
        name="dL1/8",
        level="L1",
        terms=(Term(channel="F1", coefficient=0.5),),
        constant=0.25,
        rows=8,
        averaged=True,
    )


def test_residuals_slide_over_every_stretch_of_rows() -> None:
    record = levels(0.0, 1.0, 3.0, 6.0, 10.0)
    assert list(sliding_residuals(STILL, record, 1)) == [1.0, 2.0, 3.0, 4.0]
    assert list(sliding_residuals(STILL, record, 2)) == [3.0, 5.0, 7.0]
    assert list(sliding_residuals(STILL, record, 4)) == [10.0]
    assert sliding_residuals(STILL, record, 5).size == 0


def test_no_stretch_crosses_a_jump_or_a_missing_reading() -> None:
    assert list(sliding_residuals(STILL, levels(0, 1, 3, 6, 10, jumps=(2,)), 2)) == [7.0]
    assert list(sliding_residuals(STILL, levels(0, 1, NAN, 6, 10, 15), 2)) == [9.0]


def zigzag(rows: int) -> Record:
    """A level that rises and falls by 1: over an even number of rows it does not change."""
    return levels(*(float(at % 2) for at in range(rows)))


@pytest.mark.parametrize(
    ("rows", "lengths"), [(79, ()), (80, (4,)), (159, (4,)), (160, (4, 8)), (640, (4, 8, 16))]
)
def test_a_window_is_at_most_a_twentieth_of_the_rows(rows: int, lengths: tuple[int, ...]) -> None:
    assert window_lengths(STILL, zigzag(rows)) == lengths


def test_a_window_that_detects_no_slower_ramp_is_not_chosen() -> None:
    drifting = levels(*(float(at) for at in range(160)))
    assert window_lengths(STILL, drifting) == ()


def test_a_window_must_at_least_halve_the_ramp() -> None:
    """The level repeats 0, 2, 2, 2: a step is up to 2, and four rows change by 0 or not at all."""
    record = levels(*([0.0, 2.0, 2.0, 2.0] * 40))
    assert window_lengths(STILL, record) == (4, 8)


def test_the_papers_tolerance_is_half_more_than_the_99_9th_percentile() -> None:
    rule = calibrate_as_paper(RATE, Evidence(r2=0.5, r2_held_out=0.4), levels(0, 2, 4, 6))
    assert rule.tolerance == 3.0
    assert rule.evidence == Evidence(r2=0.5, judged_rows=3, few_rows=True)


def test_the_percentile_lies_between_the_largest_two_residuals() -> None:
    rule = calibrate_as_paper(RATE, Evidence(), levels(0, 1, 2, 4))  # sizes 1, 1, 2
    assert rule.tolerance == pytest.approx(1.5 * (1 + 0.998))


@pytest.mark.parametrize(("rows", "few"), [(1_000, True), (1_001, False)])
def test_a_thousand_judged_rows_are_enough_for_a_percentile(rows: int, few: bool) -> None:  # noqa: FBT001
    rule = calibrate_as_paper(RATE, Evidence(), zigzag(rows))
    assert (rule.evidence.judged_rows, rule.evidence.few_rows) == (rows - 1, few)


def test_a_rule_that_never_applied_gets_a_millionth_and_an_exact_one_a_floor() -> None:
    never = record_of({"P1": [0.0], "F1": [0.0]})
    assert calibrate_as_paper(RATE, Evidence(), levels(5.0)).tolerance == 1e-6
    assert calibrate_as_paper(COUPLING, Evidence(), never).tolerance == 1e-9
    assert calibrate_as_paper(RATE, Evidence(), levels(5.0, 5.0)).tolerance == 1e-9
