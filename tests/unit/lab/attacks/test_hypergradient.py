"""The slope of a score after training, in the rows trained on."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.detector.autoencoder import Descent, initial
from sluice.detector.training import Batches, batches
from sluice.lab.attacks.hypergradient import Aim, hypergradient
from sluice.seeding import stream
from sluice.telemetry.windows import Windows

ROWS, CHANNELS, LENGTH = 40, 2, 3


@pytest.fixture(scope="module")
def clean() -> Windows:
    rng = stream(0, "hypergradient")
    starts = np.arange(ROWS - LENGTH + 1)
    rows = rng.normal(size=(ROWS, CHANNELS)).astype(np.float32)
    return Windows(rows=rows, starts=starts, length=LENGTH, labels=np.zeros(len(starts), np.int8))


@pytest.fixture(scope="module")
def dealt(clean: Windows) -> Batches:
    found = batches(clean.starts, Descent(epochs=2, batch=8), shuffle=stream(0, "deal"))
    return found.first(4)


@pytest.fixture(scope="module")
def aim() -> Aim:
    far = stream(1, "aim").normal(3.0, 1.0, (16, LENGTH * CHANNELS))
    return Aim(windows=far.astype(np.float32), threshold=1.0)


def test_the_slope_is_that_of_the_loss(clean: Windows, dealt: Batches, aim: Aim) -> None:
    parameters = initial(LENGTH * CHANNELS, seed=0)
    _, slope = hypergradient(parameters, clean, dealt, aim)
    along = slope / np.linalg.norm(slope)

    def loss(step: float) -> float:
        moved = replace(clean, rows=(clean.rows + step * along).astype(np.float32))
        return hypergradient(parameters, moved, dealt, aim)[0]

    # The scale of the steps is held in the slope and follows the rows in the loss: the two agree
    # in sign and size, not to the last digit.
    measured = (loss(0.2) - loss(-0.2)) / 0.4
    assert measured == pytest.approx(float(np.linalg.norm(slope)), rel=0.5)


def test_going_down_the_slope_makes_the_aim_score_low(
    clean: Windows, dealt: Batches, aim: Aim
) -> None:
    parameters = initial(LENGTH * CHANNELS, seed=0)
    before, _ = hypergradient(parameters, clean, dealt, aim, learning_rate=1e-2)
    rows = clean.rows
    for _ in range(20):
        moved = replace(clean, rows=rows)
        _, slope = hypergradient(parameters, moved, dealt, aim, learning_rate=1e-2)
        rows = (rows - 0.2 * slope / np.sqrt(np.mean(slope**2))).astype(np.float32)
    after, _ = hypergradient(parameters, replace(clean, rows=rows), dealt, aim, learning_rate=1e-2)
    assert after < before - 0.05


def test_rows_that_no_batch_reads_have_no_slope(clean: Windows, aim: Aim) -> None:
    first = batches(clean.starts[:10], Descent(epochs=2, batch=8), shuffle=stream(0, "deal"))
    _, slope = hypergradient(initial(LENGTH * CHANNELS, seed=0), clean, first, aim)
    assert slope.shape == clean.rows.shape
    assert np.abs(slope[:12]).max() > 0
    assert not slope[12:].any()


def test_fast_training_does_not_make_it_infinite(clean: Windows, dealt: Batches, aim: Aim) -> None:
    parameters = initial(LENGTH * CHANNELS, seed=0)
    loss, slope = hypergradient(parameters, clean, dealt, aim, learning_rate=0.1)
    assert np.isfinite(loss)
    assert np.isfinite(slope).all()
