"""What a plant gains by joining, in small: four ways on the same rows, their page and figure."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.worth.draws import SUBJECTS, Draw
from benchmarks.worth.page import figure, page
from benchmarks.worth.ways import WAYS, Measured, measure
from sluice.lab.plants import simulate


@pytest.fixture(scope="module")
def found() -> list[Measured]:
    own = simulate("line", seed=0, days=5)
    draw = Draw(
        own=own.rows(0, 200),
        contributes=False,
        members=tuple(simulate("line", seed=seed, days=3) for seed in (1, 2, 3)),
        held=(own.rows(2_880, len(own)),),
        attacked=simulate("line", seed=4, days=2, attacks=True),
    )
    return measure(draw, subject="cold start", days=3, seed=0, asked=1.0)


def test_every_way_is_measured_on_the_same_rows(found: list[Measured]) -> None:
    assert tuple(line.way for line in found) == WAYS
    assert len({line.attacks for line in found}) == 1
    by_way = {line.way: line for line in found}
    # 200 rows a minute apart are no detector of their own; three other plants give one.
    assert by_way["alone"].time_in_alarm > by_way["vote, members' thresholds"].time_in_alarm
    assert by_way["alone"].average_precision < by_way["pooled"].average_precision
    assert not by_way["alone"].extrapolated


def test_a_plant_that_contributes_sets_thresholds_on_rows_that_it_does_not_sum() -> None:
    season = next(subject for subject in SUBJECTS if subject.name == "unseen season")
    assert season.days == (90,)
    own = simulate("line", seed=0, days=3)
    draw = Draw(
        own=own,
        contributes=True,
        members=tuple(simulate("line", seed=seed, days=3) for seed in (1, 2)),
        held=(simulate("line", seed=5, days=2),),
        attacked=simulate("line", seed=4, days=2, attacks=True),
    )
    joined = measure(draw, subject="unseen season", days=90, seed=0, asked=1.0)
    apart = measure(
        replace(draw, contributes=False), subject="unseen season", days=90, seed=0, asked=1.0
    )
    pooled = [line for lines in (joined, apart) for line in lines if line.way == "pooled"]
    assert pooled[0].average_precision != pooled[1].average_precision


def test_the_page_shows_gains_and_what_is_missing(found: list[Measured], tmp_path: Path) -> None:
    draws = [replace(line, seed=seed) for seed in (100, 101) for line in found]
    text = page(draws)
    assert "2 draws (seeds 100 to 101)" in text
    assert "| 3 | alone (n = 2) |" in text
    assert "**gain " in text
    assert "**Not run yet:** unseen season." in text
    assert "the highest clean score: alone, 3 days (2 of 2 draws)" in text
    figure(draws, tmp_path / "worth.svg")
    assert (tmp_path / "worth.svg").read_text(encoding="utf-8").count("<svg") == 1
    figure([], tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()
