"""eTaPR by hand, by its authors' published examples, and against a slow one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.errors import SettingError
from sluice.evaluation.etapr import etapr

from .conftest import Make


def at(windows: int, *ranges: tuple[int, int]) -> list[int]:
    """Mark ranges, both ends included, as the authors write them."""
    marked = [0] * windows
    for first, last in ranges:
        marked[first : last + 1] = [1] * (last - first + 1)
    return marked


@pytest.mark.parametrize(
    ("first_alarm", "precision"), [((2, 57), 0.3876823062996395), ((2, 17), 0.535329416677799)]
)
def test_the_authors_example(
    make_outcome: Make, first_alarm: tuple[int, int], precision: float
) -> None:
    # The example in the README of saurf4ng/eTaPR, whose printed results these are.
    attacks = at(100, (1, 4), (59, 60), (62, 64), (67, 96))
    alarms = at(100, first_alarm, (59, 60), (62, 64), (66, 69))
    found = etapr(make_outcome(attacks, alarms), theta_p=0.5, theta_r=0.01)
    assert found.precision == pytest.approx(precision, abs=1e-15)
    assert found.recall == pytest.approx(0.6375, abs=1e-15)


def test_the_example_of_an_independent_implementation(make_outcome: Make) -> None:
    # The example in the README of GPla/faster-eTaPR, which is tested against the authors' code.
    alarms = [0, 1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 0, 0, 0]
    attacks = [0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 1]
    found = etapr(make_outcome(attacks, alarms))
    assert found.recall == pytest.approx(0.3875)
    assert found.precision == pytest.approx(0.46476766302377037)
    assert found.f1 == pytest.approx(0.4226312395393011)
    assert (found.detected_attacks, found.attacks) == (2, 4)
    assert (found.correct_alarms, found.alarms) == (2, 4)


def test_what_falls_takes_with_it_what_it_had_covered(make_outcome: Make) -> None:
    # Of the alarm's 9 windows 3 lie on a short attack and 4 on a long one. These 4 of 60 are less
    # than a tenth, so the long attack is not detected; without it 3 of 9 windows are not half, so
    # the alarm is not correct; and without the alarm the short attack is not detected either.
    attacks = at(70, (0, 2), (5, 64))
    alarms = at(70, (0, 8))
    found = etapr(make_outcome(attacks, alarms))
    assert (found.precision, found.recall, found.f1) == (0, 0, 0)
    shorter = etapr(make_outcome(at(70, (0, 2), (5, 34)), alarms))  # now 4 of 30 are enough
    assert shorter.detected_attacks == 2
    assert shorter.precision == pytest.approx((1 + 7 / 9) / 2)
    assert shorter.recall == pytest.approx(((1 + 1) / 2 + (1 + 4 / 30) / 2) / 2)


def test_an_alarm_that_is_always_on_is_no_good_alarm(make_outcome: Make) -> None:
    always = etapr(make_outcome(at(100, (40, 49)), [1] * 100))
    assert always.recall == always.precision == 0


def test_a_long_false_alarm_weighs_by_its_root(make_outcome: Make) -> None:
    found = etapr(make_outcome(at(100, (0, 3)), at(100, (0, 3), (20, 35))))
    assert found.precision == pytest.approx(2 / (2 + 4))
    assert found.recall == 1


def test_perfect_alarms_and_none(make_outcome: Make) -> None:
    attacks = at(50, (3, 9), (20, 20), (40, 49))
    perfect = etapr(make_outcome(attacks, attacks))
    assert perfect.precision == perfect.recall == perfect.f1 == 1
    silent = etapr(make_outcome(attacks, [0] * 50))
    assert silent.precision is None
    assert silent.recall == silent.f1 == 0


def test_a_time_jump_parts_an_alarm(make_outcome: Make) -> None:
    rows = np.concatenate((np.arange(10), np.arange(50, 60)))
    found = etapr(make_outcome(at(20, (5, 14)), at(20, (5, 14)), last_rows=rows))
    assert (found.attacks, found.alarms, found.f1) == (2, 2, 1)


def test_shares_and_attacks_are_checked(make_outcome: Make) -> None:
    for theta in (0.0, 1.2):
        with pytest.raises(SettingError, match="theta_p is a share"):
            etapr(make_outcome([0, 1], [0, 1]), theta_p=theta)
    with pytest.raises(SettingError, match="theta_r is a share"):
        etapr(make_outcome([0, 1], [0, 1]), theta_r=-0.1)
    with pytest.raises(SettingError, match="labelled attacks"):
        etapr(make_outcome([0, 0], [0, 1]))


def ranges(marks: list[int]) -> list[set[int]]:
    found: list[set[int]] = []
    for place, mark in enumerate(marks):
        if mark and place and marks[place - 1]:
            found[-1].add(place)
        elif mark:
            found.append({place})
    return found


def slow(attack: list[int], alarm: list[int], p: float, r: float) -> tuple[float, float]:
    """Strike out one failing attack or alarm at a time, in whatever order they come."""
    attacks, alarms = ranges(attack), ranges(alarm)
    detected, correct = list(attacks), list(alarms)

    def share(of: set[int], others: list[set[int]]) -> float:
        return sum(len(of & other) for other in others) / len(of)

    while True:
        bad_attack = next((a for a in detected if share(a, correct) < r), None)
        bad_alarm = next((a for a in correct if share(a, detected) < p), None)
        if bad_attack:
            detected.remove(bad_attack)
        elif bad_alarm:
            correct.remove(bad_alarm)
        else:
            break
    recall = sum((1 + share(a, correct)) / 2 for a in detected) / len(attacks)
    roots = [math.sqrt(len(a)) for a in alarms]
    worth = sum(math.sqrt(len(a)) * (1 + share(a, detected)) / 2 for a in correct)
    return worth / sum(roots), recall


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    p=st.sampled_from([0.1, 0.5, 0.7, 1.0]),
    r=st.sampled_from([0.01, 0.1, 0.4, 1.0]),
)
def test_it_agrees_with_a_slow_one(make_outcome: Make, seed: int, p: float, r: float) -> None:
    random = np.random.default_rng(seed)
    marks = [
        np.repeat(random.random(40) < 0.4, random.integers(1, 5, 40))[:60].astype(int).tolist()
        for _ in range(2)
    ]
    attack, alarm = ([1, *own] for own in marks)
    attack = [1, *attack][: len(alarm)] + [0] * (len(alarm) - len(attack) - 1)
    found = etapr(make_outcome(attack, alarm), theta_p=p, theta_r=r)
    assert (found.precision, found.recall) == pytest.approx(slow(attack, alarm, p, r))
