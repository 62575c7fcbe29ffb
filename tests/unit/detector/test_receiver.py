"""The settings of a shared statistic come from the receiver's clean rows."""

import numpy as np
import pytest

from sluice.detector import Framing, ReceiverMoments, robust_scaler, summed_for
from sluice.detector.moments import MomentModel, moment_settings, moment_statistic
from sluice.detector.registry import SUMMED
from sluice.telemetry import Record, feature_names


@pytest.fixture(scope="module")
def receiver(plant: Record) -> tuple[ReceiverMoments, Framing, Record]:
    clean = plant.rows(5_000, 7_000)
    framing = Framing(scaler=robust_scaler(clean, feature_names(clean)), stride_s=plant.stride_s)
    kind = summed_for("moments", framing, clean)
    assert isinstance(kind, ReceiverMoments)
    return kind, framing, clean


def test_windows_give_the_statistic_of_their_rows(
    plant: Record, receiver: tuple[ReceiverMoments, Framing, Record]
) -> None:
    """Up to the rounding of readings to the scaler's resolution."""
    kind, framing, clean = receiver
    rows = plant.rows(0, 2_000)
    summed = kind.summarise(framing.windows(rows))
    exact = moment_statistic(rows, moment_settings(clean))
    assert (summed.count, summed.weight) == (exact.count, exact.weight)
    assert summed.settings == exact.settings
    for at, register in enumerate(exact.settings.registers):
        grid = framing.scaler.resolution[framing.scaler.names.index(register.channel)]
        off = abs(summed.sums[at] - exact.sums[at]) / exact.weight * register.step
        assert off <= grid / 2 + register.step, register.channel


def test_windows_drawn_twice_count_twice(
    plant: Record, receiver: tuple[ReceiverMoments, Framing, Record]
) -> None:
    kind, framing, _ = receiver
    windows = framing.windows(plant.rows(0, 500))
    twice = windows.take(np.array([3, 3, 7]))
    assert kind.summarise(twice).weight == 3


def test_a_model_of_the_statistic_finds_clean_rows_usual(
    plant: Record, receiver: tuple[ReceiverMoments, Framing, Record]
) -> None:
    kind, framing, clean = receiver
    model = kind.fit(kind.summarise(framing.windows(plant.rows(0, 3_000))), framing.windows(clean))
    assert isinstance(model, MomentModel)
    assert 0.2 < float(np.median(model.scores(framing.windows(clean)))) < 3


def test_other_kinds_sum_as_they_did(receiver: tuple[ReceiverMoments, Framing, Record]) -> None:
    _, framing, clean = receiver
    assert summed_for("subspace", framing, clean) is SUMMED["subspace"]
