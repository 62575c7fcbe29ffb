"""From a statistic to a Mahalanobis distance."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.detector.calibration import Framing
from sluice.detector.moments.fitting import fit_moments, window_moments
from sluice.detector.moments.model import MomentModel
from sluice.detector.moments.settings import MomentSettings, moment_settings
from sluice.detector.moments.statistic import MomentStatistic, moment_statistic
from sluice.detector.scaling import robust_scaler
from sluice.detector.subspace import fit_subspace
from sluice.errors import ModelFileError, SettingError
from sluice.invariants.encoding import Register
from sluice.telemetry.record import Record
from sluice.telemetry.windows import Windows


@pytest.fixture(scope="module")
def chosen(plant: Record) -> MomentSettings:
    return moment_settings(plant)


@pytest.fixture(scope="module")
def framed(plant: Record, chosen: MomentSettings) -> Framing:
    return Framing(scaler=robust_scaler(plant, chosen.channels), stride_s=plant.stride_s)


@pytest.fixture(scope="module")
def statistic(plant: Record, chosen: MomentSettings) -> MomentStatistic:
    return moment_statistic(plant, chosen)


@pytest.fixture(scope="module")
def windows(plant: Record, framed: Framing) -> Windows:
    return framed.windows(plant)


def test_the_covariance_is_that_of_the_windows(
    statistic: MomentStatistic, framed: Framing, windows: Windows
) -> None:
    """Up to the weights at both ends of the record, and to stationarity."""
    moments = window_moments(statistic, framed.scaler)
    direct = np.cov(windows.matrix().T.astype(np.float64), bias=True)
    assert np.abs(moments.covariance - direct).max() < 0.05 * np.abs(direct).max()
    assert (moments.covariance == moments.covariance.T).all()


def test_the_score_is_the_mahalanobis_distance(
    statistic: MomentStatistic, framed: Framing, windows: Windows
) -> None:
    model = fit_moments(statistic, framed.scaler, windows, ridges=(1e-3,))
    moments = window_moments(statistic, framed.scaler)
    variances, directions = np.linalg.eigh(moments.covariance)
    covariance = (directions * (np.maximum(variances, 0) + 1e-3)) @ directions.T
    few = windows.take(np.arange(0, len(windows), 97))
    off = few.matrix().astype(np.float64) - moments.mean
    expected = np.einsum("ij,ij->i", off @ np.linalg.inv(covariance), off) / off.shape[1]
    assert model.scores(few) == pytest.approx(expected, rel=1e-3)


def test_every_window_is_scored_as_if_it_were_alone() -> None:
    """Drawn windows over more than one block, channels that stand still, and absent ones."""
    draw = np.random.default_rng(0)
    moving, absent, rows = np.array([0, 2, 3, 6]), np.array([5]), 10
    model = MomentModel(
        mean=draw.standard_normal(7),
        moving=moving,
        whitener=np.tril(draw.standard_normal((rows * 4, rows * 4))),
        absent=absent,
    )
    readings = draw.standard_normal((1_500, 7)).astype(np.float32)
    starts = np.concatenate((np.arange(1_491), draw.integers(0, 1_491, 1_000)))
    cut = Windows(rows=readings, starts=starts, length=rows, labels=np.zeros(len(starts), np.int8))
    off = cut.matrix().reshape(len(cut), rows, 7) - model.mean
    white = off[:, :, moving].reshape(len(cut), -1) @ model.whitener.T
    squares = (white**2).sum(axis=1) + (off[:, :, [1, 4]] ** 2).sum(axis=(1, 2))
    np.testing.assert_allclose(model.scores(cut), squares / (rows * 6), rtol=1e-12)
    assert model.scores(cut.take(np.empty(0, np.int64))).shape == (0,)


def test_the_ridge_is_the_one_that_makes_other_clean_rows_likely(
    statistic: MomentStatistic, framed: Framing, windows: Windows
) -> None:
    def likelihood(ridge: float) -> float:
        model = fit_moments(statistic, framed.scaler, windows, ridges=(ridge,))
        volume = np.log(np.diagonal(model.whitener)).sum()
        return float(volume - model.scores(few).mean() * model.width / 2)

    few = windows.take(np.linspace(0, len(windows) - 1, 1_024).astype(int))
    ridges = (1e-5, 1e-3, 1e-1)
    chosen = fit_moments(statistic, framed.scaler, windows, ridges=ridges)
    best = max(ridges, key=likelihood)
    alone = fit_moments(statistic, framed.scaler, windows, ridges=(best,))
    assert np.array_equal(chosen.whitener, alone.whitener)


def test_blame_is_the_fall_if_the_others_predict_a_tag(
    statistic: MomentStatistic, framed: Framing, windows: Windows
) -> None:
    """Against the definition: minimise the distance over one tag's readings."""
    model = fit_moments(statistic, framed.scaler, windows, ridges=(1e-3,))
    one = windows.take(np.array([1_234]))
    precision = model.whitener.T @ model.whitener
    off = one.matrix()[0].astype(np.float64) - np.tile(model.mean, model.rows)
    falls = []
    for tag in range(len(model.mean)):
        free = np.arange(model.rows) * len(model.mean) + tag
        held = np.setdiff1d(np.arange(len(off)), free)
        moved = off.copy()
        moved[free] = -np.linalg.solve(
            precision[np.ix_(free, free)], precision[np.ix_(free, held)] @ off[held]
        )
        falls.append(off @ precision @ off - moved @ precision @ moved)
    expected = np.array(falls) / sum(falls)
    assert model.blame(one)[0] == pytest.approx(expected, abs=1e-6)


def test_a_constant_channels_first_change_shows_and_is_blamed(plant: Record) -> None:
    values = plant.values.copy()
    values[:, plant.index("S_PU4")] = 0
    still = plant.with_values(values)
    values = values.copy()
    values[3_000:3_050, plant.index("S_PU4")] = 1
    started = still.with_values(values)
    framing = Framing(scaler=robust_scaler(still, still.names), stride_s=still.stride_s)
    chosen = moment_settings(still)
    assert "S_PU4" not in chosen.channels
    model = fit_moments(moment_statistic(still, chosen), framing.scaler, framing.windows(still))
    before, after = (model.scores(framing.windows(one)) for one in (still, started))
    assert after[3_000:3_040].min() > before.max()
    blamed = model.blame(framing.windows(started))[3_020]
    assert framing.scaler.names[int(blamed.argmax())] == "S_PU4"


def test_components_come_from_the_lagged_sums_too(
    statistic: MomentStatistic, framed: Framing, windows: Windows
) -> None:
    model = fit_subspace(window_moments(statistic, framed.scaler), windows)
    assert 1 <= model.rank < model.width
    assert np.median(model.scores(windows)) < 0.05


def test_tensors_come_back_whole(
    statistic: MomentStatistic, framed: Framing, windows: Windows
) -> None:
    model = fit_moments(statistic, framed.scaler, windows)
    again = MomentModel.from_tensors(model.tensors())
    few = windows.take(np.arange(50))
    assert np.array_equal(again.scores(few), model.scores(few))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"mean": None}, "not 'mean', 'moving' and 'whitener'"),
        ({"mean": np.zeros(2, np.float32)}, "its mean is float32"),
        ({"moving": np.array([0.0, 1.0])}, "its moving is float64"),
        ({"whitener": np.ones((4, 4))}, "not lower triangular"),
    ],
)
def test_other_tensors_are_refused(changed: dict[str, object], message: str) -> None:
    tensors = {"mean": np.zeros(2), "moving": np.array([0, 1]), "whitener": np.eye(4)}
    assert MomentModel.from_tensors(tensors).rows == 2
    given = {name: one for name, one in (tensors | changed).items() if one is not None}
    with pytest.raises(ModelFileError, match=message):
        MomentModel.from_tensors(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("moving", "whitener", "message"),
    [
        ([0, 1], np.eye(3), "needs a square of a multiple of 2"),
        ([0, 2], np.eye(4), "ascending positions below 2"),
        ([1, 0], np.eye(4), "ascending positions below 2"),
        ([], np.eye(4), "a whitening of 0 channels"),
    ],
)
def test_a_model_that_does_not_fit_together_is_refused(
    moving: list[int], whitener: np.ndarray[tuple[int, int], np.dtype[np.float64]], message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        MomentModel(mean=np.zeros(2), moving=np.array(moving, np.int64), whitener=whitener)


def test_nothing_is_learnt_from_nothing(
    statistic: MomentStatistic, framed: Framing, windows: Windows
) -> None:
    none = windows.take(np.arange(0))
    with pytest.raises(SettingError, match="no whole clean window"):
        fit_moments(statistic, framed.scaler, none)
    with pytest.raises(SettingError, match="cut windows of as many rows"):
        fit_moments(statistic, framed.scaler, replace(windows, length=9))
    empty = replace(
        statistic, count=0, weight=0, sums=statistic.sums * 0, lagged=statistic.lagged * 0
    )
    with pytest.raises(SettingError, match="no whole window to learn from"):
        fit_moments(empty, framed.scaler, windows)
    scaler = replace(framed.scaler, names=("x", *framed.scaler.names[1:]))
    with pytest.raises(SettingError, match="which the detector does not read"):
        fit_moments(statistic, scaler, windows)


def test_sums_without_any_movement_are_refused(framed: Framing, windows: Windows) -> None:
    registers = moment_settings_of_one(framed)
    flat = MomentStatistic(
        settings=registers,
        count=5,
        weight=5,
        sums=np.array([50]),
        lagged=np.full((10, 1, 1), 500),
    )
    with pytest.raises(SettingError, match="no channel moves"):
        fit_moments(flat, framed.scaler, windows)


def moment_settings_of_one(framed: Framing) -> MomentSettings:
    return MomentSettings(registers=(Register(channel=framed.scaler.names[0], low=0.0, step=0.1),))
