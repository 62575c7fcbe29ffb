"""Principal components from sums that clients add up."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.detector.calibration import Framing
from sluice.detector.subspace import Moments, Subspace, fit_subspace
from sluice.errors import SettingError
from sluice.telemetry.record import Record
from sluice.telemetry.split import shards
from sluice.telemetry.windows import Windows


def test_merged_moments_are_the_pooled_ones(plant: Record, framing: Framing) -> None:
    parts = [framing.windows(shard) for shard in shards(plant, clients=5)]
    pooled = replace(
        parts[0],
        rows=np.concatenate([part.rows for part in parts]),
        starts=np.concatenate(
            [part.starts + k * len(parts[0].rows) for k, part in enumerate(parts)]
        ),
        labels=np.concatenate([part.labels for part in parts]),
    )
    first, *rest = (Moments.of(part) for part in parts)
    merged, whole = sum(rest, first), Moments.of(pooled)
    assert merged.count == whole.count == len(pooled)
    assert merged.covariance == pytest.approx(whole.covariance, abs=1e-9)
    summed, direct = fit_subspace(merged, pooled), fit_subspace(whole, pooled)
    assert summed.rank == direct.rank
    assert summed.scores(pooled) == pytest.approx(direct.scores(pooled), abs=1e-9)


def test_moments_are_those_of_numpy(clean: Windows) -> None:
    moments, matrix = Moments.of(clean), clean.matrix().astype(np.float64)
    assert moments.mean == pytest.approx(matrix.mean(axis=0), abs=1e-12)
    assert moments.covariance == pytest.approx(np.cov(matrix.T, bias=True), abs=1e-9)


def test_the_score_is_what_the_directions_leave(clean: Windows) -> None:
    model = fit_subspace(Moments.of(clean), clean)
    off = clean.matrix(np.array([7])).astype(np.float64)[0] - model.mean
    solved = np.linalg.lstsq(model.basis.T, off, rcond=None)[0]
    expected = np.mean((off - model.basis.T @ solved) ** 2)
    assert model.scores(clean)[7] == pytest.approx(expected, rel=1e-9)


def test_far_out_along_the_subspace_is_not_seen(clean: Windows) -> None:
    model = fit_subspace(Moments.of(clean), clean)
    far = (model.mean + 50 * model.basis[0]).astype(np.float32).reshape(clean.length, -1)
    one = replace(clean, rows=far, starts=clean.starts[:1], labels=clean.labels[:1])
    assert model.scores(one)[0] == pytest.approx(0, abs=1e-9)


def test_the_rank_is_the_smallest_that_explains_the_calm_windows(clean: Windows) -> None:
    moments = Moments.of(clean)
    model = fit_subspace(moments, clean)

    def left(basis: Subspace | None) -> float:
        if basis is None:
            squares = np.mean((clean.matrix() - moments.mean) ** 2, axis=1)
        else:
            squares = basis.scores(clean)
        return float(np.sort(squares)[: int(0.95 * len(clean))].mean())

    below = Subspace(mean=model.mean, basis=model.basis[:-1])
    assert left(model) <= 0.01 * left(None) < left(below)


def test_a_few_wild_clean_windows_do_not_buy_directions(clean: Windows) -> None:
    moments = Moments.of(clean)
    rows = clean.rows.copy()
    rows[:200] += np.random.default_rng(0).normal(0, 40, rows[:200].shape).astype(np.float32)
    wild = replace(clean, rows=rows)
    assert abs(fit_subspace(moments, wild).rank - fit_subspace(moments, clean).rank) <= 2


def test_a_constant_channels_first_change_shows(clean: Windows) -> None:
    rows = clean.rows.copy()
    rows[:, 0] = 0
    still = replace(clean, rows=rows)
    moved = rows.copy()
    moved[500:, 0] = 1
    changed = replace(clean, rows=moved)
    model = fit_subspace(Moments.of(still), changed)
    assert model.scores(changed)[600:].min() >= 0.999 / rows.shape[1]


def test_moments_of_other_channels_do_not_add_up(clean: Windows) -> None:
    fewer = replace(clean, rows=clean.rows[:, 1:].copy())
    with pytest.raises(SettingError, match="cannot be added"):
        Moments.of(clean) + Moments.of(fewer)


def test_nothing_is_learnt_from_nothing(clean: Windows) -> None:
    none = replace(clean, starts=clean.starts[:0], labels=clean.labels[:0])
    with pytest.raises(SettingError, match="no whole window to learn from"):
        fit_subspace(Moments.of(none), clean)
    with pytest.raises(SettingError, match="no whole clean window"):
        fit_subspace(Moments.of(clean), none)
    alike = replace(clean, rows=np.ones_like(clean.rows))
    with pytest.raises(SettingError, match="all alike"):
        fit_subspace(Moments.of(alike), clean)


def test_a_subspace_leaves_something_to_score() -> None:
    with pytest.raises(SettingError, match="1 to 3 directions"):
        Subspace(mean=np.zeros(4), basis=np.eye(4))
