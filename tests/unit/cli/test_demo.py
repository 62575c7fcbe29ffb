"""`sluice demo` from the outside, and what README shows of it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sluice.cli import demo as telling
from sluice.cli.console import out
from sluice.cli.demo import FAST, Story

from .conftest import Outcome

Run = Callable[..., Outcome]

README = Path(__file__).parents[3] / "README.md"
MODES = ["clean", "honest-only", "naive", "physics-aware", "gated"]
RECALL_SLACK = 0.05  # processors differ in the last digits, and rounds of training spread them
FIGURE = re.compile(r"\d\.\d{3}\b")


@dataclass(frozen=True)
class Told:
    """The demonstration, lived once and told in every way."""

    story: Story
    page: str
    payload: dict[str, object]
    words: str


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    report = tmp_path_factory.mktemp("demo") / "report.html"
    story = telling._lived(FAST, seed=0, quiet=True)
    telling._draw(story, report)
    with out.capture() as captured:
        telling._tell(story, Path("demo/report.html"))
    return Told(story, report.read_text(), telling._payload(story, report), captured.get())


def test_faithful_plants_prove_and_liars_cannot(told: Told) -> None:
    assert told.payload["refused"] == list(told.story.shared.liars)
    assert len(told.payload["admitted"]) == 7  # type: ignore[arg-type]
    proofs = told.payload["proofs"]
    assert isinstance(proofs, list)
    assert [proof["client"] for proof in proofs] == told.payload["admitted"]
    assert all(proof["bytes"] > 10_000 for proof in proofs)
    for knock in told.story.knocks:  # the proof and the gate say the same
        assert knock.admitted == knock.verdict.admitted


def test_the_detector_is_trained_in_five_ways(told: Told) -> None:
    recall = told.payload["recall"]
    assert isinstance(recall, dict)
    assert list(recall) == MODES
    assert all(0 <= value <= 1 for value in recall.values())


def test_the_page_opens_with_the_picture_and_needs_no_network(told: Told) -> None:
    assert "10 plants, 3 of them lie; physics keeps 3 out" in told.page
    assert told.page.index("plotly-graph-div") < told.page.index("At the door")
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", told.page)
    assert 'name="viewport"' in told.page


def test_readme_shows_what_the_demonstration_says(told: Told) -> None:
    (shown,) = re.findall(
        r"```text\n(\d+ rules of physics were mined.*?)```",
        README.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    ours, theirs = told.words.split(), shown.split()
    assert [FIGURE.sub("#", word) for word in ours] == [FIGURE.sub("#", word) for word in theirs]
    for mine, printed in zip(FIGURE.findall(told.words), FIGURE.findall(shown), strict=True):
        assert float(mine) == pytest.approx(float(printed), abs=RECALL_SLACK)


def test_a_folder_that_cannot_be_made_is_refused(sluice: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    seen = sluice("demo", "--fast", "--out", tmp_path / "taken" / "demo")
    assert seen.code == 2
    assert "cannot make the folder" in seen.err
