"""BATADAL's score against its definition, by hand, and against published values."""

import numpy as np
import pytest
from numpy.typing import NDArray

from sluice.errors import SettingError
from sluice.evaluation.batadal import BatadalScore, batadal_score, row_alarms
from sluice.evaluation.outcome import Unlabelled
from sluice.telemetry.record import Label


def labels_of(text: str) -> NDArray[np.int8]:
    """`.` is normal, `A` attack, `?` unlabelled."""
    marks = {".": Label.NORMAL, "A": Label.ATTACK, "?": Label.UNLABELLED}
    return np.array([marks[mark] for mark in text], dtype=np.int8)


def scored(text: str, alarms: str, **more: Unlabelled) -> BatadalScore:
    return batadal_score(np.array([a == "!" for a in alarms]), labels_of(text), **more)


def test_a_record_by_hand() -> None:
    # The first attack is found after 1 of 4 rows, the second after 0 of 2, the third is missed.
    found = scored(
        "..AAAA..AA..A...",
        "!..!....!.......",
    )
    assert found.time_to_detection == pytest.approx(1 - (1 / 4 + 0 + 1) / 3)
    assert found.true_positive_rate == pytest.approx(2 / 7)
    assert found.true_negative_rate == pytest.approx(8 / 9)
    assert found.classification == pytest.approx((2 / 7 + 8 / 9) / 2)
    assert found.score == pytest.approx(found.time_to_detection / 2 + found.classification / 2)


@pytest.mark.parametrize(
    ("alarms", "score"),
    [("..AAAA..AA", 1.0), ("..........", 0.25), ("AAAAAAAAAA", 0.75), ("AA....AA..", 0.0)],
)
def test_perfect_never_always_and_worst(alarms: str, score: float) -> None:
    truth = "..AAAA..AA"
    assert scored(truth, alarms.replace("A", "!")).score == score


@pytest.mark.parametrize(
    ("ttd", "tpr", "tnr", "published"),
    [
        (0.965, 0.953, 0.997, 0.970),  # Housh and Ohar
        (0.936, 0.838, 0.997, 0.927),  # Giacomoni et al.
        (0.857, 0.889, 0.973, 0.894),  # Brentan et al.
        (0.835, 0.857, 0.678, 0.802),  # Chandy et al.
        (0.885, 0.329, 0.992, 0.773),  # Pasha et al.
        (0.429, 0.396, 0.884, 0.534),  # Aghashahi et al.
    ],
)
def test_published_rates_give_the_published_score(
    ttd: float, tpr: float, tnr: float, published: float
) -> None:
    found = BatadalScore(time_to_detection=ttd, true_positive_rate=tpr, true_negative_rate=tnr)
    assert found.score == pytest.approx(published, abs=0.0011)  # three rounded figures


def test_an_alarm_before_the_attack_is_no_detection() -> None:
    assert scored(".AA.", "!...").time_to_detection == 0


def test_unlabelled_rows_are_left_out_or_normal() -> None:
    assert scored("A?..", "!!..").true_negative_rate == 1
    counted = scored("A?..", "!!..", unlabelled=Unlabelled.NORMAL)
    assert counted.true_negative_rate == pytest.approx(2 / 3)


@pytest.mark.parametrize(("text", "message"), [("...", "got 0 and 3"), ("A?A", "got 2 and 0")])
def test_a_record_without_attack_or_normal_rows_is_refused(text: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        scored(text, "...")


def test_alarms_of_another_length_are_refused() -> None:
    with pytest.raises(SettingError, match="got 2 alarms for 3 labels"):
        scored("A..", "..")


def test_a_window_alarms_at_its_last_row() -> None:
    alarms = row_alarms(np.array([2, 3, 4]), np.array([False, True, False]), rows=6)
    assert alarms.tolist() == [False, False, False, True, False, False]


def test_windows_of_another_record_are_refused() -> None:
    with pytest.raises(SettingError, match="ends at row 6 of a record of 6 rows"):
        row_alarms(np.array([6]), np.array([True]), rows=6)
