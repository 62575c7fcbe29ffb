"""Figures that count windows, by hand and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    precision_recall_curve,
    precision_score,
    recall_score,
)

from sluice.arrays import Bools, Floats
from sluice.errors import SettingError
from sluice.evaluation.windows import average_precision, hits, oracle_best_f1, recall

SEEDS = st.integers(0, 2**32 - 1)


def mask(text: str) -> Bools:
    return np.array([letter == "x" for letter in text])


def drawn(seed: int, *, levels: int = 0) -> tuple[Floats, Bools]:
    """Return scores, tied where `levels` says how many there are, and labels with an attack."""
    random = np.random.default_rng(seed)
    attack = random.random(60) < 0.3
    attack[7] = True
    scores = random.normal(size=60) + attack
    return (np.round(scores * levels) / levels if levels else scores), attack


def test_targeted_recall_looks_at_attack_windows_that_touch_a_target() -> None:
    attack = mask(".xxx.xx.")
    alarms = mask(".x.x.xx.")
    targets = mask("xxxx....")  # touches a normal window too, which does not count
    assert recall(alarms, attack, targets) == pytest.approx(2 / 3)
    assert recall(alarms, attack, ~targets) == 1
    assert recall(alarms, attack) == pytest.approx(4 / 5)


def test_a_target_set_that_takes_every_attack_leaves_no_untargeted_recall() -> None:
    attack = mask(".xxx.")
    assert recall(attack, attack, ~attack) is None
    assert recall(attack, attack, attack) == 1


def test_windows_are_counted_one_by_one() -> None:
    counted = hits(mask("xx.x...."), mask(".xxx.x.."))
    assert (counted.true_alarms, counted.false_alarms, counted.missed) == (2, 1, 2)
    assert counted.precision == pytest.approx(2 / 3)
    assert counted.recall == 0.5
    assert counted.f1 == pytest.approx(4 / 7)


def test_a_detector_that_never_alarms_has_no_precision() -> None:
    counted = hits(mask("....."), mask("..xx."))
    assert counted.precision is None
    assert counted.f1 == counted.recall == 0


@settings(deadline=None)
@given(seed=SEEDS)
def test_counts_agree_with_scikit_learn(seed: int) -> None:
    scores, attack = drawn(seed)
    alarms = scores > 0.5
    counted = hits(alarms, attack)
    assert (counted.precision or 0) == pytest.approx(
        precision_score(attack, alarms, zero_division=0)
    )
    assert counted.recall == pytest.approx(recall_score(attack, alarms))
    assert counted.f1 == pytest.approx(f1_score(attack, alarms))


@settings(deadline=None)
@given(seed=SEEDS, levels=st.integers(0, 4))
def test_average_precision_agrees_with_scikit_learn_ties_included(seed: int, levels: int) -> None:
    scores, attack = drawn(seed, levels=levels)
    assert average_precision(scores, attack) == pytest.approx(
        average_precision_score(attack, scores), abs=1e-12
    )


@settings(deadline=None)
@given(seed=SEEDS, levels=st.integers(0, 4))
def test_the_oracle_tries_every_threshold(seed: int, levels: int) -> None:
    scores, attack = drawn(seed, levels=levels)
    precision, found, _ = precision_recall_curve(attack, scores)
    with np.errstate(invalid="ignore"):
        best = np.nanmax(2 * precision * found / (precision + found))
    assert oracle_best_f1(scores, attack) == pytest.approx(best)
    assert oracle_best_f1(scores, attack) >= hits(scores > np.median(scores), attack).f1


@settings(deadline=None)
@given(seed=SEEDS)
def test_only_the_order_of_scores_matters(seed: int) -> None:
    scores, attack = drawn(seed, levels=2)
    bent = np.exp(3 * scores) - 40
    assert average_precision(bent, attack) == average_precision(scores, attack)
    assert oracle_best_f1(bent, attack) == oracle_best_f1(scores, attack)


def test_the_best_and_the_worst_ranking() -> None:
    attack = np.arange(100) >= 90
    scores = np.arange(100.0)
    assert average_precision(scores, attack) == oracle_best_f1(scores, attack) == 1
    # Turned round, the k-th attack comes after all 90 normal windows.
    worst = np.mean([k / (90 + k) for k in range(1, 11)])
    assert average_precision(-scores, attack) == pytest.approx(worst)
    assert average_precision(np.zeros(100), attack) == pytest.approx(0.1)


@pytest.mark.parametrize("figure", [average_precision, oracle_best_f1])
def test_without_attacks_there_is_nothing_to_rank(figure: object) -> None:
    assert callable(figure)
    with pytest.raises(SettingError, match="no window is labelled attack"):
        figure(np.arange(5.0), np.zeros(5, dtype=np.bool_))
    with pytest.raises(SettingError, match="labelled attacks"):
        hits(np.zeros(5, dtype=np.bool_), np.zeros(5, dtype=np.bool_))
