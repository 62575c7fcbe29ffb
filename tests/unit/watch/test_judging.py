"""Rows that come one by one are judged as the whole batch is."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.detector import Physics, voted_model, with_rules
from sluice.errors import SettingError
from sluice.federation import FederationSettings, federate
from sluice.invariants.encoding import encode
from sluice.invariants.integers import evaluate
from sluice.invariants.relations import (
    Constant,
    Invariant,
    Mean,
    Relation,
    Spectrum,
    SwitchBand,
    Term,
    Tie,
    Window,
)
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.plants import simulate
from sluice.seeding import stream
from sluice.telemetry.channel import Channel, Codes, Role, Span
from sluice.telemetry.record import Record
from sluice.watch import subject_of
from sluice.watch.rows import StreamRows
from sluice.watch.signals import SymptomKind
from sluice.watch.subject import columns_of
from sluice.watch.words import say_score

from .conftest import Ground, rows_of, signals_of, stopped_pump


def broken_in_batch(ground: Ground, record: Record) -> dict[str, set[int]]:
    """Return the times at which the gate's evaluator finds each rule broken."""
    times = record.times.astype("datetime64[us]").astype(np.int64)
    return {
        judged.rule.name: set(times[judged.violating].tolist())
        for judged in evaluate(encode(ground.rules), record)
        if judged.violating.any()
    }


def broken_in_stream(ground: Ground, rows: StreamRows, cuts: list[int]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for signal in signals_of(ground.by_rules, rows, cuts):
        if signal.symptom.kind is SymptomKind.RULE and not signal.holds:
            found[signal.symptom.name].add(signal.time)
    return dict(found)


@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, 1_500), max_size=12), shift=st.integers(1, 9))
def test_every_rule_is_judged_as_in_a_batch_however_the_rows_are_cut(
    ground: Ground, cuts: list[int], shift: int
) -> None:
    record = ground.later.rows(0, 1_500)
    values = record.values.copy()
    column = record.index("S_PU1")
    values[700:, column] = np.roll(values[700:, column], shift)
    values[900:1_000, record.index("L_T1")] += 0.05
    record = record.with_values(values)
    expected = broken_in_batch(ground, record)
    assert any(isinstance(rule.relation, Window) for rule in ground.rules.invariants)
    assert expected
    found = broken_in_stream(ground, rows_of(record, ground.by_rules), sorted(cuts))
    assert found == expected


def test_one_row_at_a_time_is_judged_as_in_a_batch(ground: Ground) -> None:
    record = ground.attacked(stopped_pump).rows(900, 1_200)
    expected = broken_in_batch(ground, record)
    assert "S_PU1~F_PU1" in expected
    assert (
        broken_in_stream(ground, rows_of(record, ground.by_rules), list(range(1, 300))) == expected
    )


def test_no_rule_looks_across_a_time_jump(ground: Ground) -> None:
    record = ground.later
    jumped = np.concatenate((np.arange(400), np.arange(1_400, 1_800)))
    rows = rows_of(record, ground.by_rules)
    rows = StreamRows(times=rows.times[jumped], values=rows.values[jumped])
    levels = abs(record.column("L_T1")[1_400] - record.column("L_T1")[399])
    tolerance = next(r.tolerance for r in ground.rules.invariants if r.name == "L_T1 rate")
    assert levels > tolerance  # a rule that looked across would be broken
    assert broken_in_stream(ground, rows, [100, 400, 500]) == {}


def test_a_missing_reading_breaks_no_rule_but_is_signalled(ground: Ground) -> None:
    rows = rows_of(ground.later.rows(0, 300), ground.by_rules)
    values = rows.values.copy()
    column = ground.by_rules.names.index("L_T1")
    values[100:110, column] = np.nan
    signals = signals_of(ground.by_rules, StreamRows(times=rows.times, values=values), [103])
    assert {signal.symptom.key for signal in signals} == {"missing:L_T1"}
    assert len(signals) == 10
    assert "L_T1 has no reading" in signals[0].say()


def test_an_unknown_code_is_signalled(ground: Ground) -> None:
    rows = rows_of(ground.later.rows(0, 300), ground.by_rules)
    values = rows.values.copy()
    values[100, ground.by_rules.names.index("S_PU1")] = 7
    signals = signals_of(ground.by_rules, StreamRows(times=rows.times, values=values), [])
    codes = [signal for signal in signals if signal.symptom.kind is SymptomKind.CODE]
    assert [signal.tags for signal in codes] == [("S_PU1",)]
    assert "shows the code 7; it has only 0 and 1" in codes[0].say()


def test_scores_are_those_of_the_whole_record(ground: Ground) -> None:
    record = ground.attacked(stopped_pump)
    scored = ground.detector.score(record)
    expected = set(scored.times[scored.alarms].astype(np.int64).tolist())
    subject = subject_of(None, ground.detector)
    signals = signals_of(subject, rows_of(record, subject), [5, 9, 10, 700, 1_001, 1_500])
    assert {signal.time for signal in signals} == expected
    assert expected
    worst = max(signals, key=lambda signal: signal.size)
    assert worst.tags[0] in ("F_PU1", "S_PU1")
    assert "times its limit" in worst.say()
    peak = float(scored.scores.max() / scored.threshold.score)
    assert worst.size == pytest.approx(peak, rel=1e-4)


def test_a_detector_that_reads_rules_scores_a_stream_as_a_record(ground: Ground) -> None:
    record = ground.attacked(stopped_pump)
    scored = ground.fused.score(record)
    expected = set(scored.times[scored.alarms].astype(np.int64).tolist())
    assert expected
    subject = subject_of(None, ground.fused)
    assert subject.rules == ground.rules  # the model holds them
    signals = signals_of(subject, rows_of(record, subject), [400, 999, 1_001, 1_002, 1_500, 2_222])
    found = {signal.time for signal in signals if signal.symptom.kind is SymptomKind.DETECTOR}
    assert found == expected


LEVEL = Channel(name="L", role=Role.LEVEL, unit="m", span=Span(low=0.0, high=10.0))
FLOW = Channel(name="F", role=Role.FLOW, unit="L/s", span=Span(low=0.0, high=10.0))
PUMP = Channel(name="P", role=Role.ACTUATOR, codes=Codes(off=0, on=(1,)))
SPECTRUM = Spectrum(
    name="noise", channel="L", rows=8, offset=3, first_low=0.001, first_high=9.0,
    second_low=0.001, second_high=9.0,
)  # fmt: skip
BAND = SwitchBand(
    name="band", actuator="P", on=(1,), level="L", before=True, on_low=1.0, on_high=2.0,
    off_low=6.0, off_high=8.0,
)  # fmt: skip
MEAN = Mean(name="mean", channel="L", mean=2.0, rows=8)
TIE = Tie(name="tie", channel="F", terms=(Term(channel="L", coefficient=0.5),), constant=1.0)


@pytest.mark.parametrize(
    ("relation", "words"),
    [
        (TIE, "F shows 9 L/s, but L predicts 3.5 ± 0.2 L/s"),
        (Constant(name="still", channel="P", value=0.0), "in clean operation it always shows 0"),
        (BAND, "m; it does so at 1 to 2 m: check the control's set points"),
        (SPECTRUM, "the noise of L over 8 min is not that of clean operation"),
        (MEAN, "in the mean over 8 min; in clean operation it is 2 ± 0.2 m"),
    ],
    ids=["tie", "constant", "switch band", "spectrum", "mean"],
)
@pytest.mark.parametrize("step", [1, 5, 200])
def test_every_kind_of_rule_is_judged_as_in_a_batch(
    relation: Relation, words: str, step: int
) -> None:
    rules = RuleSet(
        plant="small",
        profile=Profile.HARDENED,
        stride_s=60.0,
        channels=(LEVEL, FLOW, PUMP),
        invariants=(Invariant(relation=relation, tolerance=0.2),),
    )
    rng = stream(0, "watch", "kinds")
    level = 5.0 + rng.normal(0, 0.05, 120)
    values = np.column_stack((level, 0.5 * level + 1.0, np.zeros(120)))
    values[60:80] = (5.0, 9.0, 1.0)
    record = Record(
        name="small",
        channels=rules.channels,
        values=values,
        times=np.datetime64("2024-01-01", "us") + np.arange(120) * np.timedelta64(60, "s"),
        stride_s=60.0,
        labels=np.zeros(120, np.int8),
    )
    subject = subject_of(rules, None)
    (judged,) = evaluate(encode(rules), record)
    expected = record.times[judged.violating].astype(np.int64).tolist()
    assert expected
    signals = signals_of(subject, rows_of(record, subject), list(range(step, 120, step)))
    found = [s for s in signals if s.symptom.kind is SymptomKind.RULE and not s.holds]
    assert [signal.time for signal in found] == expected
    assert words in found[0].say()


def test_rules_and_model_of_different_strides_are_refused(ground: Ground) -> None:
    with pytest.raises(SettingError, match="a row every 5 s and the model one every 60 s"):
        subject_of(replace(ground.rules, stride_s=5.0), ground.detector)


def test_nothing_to_judge_by_is_refused() -> None:
    with pytest.raises(SettingError, match="give --model, --rules, or both"):
        subject_of(None, None)


def test_a_source_without_a_channel_is_refused(ground: Ground) -> None:
    with pytest.raises(Exception, match="has no channel 'F_PU1', which the watch's rules"):
        columns_of(("L_T1",), subject_of(ground.rules, None), source="rows.csv")


@pytest.mark.parametrize("by_rules", [False, True])
def test_an_alarm_of_a_vote_names_who_voted(ground: Ground, *, by_rules: bool) -> None:
    """`sluice score` named the members that voted and dissented, `sluice watch` did not."""
    plant = simulate("line", seed=0, days=12)
    vote = federate(
        FederationSettings(
            clients={
                name: plant.rows(at * 2_000, (at + 1) * 2_000) for at, name in enumerate("cab")
            },
            validation=plant.rows(7_000, 14_000),
            detector="moments",
            rule="vote",
            malicious=1,
            false_alarms_per_week=7.0,
        )
    ).detector
    if by_rules:
        vote = with_rules(vote, Physics(rules=ground.rules), plant.rows(7_000, 14_000))
    record = ground.attacked(stopped_pump)
    subject = subject_of(None, vote)
    said = {
        str(np.datetime64(signal.time, "us").astype("datetime64[s]")): signal.say()
        for signal in signals_of(subject, rows_of(record, subject), [1_050])
        if signal.symptom.kind is SymptomKind.DETECTOR
    }
    votes = voted_model(vote).votes(vote.framing.windows(record))
    alarms = vote.score(record)
    assert len(said) == alarms.alarms.sum() > 0
    for at in np.flatnonzero(alarms.alarms):
        text = said[str(alarms.times[at].astype("datetime64[s]"))]
        names = [
            [n for n, own in zip("abc", votes[:, at], strict=True) if bool(own) is one]
            for one in (True, False)
        ]
        if not names[0]:
            assert by_rules
            assert "no member voted for it" in text
        else:
            against = ", ".join(names[1]) or "none"
            assert text.endswith(f"; voted for it: {', '.join(names[0])}; against: {against}")


def test_a_score_that_rounds_to_its_limit_is_just_above_it() -> None:
    assert "the score is just above its limit" in say_score(1.0049, (), ())
    assert "the score is 1.01 times its limit" in say_score(1.006, (), ())
