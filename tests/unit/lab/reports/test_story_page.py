"""The page of the demo shows the damage if there is some, and says so if there is none."""

from dataclasses import replace
from pathlib import Path

from sluice.lab.reports.story_page import StoryPage, StoryPlant, Way, write_story_page
from sluice.reports.page import plotly_name
from tests.unit.lab.reports.stored_cells import a_certificate
from tests.unit.reports.pages import Page

PLANTS = tuple(
    StoryPlant(
        name=f"plant-{at}",
        lies=at == 2,
        admitted=at != 2,
        violating_share=0.25 if at == 2 else 0.001,
        why="225 of 907 rows break a rule <here>" if at == 2 else "",
        proof_bytes=None if at == 2 else 735_000,
        seconds=1.2,
    )
    for at in range(3)
)
WAYS = tuple(
    Way(name=name, recall=recall, precision=0.4, other_recall=None, malicious_in=0)
    for name, recall in (("clean", 0.3), ("naive", 0.1), ("gated", 0.3))
)
STORY = StoryPage(
    plants=PLANTS,
    ways=WAYS,
    rules=("P101 on: FIT201 flows",),
    rounds=8,
    seed=0,
    certificate=a_certificate(),
)


def written(story: StoryPage, folder: Path) -> str:
    write_story_page(story, folder / "page.html")
    return (folder / "page.html").read_text()


def test_the_picture_comes_first_and_nothing_from_outside(tmp_path: Path) -> None:
    page = written(STORY, tmp_path)
    assert "3 plants, 1 of them malicious; the gate refuses 1 of these" in page
    assert page.index("<figure ") < page.index("Decisions of the gate")
    assert Page(page).loads == [f"script src={plotly_name()}"]
    assert "rows break a rule &lt;here&gt;" in page


def test_damage_is_told_where_there_is_some_and_not_where_there_is_none(tmp_path: Path) -> None:
    assert "finds 10% of those attacks" in written(STORY, tmp_path)
    harmless = tuple(replace(way, recall=0.3) for way in WAYS)
    assert "the effect on recall is too small to see" in written(
        replace(STORY, ways=harmless), tmp_path
    )
