"""The autoencoder's parameters, forward pass and local training."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from sluice.detector.autoencoder import (
    Autoencoder,
    Descent,
    flatten,
    initial,
    parameter_count,
    scores,
    unflatten,
)
from sluice.detector.training import _loss, batches, descend, padded, train_parameters
from sluice.errors import SettingError
from sluice.seeding import stream
from sluice.telemetry.windows import Windows


def shuffled() -> np.random.Generator:
    return stream(3, "shuffle")


def some(windows: Windows, count: int) -> Windows:
    return replace(windows, starts=windows.starts[:count], labels=windows.labels[:count])


@pytest.mark.parametrize(
    ("channels", "count"), [(42, 114_364), (102, 268_564), (43, 116_934)], ids=str
)
def test_it_has_as_many_parameters_as_the_paper_counts(channels: int, count: int) -> None:
    assert parameter_count(10 * channels) == count
    assert initial(10 * channels, seed=0).shape == (count,)


def test_parameters_come_apart_and_together_again() -> None:
    parameters = initial(20, seed=1)
    layers = unflatten(parameters)
    assert [layer.weights.shape for layer in layers] == [(20, 128), (128, 24), (24, 128), (128, 20)]
    assert layers[0].weights[0, 1] == parameters[1]
    assert layers[0].bias[0] == parameters[20 * 128]
    assert np.array_equal(flatten(layers), parameters)


def test_a_vector_of_another_length_is_no_autoencoder() -> None:
    with pytest.raises(SettingError, match="6682 parameters fit no autoencoder"):
        unflatten(np.zeros(parameter_count(1) + 1, np.float32))


def test_parameters_start_within_the_reach_of_their_inputs_and_by_seed() -> None:
    first = initial(20, seed=1)
    assert np.array_equal(first, initial(20, seed=1))
    assert not np.array_equal(first, initial(20, seed=2))
    for layer in unflatten(first):
        reach = 1 / np.sqrt(layer.weights.shape[0])
        assert 0.9 * reach < np.abs(layer.weights).max() <= reach
        assert np.abs(layer.bias).max() <= reach


def test_scores_are_the_training_loss_of_one_window(clean: Windows) -> None:
    parameters = initial(clean.rows.shape[1] * clean.length, seed=0)
    few = some(clean, 5)
    losses = [_loss(unflatten(parameters), w[None], np.ones(1)) for w in few.matrix()]
    assert scores(parameters, few) == pytest.approx(np.array(losses), rel=1e-5)


def test_blocks_do_not_show_in_the_scores(clean: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = initial(clean.rows.shape[1] * clean.length, seed=0)
    whole = scores(parameters, clean)
    monkeypatch.setattr("sluice.detector.model.BLOCK_WINDOWS", 1000)
    assert scores(parameters, clean) == pytest.approx(whole, rel=1e-5)


def test_windows_of_another_width_are_refused(clean: Windows) -> None:
    with pytest.raises(SettingError, match="the model reads 20 values a window"):
        scores(initial(20, seed=0), clean)


def test_training_learns_and_repeats_itself(clean: Windows) -> None:
    first = initial(clean.rows.shape[1] * clean.length, seed=0)
    before = first.copy()
    trained = train_parameters(first, clean, shuffle=shuffled())
    assert trained.dtype == np.float32
    assert scores(trained, clean).mean() < 0.9 * scores(first, clean).mean()
    assert np.array_equal(trained, train_parameters(first, clean, shuffle=shuffled()))
    assert not np.array_equal(trained, train_parameters(first, clean, shuffle=stream(4, "shuffle")))
    assert np.array_equal(first, before)


@pytest.mark.parametrize(("count", "batch"), [(20, 8), (700, 300), (200, 300)], ids=str)
def test_one_epoch_is_adam_as_written_down(clean: Windows, count: int, batch: int) -> None:
    """Against plain numpy: three batches, the last one short, or one that holds all windows."""
    windows = some(clean, count)
    first = initial(clean.rows.shape[1] * clean.length, seed=0)
    trained = train_parameters(
        first, windows, descent=Descent(epochs=1, batch=batch), shuffle=shuffled()
    )
    expected = numpy_adam(first.astype(np.float64), windows, shuffled(), batch=batch)
    assert trained == pytest.approx(expected, abs=2e-5)
    assert np.abs(trained - first).max() > 9e-4


def numpy_adam(
    parameters: np.ndarray[tuple[int], np.dtype[np.float64]],
    windows: Windows,
    shuffle: np.random.Generator,
    *,
    batch: int,
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    order = shuffle.permutation(windows.starts)
    mean, square = np.zeros_like(parameters), np.zeros_like(parameters)
    for step, start in enumerate(range(0, len(order), batch), start=1):
        at = order[start : start + batch]
        flat = np.array([windows.rows[s : s + 10].ravel() for s in at], np.float64)
        slope = numpy_gradient(parameters, flat)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        unbiased = mean / (1 - 0.9**step), square / (1 - 0.999**step)
        parameters = parameters - 1e-3 * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
    return parameters


def numpy_gradient(
    parameters: np.ndarray[tuple[int], np.dtype[np.float64]],
    batch: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    layers = unflatten(parameters)
    active = [batch]
    for weights, bias in layers[:-1]:
        active.append(np.maximum(active[-1] @ weights + bias, 0))
    out = active[-1] @ layers[-1].weights + layers[-1].bias
    back = 2 * (out - batch) / batch.size
    parts = []
    for layer, fed in zip(reversed(layers), reversed(active), strict=True):
        parts += [back.sum(axis=0), (fed.T @ back).ravel()]
        back = (back @ layer.weights.T) * (fed > 0)
    return np.concatenate(parts[::-1])


def test_every_window_is_dealt_once_an_epoch() -> None:
    starts = np.arange(100, 121)
    dealt = batches(starts, Descent(epochs=3, batch=8), shuffle=shuffled())
    assert dealt.starts.shape == (9, 8)
    for epoch in range(3):
        taken = slice(3 * epoch, 3 * epoch + 3)
        there = dealt.starts[taken][dealt.weights[taken] == 1]
        assert sorted(there) == starts.tolist()


def test_training_stops_after_so_many_steps(clean: Windows) -> None:
    first = initial(clean.rows.shape[1] * clean.length, seed=0)
    windows, descent = some(clean, 40), Descent(epochs=2, batch=8)
    one_epoch = train_parameters(
        first, windows, descent=Descent(epochs=1, batch=8), shuffle=shuffled()
    )
    stopped = train_parameters(first, windows, descent=descent, shuffle=shuffled(), steps=5)
    assert np.array_equal(stopped, one_epoch)
    onwards = train_parameters(first, windows, descent=descent, shuffle=shuffled(), steps=7)
    assert not np.array_equal(onwards, one_epoch)
    for steps in (0, 11):
        with pytest.raises(SettingError, match=f"1 to 10 steps, got {steps}"):
            train_parameters(first, windows, descent=descent, shuffle=shuffled(), steps=steps)


def test_shards_of_nearly_one_length_share_one_compilation(
    clean: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced: list[int] = []

    def counted(*arguments: Any, length: int, last: int) -> Any:
        traced.append(last)
        return descend(*arguments, length=length, last=last)

    compiled = jax.jit(counted, static_argnames=("length", "last"))
    monkeypatch.setattr("sluice.detector.training._compiled", compiled)
    first = initial(clean.rows.shape[1] * clean.length, seed=0)
    for count, rows in ((3000, 3009), (2999, 3008), (2960, 3072)):
        shard = replace(some(clean, count), rows=clean.rows[:rows])
        train_parameters(first, shard, descent=Descent(epochs=1, batch=450), shuffle=shuffled())
    assert traced == [384]
    assert len(padded(clean.rows[:1025])) == 2048


def test_a_missing_reading_beside_the_windows_does_not_spread(clean: Windows) -> None:
    first = initial(clean.rows.shape[1] * clean.length, seed=0)
    rows = clean.rows.copy()
    rows[0] = np.nan
    holed = replace(clean, rows=rows, starts=clean.starts[1:], labels=clean.labels[1:])
    assert np.isfinite(train_parameters(first, holed, shuffle=shuffled())).all()


def test_training_on_nothing_is_refused(clean: Windows) -> None:
    first = initial(clean.rows.shape[1] * clean.length, seed=0)
    with pytest.raises(SettingError, match="no whole window to train on"):
        train_parameters(first, some(clean, 0), shuffle=shuffled())


def test_training_that_leaves_the_numbers_says_so(clean: Windows) -> None:
    first = initial(clean.rows.shape[1] * clean.length, seed=0)
    with pytest.raises(SettingError, match="lower it"):
        train_parameters(first, clean, descent=Descent(learning_rate=1e30), shuffle=shuffled())


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"batch": 0}, {"learning_rate": 0.0}], ids=str)
def test_settings_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError, match="at least 1 epoch"):
        Descent(**wrong)


def test_a_model_of_nan_is_refused() -> None:
    parameters = initial(20, seed=0)
    parameters[7] = np.nan
    with pytest.raises(SettingError, match="finite"):
        Autoencoder(parameters)
