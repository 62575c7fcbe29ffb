"""The first days of a plant, in small: five ways on the same rows, and their page."""

from dataclasses import replace

import pytest

from benchmarks.cold_start.answers import Drop, site_answers
from benchmarks.cold_start.draws import SUBJECTS, Cell
from benchmarks.cold_start.page import Line, page
from benchmarks.cold_start.tables import grids
from benchmarks.cold_start.ways import ALONE, FITTED, WAYS, ways
from benchmarks.worth.draws import Draw
from benchmarks.worth.page import Column
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
    assert "The target, at most 5 %, **holds**." in text
    assert f"| {CELL.says} | alone (n = 2) |" in text
    assert text.index("**holds**") < text.index("## What is compared") < text.index("## Every cell")
    assert "| vote, borrowed, 11 members | 0.00 [0.00, 0.00] |" in text


def test_a_grid_shows_days_beside_each_other_and_a_lonely_plant_once() -> None:
    cells = SUBJECTS[1].cells

    def named(cell: Cell, way: str, column: Column) -> str:
        return f"{way} {cell.days:g}/{cell.spread:g}/{cell.members} {column.name}"

    lines = list(grids(cells, named))
    assert lines.count("| spread | way | 1.5 hours | 6 hours | 1 day |") == 2
    alone = [line for line in lines if line.startswith("| 0.15 | alone |")]
    assert len(alone) == 2
    assert "alone 0.0625/0.15/3 clean time" in alone[0]
    (borrowed, _) = [line for line in lines if line.startswith("| 0.25 | vote, borrowed, 9")]
    assert "vote, borrowed 1/0.25/9 clean time in alarm" in borrowed
    rows = [line for line in lines if line.startswith("| 0")]
    assert len(rows) == 2 * 3 * (2 + 3)  # figures x spreads x (two alone, three with members)


def test_a_drop_beyond_its_interval_is_told_apart() -> None:
    drops = [Drop(days=1, gain=(-0.02, 0.01)), Drop(days=0.25, gain=(-0.001, 0.01))]
    said = list(
        site_answers(cells=4, quieter={ALONE: 3, FITTED: 4}, drops={ALONE: drops, FITTED: []})
    )
    assert "not longer in 3 of 4 cells. Average precision is not lower in 2 of 4." in said[1]
    assert "where the plant has 0.25 and 1 days of rows: by at most 0.0200" in said[1]
    assert "contains 0 in 1 of these 2." in said[1]
    assert said[2].endswith("not lower in 4 of 4.")
