"""VUS-PR by its authors' benchmark, by hand, and against a slow one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.errors import SettingError
from sluice.evaluation import vus
from sluice.evaluation.outcome import Outcome
from sluice.evaluation.vus import vus_pr
from sluice.evaluation.windows import average_precision

from .conftest import Make


def test_the_benchmarks_own_figure(make_outcome: Make) -> None:
    # Published as the output of TSB-AD 1.5 for these scores; at 64 windows its 250 thresholds are
    # all of them.
    attack = np.zeros(64, dtype=int)
    attack[10:15] = attack[38:44] = 1
    scores = np.linspace(0.02, 0.18, 64)
    scores[9:16] = [0.25, 0.55, 0.72, 0.91, 0.84, 0.63, 0.31]
    scores[37:45] = [0.22, 0.48, 0.68, 0.93, 0.87, 0.79, 0.56, 0.29]
    scores[53] = 0.62
    found = vus_pr(make_outcome(attack.tolist(), scores=scores.tolist()), longest=11)
    assert found == pytest.approx(0.9750688705234158, abs=1e-14)


def test_an_alarm_in_the_buffer_by_hand(make_outcome: Make) -> None:
    # The only high score is one window late; its label at length 2 is sqrt(1 - 1/2).
    outcome = make_outcome([0, 0, 1, 0, 0], scores=[0, 0, 0, 1, 0])
    without = 1 / 5  # all five windows alarm together at score 0
    soft = math.sqrt(1 / 2)
    first = soft / (1 + soft / 2)  # recall at the high score; the buffer meets the attack
    assert vus_pr(outcome, longest=0) == pytest.approx(without)
    last = (1 - first) * (1 + 2 * soft) / 5
    with_buffer = first * soft + last
    lengths = [without, without, with_buffer]  # a buffer of one has no half
    assert vus_pr(outcome, longest=2) == pytest.approx(np.mean(lengths))


def slow(outcome: Outcome, lengths: list[int]) -> float:
    """Follow the definition threshold by threshold, window by window."""
    ranges: list[list[int]] = []
    for place in map(int, np.flatnonzero(outcome.attack)):
        if ranges and place == ranges[-1][-1] + 1 and joined(outcome, place - 1, place):
            ranges[-1].append(place)
        else:
            ranges.append([place])
    areas = []
    for length in lengths:
        labels = [0.0] * len(outcome)
        reach = []
        for own in ranges:
            reach.append(set(own))
            for place in range(len(outcome)):
                away = max(own[0] - place, place - own[-1])
                near = own[0] if place < own[0] else own[-1]
                if place in own:
                    labels[place] = 1.0
                elif away <= length // 2 and joined(outcome, min(place, near), max(place, near)):
                    labels[place] += math.sqrt(1 - away / length)
                    reach[-1].add(place)
        labels = [min(label, 1.0) for label in labels]
        area = before = 0.0
        for threshold in sorted(set(outcome.scores.tolist()), reverse=True):
            ringing = {int(place) for place in np.flatnonzero(outcome.scores >= threshold)}
            found = sum(labels[place] for place in ringing)
            soft = sum(labels[place] for place in ringing if not outcome.attack[place])
            met = sum(bool(own & ringing) for own in reach) / len(ranges)
            recall = min(found / (outcome.attack.sum() + soft / 2), 1) * met
            area += (recall - before) * found / len(ringing)
            before = recall
        areas.append(area)
    return sum(areas) / len(areas)


def joined(outcome: Outcome, first: int, last: int) -> bool:
    """Tell whether no time jump lies between two windows."""
    return bool(outcome.last_rows[last] - outcome.last_rows[first] == last - first)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), longest=st.integers(0, 9), tied=st.booleans())
def test_it_agrees_with_a_slow_one(make_outcome: Make, seed: int, longest: int, tied: bool) -> None:  # noqa: FBT001
    random = np.random.default_rng(seed)
    attack = np.repeat(random.random(12) < 0.3, 3)
    attack[4] = True
    scores = random.normal(size=36) + attack
    outcome = make_outcome(
        attack.astype(int).tolist(),
        scores=(np.round(scores) if tied else scores).tolist(),
        last_rows=np.cumsum(random.choice([1, 1, 1, 1, 1, 8], 36)),
    )
    found = vus_pr(outcome, longest=longest)
    assert found == pytest.approx(slow(outcome, list(range(longest + 1))))


def test_a_perfect_score_fills_the_volume_and_a_mute_one_gets_what_chance_gets(
    make_outcome: Make,
) -> None:
    attack = [0] * 30 + [1] * 10 + [0] * 40 + [1] * 8 + [0] * 12
    assert vus_pr(make_outcome(attack, scores=attack)) == pytest.approx(1)
    mute = vus_pr(make_outcome(attack, scores=[3.0] * 100), longest=0)
    assert mute == pytest.approx(18 / 100)


def test_being_late_costs_less_than_in_average_precision(make_outcome: Make) -> None:
    attack = np.zeros(200, dtype=int)
    attack[60:80] = attack[120:150] = 1
    late = make_outcome(attack.tolist(), scores=np.roll(attack, 5).tolist())
    assert vus_pr(late) > average_precision(late.scores, late.attack) + 0.05


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_only_the_order_of_scores_matters(make_outcome: Make, seed: int) -> None:
    random = np.random.default_rng(seed)
    attack = [0] * 10 + [1] * 5 + [0] * 10
    scores = random.normal(size=25)
    one = vus_pr(make_outcome(attack, scores=scores.tolist()))
    assert vus_pr(make_outcome(attack, scores=np.exp(scores).tolist())) == pytest.approx(one)
    assert 0 <= one <= 1


def test_long_buffers_are_sampled(make_outcome: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    attack = np.zeros(2000, dtype=int)
    attack[400:900] = attack[1500:1600] = 1
    scores = np.random.default_rng(3).normal(size=2000) + attack
    outcome = make_outcome(attack.tolist(), scores=scores.tolist())
    sampled = vus_pr(outcome)  # 101 lengths from 0 to 300, the median attack's
    monkeypatch.setattr(vus, "MOST_LENGTHS", 300)
    every = vus_pr(outcome)
    assert every != sampled
    assert every == pytest.approx(sampled, abs=1e-3)


def test_a_buffer_cannot_be_negative_and_needs_attacks(make_outcome: Make) -> None:
    with pytest.raises(SettingError, match="got -1"):
        vus_pr(make_outcome([0, 1], scores=[0, 1]), longest=-1)
    with pytest.raises(SettingError, match="needs attacks"):
        vus_pr(make_outcome([0, 0], scores=[0, 1]))
