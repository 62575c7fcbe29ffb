"""The first days of a plant, in small: five ways on the same rows, and their page."""

from dataclasses import replace

import pytest

from benchmarks.cold_start.draws import SUBJECTS
from benchmarks.cold_start.page import Line, page
from benchmarks.cold_start.ways import WAYS, ways
from benchmarks.worth.draws import Draw
from benchmarks.worth.ways import measured
from sluice.lab.plants import simulate

CELL = SUBJECTS[0].cells[0]


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    own = simulate("line", seed=0, days=4)
    members = [simulate("line", seed=seed, days=2) for seed in (1, 2, 3)]
    draw = Draw(
        own=own.rows(0, 100),
        contributes=False,
        members=(members[0], members[1].without("S_PU1"), members[2]),
        held=(own.rows(2_880, len(own)),),
        attacked=simulate("line", seed=4, days=2, attacks=True),
    )
    return [
        Line(
            subject=SUBJECTS[0].name,
            cell=CELL,
            seed=0,
            way=way,
            found=made and measured(made, draw, subject="line", days=3, seed=0, way=way),  # type: ignore[arg-type]
        )
        for way, made in ways(draw, asked=1.0).items()
    ]


def test_borrowed_thresholds_serve_where_own_ones_cannot(lines: list[Line]) -> None:
    assert tuple(line.way for line in lines) == WAYS
    found = {line.way: line.found for line in lines}
    assert found["vote, own thresholds"] is None  # 100 rows hold too few peaks
    borrowed, alone = found["vote, borrowed"], found["alone"]
    assert borrowed is not None
    assert alone is not None
    assert borrowed.time_in_alarm < 0.01 < alone.time_in_alarm
    assert borrowed.average_precision > alone.average_precision


def test_the_page_names_targets_and_what_is_missing(lines: list[Line]) -> None:
    draws = [
        replace(line, seed=seed, found=line.found and replace(line.found, seed=seed))
        for seed in (0, 1)
        for line in lines
    ]
    text = page(draws)
    assert "**Not complete:** 2 of 108 draws are measured." in text
    assert "**Not run yet:** varied treatment sites." in text
    assert "| vote, borrowed (n = 2) |" in text
    assert "too few clean rows in all 2 draws" in text
    assert "is at most 5 %: **holds**" in text
    assert f"| {CELL.says} | alone (n = 2) |" in text
