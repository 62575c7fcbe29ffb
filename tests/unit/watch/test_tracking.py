"""Signals become alarms: with hysteresis, merged, limited, and the same after a restart."""

from functools import partial

import numpy as np
import pytest

from sluice.errors import SettingError
from sluice.watch import Event, EventKind, Severity, Tracker, WatchSettings
from sluice.watch.signals import Signal, Symptom, SymptomKind

from .conftest import Ground, events_of, stopped_pump

MINUTE = 60_000_000
SETTINGS = WatchSettings(raise_rows=3, clear_rows=5, most_per_hour=2)


def tracker(settings: WatchSettings = SETTINGS) -> Tracker:
    return Tracker(settings, identity="x", stride_s=60.0)


def signal(
    minute: int,
    name: str = "a",
    *,
    tags: tuple[str, ...] = ("T1",),
    size: float = 1.5,
    severe: bool = False,
    kind: SymptomKind = SymptomKind.RULE,
    holds: bool = False,
) -> Signal:
    return Signal(
        time=minute * MINUTE,
        symptom=SETTINGS.symptom(kind, name, stride_s=60.0),
        tags=tags,
        size=size,
        severe=severe,
        say=partial(str, f"{name} is broken"),
        holds=holds,
    )


def summary_of(events: list[Event]) -> list[str]:
    return [f"{event.kind} {event.alarm.evidence[0].name}" for event in events]


def test_one_row_raises_nothing() -> None:
    track = tracker()
    assert track.take([signal(1)], now=20 * MINUTE) == []
    assert track.open == {}


def test_three_of_five_rows_raise_an_alarm_that_starts_at_the_first() -> None:
    track = tracker()
    (event,) = track.take([signal(1), signal(3), signal(5)], now=5 * MINUTE)
    assert event.kind is EventKind.RAISED
    assert (event.alarm.start, event.alarm.last) == (1 * MINUTE, 5 * MINUTE)
    assert event.alarm.end is None
    assert event.alarm.severity is Severity.MEDIUM
    assert (event.alarm.rules, event.alarm.tags) == (("a",), ("T1",))


def test_three_rows_far_apart_raise_nothing() -> None:
    assert tracker().take([signal(1), signal(4), signal(7)], now=7 * MINUTE) == []


def test_a_severe_row_raises_at_once_and_is_high() -> None:
    (event,) = tracker().take([signal(1, severe=True)], now=1 * MINUTE)
    assert event.alarm.severity is Severity.HIGH


def test_an_alarm_ends_after_quiet_rows_with_its_last_row() -> None:
    track = tracker()
    track.take([signal(1, severe=True), signal(4)], now=8 * MINUTE)
    assert len(track.open) == 1
    (event,) = track.take([], now=9 * MINUTE)
    assert event.kind is EventKind.ENDED
    assert event.alarm.end == 4 * MINUTE


def test_signs_close_together_are_one_alarm_and_far_apart_two() -> None:
    track = tracker()
    near = track.take([signal(1, severe=True), signal(6, severe=True)], now=6 * MINUTE)
    assert summary_of(near) == ["raised a"]
    far = track.take([signal(12, severe=True)], now=12 * MINUTE)
    assert summary_of(far) == ["ended a", "raised a"]
    assert far[0].alarm.id != far[1].alarm.id


def test_symptoms_that_share_a_tag_are_one_alarm() -> None:
    track = tracker()
    events = track.take(
        [
            signal(1, "a", tags=("T1", "F1"), severe=True),
            signal(2, "b", tags=("F1", "F2"), severe=True),
            signal(3, "c", tags=("T9",), severe=True),
        ],
        now=3 * MINUTE,
    )
    assert summary_of(events) == ["raised a", "updated a", "raised c"]
    assert events[1].alarm.rules == ("a", "b")
    assert events[1].alarm.tags == ("T1", "F1", "F2")
    assert "also broken: b" in events[1].alarm.sentence


def test_rules_and_detector_together_are_high() -> None:
    track = tracker()
    rule = [signal(minute, "a") for minute in (1, 2, 3)]
    detector = [signal(minute, "", kind=SymptomKind.DETECTOR) for minute in (4, 5, 6)]
    first, second = track.take(rule + detector, now=6 * MINUTE)
    assert (first.alarm.severity, second.alarm.severity) == (Severity.MEDIUM, Severity.HIGH)
    assert second.kind is EventKind.UPDATED
    assert "the detector sees it too" in second.alarm.sentence


def test_missing_readings_alone_are_low() -> None:
    missing = [signal(minute, "T1", kind=SymptomKind.MISSING) for minute in (1, 2, 3)]
    (event,) = tracker().take(missing, now=3 * MINUTE)
    assert event.alarm.severity is Severity.LOW
    assert event.alarm.rules == ()


def test_a_window_between_two_anchors_only_continues_an_alarm() -> None:
    held = [signal(minute, holds=True, severe=True) for minute in range(1, 9)]
    assert tracker().take(held, now=9 * MINUTE) == []
    track = tracker()
    events = track.take([signal(1, severe=True), *held[1:]], now=12 * MINUTE)
    assert summary_of(events) == ["raised a"]
    assert events[0].alarm.id in track.open


def test_a_sign_that_becomes_severe_updates_the_alarm_and_its_sentence() -> None:
    track = tracker()
    track.take([signal(1), signal(2), signal(3)], now=3 * MINUTE)
    (event,) = track.take([signal(4, severe=True, size=9.0)], now=4 * MINUTE)
    assert (event.kind, event.alarm.severity) == (EventKind.UPDATED, Severity.HIGH)
    assert event.alarm.evidence[0].peak == 9.0


def test_more_alarms_than_the_limit_are_recorded_but_not_sent() -> None:
    track = tracker()
    signals = [signal(minute, str(minute), tags=(str(minute),), severe=True) for minute in range(4)]
    events = track.take(signals, now=4 * MINUTE)
    assert summary_of(events) == ["raised 0", "raised 1", "limited 2", "raised 3"]
    assert [event.alarm.sent for event in events] == [True, True, False, False]
    later = track.take([signal(70, "late", tags=("late",), severe=True)], now=70 * MINUTE)
    assert later[-1].kind is EventKind.RAISED
    assert later[-1].alarm.sent


def test_ids_depend_on_rows_alone() -> None:
    first = tracker().take([signal(1, severe=True)], now=1 * MINUTE)
    again = tracker().take([signal(1, severe=True)], now=1 * MINUTE)
    other = tracker().take([signal(2, severe=True)], now=2 * MINUTE)
    assert first[0].alarm.id == again[0].alarm.id != other[0].alarm.id
    assert first[0].key == again[0].key


def test_a_saved_tracker_continues() -> None:
    signals = [signal(1), signal(2), signal(3), signal(4, "b", severe=True), signal(8)]
    whole = tracker().take(signals, now=20 * MINUTE)
    for cut in range(len(signals)):
        before, after = tracker(), tracker()
        events = before.take(signals[:cut], now=(signals[cut - 1].time if cut else 0))
        after.restore(before.saved())
        events += after.take(signals[cut:], now=20 * MINUTE)
        assert [event.key for event in events] == [event.key for event in whole]


@pytest.mark.parametrize("name", ["raise_rows", "raise_windows", "clear_rows", "most_per_hour"])
def test_settings_below_one_are_refused(name: str) -> None:
    with pytest.raises(SettingError, match="at least 1 row"):
        WatchSettings(**{name: 0})


# -- a whole watch ----------------------------------------------------------------------------


def test_an_attack_is_one_alarm_with_its_tags_and_a_sentence(ground: Ground) -> None:
    record = ground.attacked(stopped_pump)
    events = events_of(ground.both, record)
    ended = [event.alarm for event in events if event.kind is EventKind.ENDED]
    start, stop = record.times[[1_000, 1_119]].astype("datetime64[us]").astype(np.int64)
    (found,) = [alarm for alarm in ended if alarm.start <= stop and alarm.last >= start]
    assert found.severity is Severity.HIGH
    assert "S_PU1~F_PU1" in found.rules
    assert {"F_PU1", "S_PU1"} <= set(found.tags)
    assert found.sentence.startswith("F_PU1 shows 0 m3/h while S_PU1 reads on; expected ")
    assert "check" in found.sentence


def test_events_do_not_depend_on_how_rows_are_cut(ground: Ground) -> None:
    record = ground.attacked(stopped_pump).rows(900, 1_300)
    whole = [event.key for event in events_of(ground.both, record, chunk=400)]
    assert whole
    for chunk in (1, 7, 64):
        assert [event.key for event in events_of(ground.both, record, chunk=chunk)] == whole


def test_clean_rows_raise_few_alarms(ground: Ground) -> None:
    raised = [e for e in events_of(ground.both, ground.later) if e.kind is EventKind.RAISED]
    assert len(raised) <= 2


def test_a_symptom_needs_its_rows_within_a_limit() -> None:
    cause = WatchSettings(raise_rows=1).symptom(SymptomKind.RULE, "a", stride_s=60.0)
    assert cause == Symptom(kind=SymptomKind.RULE, name="a", needed=1, within=0)
