"""`sluice demo`: run once; its page, JSON and printed text are checked."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sluice.cli.console import out
from sluice.lab.cli import demo, demo_page
from sluice.lab.cli.demo_page import Story
from sluice.reports.page import plotly_name
from tests.unit.conftest import Outcome
from tests.unit.reports.pages import Page

Run = Callable[..., Outcome]

MODES = ["clean", "honest-only", "naive", "physics-aware", "gated"]


@dataclass(frozen=True)
class Demonstration:
    """The demonstration, run once, in every form of output."""

    story: Story
    page: str
    payload: dict[str, object]
    words: str


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Demonstration:
    report = tmp_path_factory.mktemp("demo") / "report.html"
    story = demo._run(demo.FAST, seed=0, quiet=True)
    demo_page.write_page(story, report)
    with out.capture() as captured:
        demo_page.show(story, Path("demo/report.html"))
    payload = demo_page.payload(story, report)
    return Demonstration(story, report.read_text(), payload, captured.get())


def test_honest_plants_prove_and_malicious_ones_cannot(told: Demonstration) -> None:
    assert told.payload["refused"] == list(told.story.shared.malicious)
    assert len(told.payload["admitted"]) == 7  # type: ignore[arg-type]
    proofs = told.payload["proofs"]
    assert isinstance(proofs, list)
    assert [proof["client"] for proof in proofs] == told.payload["admitted"]
    assert all(proof["bytes"] > 10_000 for proof in proofs)
    for attempt in told.story.attempts:  # the proof and the gate say the same
        assert attempt.admitted == attempt.verdict.admitted


def test_the_story_ends_with_the_certificate_of_a_vote(told: Demonstration) -> None:
    certificate = told.payload["certificate"]
    assert isinstance(certificate, dict)
    assert (certificate["members"], certificate["votes_needed"]) == (10, 5)
    assert certificate["malicious"] == 3
    assert 0 < certificate["recall_certified"] <= certificate["recall"]
    assert told.story.certificate.sentences[0] in told.words.replace("\n", " ")
    assert "what malicious ones can do at worst" in told.page


def test_the_detector_is_trained_in_five_ways(told: Demonstration) -> None:
    recall = told.payload["recall"]
    assert isinstance(recall, dict)
    assert list(recall) == MODES
    assert all(0 <= value <= 1 for value in recall.values())


def test_malicious_plants_lower_recall_and_the_gate_restores_it(told: Demonstration) -> None:
    recall = told.payload["recall"]
    assert isinstance(recall, dict)
    assert recall["honest-only"] - recall["naive"] > 0.05
    assert recall["gated"] - recall["naive"] > 0.05


def test_the_readme_shows_what_the_demonstration_says(told: Demonstration) -> None:
    """Words and counts are the same; decimals may differ a little, as another processor rounds."""
    readme = (Path(__file__).parents[4] / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(\d+ rules of physics.*?)```", readme, flags=re.DOTALL)
    assert tidied(shown) == tidied(told.words)
    assert decimals(shown) == pytest.approx(decimals(told.words), rel=0.05, abs=0.015)


DECIMAL = re.compile(r"\d+\.\d+")


def decimals(text: str) -> list[float]:
    return [float(found) for found in DECIMAL.findall(text)]


def tidied(text: str) -> list[str]:
    return [" ".join(DECIMAL.sub("#", line).split()) for line in text.strip().splitlines()]


def test_the_page_opens_with_the_picture_and_needs_no_network(told: Demonstration) -> None:
    assert "10 plants, 3 of them malicious; the gate refuses 3 of these" in told.page
    assert told.page.index("<figure ") < told.page.index("Decisions of the gate")
    assert Page(told.page).loads == [f"script src={plotly_name()}"]
    assert 'name="viewport"' in told.page


def test_the_words_name_rules_refusals_and_ways(told: Demonstration) -> None:
    assert "rules of physics were mined" in told.words
    assert "7 of 10 plants proved" in told.words
    for client in told.story.shared.malicious:
        assert f"{client} (it replays attacks): " in told.words
    assert all(mode in told.words for mode in MODES)


def test_a_folder_that_cannot_be_made_is_refused(sluice: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    seen = sluice("demo", "--fast", "--out", tmp_path / "taken" / "demo")
    assert seen.code == 2
    assert "cannot make the folder" in seen.err
