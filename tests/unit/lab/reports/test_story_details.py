"""The details of the demo's page: decisions, colours, and what is left out."""

import html
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sluice.lab.reports import story_page
from sluice.lab.reports.story_page import StoryPage, StoryPlant, Way, write_story_page
from sluice.reports.page import plotly_name
from tests.unit.lab.reports.stored_cells import a_certificate
from tests.unit.reports.pages import Page

HONEST = StoryPlant(
    name="plant-0",
    lies=False,
    admitted=True,
    violating_share=0.0012,
    why="",
    proof_bytes=735_499,
    seconds=1.26,
)
REFUSED = StoryPlant(
    name="plant-1",
    lies=True,
    admitted=False,
    violating_share=0.25,
    why="225 rows & more break 'T<3'",
    proof_bytes=None,
    seconds=0.04,
)
UNDETECTED = replace(HONEST, name="plant-2", lies=True, violating_share=0.0)
WAYS = tuple(
    Way(name=name, recall=recall, precision=precision, other_recall=None, malicious_in=lying)
    for name, recall, precision, lying in (
        ("clean", 0.30, 0.41, 0),
        ("honest-only", 0.28, 0.40, 0),
        ("naive", 0.10, 0.22, 2),
        ("physics-aware", 0.155, 0.30, 2),
        ("gated", 0.28, 0.40, 1),
    )
)
STORY = StoryPage(
    plants=(HONEST, REFUSED, UNDETECTED),
    ways=WAYS,
    rules=("P101 on: FIT201 > 0", "T1 & T2 balance"),
    rounds=8,
    seed=3,
    certificate=a_certificate(),
)


def written(story: StoryPage, folder: Path) -> str:
    write_story_page(story, folder / "page.html")
    return (folder / "page.html").read_text(encoding="utf-8")


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    table = page[page.index(f"<h2>{heading}") :]
    table = table[: table.index("</table>")]
    lines = re.findall(r"<tr[^>]*>(.*?)</tr>", table)
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line) for line in lines]


def bars(page: str, nth: int) -> dict[str, Any]:
    """The data of the nth figure."""
    (trace,) = Page(page).figures[nth].traces
    return trace


def test_the_decision_on_each_plant_is_a_line(tmp_path: Path) -> None:
    assert rows(written(STORY, tmp_path), "Decisions of the gate") == [
        ["plant", "behaviour", "decision", "violating, %", "proof, kB", "s"],
        ["plant-0", "honest", "admitted", "0.12", "735", "1.3"],
        ["plant-1", "lies", "refused", "25.00", "-", "0.0"],
        ["plant-2", "lies", "admitted", "0.00", "735", "1.3"],
    ]


def test_the_title_counts_malicious_plants_and_those_that_the_gate_refuses(tmp_path: Path) -> None:
    page = written(STORY, tmp_path)
    assert "3 plants, 2 of them malicious; the gate refuses 1 of these" in page
    honest_refused = replace(STORY, plants=(HONEST, replace(REFUSED, lies=False)))
    assert "2 plants, 0 of them malicious; the gate refuses 0 of these" in written(
        honest_refused, tmp_path
    )


def test_the_sentence_says_how_many_plants_prove(tmp_path: Path) -> None:
    assert "obeys the plant&#39;s physics: 2 of 3 succeed." in written(STORY, tmp_path)


@pytest.mark.parametrize(
    ("naive", "sentence"),
    [
        (0.29, "Without a gate it then finds 29% of those attacks&#39; windows; without"),
        (0.291, "(recall 0.300 without malicious plants, 0.291 with them)"),
        (0.35, "the average precision on those attacks changes from 0.410 to 0.220."),
    ],
)
def test_damage_is_told_from_one_point_of_recall(
    tmp_path: Path, naive: float, sentence: str
) -> None:
    ways = tuple(replace(way, recall=naive) if way.name == "naive" else way for way in WAYS)
    assert sentence in written(replace(STORY, ways=ways), tmp_path)


def test_a_refused_plant_is_listed_with_its_reasons_escaped(tmp_path: Path) -> None:
    page = written(STORY, tmp_path)
    assert "<p>Only the refused plant sees its reasons:</p>" in page
    assert "<li>plant-1: 225 rows &amp; more break &#39;T&lt;3&#39;</li>" in page


def test_without_refusals_no_reasons_are_promised(tmp_path: Path) -> None:
    page = written(replace(STORY, plants=(HONEST, UNDETECTED)), tmp_path)
    assert "sees its reasons" not in page


def test_the_modes_are_lines_without_the_column_that_nobody_filled(tmp_path: Path) -> None:
    table = rows(written(STORY, tmp_path), "Hidden attacks that each mode")
    assert table[0] == [
        "mode",
        "malicious plants admitted",
        "recall",
        "average precision",
        "meaning",
    ]
    assert [line[0] for line in table[1:]] == [way.name for way in WAYS]
    assert table[4][1:4] == ["2", "0.155", "0.300"]
    assert table[3][4] == "malicious plants replay attacks; no gate"
    filled = replace(STORY, ways=(replace(WAYS[0], other_recall=0.5), *WAYS[1:]))
    table = rows(written(filled, tmp_path), "Hidden attacks that each mode")
    assert [line[4] for line in table] == ["recall on other attacks", "0.500", "-", "-", "-", "-"]


def test_a_bar_is_coloured_by_the_decision_and_a_malicious_plant_has_a_star(
    tmp_path: Path,
) -> None:
    trace = bars(written(STORY, tmp_path), 0)
    assert trace["x"] == ["0", "1*", "2*"]
    assert trace["y"] == pytest.approx([0.12, 25.0, 0.0])
    assert trace["text"] == ["in", "out", "in"]
    assert trace["marker"]["color"] == [
        story_page.ADMITTED,
        story_page.REFUSED,
        story_page.UNDETECTED,
    ]
    assert trace["hovertext"] == ["admitted", html.escape(REFUSED.why, quote=False), "admitted"]


def test_recalls_are_drawn_in_percent_with_their_meaning(tmp_path: Path) -> None:
    trace = bars(written(STORY, tmp_path), 1)
    assert trace["x"] == ["clean", "honest-<br>only", "naive", "physics-<br>aware", "gated"]
    assert trace["y"] == pytest.approx([30, 28, 10, 15.5, 28])
    assert trace["text"] == ["30%", "28%", "10%", "16%", "28%"]
    assert trace["hovertext"] == [story_page.MEANINGS[way.name] for way in WAYS]


def test_rules_are_counted_listed_and_escaped(tmp_path: Path) -> None:
    page = written(STORY, tmp_path)
    assert "<h2>2 rules of physics, mined from clean rows</h2>" in page
    assert "<li>P101 on: FIT201 &gt; 0</li><li>T1 &amp; T2 balance</li>" in page


def test_the_page_ends_by_saying_what_it_is_not(tmp_path: Path) -> None:
    assert (
        '<p class="small end">Seed 3, 8 rounds, one simulated plant: an illustration, not '
        "evidence. A verdict is "
        "about telemetry, not about people.</p>"
    ) in written(STORY, tmp_path)


def test_every_mode_that_is_drawn_has_a_colour_and_a_meaning() -> None:
    assert set(story_page.WAYS) == set(story_page.MEANINGS)


def test_a_page_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    written(STORY, tmp_path)
    page = written(replace(STORY, seed=9), tmp_path)
    assert "Seed 9," in page
    assert "Seed 3," not in page
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", plotly_name()]
