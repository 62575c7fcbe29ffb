"""What every attack on updates must do; a new one in `UPDATE_ATTACKS` is found here by itself."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.arrays import Floats
from sluice.errors import SettingError
from sluice.lab.attacks.updates import (
    ALIE,
    UPDATE_ATTACKS,
    FreeRider,
    MinMax,
    Scaling,
    SignFlip,
    SmallestMajority,
    UpdateAttack,
)

SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(params=sorted(UPDATE_ATTACKS))
def attack(request: pytest.FixtureRequest) -> UpdateAttack:
    return UPDATE_ATTACKS[str(request.param)]


def round_of(seed: int, *, clients: int = 7, size: int = 12) -> tuple[Floats, list[Floats]]:
    random = np.random.default_rng(seed)
    rows = 0.5 + random.normal(size=(clients + 1, size)) * random.uniform(0.2, 2)
    return rows[0], list(rows[1:])


def widest_pair(vectors: list[Floats]) -> float:
    return max(float(np.linalg.norm(one - other)) for one in vectors for other in vectors)


def test_the_same_seed_gives_the_same_vector(attack: UpdateAttack) -> None:
    own, honest = round_of(1)
    assert np.array_equal(attack(own, honest, seed=5), attack(own, honest, seed=5))


def test_the_attack_sends_something_else_of_the_same_size(attack: UpdateAttack) -> None:
    own, honest = round_of(2)
    kept = own.copy(), [vector.copy() for vector in honest]
    found = attack(own, honest, seed=0)
    assert found.shape == own.shape
    assert np.isfinite(found).all()
    assert not any(np.allclose(found, vector) for vector in (own, *honest))
    assert np.array_equal(own, kept[0])
    assert all(np.array_equal(a, b) for a, b in zip(honest, kept[1], strict=True))


def test_single_precision_will_do(attack: UpdateAttack) -> None:
    own, honest = round_of(3)
    found = attack(own.astype(np.float32), [v.astype(np.float32) for v in honest], seed=4)
    assert found == pytest.approx(attack(own, honest, seed=4), rel=1e-4, abs=1e-5)


def test_sign_flip_and_scaling() -> None:
    own, honest = round_of(4)
    assert np.array_equal(SignFlip()(own, honest, seed=0), -own)
    assert np.array_equal(Scaling()(own, honest, seed=0), 10 * own)
    assert np.array_equal(Scaling(factor=-2)(own, honest, seed=0), -2 * own)


def test_free_riders_send_small_noise_each_its_own() -> None:
    own, honest = round_of(5, size=20_000)
    one, other = (FreeRider()(own, honest, seed=seed) for seed in (0, 1))
    assert one.std() == pytest.approx(0.01 * np.stack(honest).std(), rel=0.03)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03


def test_free_riders_of_the_papers_code_all_send_the_same() -> None:
    own, honest = round_of(6)
    alike = FreeRider(reseeded=True)
    assert np.array_equal(alike(own, honest, seed=0), alike(own, honest, seed=1))


@settings(deadline=None)
@given(seed=SEEDS, scale=st.sampled_from([0.1, 1.0, 300.0]))
def test_min_max_reaches_the_honest_spread_and_not_beyond(seed: int, scale: float) -> None:
    own, honest = round_of(seed)
    honest = [scale * vector for vector in honest]
    found = MinMax()(own, honest, seed=0)
    farthest = max(float(np.linalg.norm(found - vector)) for vector in honest)
    widest = widest_pair(honest)
    assert farthest <= widest + 1e-9
    # The bracket is at most twice the distance or 5, halved 20 times; distance moves no faster.
    assert farthest >= widest - max(5.0, 2 * widest) / 2**20


def test_min_max_goes_against_the_mean() -> None:
    own, honest = round_of(8)
    mean = np.mean(honest, axis=0)
    gone = MinMax()(own, honest, seed=0) - mean
    assert gone @ mean == pytest.approx(-np.linalg.norm(gone) * np.linalg.norm(mean))


@settings(deadline=None)
@given(seed=SEEDS, z=st.floats(0.1, 3))
def test_alie_stays_within_the_stated_deviations(seed: int, z: float) -> None:
    own, honest = round_of(seed)
    rows = np.stack(honest)
    found = ALIE(z=z)(own, honest, seed=0)
    assert (np.abs(found - rows.mean(axis=0)) <= z * rows.std(axis=0) + 1e-9).all()
    assert found == pytest.approx(rows.mean(axis=0) - z * rows.std(axis=0))


@pytest.mark.parametrize(
    ("honest", "liars", "z"),
    [(7, 3, 0.18001), (38, 12, 0.33604), (40, 10, 0.25335)],  # quantiles of 4/7, 24/38, 24/40
)
def test_alie_takes_its_deviation_from_the_counts(honest: int, liars: int, z: float) -> None:
    assert SmallestMajority(malicious=liars).deviation(honest) == pytest.approx(z, abs=1e-4)


@pytest.mark.parametrize(("honest", "liars"), [(3, 5), (1, 1), (2, 1)])
def test_alie_needs_a_majority_to_win_over(honest: int, liars: int) -> None:
    with pytest.raises(SettingError, match="fix z instead"):
        SmallestMajority(malicious=liars).deviation(honest)


@pytest.mark.parametrize("name", ["free-rider", "min-max", "alie"])
def test_an_attack_with_nothing_to_read_is_an_error(name: str) -> None:
    attack = UPDATE_ATTACKS[name]
    with pytest.raises(SettingError, match="at least . honest updates, got 0"):
        attack(np.ones(3), [], seed=0)
    with pytest.raises(SettingError, match="shape \\(3,\\)"):
        attack(np.ones(3), [np.ones(4), np.ones(3)], seed=0)
    with pytest.raises(SettingError, match="spread"):
        attack(np.ones(3), [np.ones(3)] * 7, seed=0)


def test_min_max_needs_a_mean_to_go_against() -> None:
    with pytest.raises(SettingError, match="needs a direction"):
        MinMax()(np.ones(2), [np.ones(2), -np.ones(2)], seed=0)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Scaling(factor=1),
        lambda: Scaling(factor=float("nan")),
        lambda: FreeRider(share=0),
        lambda: MinMax(start=0),
        lambda: MinMax(bisections=0),
        lambda: ALIE(z=0),
        lambda: SmallestMajority(malicious=0),
    ],
)
def test_settings_out_of_range_are_refused(build: Callable[[], object]) -> None:
    with pytest.raises(SettingError):
        build()
