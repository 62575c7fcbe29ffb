"""Tails of known distributions, groups of peaks, and what too few sizes give."""

import numpy as np
import pytest
from scipy import stats

from sluice.invariants.mining.tails import Tail, _peaks, tail_of
from sluice.seeding import stream


@pytest.mark.parametrize("share", [1e-4, 1e-6])
@pytest.mark.parametrize(
    ("name", "quantile"),
    [("exponential", stats.expon.isf), ("half-normal", stats.halfnorm.isf)],
)
def test_levels_beyond_the_record_come_close_to_those_of_the_distribution(
    name: str, quantile: object, share: float
) -> None:
    draw = stream(0, "tails", name)
    sizes = draw.exponential(size=20_000)
    if name == "half-normal":
        sizes = np.abs(draw.normal(size=20_000))
    assert callable(quantile)
    found = tail_of([sizes], apart=0).level(share)
    assert found == pytest.approx(float(quantile(share)), rel=0.2)


def test_a_heavy_tail_reaches_further_than_a_light_one() -> None:
    draw = stream(0, "tails", "heavy")
    light, heavy = np.abs(draw.normal(size=5_000)), np.abs(draw.standard_t(3, size=5_000))
    light, heavy = (sizes / np.quantile(sizes, 0.95) for sizes in (light, heavy))
    levels = [tail_of([sizes], apart=0).level(1e-6) for sizes in (light, heavy)]
    assert levels[1] > 2 * levels[0]


def test_peaks_that_lie_close_together_count_once() -> None:
    sizes = np.array([0.0, 5.0, 0.0, 7.0, 0.0, 0.0, 0.0, 6.0])
    assert list(_peaks(sizes, 1.0, 2)) == [7.0, 6.0]
    assert list(_peaks(sizes, 1.0, 1)) == [5.0, 7.0, 6.0]
    assert _peaks(sizes, 9.0, 1).size == 0


def test_no_sizes_and_equal_sizes_have_no_tail() -> None:
    assert tail_of([], apart=1).level(1e-6) == 0.0
    assert tail_of([np.full(100, 3.0)], apart=1).level(1e-6) == 3.0


@pytest.mark.parametrize(
    ("shape", "level"), [(0.0, 2 + 3 * np.log(100)), (0.5, 2 + 3 * (10 - 1) / 0.5)]
)
def test_a_level_is_the_inverse_of_the_survival_function(shape: float, level: float) -> None:
    tail = Tail(threshold=2.0, per_size=0.1, shape=shape, scale=3.0, largest=4.0)
    assert tail.level(0.001) == pytest.approx(level)
    assert tail.level(0.2) == 2.0
